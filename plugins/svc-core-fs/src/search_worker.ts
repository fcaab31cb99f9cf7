// The main module of a thread that matches the pattern of a search. `search_threads.ts` starts it, and
// compile.sh bundles it.

/** The pattern of a search; the first message to a worker. */
export interface SearchPattern {
  source: string;
  flags: string;
  /** Source of a text that every match contains; empty when none is known. */
  required: string;
}

/** Asks which of these files may hold a match. */
interface FilesQuestion {
  folder: string;
  /** Paths relative to the folder, joined by NULs. */
  paths: string;
}

/** Asks which lines of a file match. The file comes in pieces. */
interface LinesQuestion {
  bytes: Uint8Array;
  first: boolean;
  last: boolean;
  /** Lines that are returned at most. */
  most: number;
}

export type SearchQuestion = FilesQuestion | LinesQuestion;

export type SearchAnswer = { files: number[] } | { lines: MatchedLine[] };

export interface MatchedLine {
  number: number;
  /** The part of the line around the match. */
  text: string;
}

/** Characters of a line that are searched. */
const MAX_LINE = 4000;
/** Characters of a line that are shown, and how many of them precede the match. */
const SHOWN = 300;
const BEFORE = 100;
/** Larger files are not read here: they may hold a match. */
const MAX_FILE = 256 * 1024;
/** Bytes at the start of a file in which a NUL marks it as binary. */
const BINARY = 8192;
const NEWLINE = 10;

const scope = globalThis as unknown as {
  onmessage: (event: { data: SearchPattern | SearchQuestion }) => void;
  postMessage(answer: SearchAnswer): void;
};

let answer: (question: SearchQuestion) => SearchAnswer;

scope.onmessage = ({ data }) => {
  if ("source" in data) {
    const regex = new RegExp(data.source, data.flags);
    const required = new RegExp(data.required, data.flags);
    const matchingLines = lineSearch(regex);
    const matchingFiles = fileSearch(regex, required);
    answer = (question) =>
      "paths" in question
        ? { files: matchingFiles(question.folder, question.paths.split("\0")) }
        : { lines: matchingLines(question) };
    return;
  }
  scope.postMessage(answer(data));
};

/** Searches one file after the other, each in pieces. */
function lineSearch(regex: RegExp) {
  let decoder: TextDecoder;
  let number: number;
  let rest: string;
  return ({ bytes, first, last, most }: LinesQuestion): MatchedLine[] => {
    if (first) [decoder, number, rest] = [new TextDecoder(), 1, ""];
    const pieces = (rest + decoder.decode(bytes, { stream: !last })).split("\n");
    // The end of a long line is not searched, so it is not kept either.
    rest = last ? "" : pieces.pop()!.slice(0, MAX_LINE);
    if (last && pieces.at(-1) === "") pieces.pop();
    const found: MatchedLine[] = [];
    for (const piece of pieces) {
      const line = piece.slice(0, MAX_LINE).replace(/\r$/, "");
      const column = line.search(regex);
      if (column !== -1) found.push({ number, text: excerpt(line, column, piece) });
      if (found.length === most) break;
      number++;
    }
    return found;
  };
}

function excerpt(line: string, column: number, whole: string): string {
  const start = line.length <= SHOWN ? 0 : Math.max(0, column - BEFORE);
  const text = line.slice(start, start + SHOWN).trimEnd().toWellFormed();
  return `${start > 0 ? "…" : ""}${text}${start + SHOWN < whole.length ? "…" : ""}`;
}

/** Finds the indexes of the files of which a line matches. */
function fileSearch(regex: RegExp, required: RegExp) {
  const buffer = new Uint8Array(MAX_FILE);
  const decoder = new TextDecoder();
  /** Reads a file into the buffer from `at` on, and returns its length. */
  const read = (path: string, at: number): number | "too long" | "unreadable" => {
    let file: Deno.FsFile | undefined;
    try {
      file = Deno.openSync(path);
      const length = file.readSync(buffer.subarray(at)) ?? 0;
      return length === buffer.length - at ? "too long" : length;
    } catch {
      return "unreadable";
    } finally {
      file?.close();
    }
  };
  const text = (from: number, to: number) => decoder.decode(buffer.subarray(from, to));
  const matches = (from: number, to: number): boolean => {
    if (buffer.subarray(from, Math.min(to, from + BINARY)).includes(0)) return false;
    const whole = text(from, to);
    return required.test(whole) && someLine(whole, regex);
  };
  return (folder: string, paths: string[]): number[] => {
    const found: number[] = [];
    /** Files in the buffer, one after the other: most of the time a single test rejects them all. */
    let together: { index: number; from: number; to: number }[] = [];
    let end = 0;
    const flush = () => {
      if (required.test(text(0, end))) {
        for (const { index, from, to } of together) if (matches(from, to)) found.push(index);
      }
      together = [];
      end = 0;
    };
    for (const [index, path] of paths.entries()) {
      let length = read(`${folder}/${path}`, end);
      if (length === "too long" && end > 0) {
        flush();
        length = read(`${folder}/${path}`, 0);
      }
      if (length === "too long") found.push(index);
      else if (length !== "unreadable") {
        together.push({ index, from: end, to: end + length });
        end += length;
        buffer[end++] = NEWLINE;
      }
    }
    flush();
    return found;
  };
}

function someLine(text: string, regex: RegExp): boolean {
  for (let start = 0; start <= text.length;) {
    const newline = text.indexOf("\n", start);
    const next = newline === -1 ? text.length : newline;
    const end = Math.min(next, start + MAX_LINE);
    if (regex.test(text.slice(start, text[end - 1] === "\r" && end > start ? end - 1 : end))) {
      return true;
    }
    start = next + 1;
  }
  return false;
}
