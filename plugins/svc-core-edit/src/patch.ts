import { join } from "node:path";
import type { ToolArguments, ToolContext } from "../../../src/plugins/api.ts";
import { forgivingEdit, linesOf } from "./match.ts";
import { notFound } from "./replace.ts";
import { diffPreview, readTextFile, regularFile, removeFile, save } from "./text_file.ts";

/**
 * Applies a patch in the format of Codex (V4A) to files: all of it, or nothing.
 *
 * @throws Error for a patch that is incomplete, or has a place that is not there or not certain
 */
export async function applyPatch({ input }: ToolArguments, context: ToolContext): Promise<string> {
  const { files, reports } = await plan(input, context);
  const undo: (() => void | Promise<void>)[] = [];
  const finish: (() => void)[] = [];
  try {
    for (const { path, absolute, info, before, text, mode } of files) {
      if (text === undefined) {
        const removed = removeFile(absolute, info!, context);
        undo.push(removed.undo);
        finish.push(removed.finish);
        continue;
      }
      await save(absolute, text, info, context);
      if (mode !== undefined) Deno.chmodSync(absolute, mode);
      undo.push(async () => {
        if (before === undefined) return Deno.removeSync(absolute);
        await save(absolute, before, await regularFile(path, absolute), context);
      });
    }
  } catch (error) {
    for (const each of undo.reverse()) await each();
    throw error;
  }
  for (const each of finish) each();
  return ["Success. Updated the following files:", ...reports].join("\n");
}

/** The diffs of all files, or the `Error:` text that the call would return. */
export async function previewPatch(
  { input }: ToolArguments,
  context: ToolContext,
): Promise<string> {
  try {
    const { files } = await plan(input, context);
    const diffs = files.map(({ path, before, text, info }) =>
      info !== undefined && before === undefined
        ? `Delete ${path}\n`
        : diffPreview(path, before ?? "", text ?? "")
    );
    return (await Promise.all(diffs)).join("\n");
  } catch (error) {
    return `Error: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** A file that a patch names. */
interface PatchedFile {
  path: string;
  absolute: string;
  /** Undefined: there is no such file yet. */
  info?: Deno.FileInfo;
  /** Its text; undefined also for a file that is no text, which can be deleted only. */
  before?: string;
  /** Its text after the patch; undefined: there is none. */
  text?: string;
  exists: boolean;
  /** Permission bits of a moved file. */
  mode?: number;
}

/** The files that change, with a report for each operation. Operations see the results of those before them. */
async function plan(
  input: string,
  context: ToolContext,
): Promise<{ files: PatchedFile[]; reports: string[] }> {
  const files = new Map<string, PatchedFile>();
  const reports: string[] = [];
  const fileAt = async (path: string) => {
    const absolute = context.paths.resolve(path);
    let file = files.get(absolute);
    if (file === undefined) {
      const info = await regularFile(path, absolute);
      const exists = info !== undefined;
      files.set(absolute, file = { path, absolute, info, exists });
    }
    return file;
  };
  const free = async (path: string) => {
    const file = await fileAt(path);
    if (file.exists) throw new Error(`${path} exists already; change it with "Update File"`);
    return file;
  };
  /** A file that is there, by its own name: what a link leads to is not deleted. */
  const present = async (path: string, removes: boolean) => {
    const file = await fileAt(path);
    if (!file.exists) {
      throw new Error(`there is no ${path}${removes ? "" : '; create it with "Add File"'}`);
    }
    const link = removes && file.info !== undefined &&
      Deno.lstatSync(join(path.startsWith("/") ? "" : context.paths.worktree, path)).isSymlink;
    if (link) throw new Error(`${path} is a link; this tool moves and deletes files only`);
    return file;
  };
  for (const operation of parsePatch(input)) {
    const { path, does } = operation;
    if (does === "add") {
      const file = await free(path);
      Object.assign(file, { text: operation.text, exists: true });
      reports.push(`A ${path}`);
    } else if (does === "delete") {
      const file = await present(path, true);
      if (file.info !== undefined) {
        file.before ??= (await readTextFile(path, context).catch(() => undefined))?.text;
      }
      Object.assign(file, { text: undefined, exists: false });
      reports.push(`D ${path}`);
    } else {
      const { to = path, hunks } = operation;
      const file = await present(path, to !== path);
      if (file.text === undefined) {
        const read = await readTextFile(path, context);
        Object.assign(file, { info: read?.info, before: read?.text, text: read?.text });
      }
      const { text, report } = await patchedText(path, file.text!, hunks, context);
      if (to !== path) {
        const target = await free(to);
        Object.assign(target, { text, exists: true, mode: (file.info?.mode ?? 0o644) & 0o777 });
        Object.assign(file, { text: undefined, exists: false });
      } else if (text === file.text) throw new Error(`nothing would change in ${path}`);
      else file.text = text;
      reports.push(`M ${path}${to === path ? "" : ` -> ${to}`}${report}`);
    }
  }
  const changed = [...files.values()].filter(({ info, before, text, exists }) =>
    exists !== (info !== undefined) || (exists && text !== before)
  );
  // The deletions last: they cannot fail for a full disk.
  changed.sort((one, other) => Number(other.exists) - Number(one.exists));
  return { files: changed, reports };
}

type Operation =
  | { does: "add"; path: string; text: string }
  | { does: "delete"; path: string }
  | { does: "update"; path: string; to?: string; hunks: Hunk[] };

/** A change of neighbouring lines. */
interface Hunk {
  /** Lines before it, such as the heads of a class and a method. */
  anchors: string[];
  lines: [mark: " " | "-" | "+", text: string][];
  /** Whether its lines are the last ones of the file. */
  end: boolean;
}

/** Also finds the paths that the policy checks; see `plugin.ts`. */
const HEADER = /^\*\*\* (Add File|Update File|Delete File|Move to): (.*\S)/;
const BEGIN = "*** Begin Patch";
const END = "*** End Patch";

/** @throws Error for a text that is no whole patch */
function parsePatch(input: string): Operation[] {
  const [, , inner] = /^\s*(?:apply_?patch\s+)?<<-?\s*(['"]?\w+['"]?)[ \t]*\r?\n([\s\S]*)\n\w+\s*$/
    .exec(input) ?? [];
  const lines = (inner ?? input).trim().split(/\r?\n/);
  if (lines[0]?.trim() !== BEGIN) throw new Error(`a patch begins with the line "${BEGIN}"`);
  if (lines.at(-1)?.trim() !== END) {
    throw new Error(`the patch is not whole: its last line has to be "${END}"`);
  }
  const operations: Operation[] = [];
  let current: Operation | undefined;
  for (const [i, line] of lines.slice(1, -1).entries()) {
    const wrong = (what: string) => new Error(`line ${i + 2} of the patch ${what}: ${line}`);
    const [, header, path = ""] = HEADER.exec(line) ?? [];
    if (header === "Move to") {
      if (current?.does !== "update" || current.hunks.length > 0 || current.to !== undefined) {
        throw wrong('does not follow "Update File"');
      }
      current.to = path;
    } else if (header !== undefined) {
      current = header === "Add File"
        ? { does: "add", path, text: "" }
        : header === "Delete File"
        ? { does: "delete", path }
        : { does: "update", path, hunks: [] };
      operations.push(current);
    } else if (current?.does === "update") {
      if (!addLine(current.hunks, line)) throw wrong('begins with none of "@@", " ", "-", "+"');
    } else if (current?.does === "add" && line.startsWith("+")) {
      current.text += `${line.slice(1)}\n`;
    } else if (line.trim() !== "") {
      throw wrong(current?.does === "add" ? 'has no "+" before it' : "belongs to no file");
    }
  }
  if (operations.length === 0) throw new Error("the patch names no file");
  for (const each of operations) {
    if (each.does === "update" && each.hunks.length === 0 && each.to === undefined) {
      throw new Error(`the patch changes nothing in ${each.path}`);
    }
  }
  return operations;
}

/** Adds a line of an update to its hunks. Returns whether it is one. */
function addLine(hunks: Hunk[], line: string): boolean {
  let hunk = hunks.at(-1);
  if (line.startsWith("@@")) {
    if (hunk === undefined || hunk.lines.length > 0) {
      hunks.push(hunk = { anchors: [], lines: [], end: false });
    }
    // The numbers of a unified diff, and the heading after them, are no anchor.
    const anchor = line.slice(2).trim();
    if (anchor !== "" && !/^-\d+(,\d+)? \+\d+(,\d+)? @@/.test(anchor)) hunk.anchors.push(anchor);
    return true;
  }
  if (line.trimEnd() === "*** End of File") {
    if (hunk !== undefined) hunk.end = true;
    return hunk !== undefined;
  }
  if (line.startsWith("\\ No newline")) return true;
  const [mark = " "] = line;
  if (mark !== " " && mark !== "-" && mark !== "+") return false;
  if (hunk === undefined || hunk.end) {
    if (line.trim() === "") return true;
    hunks.push(hunk = { anchors: [], lines: [], end: false });
  }
  hunk.lines.push([mark, line.slice(1)]);
  return true;
}

/** @throws Error for a hunk whose place is not there, or not certain; the signal's reason when it aborts */
async function patchedText(
  path: string,
  whole: string,
  hunks: Hunk[],
  { reads = true, signal }: ToolContext,
): Promise<{ text: string; report: string }> {
  const bom = whole.startsWith("\ufeff") ? "\ufeff" : "";
  let file = linesOf(whole.slice(bom.length));
  let from = 0;
  let rested = performance.now();
  const done = new Set<string>();
  const lines: number[] = [];
  const count = { "+": 0, "-": 0, " ": 0 };
  for (const [i, hunk] of hunks.entries()) {
    if (performance.now() - rested > WORK_MS) { // a patch can have thousands of changes
      await new Promise((resolve) => setTimeout(resolve));
      signal.throwIfAborted();
      rested = performance.now();
    }
    const made = hunkEdit(path, file, hunk, { from, reads });
    if (typeof made === "string") throw new Error(`change ${i + 1} of ${path}: ${made}`);
    file = made.file;
    lines.push(made.line);
    for (const [mark] of hunk.lines) count[mark]++;
    from = made.line - 1 + hunk.lines.filter(([mark]) => mark !== "-").length;
    if (made.how !== undefined && made.how !== "") done.add(made.how);
  }
  const at = lines.length === 0
    ? ""
    : ` (at line ${lines.join(", ")}, +${count["+"]} -${count["-"]} lines)`;
  return {
    text: bom + textOf(file),
    report: [at, ...done].join(done.size > 0 ? ": " : ""),
  };
}

/** Milliseconds after which other work gets a turn. */
const WORK_MS = 50;

type Line = ReturnType<typeof linesOf>[number];

function textOf(file: Line[]): string {
  return file.map(({ text, end }) => text + end).join("");
}

/** The lines of one side of a change. */
function sideOf(lines: Hunk["lines"], mark: "-" | "+"): string[] {
  return lines.filter(([each]) => each === mark || each === " ").map(([, line]) => line);
}

/**
 * The file after one change, or a sentence that says why there is none. Whole lines are compared exactly, then without
 * the empty lines and the end of the file that the change has last, then as `forgivingEdit` does.
 *
 * @param options.from index of the line after the change before this one
 */
function hunkEdit(
  path: string,
  file: Line[],
  hunk: Hunk,
  { from, reads }: { from: number; reads: boolean },
): { file: Line[]; line: number; how?: string } | string {
  const { lines, end } = hunk;
  const full = lines.findLastIndex((line) => line.join("") !== " ") + 1;
  const lengths = new Set([lines.length, Math.max(full, lines.length - 1), full]);
  const variants = [...new Set([end, false])].flatMap((end) =>
    [...lengths].map((length) => ({ ...hunk, lines: lines.slice(0, length), end }))
  );
  for (const [i, variant] of variants.entries()) {
    const start = placeOf(file, variant, { from, reads });
    if (typeof start === "string" && i === 0) return start;
    if (typeof start !== "number") continue;
    return { file: spliced(file, start, variant.lines), line: start + 1 };
  }
  const text = textOf(file);
  const ended = (part: string[]) => part.map((line) => `${line}\n`).join("");
  let unclear: string | undefined;
  for (const length of new Set([full, lines.length])) {
    const part = lines.slice(0, length);
    const found = forgivingEdit(path, text, ended(sideOf(part, "-")), ended(sideOf(part, "+")));
    if (typeof found === "object") return { ...found, file: linesOf(found.text) };
    unclear = found;
  }
  if (!reads) return "its lines do not occur in the file";
  const next = sideOf(lines, "+");
  const made = next.some((line) => line.trim() !== "") ? findLines(file, next)[0] : undefined;
  if (made !== undefined) {
    return `its old lines do not occur in ${path}, and its new ones do, at line ${
      made + 1
    }: it may have been made already`;
  }
  const problem = `its old lines do not occur in ${path}`;
  return unclear ?? notFound(path, text, sideOf(lines, "-").join("\n"), problem);
}

/**
 * The index of the line where a change begins; a sentence that says why that is not certain; undefined when its lines do
 * not occur. Of several places the one counts that the anchors, the order of the changes or the end of the file single
 * out.
 */
function placeOf(
  file: Line[],
  { lines, anchors, end }: Hunk,
  { from, reads }: { from: number; reads: boolean },
): number | string | undefined {
  const old = sideOf(lines, "-");
  if (old.length === 0 && !end && file.length > 0) {
    return 'it has only lines with "+"; give lines around them, or "*** End of File" after them';
  }
  let places = old.length === 0 ? [file.length] : findLines(file, old);
  if (end) places = places.filter((start) => start + old.length === file.length);
  if (places.length > 1) {
    const anchor = afterAnchors(file, anchors);
    const after = (anchors.length > 0 ? anchor?.at : from) ?? 0;
    const later = after > 0 ? places.filter((start) => start >= after) : [];
    if (later.length === 1 || (anchor?.certain && later.length > 1)) places = [later[0]!];
  }
  if (places.length <= 1) return places[0];
  const shown = reads ? `, at line ${places.slice(0, 10).map((at) => at + 1).join(", ")}` : "";
  return `its lines occur ${places.length} times${shown}; give more of the lines around the place that is meant, ` +
    'or the head of its function after "@@"';
}

/** The indices where lines occur in a file. */
function findLines(file: Line[], part: string[]): number[] {
  const found: number[] = [];
  for (let start = 0; start + part.length <= file.length; start++) {
    if (part.every((line, i) => file[start + i]!.text === line)) found.push(start);
  }
  return found;
}

/** Where the lines after some anchors begin, and whether each anchor is in one place only. */
function afterAnchors(
  file: Line[],
  anchors: string[],
): { at: number; certain: boolean } | undefined {
  let at = 0;
  let certain = true;
  for (const anchor of anchors) {
    const found = [...file.keys()].filter((i) => i >= at && file[i]!.text.trim() === anchor);
    if (found.length === 0) return undefined;
    certain &&= found.length === 1;
    at = found[0]! + 1;
  }
  return { at, certain };
}

/** The file with one change: kept lines, and the line ends, are those of the file. */
function spliced(file: Line[], start: number, lines: Hunk["lines"]): Line[] {
  const ending = (file[start] ?? file.at(-1))?.end || file[0]?.end || "\n";
  const made: Line[] = [];
  let at = start;
  for (const [mark, text] of lines) {
    if (mark === "+") made.push({ text, end: ending });
    else if (mark === " ") made.push({ text: file[at]!.text, end: file[at++]!.end || ending });
    else at++;
  }
  const head = file.slice(0, start);
  // A last line without an end stays so.
  if (file.at(-1)?.end === "" && at === file.length && made.length > 0) {
    made.at(-1)!.end = "";
    if (start === at) head.push({ text: head.pop()!.text, end: ending });
  }
  return [...head, ...made, ...file.slice(at)];
}
