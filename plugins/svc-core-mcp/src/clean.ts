/**
 * What a server says, for people and models to read: without control characters, escape sequences and
 * bidirectional marks, cut at so many characters.
 */
export function clean(text: unknown, most: number): string {
  if (typeof text !== "string") return "";
  const cut = text.length > most;
  const plain = text.slice(0, most).toWellFormed()
    // deno-lint-ignore no-control-regex
    .replace(/\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]/g, "")
    // deno-lint-ignore no-control-regex
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "")
    .replace(/[\u{e0000}-\u{e007f}]/gu, ""); // letters that only a model sees
  return cut ? `${plain}...` : plain;
}

/** The same in one line. */
export function cleanLine(text: unknown, most: number): string {
  return clean(text, most).replace(/\s+/g, " ").trim();
}
