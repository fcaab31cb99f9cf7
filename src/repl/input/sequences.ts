const FINAL: Record<string, string> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  F: "end",
  H: "home",
  M: "enter",
  Z: "shift-tab",
};

const NUMBERED: Record<number, string> = {
  1: "home",
  3: "delete",
  4: "end",
  7: "home",
  8: "end",
};

const CODES: Record<number, string> = { 9: "tab", 13: "enter", 27: "escape", 127: "backspace" };

/** The key of an escape sequence (CSI or SS3) without its ESC; undefined for one that means nothing. */
export function sequenceKey(sequence: string): string | undefined {
  const numbers = sequence.slice(1, -1).split(";").map((part) => parseInt(part) || 1);
  const [first = 1, second = 1, third = 1] = numbers;
  const final = sequence.at(-1)!;
  if (final === "~" && first === 27) return modified(CODES[third], second);
  if (final === "~") return modified(NUMBERED[first], second);
  if (final === "u") return unicodeKey(first, second);
  return modified(FINAL[final], second);
}

/** `13;2u`: a key by its code point, from terminals that report modifiers that way. */
function unicodeKey(code: number, modifiers: number): string | undefined {
  if (CODES[code] !== undefined) return modified(CODES[code], modifiers);
  return code > 32 && code < 127 ? modified(String.fromCharCode(code), modifiers) : undefined;
}

/** @param modifiers one more than the sum of shift 1, alt 2, ctrl 4 */
function modified(name: string | undefined, modifiers: number): string | undefined {
  if (name === undefined) return undefined;
  const bits = modifiers - 1;
  return (bits & 4 ? "ctrl-" : "") + (bits & 2 ? "alt-" : "") + (bits & 1 ? "shift-" : "") + name;
}
