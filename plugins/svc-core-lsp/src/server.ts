import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Child, SourceHost } from "../../../src/plugins/api.ts";

/** One entry of `lsp.servers`. */
export interface ServerSettings {
  name: string;
  /** Program and arguments. */
  command: string[];
  extensions: string[];
}

interface Position {
  /** Both from 0; `character` counts UTF-16 code units. */
  line: number;
  character: number;
}
export interface Location {
  uri: string;
  range: { start: Position };
}
export interface Diagnostic {
  range: { start: Position };
  severity?: number;
  message: string;
  code?: string | number;
  source?: string;
}

/** The call for which a server is asked. */
interface Call {
  signal: AbortSignal;
  /** Reads a file as far as the call may. */
  read: (path: string) => Promise<string>;
}

/** Seconds that a server has for its start, and for an answer. */
const PATIENCE = 60;
/** Milliseconds without a further report after which the diagnostics of a file are complete. */
const QUIET = 700;
/** Bytes of the longest message of a server. */
const MAX_MESSAGE = 50_000_000;
/** Files that a server has open at most. */
const MAX_OPEN = 20;

// deno-lint-ignore no-explicit-any
type Json = any;

/** A running language server, spoken to by JSON-RPC over its standard streams. */
export class LanguageServer {
  alive = true;
  readonly #host: SourceHost;
  readonly #name: string;
  readonly #child: Child;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, PromiseWithResolvers<Json>>();
  /** The open files, the longest unused first. */
  readonly #open = new Map<string, { text: string; version: number }>();
  /** By file: the last report of a server that sends them by itself, and who waits for one. */
  readonly #reports = new Map<string, { diagnostics: Diagnostic[]; arrived: () => void }>();
  /** The end of what it wrote to standard error. */
  #errors = "";
  #pulls = false;
  #last = 0;

  private constructor(name: string, child: Child, host: SourceHost) {
    this.#name = name;
    this.#child = child;
    this.#host = host;
    this.#writer = child.input.getWriter();
    void this.#listen().catch((error) => {
      this.#fail(error);
      return child.stop(); // another one takes its place
    });
    void child.errors.pipeThrough(new TextDecoderStream()).pipeTo(
      new WritableStream({
        write: (text) => void (this.#errors = (this.#errors + text).slice(-500)),
      }),
    ).catch(() => {});
  }

  /** @throws Error when the program cannot start, or does not answer as a language server */
  static async start(
    { name, command }: ServerSettings,
    worktree: string,
    host: SourceHost,
  ): Promise<LanguageServer> {
    const server = new LanguageServer(name, await host.start({ command }), host);
    const rootUri = pathToFileURL(worktree).href;
    try {
      const { capabilities } = await server.#request("initialize", {
        processId: null, // a sandbox hides the number
        rootUri,
        workspaceFolders: [{ uri: rootUri, name: "worktree" }],
        capabilities: {
          textDocument: {
            synchronization: {},
            publishDiagnostics: { versionSupport: true },
            diagnostic: {},
            references: {},
          },
          workspace: { configuration: true, workspaceFolders: true },
        },
      });
      server.#pulls = Boolean(capabilities?.diagnosticProvider);
      server.#notify("initialized", {});
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** What the server reports on a file with this text. */
  async diagnostics(uri: string, text: string, { signal, read }: Call): Promise<Diagnostic[]> {
    const changed = await this.#show(uri, text, read);
    if (this.#pulls) {
      const asked = { textDocument: { uri } };
      return (await this.#request("textDocument/diagnostic", asked, signal))?.items ?? [];
    }
    // It sends reports by itself, of several kinds one after another.
    const known = !changed && this.#reports.has(uri);
    if (!known && !await this.#report(uri, PATIENCE * 1000, signal)) {
      throw new Error(`${this.#name} did not report on the file within ${PATIENCE} seconds`);
    }
    const latest = this.#host.now() + PATIENCE * 1000;
    while (this.#host.now() < latest && await this.#report(uri, QUIET, signal));
    return this.#reports.get(uri)?.diagnostics ?? [];
  }

  async references(
    uri: string,
    text: string,
    position: Position,
    { signal, read }: Call,
  ): Promise<Location[]> {
    await this.#show(uri, text, read);
    const context = { includeDeclaration: true };
    const asked = { textDocument: { uri }, position, context };
    return await this.#request("textDocument/references", asked, signal) ?? [];
  }

  async stop(): Promise<void> {
    this.#fail(new Error("it was stopped"));
    await this.#child.stop();
  }

  /**
   * Gives the server the text of a file, and the present text of the other files that it has open.
   *
   * @returns whether the server did not have this text of the file
   */
  async #show(uri: string, text: string, read: Call["read"]): Promise<boolean> {
    const known = this.#open.get(uri);
    for (const other of this.#open.keys()) {
      if (other === uri) continue;
      const now = await read(fileURLToPath(other)).catch(() => undefined);
      if (now === undefined) this.#close(other);
      else this.#update(other, now);
    }
    if (known !== undefined) return this.#update(uri, text);
    while (this.#open.size >= MAX_OPEN) this.#close(this.#open.keys().next().value!);
    const languageId = LANGUAGES[extname(uri)] ?? extname(uri).slice(1);
    this.#open.set(uri, { text, version: 1 });
    this.#notify("textDocument/didOpen", { textDocument: { uri, languageId, version: 1, text } });
    return true;
  }

  #update(uri: string, text: string): boolean {
    const known = this.#open.get(uri)!;
    if (known.text === text) return false;
    const version = known.version + 1;
    this.#open.set(uri, { text, version });
    const contentChanges = [{ text }];
    this.#notify("textDocument/didChange", { textDocument: { uri, version }, contentChanges });
    return true;
  }

  #close(uri: string): void {
    this.#open.delete(uri);
    this.#reports.delete(uri);
    this.#notify("textDocument/didClose", { textDocument: { uri } });
  }

  /** Waits for a report on a file. Returns whether one came in time. */
  async #report(uri: string, ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.alive) throw this.#died();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { diagnostics = [], arrived = () => {} } = this.#reports.get(uri) ?? {};
    this.#reports.set(uri, {
      diagnostics,
      arrived() {
        arrived(); // another call waits too
        resolve(true);
      },
    });
    const over = new AbortController();
    const late = this.#host.sleep(ms, AbortSignal.any([signal, over.signal])).then(() => false);
    try {
      return await Promise.race([promise, late]);
    } finally {
      over.abort();
      late.catch(() => {});
    }
  }

  async #request(method: string, params: Json, signal?: AbortSignal): Promise<Json> {
    if (!this.alive) throw this.#died();
    const id = ++this.#last;
    const answer = Promise.withResolvers<Json>();
    this.#waiting.set(id, answer);
    this.#send({ id, method, params });
    const over = new AbortController();
    const signals = [over.signal, ...signal ? [signal] : []];
    const late = this.#host.sleep(PATIENCE * 1000, AbortSignal.any(signals)).then(() => {
      throw new Error(`${this.#name} did not answer ${method} within ${PATIENCE} seconds`);
    });
    try {
      return await Promise.race([answer.promise, late]);
    } finally {
      over.abort();
      late.catch(() => {});
      if (this.#waiting.delete(id)) this.#notify("$/cancelRequest", { id });
    }
  }

  #notify(method: string, params: Json): void {
    this.#send({ method, params });
  }

  #send(message: Json): void {
    const body = new TextEncoder().encode(JSON.stringify({ jsonrpc: "2.0", ...message }));
    const head = new TextEncoder().encode(`Content-Length: ${body.length}\r\n\r\n`);
    this.#writer.write(head).catch(() => {}); // the end of its output says that it is gone
    this.#writer.write(body).catch(() => {});
  }

  async #listen(): Promise<void> {
    for await (const message of messages(this.#child.output)) this.#take(message);
    throw new Error("it has ended");
  }

  #take({ id, method, params, result, error }: Json): void {
    if (method === undefined) {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(`${this.#name}: ${String(error?.message).slice(0, 500)}`));
    } else if (method === "textDocument/publishDiagnostics") {
      const { uri, diagnostics, version } = params;
      const known = this.#open.get(uri);
      if (known === undefined || (version ?? known.version) !== known.version) return;
      const { arrived = () => {} } = this.#reports.get(uri) ?? {};
      this.#reports.set(uri, { diagnostics, arrived() {} });
      arrived();
    } else if (id !== undefined) {
      const items = method === "workspace/configuration" ? params.items : undefined;
      this.#send({ id, result: items?.map(() => null) ?? null });
    }
  }

  #fail(cause: unknown): void {
    if (!this.alive) return;
    this.alive = false;
    this.#errors = this.#errors.trim() || (cause instanceof Error ? cause.message : String(cause));
    for (const { reject } of this.#waiting.values()) reject(this.#died());
    this.#waiting.clear();
    for (const { arrived } of this.#reports.values()) arrived();
  }

  #died(): Error {
    return new Error(`the language server ${this.#name} does not run: ${this.#errors}`);
  }
}

/** Names of languages that differ from the ending of their files. */
const LANGUAGES: Record<string, string> = {
  ".ts": "typescript",
  ".mts": "typescript",
  ".cts": "typescript",
  ".tsx": "typescriptreact",
  ".js": "javascript",
  ".mjs": "javascript",
  ".cjs": "javascript",
  ".jsx": "javascriptreact",
  ".py": "python",
  ".rs": "rust",
  ".rb": "ruby",
  ".sh": "shellscript",
  ".cs": "csharp",
  ".kt": "kotlin",
};

/** The messages of a stream: headers with a `Content-Length`, an empty line, JSON. */
async function* messages(stream: ReadableStream<Uint8Array>): AsyncGenerator<Json> {
  const decoder = new TextDecoder();
  let pieces: Uint8Array[] = [];
  let size = 0;
  let head = 0;
  let length = -1;
  for await (const piece of stream) {
    pieces.push(piece);
    size += piece.length;
    while (true) {
      if (length >= 0 && size < head + length) break;
      const bytes = joined(pieces, size);
      pieces = [bytes];
      if (length < 0) {
        const start = decoder.decode(bytes.subarray(0, 4096));
        const end = start.indexOf("\r\n\r\n");
        if (end < 0 && size < 4096) break;
        length = Number(/^content-length: *(\d+)/im.exec(start.slice(0, end))?.[1] ?? NaN);
        if (!(length <= MAX_MESSAGE)) throw new Error("it does not speak the protocol");
        head = end + 4;
        continue;
      }
      yield JSON.parse(decoder.decode(bytes.subarray(head, head + length)));
      pieces = [bytes.subarray(head + length)];
      size -= head + length;
      length = -1;
    }
  }
}

function joined(pieces: Uint8Array[], size: number): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
