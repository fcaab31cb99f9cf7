import { readAt, writeAllSync, writeFileAtomic } from "../platform/files.ts";
import { openRegular, openToAppend } from "./files.ts";
import type { Part } from "./schema.ts";

/** A tool result that a model was sent, where the log has a marker in its place. */
export interface LeftOut {
  turn: number;
  /** Position in the turn's parts. */
  part: number;
  /** The marker. */
  output: string;
  sent: string;
}

/** Bytes of the newest results that are kept when the file is twice as long. No context window has room for more. */
const KEPT = 4 * 1024 * 1024;

/**
 * The tool results that the log of a session leaves out (`noise_tools`): a hidden file next to it, with a JSON line for
 * each. From it, a later process sends a backend the bytes that it has in its cache. Losing it costs no more than
 * that, so nothing here throws.
 */
export class LeftOutResults {
  readonly #path: string;
  readonly #appended: (result: LeftOut) => void;

  /** @param appended called with each result that is appended */
  constructor(path: string, appended: (result: LeftOut) => void = () => {}) {
    this.#path = path;
    this.#appended = appended;
  }

  append(result: LeftOut): void {
    this.#appended(result);
    const bytes = new TextEncoder().encode(`${JSON.stringify(result)}\n`);
    try {
      const file = openToAppend(this.#path);
      try {
        writeAllSync(file, bytes);
        if (file.statSync().size > 2 * KEPT) this.#shorten();
      } finally {
        file.close();
      }
    } catch {
      // The model is sent the marker after a restart.
    }
  }

  /** What the model was sent for a part of a turn; undefined for what the log says. */
  read(): (turn: number, place: number, part: Part) => string | undefined {
    const results = new Map(
      Array.from(this.all(), (result) => [`${result.turn} ${result.part}`, result]),
    );
    return (turn, place, part) => {
      const result = results.get(`${turn} ${place}`);
      return part.type === "tool" && part.output === result?.output ? result.sent : undefined;
    };
  }

  /** All that are kept, the oldest first. */
  *all(): Generator<LeftOut> {
    for (const line of this.#lines()) {
      try {
        yield JSON.parse(line);
      } catch {
        // A process died while it wrote the line.
      }
    }
  }

  #shorten(): void {
    let left = KEPT;
    const lines = this.#lines();
    const first = lines.findLastIndex((line) => (left -= line.length) < 0) + 1;
    writeFileAtomic(this.#path, lines.slice(first).join("\n"), 0o600);
  }

  #lines(): string[] {
    try {
      const held = openRegular(this.#path, { read: true });
      if (held === undefined) return [];
      using file = held.file;
      const bytes = readAt(file, 0, file.statSync().size);
      return new TextDecoder().decode(bytes).split("\n");
    } catch {
      return [];
    }
  }
}
