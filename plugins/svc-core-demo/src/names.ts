/** The path that a word of a request stands for, without quotes, brackets and final punctuation. */
export function bare(word: string): string {
  return word.replace(/^[\s"'`“”„«»‘’「」『』<([{]+/u, "").replace(END, "").replace(/['’]s$/u, "");
}

/** Dots only after a name: `.` and `src/..` are paths. */
const END = /(?:[\s"'`“”„«»‘’「」『』>)\]},;:!?。，、！？…]|(?<=[^./])\.+)+$/u;

/** True when a word looks like the name of a file, judged by its form alone. */
export function looksLikeFile(word: string): boolean {
  return !/:\/\/|[*\s]/.test(word) && FORMS.some((form) => form.test(word));
}

const FORMS = [
  // a name with an extension that is no number: notes.txt, but not 3.14
  /[^/\s.][^/\s]*\.(?=[\p{L}\p{N}]*\p{L})[\p{L}\p{N}]{1,12}$/u,
  /^(?:.*\/)?\.[\p{L}\p{N}][^/\s]*$/u,
  /^(?:.*\/)?(?:readme|licen[sc]e|makefile|dockerfile|changelog|notice|authors)$/iu,
];
