const QUOTES = '"""';

/**
 * A message that was typed in several lines between `"""`. It opens where a message begins with the
 * quotes or its first line ends with them, and closes with the quotes alone on a line or at the end of
 * one.
 *
 * @returns `open` while the closing quotes are missing; else the message, without the quotes.
 */
export function readBlock(text: string): { open: true } | { open: false; message: string } {
  const first = text.split("\n", 1)[0]!;
  const opening = openingOf(first);
  if (opening === undefined) return { open: false, message: text };
  const before = text.slice(0, opening);
  const inside = text.slice(opening + QUOTES.length);
  const lines = inside.trimEnd().split("\n");
  const last = lines.at(-1)!;
  const even = (text.split(QUOTES).length - 1) % 2 === 0;
  const openedAlone = lines[0]!.trim() === "" && inside.includes("\n");
  const closed = last.endsWith(QUOTES) && (even || (lines.length > 1 && last.trim() === QUOTES));
  if (!closed) {
    // Quotes that close before the end: a text that only happens to begin with them.
    return even && !openedAlone ? { open: false, message: text } : { open: true };
  }
  if (!openedAlone && text.split(QUOTES).length > 3) return { open: false, message: text };
  const content = inside.trimEnd().slice(0, -QUOTES.length).replace(/^[ \t]*\n/, "")
    .replace(/\n[ \t]*$/, "");
  const joint = before.trim() === "" ? "" : before.trimEnd() + (openedAlone ? "\n" : " ");
  return { open: false, message: joint + content };
}

/** Where the quotes open a block in the first line of a message. */
function openingOf(line: string): number | undefined {
  if (line.trimStart().startsWith(QUOTES)) return line.indexOf(QUOTES);
  const trimmed = line.trimEnd();
  const alone = trimmed.split(QUOTES).length === 2;
  return alone && trimmed.endsWith(QUOTES) ? trimmed.length - QUOTES.length : undefined;
}
