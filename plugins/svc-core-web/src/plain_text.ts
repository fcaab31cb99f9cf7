/** Elements that begin a line. */
const BREAKS = /^<\/?(?:p|div|br|li|tr|h[1-6]|ul|ol|table|section|article|header|footer|pre|hr)\b/i;

/** Characters that are looked at: no model is given more. */
const LONGEST = 2_000_000;

/** The text of simplified HTML without any parsing worth the name; in time that grows with its length. */
export function plainText(html: string): string {
  const text = html.slice(0, LONGEST).replace(/<[^<>]*>?/g, (tag) => BREAKS.test(tag) ? "\n" : " ");
  const lines = decodeEntities(text).split("\n").map((line) => line.replace(/\s+/g, " ").trim());
  return lines.filter((line, n) => line !== "" || lines[n - 1] !== "").join("\n").trim();
}

const NAMED: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
};

/** The entities that texts are full of; others stay as they are. */
export function decodeEntities(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,4}));/gi,
    (whole, ten, sixteen, name) => {
      if (name !== undefined) return NAMED[name.toLowerCase()] ?? whole;
      const code = ten === undefined ? parseInt(sixteen, 16) : Number(ten);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "";
    },
  );
}
