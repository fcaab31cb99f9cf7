/** How the markers of calls begin a line (`OPENERS` of text_call.ts); some lines that have none of them do, too. */
const OPENING = RegExp(
  String
    .raw`^\s*(?:<[|｜]|<\/?(?:\w+:)?(?:tool|function|start_function|invoke|action|name>|(?:use|execute|call)_)|` +
    String
      .raw`\[\/?tool_?call|functools\W|functions\.|tool_?calls?\W|(?:action|tool|function):|>>>\w|` +
    String.raw`assistant[<ac]|(?:assistant|commentary|analysis)?\s*to=)`,
  "iu",
);
/** A line of which too little has arrived to tell. */
const UNDECIDED = /^[^\S\n]*(?:\S{0,100}|(?:assistant|commentary|analysis)[ \t]+\S{0,2})$/i;
/** What may stand before the name of a tool that is called without a marker. */
const BEFORE_NAME = /^(?:<|call:|print\(|functions\.|default_api\.|tools\.)+/;

/**
 * Holds back the end of a reply that may be a call written as text, from its first line to the end of the reply: only a
 * whole reply shows whether it is one.
 */
export class HeldCall {
  readonly #names: ReadonlySet<string>;
  readonly #json: boolean;
  #held = "";
  /** Whether `#held` begins a line. */
  #at_line = true;
  /** Whether nothing but white space came before `#held`. */
  #first = true;
  #open = false;
  #shown = 0;

  /**
   * @param names of the tools
   * @param json whether a reply may be a call without a marker
   */
  constructor(names: Iterable<string>, json: boolean) {
    this.#names = new Set(names);
    this.#json = json;
  }

  /** Characters that are held back. */
  get length(): number {
    return this.#held.length;
  }

  /** What can be shown once `text` has arrived. */
  push(text: string): string {
    this.#held += text;
    let shown = 0;
    while (!this.#open && shown < this.#held.length) {
      const rest = this.#held.slice(shown);
      if (this.#at_line && UNDECIDED.test(rest)) break;
      this.#open = this.#at_line && this.#opens(rest);
      if (this.#open) break;
      const line = rest.indexOf("\n") + 1;
      this.#at_line = line > 0;
      this.#first &&= /^\s*$/.test(rest.slice(0, line || undefined));
      shown += line || rest.length;
    }
    return this.#take(shown);
  }

  /**
   * What is left to show once the reply has ended.
   *
   * @param reply its whole text
   * @param text that of it which is no call
   */
  end(reply: string, text: string): string {
    const end = reply.indexOf(text) + text.length;
    return this.#take(Math.max(0, end - this.#shown));
  }

  #take(length: number): string {
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    this.#shown += length;
    return text;
  }

  #opens(line: string): boolean {
    if (OPENING.test(line)) return true;
    if (!this.#first || !this.#json) return false;
    const start = line.trimStart();
    const [name = ""] = /^[\w.-]+/.exec(start.replace(BEFORE_NAME, "")) ?? [];
    return /^(?:[{[]|```)/.test(start) || this.#names.has(name);
  }
}
