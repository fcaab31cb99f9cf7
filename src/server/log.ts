import { join } from "node:path";
import { type LogFields, type LogFormat, logLine } from "../commands/log.ts";
import type { Workspace } from "../engine/workspace.ts";
import { rotateLog } from "../platform/detached.ts";
import { makeFolder, writeAllSync } from "../platform/files.ts";
import { openToAppend } from "../sessions/files.ts";

/** Lines after which the size of the file is looked at. */
const LOOK = 1000;

/** The log of a server, `.svc/logs/serve.log`: its notes, and a line for each request but probes, and each turn. */
export class ServerLog {
  readonly #path: string;
  readonly #clock: Workspace["clock"];
  readonly #format: LogFormat;
  readonly #show: (line: string) => void;
  #file: Deno.FsFile | undefined;
  #lines = 0;

  /** @param show prints the lines about requests and turns too. A file that cannot be written is done without. */
  constructor(
    { paths, clock }: Pick<Workspace, "paths" | "clock">,
    { format, show }: { format: LogFormat; show: (line: string) => void },
  ) {
    this.#path = join(paths.state, "logs", "serve.log");
    this.#clock = clock;
    this.#format = format;
    this.#show = show;
  }

  /** A line about a request or a turn. */
  event(message: string, fields: LogFields): void {
    const line = logLine(this.#format, this.#clock, message, fields);
    this.#show(line);
    this.#write(line);
  }

  /** A note of the server, which is printed elsewhere. */
  note(message: string, fields?: LogFields): void {
    this.#write(logLine(this.#format, this.#clock, message, fields));
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #write(line: string): void {
    try {
      if (this.#lines++ % LOOK === 0) {
        makeFolder(join(this.#path, ".."));
        // Not through a link, with which a worktree may come.
        this.#file ??= openToAppend(this.#path);
        rotateLog(this.#path);
      }
      if (this.#file !== undefined) {
        writeAllSync(this.#file, new TextEncoder().encode(`${line}\n`));
      }
    } catch {
      // the worktree is read-only or gone, or its disk is full: the lines are also printed
    }
  }
}
