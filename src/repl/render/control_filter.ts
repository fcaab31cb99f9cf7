/**
 * `stripControl` for text that arrives in pieces: a sequence that is spread over several does not get
 * through, and how the text is cut makes no difference. A control string ends with its line, so that
 * one that is never closed cannot hide what follows.
 */
export class ControlFilter {
  #state: State = "text";
  /** The first half of a surrogate pair. */
  #half = "";

  write(piece: string): string {
    piece = this.#half + piece;
    this.#half = /[\ud800-\udbff]$/.exec(piece)?.[0] ?? "";
    if (this.#half !== "") piece = piece.slice(0, -1);
    if (this.#state === "text" && !SUSPECT.test(piece)) return piece.toWellFormed();
    let kept = "";
    for (const character of piece) {
      this.#state = next(this.#state, character);
      if (this.#state !== "text" && this.#state !== "ended") continue;
      if (this.#state === "ended") this.#state = "text";
      else if (!SUSPECT.test(character)) kept += character;
    }
    return kept.toWellFormed();
  }

  /** Forgets what was begun; the text is over. */
  end(): void {
    this.#state = "text";
    this.#half = "";
  }
}

/** `ended`: the character is the last of a sequence. */
type State = "text" | "escape" | "csi" | "string" | "string escape" | "ended";

// deno-lint-ignore no-control-regex
const SUSPECT = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\u200e\u200f]/;

function next(state: State, character: string): State {
  const code = character.codePointAt(0)!;
  switch (state) {
    case "escape":
      if (character === "[") return "csi";
      if ("]PX^_".includes(character)) return "string";
      if (code >= 0x20 && code < 0x30) return "escape";
      return code >= 0x30 && code < 0x7f ? "ended" : next("text", character);
    case "csi":
      if (code >= 0x20 && code < 0x40) return "csi";
      return code >= 0x40 && code < 0x7f ? "ended" : next("text", character);
    case "string":
      if (character === "\n") return "text";
      if (character === "\x1b") return "string escape";
      return character === "\x07" || character === "\x9c" ? "ended" : "string";
    case "string escape":
      return character === "\\" ? "ended" : next("escape", character);
    default:
      if (character === "\x1b") return "escape";
      if (character === "\x9b") return "csi";
      return /[\x90\x98\x9d-\x9f]/.test(character) ? "string" : "text";
  }
}
