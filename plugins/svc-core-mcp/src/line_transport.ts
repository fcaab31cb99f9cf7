import type { DiscoverResult, JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { Child } from "../../../src/plugins/api.ts";
import { cleanLine } from "./imported_tools.ts";

/** Characters of one message, and of all messages since the last request. */
const MAX_MESSAGE = 16 * 1024 * 1024;
const MAX_UNASKED = 64 * 1024 * 1024;
/** The revision that has no `initialize`. */
const NEWEST = "2026-07-28";
/** Characters of standard error that are kept, from its end. */
const MAX_ERRORS = 2000;

/**
 * JSON-RPC over the pipes of a child process, one message per line. The transport of the MCP package starts
 * processes without a process group, so they outlive this process when it is killed.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** With these two the package recognises a pipe, where a silent server speaks an older revision. */
  readonly stderr = null;
  readonly pid: number;
  readonly #child: Child;
  readonly #parse: (value: unknown) => JSONRPCMessage;
  readonly #conceal: (text: string) => string;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  /** The answer to `server/discover` of a server of the newest revision, when `initialize` was sent before it. */
  discovered: DiscoverResult | undefined;
  #probe: unknown;
  #initializing = false;
  #errors = "";
  #unasked = 0;
  #failure = "";
  #nonsense = "";
  #closing = false;
  #closed = false;

  constructor(
    child: Child,
    parse: (value: unknown) => JSONRPCMessage,
    conceal: (text: string) => string,
  ) {
    this.#child = child;
    this.#parse = parse;
    this.#conceal = conceal;
    this.pid = child.pid;
    this.#writer = child.input.getWriter();
    this.#writer.closed.catch(() => {}); // the end of a server is noticed at its output
  }

  /** Whether the server exited or was stopped because of an error. */
  get gone(): boolean {
    return this.#failure !== "";
  }

  /** Why the connection ended, or the last output that was no message. */
  get trouble(): string {
    const said = this.#conceal(cleanLine(this.#errors, MAX_ERRORS)).slice(-300);
    return [this.#failure || this.#nonsense, said && `it said: ${said}`].filter(Boolean).join("; ");
  }

  // deno-lint-ignore require-await -- as the interface has it
  async start(): Promise<void> {
    this.#listen();
    this.#keepErrors();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#closed) throw new Error("the server is gone");
    this.#unasked = 0;
    if ("id" in message && "method" in message) {
      if (message.method === "server/discover") this.#probe = message.id;
      if (message.method === "initialize") this.#initializing = true;
    }
    await this.#writer.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#writer.close().catch(() => {});
    await this.#child.stop();
    this.#end();
  }

  async #listen(): Promise<void> {
    let rest = "";
    try {
      for await (const text of this.#child.output.pipeThrough(new TextDecoderStream())) {
        this.#unasked += text.length;
        const [first, ...lines] = text.split("\n");
        rest += first;
        for (const line of lines) {
          this.#receive(rest);
          rest = line;
        }
        if (rest.length > MAX_MESSAGE) this.#fail("it sent a message that is too large");
        if (this.#unasked > MAX_UNASKED) this.#fail("it sent more than was requested");
        if (this.#failure !== "") break;
      }
    } catch {
      // a broken pipe is the end of the output
    }
    if (!this.#closing) this.#failure ||= "it closed the connection";
    await this.#child.stop();
    this.#end();
  }

  #receive(line: string): void {
    if (line.trim() === "" || this.#failure !== "") return;
    let message: JSONRPCMessage;
    try {
      message = this.#parse(JSON.parse(line));
    } catch {
      this.#nonsense = `it sent what is no message: ${
        JSON.stringify(cleanLine(this.#conceal(line), 80))
      }`;
      return;
    }
    if (this.#initializing && "result" in message && message.id === this.#probe) {
      const discovered = message.result as Partial<DiscoverResult>;
      if (discovered.supportedVersions?.includes?.(NEWEST)) {
        this.discovered = discovered as DiscoverResult;
        this.#fail("it answered the probe late");
        return;
      }
    }
    try {
      this.onmessage?.(message);
    } catch (error) {
      this.onerror?.(error as Error);
    }
  }

  async #keepErrors(): Promise<void> {
    try {
      for await (const text of this.#child.errors.pipeThrough(new TextDecoderStream())) {
        this.#errors = (this.#errors + text).slice(-MAX_ERRORS);
      }
    } catch {
      // a broken pipe, too
    }
  }

  #fail(why: string): void {
    this.#failure ||= why;
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.onclose?.();
  }
}
