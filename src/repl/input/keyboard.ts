import { type Key, KeyDecoder } from "./keys.ts";
import type { TerminalPort } from "./terminal.ts";

/** The next key, or the reason why there is none. */
export type Next = Key | { type: "end" } | { type: "interrupted" };

/** Milliseconds after a bare ESC in which the rest of a sequence arrives, over a slow connection too. */
const SEQUENCE = 40;
/** Milliseconds without a key after which a person has stopped typing. */
const PAUSE = 700;
/** Milliseconds in which the keys arrive that were typed before the terminal was read. */
const EARLY = 30;
/** Milliseconds after an answer in which its key may come again: no person can have read another question by then. */
const AGAIN = 300;

/**
 * Distributes keys: to the open read; otherwise to the message that is written during a turn; otherwise
 * Ctrl-C and Escape to the watch, and other keys are kept for the next read. At most one terminal read is
 * pending, and it is never abandoned.
 */
export class Keyboard {
  readonly #port: TerminalPort;
  readonly #decoder = new KeyDecoder();
  readonly #watches: (() => void)[] = [];
  #kept: Key[] = [];
  #source: KeySource | undefined;
  /** Of the message that is written during a turn. */
  #message: KeySource | undefined;
  /** When the last key of an unfinished message was typed that no read was open for. */
  #typed = -Infinity;
  /** When the last question was answered. */
  #answered = -Infinity;
  #escape: ReturnType<typeof setTimeout> | undefined;
  #reading = false;
  #ended = false;

  constructor(port: TerminalPort) {
    this.#port = port;
  }

  /** @param fresh keep keys typed earlier for the next source */
  open(fresh: boolean): KeySource {
    const source = this.#source = new KeySource(fresh ? [] : this.#kept.splice(0));
    if (this.#ended) source.finish("end");
    this.#pump();
    return source;
  }

  /** Closes a source; its unused keys are kept for the next one. */
  release(source: KeySource, fresh: boolean): void {
    this.#source = undefined;
    if (fresh) this.#answered = performance.now();
    if (fresh && this.#message !== undefined) {
      for (const key of source.rest()) this.#message.push(key);
    } else {this.#kept = fresh
        ? [...this.#kept, ...source.rest()]
        : [...source.rest(), ...this.#kept];}
  }

  /** Opens the source of the message that is written during a turn, with the keys that are kept. */
  openMessage(): KeySource {
    const source = this.#message = new KeySource(this.#kept.splice(0));
    if (this.#ended) source.finish("end");
    this.#pump();
    return source;
  }

  /** Closes the source; its unused keys are kept for the next read. */
  closeMessage(source: KeySource): void {
    this.#message = undefined;
    this.#kept.unshift(...source.rest());
  }

  /** Whether a person is typing a message now, or has just answered a question, so that another has to wait. */
  get typing(): boolean {
    const now = performance.now();
    return now - this.#typed < PAUSE || now - this.#answered < AGAIN;
  }

  /**
   * Keeps the keys that were typed while nothing read the terminal, and those of a message that a person goes on
   * typing, for the next read.
   *
   * @returns whether Ctrl-C or Escape was one of them
   */
  async early(): Promise<boolean> {
    if (this.#message !== undefined || this.#watches.length > 0) return false;
    let interrupted = false;
    const watch = this.watch(() => interrupted = true);
    do await new Promise((resolve) => setTimeout(resolve, EARLY)); while (
      !this.#ended && performance.now() - this.#typed < PAUSE
    );
    watch.stop();
    return interrupted;
  }

  watch(interrupt: () => void): { stop(): void } {
    this.#watches.push(interrupt);
    this.#pump();
    return {
      stop: () => {
        const index = this.#watches.indexOf(interrupt);
        if (index >= 0) this.#watches.splice(index, 1);
      },
    };
  }

  async #pump(): Promise<void> {
    const wanted = () =>
      this.#source !== undefined || this.#message !== undefined || this.#watches.length > 0;
    if (this.#reading) return;
    this.#reading = true;
    while (!this.#ended && wanted()) {
      const bytes = await this.#port.read().catch(() => null);
      clearTimeout(this.#escape);
      if (bytes === null) this.#ended = true;
      else for (const key of this.#decoder.feed(bytes)) this.#deliver(key);
      if (this.#decoder.undecided) {
        const decide = () => this.#decoder.flush().forEach((key) => this.#deliver(key));
        if (this.#ended) decide();
        else this.#escape = setTimeout(decide, SEQUENCE);
      }
      // Enter may end the open read. The terminal is then not read until keys are requested again, so
      // that an editor started on this terminal receives all of them.
      if (bytes?.at(-1) === ENTER) await new Promise((resolve) => setTimeout(resolve));
    }
    this.#reading = false;
    if (this.#ended) {
      this.#source?.finish("end");
      this.#message?.finish("end");
    }
  }

  #deliver(key: Key): void {
    if (this.#source !== undefined) return this.#source.push(key);
    this.#typed = key.type === "key" && ENDING.includes(key.name) ? -Infinity : performance.now();
    const interrupt = this.#watches.at(-1);
    if (this.#message !== undefined) this.#message.push(key);
    else if (interrupt !== undefined && (isInterrupt(key) || isKey(key, "escape"))) {
      // What was typed meanwhile is not sent because the work was cancelled.
      this.#kept = this.#kept.filter((kept) => !isKey(kept, "enter"));
      interrupt();
    } else this.#kept.push(key);
  }
}

/** The keys of one read. */
export class KeySource {
  readonly #keys: Key[];
  #finished: Next | undefined;
  #wake: () => void = () => {};
  #break: () => void = () => {};

  constructor(keys: Key[]) {
    this.#keys = keys;
  }

  /** Whether a key is available without waiting. */
  get waiting(): boolean {
    return this.#keys.length > 0;
  }

  async next(): Promise<Next> {
    while (true) {
      const key = this.#keys.shift();
      if (key !== undefined) return key;
      if (this.#finished !== undefined) return this.#finished;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  push(key: Key): void {
    this.#keys.push(key);
    if (isInterrupt(key)) this.#break();
    this.#wake();
  }

  /** Ends the source after the keys that are queued. */
  finish(type: "end" | "interrupted"): void {
    this.#finished ??= { type };
    this.#break();
    this.#wake();
  }

  /** Waits for `work`; returns undefined when Ctrl-C or the end of input comes first. */
  async unlessBroken<T>(work: Promise<T>): Promise<T | undefined> {
    if (this.#finished !== undefined || this.#keys.some(isInterrupt)) return undefined;
    const broken = new Promise<undefined>((resolve) => this.#break = () => resolve(undefined));
    return await Promise.race([work, broken]);
  }

  rest(): Key[] {
    return this.#keys.splice(0);
  }
}

const ENTER = 13;

/** Keys after which a message is not being typed. */
const ENDING = ["enter", "ctrl-c", "escape", "ctrl-u"];

function isInterrupt(key: Key): boolean {
  return isKey(key, "ctrl-c");
}

function isKey(key: Key, name: string): boolean {
  return key.type === "key" && key.name === name;
}
