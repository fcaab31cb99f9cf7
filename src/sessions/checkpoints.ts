import { dirname, join } from "node:path";
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
import type { Git } from "./git_changes.ts";

/** What was at a path: a file or a symbolic link. */
const kept = z.object({
  /** SHA-256 of the content, or of a link's target. Left out when the content is not kept. */
  sha256: z.optional(z.string().check(z.regex(/^[0-9a-f]{64}$/))),
  /** Why the content is not kept. */
  missing: z.optional(z.string()),
  size: z.int(),
  /** Permission bits. */
  mode: z.int().check(z.gte(0), z.lte(0o777)),
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
  /** Whether a file holds keys: its content is not kept, since the agent can read what is kept. */
  holdsKeys: (path: string, info: Deno.FileInfo) => boolean;
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

  /** Makes the folder, and notes that a turn changes something. */
  open(turn: number): void {
    this.check();
    makeFolder(this.folder, 0o700);
    const ignore = join(this.options.state, "checkpoints", ".gitignore");
    if (lstatIfExists(ignore) === undefined) Deno.writeTextFileSync(ignore, "*\n");
    writePrivate(this.#open, JSON.stringify({ turn }));
  }

  /** Notes that the turn has ended. */
  close(): void {
    tryRemove(this.#open);
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
      if (each.type !== "keep" || !this.isInside(each.path)) continue;
      const { path, before, agents } = each;
      const info = lstat(this.path(path));
      let after: Kept | null = null;
      const closed = info !== undefined && this.options.holdsKeys(this.path(path), info);
      if (info?.isFile && info.size <= this.largest && !closed) {
        const content = Deno.readFileSync(this.path(path));
        const sha256 = await digest(content);
        contents.set(sha256, content);
        after = { sha256, size: content.length, mode: (info.mode ?? 0o644) & 0o777 };
      } else if (info !== undefined) {
        after = {
          missing: "it is too large, holds keys, or is no file",
          size: info.size,
          mode: 0o644,
        };
      }
      if (!same(before, after)) found.push({ path, before, after, ...agents && { agents } });
    }
    return found;
  }

  /** @throws Error when a folder leads elsewhere */
  check(): void {
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

  /** Whether a name in the list leads into the worktree. A list that came with the worktree may name any file. */
  isInside(name: string): boolean {
    if (name.startsWith("/")) return false;
    const folder = dirname(this.path(name));
    try {
      return Deno.realPathSync(folder) === folder;
    } catch {
      return !exists(folder);
    }
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
    if (this.options.holdsKeys(path, info)) return without("it holds keys");
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
