/**
 * A text with everything written out that a terminal would act on, that cannot be seen or that disguises
 * what stands there; line feeds and tabs stay. For what a person is asked to approve: nothing of it may be hidden.
 */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").toWellFormed().replace(DISGUISE, (character) => {
    const code = character.codePointAt(0)!;
    if (code < 0x20) return `^${String.fromCharCode(code + 0x40)}`;
    return code === 0x7f ? "^?" : `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

/** Controls, formats (bidirectional and zero-width marks), separators, spaces that are none, fillers. */
const DISGUISE =
  /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u2000-\u200a\u202f\u205f\u3000\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;
