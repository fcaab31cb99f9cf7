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
