import { cleanInput } from "./text.ts";

/** A key by name (`left`, `ctrl-a`, `alt-enter`), text that was typed, or a paste. */
export type Key =
  | { type: "key"; name: string }
  | { type: "text"; text: string }
  | { type: "paste"; text: string };

const PASTE_START = "\x1b[200~";
const PASTE_END = "\x1b[201~";

// deno-lint-ignore no-control-regex
const SEQUENCE = /^\x1b(?:\[[0-?]*[ -/]*[@-~]|O[A-Za-z])/;
/** Responses of the terminal (OSC, DCS and similar), which are not typed by the operator. */
// deno-lint-ignore no-control-regex
const REPLY = /^\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)/;
// deno-lint-ignore no-control-regex
const UNFINISHED = /^\x1b(?:\[[0-?]*[ -/]*|O|[\]PX^_][^\x07\x1b]{0,200}\x1b?)$/;
const REST_OF_SEQUENCE =
  // deno-lint-ignore no-control-regex
  /^(?:\[[0-?]*[ -/]*[@-~]|O[A-Za-z]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\))/;
// deno-lint-ignore no-control-regex
const PRINTABLE = /^[^\x00-\x1f\x7f]+/;
/** Several lines of plain text. */
// deno-lint-ignore no-control-regex
const BURST = /^(?=[^]*[\r\n][^\r\n])[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$/;

/** Decodes terminal input into keys. Characters and sequences may be split across reads. */
export class KeyDecoder {
  readonly #utf8 = new TextDecoder();
  #rest = "";
  /** The text of an unfinished paste; undefined outside a paste. */
  #paste: string | undefined;
  /** The last key is an Escape that `flush` took; the next read may still complete a sequence. */
  #escaped = false;

  /** Whether the last read ended with a bare ESC: the Escape key, or the beginning of a sequence. */
  get undecided(): boolean {
    return this.#rest === "\x1b";
  }

  /** Decides that a bare ESC was the Escape key, since nothing followed it. */
  flush(): Key[] {
    if (!this.undecided) return [];
    this.#rest = "";
    this.#escaped = true;
    return [{ type: "key", name: "escape" }];
  }

  feed(bytes: Uint8Array): Key[] {
    let text = this.#rest + this.#utf8.decode(bytes, { stream: true });
    this.#rest = "";
    if (this.#escaped && REST_OF_SEQUENCE.test(text)) text = "\x1b" + text;
    if (text !== "") this.#escaped = false;
    // Terminals without bracketed paste send a paste as typed text in one read.
    if (this.#paste === undefined && BURST.test(text)) return paste(text.replace(/\r?[\r\n]$/, ""));
    const keys: Key[] = [];
    while (text !== "") text = this.#take(text, keys);
    return keys;
  }

  /** Consumes the first key or text and returns the rest. */
  #take(text: string, keys: Key[]): string {
    if (this.#paste !== undefined) return this.#takePaste(text, keys);
    if (text.startsWith(PASTE_START)) {
      this.#paste = "";
      return text.slice(PASTE_START.length);
    }
    const printable = PRINTABLE.exec(text)?.[0];
    if (printable !== undefined) {
      const typed = cleanInput(printable);
      if (typed !== "") keys.push({ type: "text", text: typed });
      return text.slice(printable.length);
    }
    if (text[0] === "\x1b") return this.#takeEscape(text, keys);
    push(keys, controlKey(text[0]!));
    return text.slice(1);
  }

  #takePaste(text: string, keys: Key[]): string {
    const searched = Math.max(0, this.#paste!.length - PASTE_END.length);
    this.#paste += text;
    const end = this.#paste!.indexOf(PASTE_END, searched);
    if (end < 0) return "";
    const rest = this.#paste!.slice(end + PASTE_END.length);
    keys.push(...paste(this.#paste!.slice(0, end)));
    this.#paste = undefined;
    return rest;
  }

  #takeEscape(text: string, keys: Key[]): string {
    if (UNFINISHED.test(text)) {
      this.#rest = text;
      return "";
    }
    const whole = (SEQUENCE.exec(text) ?? REPLY.exec(text))?.[0];
    if (whole !== undefined) {
      if (SEQUENCE.test(whole)) push(keys, sequenceKey(whole.slice(1)));
      return text.slice(whole.length);
    }
    const next = text.codePointAt(1);
    if (next === undefined) {
      this.#rest = text;
      return "";
    }
    if (next === 0x1b) {
      push(keys, "escape");
      return text.slice(1);
    }
    const character = String.fromCodePoint(next);
    const name = controlKey(character) ?? character;
    push(keys, `alt-${name.toLowerCase()}`);
    return text.slice(1 + character.length);
  }
}

function paste(text: string): Key[] {
  const cleaned = cleanInput(text);
  return cleaned === "" ? [] : [{ type: "paste", text: cleaned }];
}

function push(keys: Key[], name: string | undefined): void {
  if (name !== undefined) keys.push({ type: "key", name });
}

function controlKey(character: string): string | undefined {
  const code = character.charCodeAt(0);
  if (code === 9) return "tab";
  if (code === 10 || code === 13) return "enter";
  if (code === 8 || code === 127) return "backspace";
  if (code === 31) return "ctrl-_";
  return code >= 1 && code <= 26 ? `ctrl-${String.fromCharCode(code + 96)}` : undefined;
}

const FINAL: Record<string, string> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  F: "end",
  H: "home",
  M: "enter",
  Z: "shift-tab",
};

const NUMBERED: Record<number, string> = {
  1: "home",
  3: "delete",
  4: "end",
  7: "home",
  8: "end",
};

const CODES: Record<number, string> = { 9: "tab", 13: "enter", 27: "escape", 127: "backspace" };

/** The key of an escape sequence (CSI or SS3) without its ESC; undefined for an unknown one. */
export function sequenceKey(sequence: string): string | undefined {
  const numbers = sequence.slice(1, -1).split(";").map((part) => parseInt(part) || 1);
  const [first = 1, second = 1, third = 1] = numbers;
  const final = sequence.at(-1)!;
  if (final === "~" && first === 27) return modified(CODES[third], second);
  if (final === "~") return modified(NUMBERED[first], second);
  if (final === "u") return unicodeKey(first, second);
  return modified(FINAL[final], second);
}

/** `13;2u`: a key by its code point, as some terminals report modifiers. */
function unicodeKey(code: number, modifiers: number): string | undefined {
  if (CODES[code] !== undefined) return modified(CODES[code], modifiers);
  return code > 32 && code < 127 ? modified(String.fromCharCode(code), modifiers) : undefined;
}

/** @param modifiers one more than the sum of shift 1, alt 2, ctrl 4 */
function modified(name: string | undefined, modifiers: number): string | undefined {
  if (name === undefined) return undefined;
  const bits = modifiers - 1;
  return (bits & 4 ? "ctrl-" : "") + (bits & 2 ? "alt-" : "") + (bits & 1 ? "shift-" : "") + name;
}
