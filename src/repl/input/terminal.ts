import { writeAllSync } from "../../platform/files.ts";

/** The port to the terminal; tests bring their own. */
export interface TerminalPort {
  /** Whether a person types here and sees what is written; otherwise nothing but text is written. */
  readonly isTerminal: boolean;
  /** What was typed next; null once the input has ended. One call at a time. */
  read(): Promise<Uint8Array | null>;
  write(text: string): void;
  /** In cells. */
  size(): { columns: number; rows: number };
  /** Whether keys come as they are pressed, unseen, instead of in lines that the terminal edits. */
  setRaw(on: boolean): void;
  /** Calls `handler` when the size has changed; returns how to stop that. */
  onResize(handler: () => void): () => void;
  /** Calls `handler` when the process goes on after it was stopped; returns how to stop that. */
  onResume(handler: () => void): () => void;
  /** Stops the process as Ctrl-Z does; settles when it goes on. */
  suspend(): Promise<void>;
}

/**
 * The terminal of this process: its standard input and output.
 *
 * @param kind what `TERM` says; one that is `dumb` knows no sequences, and counts as none
 */
export function denoPort(kind?: string): TerminalPort {
  const buffer = new Uint8Array(16 * 1024);
  return {
    isTerminal: Deno.stdin.isTerminal() && Deno.stdout.isTerminal() &&
      kind !== "dumb",
    async read() {
      const count = await Deno.stdin.read(buffer);
      return count === null ? null : buffer.slice(0, count);
    },
    write(text) {
      try {
        writeAllSync(Deno.stdout, new TextEncoder().encode(text));
      } catch (error) {
        if (!(error instanceof Deno.errors.BrokenPipe)) throw error; // the reader has seen enough
      }
    },
    size() {
      try {
        const { columns, rows } = Deno.consoleSize();
        if (columns > 0 && rows > 0) return { columns, rows };
      } catch {
        // Neither stream is a terminal.
      }
      return { columns: 80, rows: 24 };
    },
    setRaw: (on) => Deno.stdin.setRaw(on),
    onResize: (handler) => onSignal("SIGWINCH", handler),
    onResume: (handler) => onSignal("SIGCONT", handler),
    suspend,
  };
}

async function suspend(): Promise<void> {
  const continued = Promise.withResolvers<void>();
  const release = onSignal("SIGCONT", continued.resolve);
  try {
    Deno.kill(Deno.pid, "SIGTSTP");
    // Where no shell would continue it, the kernel does not stop it: then it goes on by itself. The
    // second wait lets the signal come first if the first one was spent stopped.
    const stayed = delay(100).then(() => delay(50));
    await Promise.race([continued.promise, stayed]);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotCapable)) throw error; // may start no programs
  } finally {
    release();
  }
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function onSignal(signal: Deno.Signal, handler: () => void): () => void {
  Deno.addSignalListener(signal, handler);
  return () => Deno.removeSignalListener(signal, handler);
}
