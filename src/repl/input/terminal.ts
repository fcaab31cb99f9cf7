import { writeAllSync } from "../../platform/files.ts";

/** The interface to a terminal; tests provide their own. */
export interface TerminalPort {
  /** Whether input and output are an interactive terminal; otherwise only plain text is written. */
  readonly isTerminal: boolean;
  /** The next input; null at its end. One call at a time. */
  read(): Promise<Uint8Array | null>;
  write(text: string): void;
  /** In cells. */
  size(): { columns: number; rows: number };
  /** Switches raw mode: keys arrive one by one and are not echoed. */
  setRaw(on: boolean): void;
  /** Calls `handler` when the size changes; returns an unsubscribe function. */
  onResize(handler: () => void): () => void;
  /** Calls `handler` when the stopped process continues; returns an unsubscribe function. */
  onResume(handler: () => void): () => void;
  /** Stops the process as Ctrl-Z does; resolves when it continues. */
  suspend(): Promise<void>;
}

/**
 * The terminal of this process: its standard input and output.
 *
 * @param kind the value of `TERM`; a `dumb` terminal is treated as none
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
        if (!(error instanceof Deno.errors.BrokenPipe)) throw error; // the reader has closed the pipe
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
    // Without a job-control shell the kernel does not stop the process; the delay then ends the wait. The
    // second delay gives SIGCONT precedence when the first one elapsed while stopped.
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
