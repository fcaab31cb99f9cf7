import { join } from "node:path";
import { type Clock, timestamp } from "../platform/clock.ts";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { readTextIfExists, writeFileAtomic } from "../platform/files.ts";

/** Whose memory it is (specification 2.12). */
export type MemoryScope = "role" | "team" | "job";

export interface MemoryStoreOptions {
  /** `<worktree>/.svc` */
  state: string;
  /** `memory_enabled`, `memory.<scope>` and `memory_max_chars` are read at every use. */
  config: { get(key: string): unknown };
  clock: Clock;
  warn: (message: string) => void;
}

/** What a run is remembered by. */
export interface RememberRequest {
  scope: MemoryScope;
  name: string;
  /** What to remember of the run and of what was remembered before; a model writes it. */
  summarise: () => Promise<string>;
  /** Stands in when there is no summary: how the run ended, and its output or error. */
  fallback: { ok: boolean; text: string };
}

const HEADINGS: Record<MemoryScope, string> = {
  role: "Role memory",
  team: "Team memory",
  job: "Run memory",
};

/** Characters of a run's output that a fallback keeps. */
const FALLBACK_OUTPUT = 500;

/**
 * What roles, teams and jobs remember from run to run: one Markdown file each, in
 * `.svc/memory/{roles,teams,jobs}/` (specification 2.12). A memory is never worth failing a run: what is
 * wrong with one is warned about, and the run goes on without it.
 */
export class MemoryStore {
  readonly #options: MemoryStoreOptions;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
  }

  /** Whether a scope remembers: `memory_enabled` and the scope's own switch, `memory.<scope>`. */
  enabled(scope: MemoryScope): boolean {
    const { config } = this.#options;
    return config.get("memory_enabled") === true && config.get(`memory.${scope}`) === true;
  }

  /**
   * Where a memory lies, or is to lie.
   *
   * @throws SvcError `memory_name` (exit 2) for a name that is no plain file name, `memory_link` when the
   * file or a folder on the way is a link, or no file or folder at all
   */
  path(scope: MemoryScope, name: string): string {
    // Together with ".md" and what an atomic write adds, it fits into a file name of 255 bytes.
    const plain = /^(?!\.)[^/\\\p{Cc}]+$/u.test(name) && name.isWellFormed() &&
      new TextEncoder().encode(name).length <= 200;
    if (!plain) {
      throw usageError(
        "memory_name",
        `${JSON.stringify(name.slice(0, 80))} cannot be the name of a memory.`,
        "Use up to 200 bytes without slashes, control characters or a leading dot.",
      );
    }
    const root = join(this.#options.state, "memory");
    const folder = join(root, `${scope}s`);
    const file = join(folder, `${name}.md`);
    for (const place of [root, folder, file]) {
      const info = lstatIfExists(place);
      if (info === undefined) break;
      if (place === file ? info.isFile : info.isDirectory) continue;
      const what = info.isSymlink ? "a link" : "something else than it should be";
      throw new SvcError("memory_link", `${place} is ${what} and is not used for memory.`);
    }
    return file;
  }

  /** What is remembered, cut at `memory_max_chars`; empty when there is nothing, or it is switched off. */
  read(scope: MemoryScope, name: string): string {
    if (!this.enabled(scope)) return "";
    try {
      return this.#cut((readTextIfExists(this.path(scope, name)) ?? "").trim());
    } catch (error) {
      this.#options.warn(`The memory of ${scope} ${name} is left out: ${errorMessage(error)}`);
      return "";
    }
  }

  /** What is remembered as a section of a system prompt; empty like `read`. */
  block(scope: MemoryScope, name: string): string {
    const text = this.read(scope, name);
    return text === "" ? "" : `## ${HEADINGS[scope]}\n\n${text}`;
  }

  /**
   * Replaces what is remembered, cut at `memory_max_chars`.
   *
   * @returns false when the scope is switched off; nothing is written then
   * @throws SvcError as `path`; an Error when the file cannot be written
   */
  write(scope: MemoryScope, name: string, text: string): boolean {
    if (!this.enabled(scope)) return false;
    writeFileAtomic(this.path(scope, name), this.#cut(text.trim()) + "\n");
    return true;
  }

  /**
   * Remembers a run: its summary, or when there is none, how it ended, above what was remembered before.
   * Never throws.
   */
  async remember({ scope, name, summarise, fallback }: RememberRequest): Promise<void> {
    if (!this.enabled(scope)) return;
    const warn = (what: string, error: unknown) =>
      this.#options.warn(`The memory of ${scope} ${name} ${what}: ${errorMessage(error)}`);
    try {
      this.path(scope, name); // before a model is asked for nothing
      let text = "";
      try {
        text = (await summarise()).trim();
      } catch (error) {
        warn("has no summary of this run", error);
      }
      this.write(scope, name, text || this.#withFallback(fallback, this.read(scope, name)));
    } catch (error) {
      warn("is not kept", error);
    }
  }

  #withFallback({ ok, text }: RememberRequest["fallback"], before: string): string {
    const ended = `Run ${timestamp(this.#options.clock)}: ${ok ? "verified" : "failed"}`;
    const output = cut(text.trim(), FALLBACK_OUTPUT);
    return [`${ended}\n${output}`.trim(), before].join("\n\n");
  }

  #cut(text: string): string {
    const most = this.#options.config.get("memory_max_chars") as number;
    return most === 0 ? text : cut(text, most);
  }
}

/** The first `most` characters, without half of a character at the end. */
function cut(text: string, most: number): string {
  const kept = text.slice(0, most);
  return kept.isWellFormed() ? kept : kept.slice(0, -1).toWellFormed();
}

function lstatIfExists(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
