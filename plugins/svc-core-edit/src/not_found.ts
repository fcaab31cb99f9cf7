const NUMBERED = /^\s*\d+\|/;
/** Lines and characters of a line that are compared in the search for the closest. */
const MAX_LINES = 20_000;
const MAX_LINE = 200;
/** Comparisons of lines, after which a text that begins alike everywhere is given up. */
const MAX_COMPARISONS = 5_000_000;

/** Why `old` does not occur in a file, and what in the file comes closest to it. */
export function notFound(path: string, text: string, old: string): string {
  const what = `old does not occur in ${path}`;
  const wanted = lines(old);
  if (wanted.every((line) => NUMBERED.test(line))) {
    return `${what}: it carries line numbers of file_read; leave out "<n>|"`;
  }
  const have = lines(text);
  const spaced = differsInSpace(have, wanted);
  if (spaced !== -1) {
    const found = have.slice(spaced, spaced + wanted.length).join("\n");
    if (found === wanted.join("\n")) {
      const range = `${spaced + 1}-${spaced + wanted.length}`;
      return `${what}: lines ${range} are the same but end differently, some with CR LF and some ` +
        "with LF; edit them one by one";
    }
    return `${what}: line ${spaced + 1} differs in white space only. It reads:\n${found}`;
  }
  const folded = text.toLowerCase().indexOf(old.toLowerCase());
  if (folded !== -1) {
    const line = lines(text.slice(0, folded)).length;
    return `${what}: line ${line} differs in upper and lower case only. It reads:\n` +
      have.slice(line - 1, line - 1 + wanted.length).join("\n");
  }
  const near = closest(have, wanted);
  return near === -1
    ? `${what}, nor anything like it; read the file again`
    : `${what}. The closest is line ${near + 1}:\n${have[near]!.slice(0, 2 * MAX_LINE)}`;
}

function lines(text: string): string[] {
  return text.split(/\r?\n/);
}

/** Index of the first line from which on only white space differs, or -1. */
function differsInSpace(have: string[], wanted: string[]): number {
  const fold = (line: string) => line.replace(/\s+/g, " ").trim();
  const sought = wanted.map(fold);
  while (sought.length > 1 && sought.at(-1) === "") sought.pop();
  if (sought.every((line) => line === "")) return -1;
  const folded = have.map(fold);
  let left = MAX_COMPARISONS;
  for (let start = folded.indexOf(sought[0]!); start !== -1 && left > 0;) {
    if (sought.every((line, index) => left-- > 0 && folded[start + index] === line)) return start;
    start = folded.indexOf(sought[0]!, start + 1);
  }
  return -1;
}

/** Index of the line most like the longest wanted one, or -1 when none resembles it. */
function closest(have: string[], wanted: string[]): number {
  const longest = wanted.reduce(
    (best, line) => line.trim().length > best.length ? line.trim() : best,
    "",
  );
  const sought = pairs(longest);
  let best = -1;
  let most = 0.4;
  for (const [index, line] of have.slice(0, MAX_LINES).entries()) {
    const likeness = overlap(sought, pairs(line.trim()));
    if (likeness > most) [best, most] = [index, likeness];
  }
  return best;
}

/** The pairs of neighbouring characters in a line. */
function pairs(line: string): Set<string> {
  const result = new Set<string>();
  const end = Math.min(line.length, MAX_LINE) - 1;
  for (let i = 0; i < end; i++) result.add(line.slice(i, i + 2));
  return result;
}

/** Share of pairs two lines have in common, 0 to 1 (Dice's coefficient). */
function overlap(a: Set<string>, b: Set<string>): number {
  return a.size + b.size === 0 ? 0 : 2 * a.intersection(b).size / (a.size + b.size);
}
