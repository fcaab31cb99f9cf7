import { join } from "node:path";
import * as z from "zod/mini";
import { type Clock, timestamp } from "../platform/clock.ts";
import {
  exists,
  jsonOr,
  lstatIfExists,
  makeFolder,
  mintId,
  readTextIfExists,
  tryRemove,
  writeAllSync,
} from "../platform/files.ts";
import { checkpointFolder, dropContent, isLinked, openToAppend, writePrivate } from "./files.ts";
import { Baseline, type Git } from "./git_changes.ts";

/** What was at a path: a file or a symbolic link. */
const kept = z.object({
  /** SHA-256 of the content, or of a link's target. Left out when the content is not kept. */
  sha256: z.optional(z.string().check(z.regex(/^[0-9a-f]{64}$/))),
  /** Why the content is not kept. */
  missing: z.optional(z.string()),
  size: z.int(),
  /** Permission bits. */
  mode: z.int(),
  link: z.optional(z.literal(true)),
  /** Milliseconds since 1970, of a file whose content is not kept. */
  modified: z.optional(z.number()),
});
export type Kept = z.infer<typeof kept>;

/** Relative to the worktree for a path in it. */
const path = z.string().check(z.regex(/^(?!(?:.*\/)?\.\.(?:\/|$))./s));

/** The files of a baseline; see `Baseline`. */
export const baselineFiles = z.array(z.tuple([path, z.nullable(kept)]));

/** `null`: nothing was there. */
const change = z.object({
  path,
  before: z.nullable(kept),
  after: z.nullable(kept),
  /** The sessions of the sub-agents that made it. */
  agents: z.optional(z.array(z.string())),
});
export type Change = z.infer<typeof change>;

const head = { turn: z.int(), at: z.string() };

/** A line of a session's list. */
const line = z.discriminatedUnion("type", [
  /** Precedes the first change of a file by a tool in a turn. */
  z.object({ type: z.literal("keep"), ...head, ...z.omit(change, { after: true }).shape }),
  /** Precedes the first command of a turn. `unknown`: why its changes are not known. */
  z.object({ type: z.literal("commands"), ...head, unknown: z.optional(z.string()) }),
  /** The changes of a turn that has ended. `interrupted`: they were found later, since the process had ended. */
  z.object({
    type: z.literal("end"),
    ...head,
    changes: z.array(change),
    unknown: z.optional(z.string()),
    interrupted: z.optional(z.literal(true)),
  }),
  z.object({ type: z.literal("undo"), ...head, undone: z.boolean() }),
]);
export type Line = z.infer<typeof line>;
type NewLine = Line extends infer L ? (L extends Line ? Omit<L, "at"> : never) : never;

export interface CheckpointOptions {
  /** `<worktree>/.svc` */
  state: string;
  /** Real absolute path. */
  worktree: string;
  /** Bytes of content that are kept at most, of all sessions (setting `checkpoints.max_size`). */
  max_size: number;
  clock: Clock;
  /** Runs Git in the worktree, or says why that is not possible. */
  git: Git | string;
}

/** A file may have this share of `max_size`, and those that are not committed half of it. */
const LARGEST_SHARE = 1 / 16;
/** The share of `max_size` after which the size of everything that is kept is counted again. */
const COUNT_SHARE = 1 / 16;
/** The share of `max_size` that is left when content was removed. */
const LEFT_SHARE = 3 / 4;

/**
 * What one session's turns have changed: a list, the contents before and after, and while a turn changes something
 * a file `open`. The same content of several sessions is one file with hard links. All files are readable by their
 * owner alone.
 */
export class Checkpoints {
  readonly options: CheckpointOptions;
  readonly folder: string;
  readonly session: string;

  constructor(session: string, options: CheckpointOptions) {
    this.session = session;
    this.options = options;
    this.folder = checkpointFolder(options.state, session);
  }

  /** Begins to keep what a turn changes. First ends a turn of this session whose process has ended. */
  async begin(turn: number): Promise<TurnCheckpoint> {
    await this.settle();
    this.#check();
    makeFolder(this.folder, 0o700);
    const ignore = join(this.options.state, "checkpoints", ".gitignore");
    if (lstatIfExists(ignore) === undefined) Deno.writeTextFileSync(ignore, "*\n");
    writePrivate(this.#open, JSON.stringify({ turn }));
    return new TurnCheckpoint(this, turn);
  }

  /** The turn that changes something now, or whose process has ended in it. */
  running(): number | undefined {
    const turn = jsonOr(readTextIfExists(this.#open) ?? "", {})?.turn;
    return Number.isInteger(turn) ? turn : undefined;
  }

  /** What the tools of a running turn have changed so far, and the contents of the files as they are. */
  async changing(lines: Line[], contents: Map<string, Uint8Array>): Promise<Change[]> {
    const found: Change[] = [];
    for (const each of lines) {
      // Others may not be for the eyes of the reader.
      if (each.type !== "keep" || each.path.startsWith("/")) continue;
      const { path, before, agents } = each;
      const info = lstat(this.path(path));
      let after: Kept | null = null;
      if (info?.isFile && info.size <= this.largest) {
        const content = Deno.readFileSync(this.path(path));
        const sha256 = await digest(content);
        contents.set(sha256, content);
        after = { sha256, size: content.length, mode: (info.mode ?? 0o644) & 0o777 };
      } else if (info !== undefined) {
        after = { missing: "it is too large, or no file", size: info.size, mode: 0o644 };
      }
      add(found, { path, before, after, ...agents && { agents } });
    }
    return found;
  }

  /** Finds what a turn has changed whose process has ended. The caller knows that no turn runs. */
  async settle(): Promise<void> {
    const turn = this.running();
    if (turn === undefined) return;
    this.#check();
    await TurnCheckpoint.resume(this, turn).end(true);
  }

  #check(): void {
    if (!isLinked(this.options.state, this.session)) return;
    throw new Error("a folder of .svc/checkpoints is a link");
  }

  get #open(): string {
    return join(this.folder, "open");
  }

  /** The list. Lines that are damaged are left out. */
  lines(wanted: (turn: number) => boolean = () => true): Line[] {
    const text = readTextIfExists(join(this.folder, "list.jsonl")) ?? "";
    return text.split("\n").flatMap((each) => {
      if (!wanted(Number(/"turn":(\d+)/.exec(each)?.[1]))) return []; // without parsing it
      const { success, data } = line.safeParse(jsonOr(each, undefined));
      return success ? [data] : [];
    });
  }

  append(...lines: NewLine[]): void {
    const at = timestamp(this.options.clock);
    // A line break first: the last line may be torn.
    const text = lines.map(({ type, ...rest }) => `\n${JSON.stringify({ type, at, ...rest })}`);
    const file = openToAppend(join(this.folder, "list.jsonl"));
    try {
      writeAllSync(file, new TextEncoder().encode(text.join("")));
    } finally {
      file.close();
    }
  }

  /** As it is written in the list: relative where it is in the worktree. */
  name(path: string): string {
    const { worktree } = this.options;
    return path.startsWith(`${worktree}/`) ? path.slice(worktree.length + 1) : path;
  }

  /** The absolute path of a name in the list. */
  path(name: string): string {
    return name.startsWith("/") ? name : join(this.options.worktree, name);
  }

  /** Bytes of the largest file whose content is kept. Any may be compared where nothing more is kept. */
  get largest(): number {
    return Math.floor(this.options.max_size * LARGEST_SHARE) || Infinity;
  }

  /**
   * Keeps what is at a path.
   *
   * @param most bytes of the largest content
   * @returns null when nothing is there; undefined for what is neither a file nor a link
   */
  async capture(path: string, most: number = this.largest): Promise<Kept | null | undefined> {
    const info = lstat(path);
    if (info === undefined) return null;
    const mode = (info.mode ?? 0o644) & 0o777;
    if (info.isSymlink) {
      return await this.keep(new TextEncoder().encode(Deno.readLinkSync(path)), mode, true);
    }
    if (!info.isFile) return undefined;
    const without = (missing: string): Kept => {
      return { missing, size: info.size, mode, modified: info.mtime?.getTime() };
    };
    if (info.size > most) return without("it is too large");
    try {
      return await this.keep(Deno.readFileSync(path), mode);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return null;
      if (error instanceof Deno.errors.PermissionDenied) return without("it cannot be read");
      throw error;
    }
  }

  /** Keeps a content. */
  async keep(content: Uint8Array<ArrayBuffer>, mode: number, link?: true): Promise<Kept> {
    const sha256 = await digest(content);
    const own = join(this.folder, sha256);
    if (lstatIfExists(own) === undefined) this.#write(own, content, join(this.#shared, sha256));
    return { sha256, size: content.length, mode, ...link && { link } };
  }

  /** Bytes that this object has written. */
  written = 0;

  get #shared(): string {
    return join(this.options.state, "checkpoints", "contents");
  }

  #write(own: string, content: Uint8Array, shared: string): void {
    try {
      if (lstatIfExists(shared)?.size === content.length) return Deno.linkSync(shared, own);
    } catch {
      // it was removed meanwhile
    }
    const temporary = join(this.folder, `.${mintId()}.tmp`);
    try {
      const file = Deno.openSync(temporary, { write: true, createNew: true, mode: 0o600 });
      try {
        writeAllSync(file, content);
      } finally {
        file.close();
      }
      Deno.renameSync(temporary, own);
    } catch (error) {
      tryRemove(temporary);
      throw error;
    }
    this.written += content.length;
    try {
      makeFolder(this.#shared, 0o700);
      Deno.linkSync(own, shared);
    } catch {
      // another session has it, or the file system has no links
    }
  }

  /** A kept content; undefined when it was removed, or is damaged. */
  async content({ sha256 }: Kept): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (sha256 === undefined) return undefined;
    try {
      const content = Deno.readFileSync(join(this.folder, sha256));
      return await digest(content) === sha256 ? content : undefined;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw error;
    }
  }

  /** Removes the contents that were kept for a comparison and are in no change. */
  drop(contents: Iterable<Kept | null>, lines: Line[]): void {
    const used = new Set(lines.flatMap(contentsOf));
    for (const { sha256 } of [...contents].filter((each) => each !== null)) {
      if (sha256 !== undefined && !used.has(sha256)) dropContent(this.folder, sha256);
    }
  }

  /**
   * Removes contents when all sessions together have more than `max_size`: those of the sessions that were written
   * longest ago, and last those of this session's oldest turns. The lists stay.
   */
  prune(): void {
    const { state, max_size } = this.options;
    if (max_size === 0) return;
    const counter = join(state, "checkpoints", "written");
    const written = Number(readTextIfExists(counter) ?? 0) + this.written;
    const due = !(written < max_size * COUNT_SHARE);
    if (this.written > 0) {
      writePrivate(counter, String(due ? 0 : written));
    }
    this.written = 0;
    if (!due) return;
    const root = join(state, "checkpoints", "sessions");
    const sizes = new Map<string, number>();
    const folders = [...Deno.readDirSync(root)].filter(({ isDirectory }) => isDirectory);
    const sessions = folders.map(({ name }) => {
      const folder = join(root, name);
      const names = [...Deno.readDirSync(folder)].map((entry) => entry.name)
        .filter((each) => each.length === 64);
      for (const each of names) sizes.set(each, lstatIfExists(join(folder, each))?.size ?? 0);
      const time = name === this.session
        ? Infinity
        : lstatIfExists(join(folder, "list.jsonl"))?.mtime?.getTime() ?? 0;
      return { folder, names, time };
    }).sort((one, other) => one.time - other.time);
    let total = sizes.values().reduce((sum, size) => sum + size, 0);
    if (total <= max_size) return;
    for (const { folder, names, time } of sessions) {
      const newest = time === Infinity ? this.lines().toReversed().flatMap(contentsOf) : [];
      for (const name of [...new Set(newest).union(new Set(names))].reverse()) {
        if (total <= max_size * LEFT_SHARE) return;
        if (dropContent(folder, name)) total -= sizes.get(name) ?? 0;
      }
    }
  }
}

/** What one turn changes. Calls may overlap: several agents work in a turn. */
export class TurnCheckpoint {
  readonly #checkpoints: Checkpoints;
  readonly #turn: number;
  readonly #kept = new Map<string, Promise<void>>();
  readonly #before = new Map<string, Kept | null>();
  readonly #agents = new Map<string, Set<string>>();
  readonly #commandAgents = new Set<string>();
  #baseline: Promise<Baseline | string> | undefined;

  constructor(checkpoints: Checkpoints, turn: number) {
    this.#checkpoints = checkpoints;
    this.#turn = turn;
  }

  /** What a turn whose process has ended had kept. */
  static resume(checkpoints: Checkpoints, turn: number): TurnCheckpoint {
    const resumed = new TurnCheckpoint(checkpoints, turn);
    for (const each of checkpoints.lines()) {
      if (each.turn !== turn) continue;
      if (each.type === "keep") {
        resumed.#before.set(each.path, each.before);
        resumed.#agents.set(each.path, new Set(each.agents));
      } else if (each.type === "commands") {
        resumed.#baseline = Promise.resolve(
          each.unknown ?? Baseline.read(checkpoints, turn) ?? "the comparison was not finished",
        );
      }
    }
    return resumed;
  }

  /**
   * Keeps a file before a tool changes it.
   *
   * @param path absolute, without links
   * @param agent the session of the sub-agent that changes it. Default: the turn's own agent
   */
  async keep(path: string, agent?: string): Promise<void> {
    const name = this.#checkpoints.name(path);
    let keeping = this.#kept.get(name);
    if (keeping === undefined) this.#kept.set(name, keeping = this.#keep(path, name, agent));
    await keeping;
    if (agent !== undefined && this.#before.has(name)) {
      this.#agents.getOrInsertComputed(name, () => new Set()).add(agent);
    }
  }

  async #keep(path: string, name: string, agent?: string): Promise<void> {
    const before = await this.#checkpoints.capture(path);
    if (before === undefined) return;
    const agents = agent === undefined ? {} : { agents: [agent] };
    this.#checkpoints.append({ type: "keep", turn: this.#turn, path: name, before, ...agents });
    this.#before.set(name, before);
  }

  /** Before a program runs that may change any file: notes what the worktree contains, once a turn. */
  async scan(agent?: string): Promise<void> {
    if (agent !== undefined) this.#commandAgents.add(agent);
    await (this.#baseline ??= this.#scan());
  }

  async #scan(): Promise<Baseline | string> {
    const checkpoints = this.#checkpoints;
    const { options: { git } } = checkpoints;
    const found = typeof git === "string" ? git : await Baseline.take(checkpoints, this.#turn, git);
    const unknown = typeof found === "string" ? { unknown: found } : {};
    checkpoints.append({ type: "commands", turn: this.#turn, ...unknown });
    return found;
  }

  /** Notes what the turn has changed. */
  async end(interrupted = false): Promise<void> {
    const checkpoints = this.#checkpoints;
    await Promise.allSettled(this.#kept.values());
    const found: Change[] = [];
    for (const [path, before] of this.#before) {
      // The list may have come with the worktree: it opens no file outside.
      if (interrupted && path.startsWith("/")) continue;
      const after = await checkpoints.capture(checkpoints.path(path));
      const agents = [...this.#agents.get(path) ?? []];
      add(found, { path, before, after: after ?? null, ...agents.length > 0 && { agents } });
    }
    const baseline = await this.#baseline?.catch(() => undefined);
    let unknown = typeof baseline === "string" ? baseline : undefined;
    if (baseline instanceof Baseline) {
      const changed = await baseline.compare();
      if (typeof changed === "string") unknown = changed;
      else {
        const agents = [...this.#commandAgents];
        for (const each of changed) {
          if (this.#before.has(each.path)) continue;
          add(found, { ...each, ...agents.length > 0 && { agents } });
        }
      }
    }
    const changes = found.sort((one, other) => one.path < other.path ? -1 : 1);
    if (changes.length > 0 || unknown !== undefined) {
      checkpoints.append({
        type: "end",
        turn: this.#turn,
        changes,
        ...unknown !== undefined && { unknown },
        ...interrupted && { interrupted: true as const },
      });
    }
    if (baseline instanceof Baseline) {
      checkpoints.drop(baseline.files.values(), checkpoints.lines());
    }
    Baseline.remove(checkpoints, this.#turn);
    tryRemove(join(checkpoints.folder, "open"));
    checkpoints.prune();
  }
}

function add(changes: Change[], found: Change): void {
  if (!same(found.before, found.after)) changes.push(found);
}

/** Whether two contents are the same, with the same right to execute. */
export function same(one: Kept | null, other: Kept | null): boolean {
  if (one === null || other === null) return one === other;
  const runs = ({ mode, link }: Kept) => link || (mode & 0o111) !== 0;
  return one.sha256 === other.sha256 && one.size === other.size && one.link === other.link &&
    one.modified === other.modified && runs(one) === runs(other);
}

/** The contents that a line refers to. */
function contentsOf(each: Line): string[] {
  const all = each.type === "keep"
    ? [each.before]
    : each.type === "end"
    ? each.changes.flatMap(({ before, after }) => [before, after])
    : [];
  return all.flatMap((one) => one?.sha256 ?? []);
}

async function digest(content: Uint8Array<ArrayBuffer>): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", content)).toHex();
}

function lstat(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      return undefined;
    }
    throw error;
  }
}

/** Whether a session has a list. */
export function hasCheckpoints(state: string, session: string): boolean {
  return exists(join(checkpointFolder(state, session), "list.jsonl"));
}
