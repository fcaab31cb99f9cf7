import type { Checkpoints, Kept, Line } from "./checkpoints.ts";

/** What one turn changed. */
export interface TurnChanges {
  turn: number;
  /** When the turn ended, or began to change something. */
  at: string;
  state: "applied" | "undone" | "running";
  /** The process ended in the turn: what was changed until it was looked for belongs to the turn. */
  interrupted: boolean;
  /** Why changes that commands made are not known; empty when they are. */
  unknown: string;
  files: FileChange[];
}

/** What one turn changed of a file. */
export interface FileChange {
  /** Relative to the worktree where it is in it. */
  path: string;
  change: "added" | "deleted" | "changed" | "renamed" | "mode";
  /** The former path of a renamed file; empty otherwise. */
  from: string;
  binary: boolean;
  /** Lines. */
  added: number;
  removed: number;
  /** The sub-agents that changed it, by their sessions. */
  agents: string[];
  /** A unified diff; empty for a binary file. */
  diff: string;
  /** Why there is no diff, or what it does not show; empty otherwise. */
  note: string;
}

/**
 * What the turns of a session changed, the oldest first. A turn that changed nothing is left out.
 *
 * @param request.turn only this one
 */
export async function turnChanges(
  checkpoints: Checkpoints,
  request: { turn?: number } = {},
): Promise<TurnChanges[]> {
  const result: TurnChanges[] = [];
  const byTurn = Map.groupBy(checkpoints.lines(), ({ turn }) => turn);
  for (const [turn, lines] of [...byTurn].sort(([one], [other]) => one - other)) {
    if (request.turn !== undefined && request.turn !== turn) continue;
    const end = endOf(lines);
    const running = end === undefined && checkpoints.running() === turn;
    if (end === undefined && !running) continue;
    const commands = lines.find(({ type }) => type === "commands");
    const contents = new Map<string, Uint8Array<ArrayBuffer>>();
    const changes = end?.changes ?? await checkpoints.changing(lines, contents);
    const read = async (kept: Kept) =>
      contents.get(kept.sha256 ?? "") ?? await checkpoints.content(kept);
    const files: FileChange[] = [];
    const moved = renames(changes);
    for (const { path, before, after, agents = [] } of changes) {
      if (moved.has(path)) continue;
      const from = [...moved].find(([, to]) => to === path)?.[0] ?? "";
      files.push(await fileChange({ path, from, before, after, agents }, read));
    }
    result.push({
      turn,
      at: (end ?? lines[0]!).at,
      state: running ? "running" : isUndone(lines) ? "undone" : "applied",
      interrupted: end?.interrupted === true,
      unknown: end !== undefined
        ? end.unknown ?? ""
        : commands === undefined
        ? ""
        : "the turn is still running",
      files,
    });
  }
  return result;
}

/** The changes of a turn that has ended, among its lines. */
export function endOf(lines: Line[]): (Line & { type: "end" }) | undefined {
  return lines.find((line) => line.type === "end");
}

/** Whether the changes of a turn are taken back, by its lines. */
export function isUndone(lines: Line[]): boolean {
  return lines.findLast((line) => line.type === "undo")?.undone === true;
}

type Both = Pick<FileChange, "path" | "from" | "agents"> & {
  before: Kept | null;
  after: Kept | null;
};

/** Files whose whole content appeared under another name: former path to new path. */
function renames(changes: { path: string; before: Kept | null; after: Kept | null }[]) {
  const added = changes.filter(({ before, after }) => before === null && after?.sha256);
  const moved = new Map<string, string>();
  for (const { path, before, after } of changes) {
    if (after !== null || before === null || before.size === 0) continue;
    const at = added.findIndex(({ after }) => after!.sha256 === before.sha256);
    if (at >= 0) moved.set(path, added.splice(at, 1)[0]!.path);
  }
  return moved;
}

/** Bytes of the largest text that is compared. */
const LARGEST = 1024 * 1024;
/** Milliseconds for one comparison. */
const TIMEOUT = 1000;

async function fileChange(
  { path, from, before, after, agents }: Both,
  read: (kept: Kept) => Promise<Uint8Array | undefined>,
): Promise<FileChange> {
  const same = before?.sha256 !== undefined && before.sha256 === after?.sha256;
  const change = from !== ""
    ? "renamed"
    : before === null
    ? "added"
    : after === null
    ? "deleted"
    : same
    ? "mode"
    : "changed";
  const file = {
    path,
    change,
    from,
    binary: false,
    added: 0,
    removed: 0,
    agents,
    diff: "",
  } as const;
  if (change === "renamed") return { ...file, note: "" };
  if (change === "mode") {
    return { ...file, note: `mode ${octal(before!)} became ${octal(after!)}` };
  }
  const link = before?.link || after?.link ? "a symbolic link" : "";
  const texts: string[] = [];
  for (const kept of [before, after]) {
    if (kept === null) {
      texts.push("");
      continue;
    }
    if (kept.missing !== undefined) return { ...file, note: `not shown: ${kept.missing}` };
    if (kept.size > LARGEST) return { ...file, note: `not shown: it has ${kept.size} bytes` };
    const content = await read(kept);
    if (content === undefined) return { ...file, note: "not shown: its content is no longer kept" };
    const text = textOf(content);
    if (text === undefined) {
      const sizes = [before, after].map((each) => each?.size ?? 0).join(" to ");
      return { ...file, binary: true, note: `binary, ${sizes} bytes` };
    }
    texts.push(text);
  }
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import("diff");
  const name = (kept: Kept | null, side: string) => kept === null ? "/dev/null" : `${side}/${path}`;
  const patch = createTwoFilesPatch(
    name(before, "a"),
    name(after, "b"),
    texts[0]!,
    texts[1]!,
    "",
    "",
    { timeout: TIMEOUT, headerOptions: FILE_HEADERS_ONLY },
  );
  if (patch === undefined) return { ...file, note: "not shown: comparing it takes too long" };
  const lines = patch.split("\n").slice(2);
  const count = (sign: string) => lines.filter((line) => line.startsWith(sign)).length;
  return { ...file, added: count("+"), removed: count("-"), diff: patch, note: link };
}

function octal({ mode }: Kept): string {
  return mode.toString(8);
}

/** The text of a file; undefined for a binary one. */
function textOf(content: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
