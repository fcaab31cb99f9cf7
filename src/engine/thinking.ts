/** A piece of a reply after reasoning was told from answer. */
export interface ReplyPiece {
  type: "thinking" | "token";
  content: string;
}

const OPENERS = ["<think>", "<thinking>"];

/**
 * Splits reasoning that a backend embeds in the content of its reply, between thinking markers at
 * its beginning, from the answer (specification 6.2). Markers may arrive cut anywhere.
 */
export class ThinkingSplitter {
  #state: "start" | "thinking" | "answer" | "gap" = "start";
  #held = "";
  #closer = "";
  #fresh = false; // nothing has followed the opening marker yet

  /** The pieces that are certain once `content` has arrived. */
  push(content: string): ReplyPiece[] {
    const pieces: ReplyPiece[] = [];
    this.#held += content;
    if (this.#state === "start") this.#start();
    if (this.#state === "thinking") this.#think(pieces);
    if (this.#state === "gap") {
      this.#held = this.#held.trimStart(); // the blank lines between the marker and the answer
      if (this.#held !== "") this.#state = "answer";
    }
    if (this.#state === "answer" && this.#held !== "") {
      pieces.push({ type: "token", content: this.#held });
      this.#held = "";
    }
    return pieces;
  }

  /** What was held back when the stream ended. */
  end(): ReplyPiece[] {
    const content = this.#held;
    this.#held = "";
    if (content === "") return [];
    return [{ type: this.#state === "thinking" ? "thinking" : "token", content }];
  }

  #start(): void {
    const text = this.#held.trimStart();
    const opener = OPENERS.find((marker) => text.startsWith(marker));
    if (opener !== undefined) {
      this.#state = "thinking";
      this.#closer = opener.replace("<", "</");
      this.#held = text.slice(opener.length);
      this.#fresh = true;
    } else if (!OPENERS.some((marker) => marker.startsWith(text))) {
      this.#state = "answer";
    }
  }

  #think(pieces: ReplyPiece[]): void {
    if (this.#fresh && this.#held !== "") {
      this.#held = this.#held.replace(/^\n/, "");
      this.#fresh = false;
    }
    const end = this.#held.indexOf(this.#closer);
    const certain = end >= 0 ? end : this.#held.length - overlap(this.#held, this.#closer);
    if (certain > 0) pieces.push({ type: "thinking", content: this.#held.slice(0, certain) });
    if (end >= 0) {
      this.#held = this.#held.slice(end + this.#closer.length);
      this.#state = "gap";
    } else {
      this.#held = this.#held.slice(certain);
    }
  }
}

/** Length of the longest end of `text` that begins `marker`. */
function overlap(text: string, marker: string): number {
  for (let length = Math.min(marker.length - 1, text.length); length > 0; length--) {
    if (marker.startsWith(text.slice(-length))) return length;
  }
  return 0;
}

/** A whole answer without the reasoning that a backend embedded in it. */
export function withoutThinking(answer: string): string {
  const splitter = new ThinkingSplitter();
  return [...splitter.push(answer), ...splitter.end()]
    .map(({ type, content }) => type === "token" ? content : "").join("");
}
