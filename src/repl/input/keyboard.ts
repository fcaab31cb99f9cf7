import { type Key, KeyDecoder } from "./keys.ts";
import type { TerminalPort } from "./terminal.ts";

/** What comes next for whoever reads keys: a key, or why there is none. */
export type Next = Key | { type: "end" } | { type: "interrupted" };

/**
 * Who gets the keys: the read that is open; else, for Ctrl-C, the watch; else they wait for the next
 * read. There is one pending read of the terminal at most, and it is never given up.
 */
export class Keyboard {
  readonly #port: TerminalPort;
  readonly #decoder = new KeyDecoder();
  readonly #watches: (() => void)[] = [];
  #kept: Key[] = [];
  #source: KeySource | undefined;
  #reading = false;
  #ended = false;

  constructor(port: TerminalPort) {
    this.#port = port;
  }

  /** @param fresh what was typed before stays for the next one */
  open(fresh: boolean): KeySource {
    const source = this.#source = new KeySource(fresh ? [] : this.#kept.splice(0));
    if (this.#ended) source.finish("end");
    this.#pump();
    return source;
  }

  /** Ends a source; what it did not use waits for the next one. */
  release(source: KeySource, fresh: boolean): void {
    this.#source = undefined;
    this.#kept = fresh ? [...this.#kept, ...source.rest()] : [...source.rest(), ...this.#kept];
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
    const wanted = () => this.#source !== undefined || this.#watches.length > 0;
    if (this.#reading) return;
    this.#reading = true;
    while (!this.#ended && wanted()) {
      const bytes = await this.#port.read().catch(() => null);
      if (bytes === null) this.#ended = true;
      else for (const key of this.#decoder.feed(bytes)) this.#deliver(key);
      // Enter may end the read that is open. Nothing more is read then before somebody wants keys: an
      // editor that is started on this terminal gets all of them.
      if (bytes?.at(-1) === ENTER) await new Promise((resolve) => setTimeout(resolve));
    }
    this.#reading = false;
    if (this.#ended) this.#source?.finish("end");
  }

  #deliver(key: Key): void {
    const interrupt = this.#watches.at(-1);
    if (this.#source !== undefined) this.#source.push(key);
    else if (interrupt !== undefined && isInterrupt(key)) interrupt();
    else this.#kept.push(key);
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

  /** Whether the next key is there already. */
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

  /** Ends the keys, behind those that wait. */
  finish(type: "end" | "interrupted"): void {
    this.#finished ??= { type };
    this.#break();
    this.#wake();
  }

  /** Waits for `work`, but no longer than until Ctrl-C or the end; undefined then. */
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

function isInterrupt(key: Key): boolean {
  return key.type === "key" && key.name === "ctrl-c";
}
