import assert from "node:assert/strict";
import { Workspace } from "../../src/engine/workspace.ts";
import type { Environment } from "../../src/platform/environment.ts";
import { type HttpServer, startServer } from "../../src/server/server.ts";
import { type Reply, type Script, startBackend, type TestBackend } from "../support/backend.ts";
import { type Project, project } from "../support/project.ts";
import { trusting } from "../support/trust.ts";

/** A server in this process: real worktree, plugins, policy, log, sockets and backend. */
export interface TestServer extends AsyncDisposable {
  project: Project;
  home: Project;
  backend: TestBackend;
  workspace: Workspace;
  http: HttpServer;
  warnings: string[];
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body: unknown, options?: RequestInit): Promise<Answer>;
}

export interface Answer {
  status: number;
  headers: Headers;
  // deno-lint-ignore no-explicit-any
  body: any;
}

export async function server(
  script: Script | Reply[] = { replies: [], default: { text: "done" } },
  options: {
    config?: Record<string, unknown>;
    files?: Record<string, string>;
    host?: string;
    insecure?: boolean;
    /** Serves `POST /mcp`. */
    mcp?: boolean;
    /** The home of another server, which removes it. Default: one of its own. */
    home?: Project;
    /** A token of the user's settings folder, which no setting names. */
    token?: string;
    /** Whether everything of the worktree is trusted. Default: true. */
    trusted?: boolean;
    /** The backend answers after what this returns has resolved. */
    onRequest?: () => unknown;
  } = {},
): Promise<TestServer> {
  const place = await project(options.files);
  const home = options.home ?? await project();
  const backend = startBackend(script, { onRequest: options.onRequest });
  const warnings: string[] = [];
  const get = options.trusted === false ? () => undefined : trusting;
  const environment: Environment = { home: home.path, cwd: place.path, get };
  const workspace = Workspace.open({
    path: place.path,
    environment,
    warn: (message) => warnings.push(message),
    overrides: {
      base_url: backend.url,
      model: "test",
      stream_retry_delay: 0,
      memory_enabled: false,
      unattended: true,
      "serve.grace": 0.05,
      ...options.config,
    },
  });
  await workspace.load({ tools: "all", services: ["report"] });
  const { host = "127.0.0.1", insecure = false, mcp, token } = options;
  if (token !== undefined) {
    await home.write(".config/svc/serve.tokens", `${token}\n`);
    Deno.chmodSync(`${home.path}/.config/svc/serve.tokens`, 0o600);
  }
  const cleanUp = async () => {
    await backend.close();
    await place[Symbol.asyncDispose]();
    if (options.home === undefined) await home[Symbol.asyncDispose]();
  };
  let http: HttpServer;
  try {
    http = startServer({ workspace, host, port: 0, insecure, mcp });
  } catch (error) {
    await cleanUp();
    throw error;
  }
  const request = async (path: string, init: RequestInit): Promise<Answer> => {
    const response = await fetch(`http://127.0.0.1:${http.port}${path}`, init);
    const text = await response.text();
    const json = response.headers.get("content-type") === "application/json";
    return {
      status: response.status,
      headers: response.headers,
      body: json ? JSON.parse(text) : text,
    };
  };
  return {
    project: place,
    home,
    backend,
    workspace,
    http,
    warnings,
    get: (path, headers = {}) => request(path, { headers }),
    post: (path, body, init = {}) =>
      request(path, {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...init,
      }),
    async [Symbol.asyncDispose]() {
      await http.stop();
      await cleanUp();
    },
  };
}

/** A raw connection, for requests that no client library sends. */
export class Raw implements Disposable {
  readonly #socket: Deno.Conn;
  #text = "";

  private constructor(socket: Deno.Conn) {
    this.#socket = socket;
  }

  static async open({ http }: Pick<TestServer, "http">): Promise<Raw> {
    return new Raw(await Deno.connect({ hostname: "127.0.0.1", port: http.port }));
  }

  async send(text: string): Promise<void> {
    await this.#socket.write(new TextEncoder().encode(text));
  }

  /** The received text, once it matches or the connection has ended. */
  async until(pattern: RegExp): Promise<string> {
    const buffer = new Uint8Array(65536);
    while (!pattern.test(this.#text)) {
      const read = await this.#socket.read(buffer).catch(() => null);
      if (read === null) break;
      this.#text += new TextDecoder().decode(buffer.subarray(0, read));
    }
    return this.#text;
  }

  closeWrite(): Promise<void> {
    return this.#socket.closeWrite();
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

/** The bytes of a request with a JSON body. */
export function wire(path: string, body: unknown, ...headers: string[]): string {
  const text = JSON.stringify(body);
  const lines = [`POST ${path} HTTP/1.1`, "host: localhost", `content-length: ${text.length}`];
  return [...lines, ...headers, "", text].join("\r\n");
}

/** A server-sent event. */
export interface SentEvent {
  id: string | undefined;
  type: string;
  // deno-lint-ignore no-explicit-any
  data: any;
}

/** Reads a stream of server-sent events. */
export class EventClient implements AsyncDisposable {
  readonly events: SentEvent[] = [];
  readonly #reader: ReadableStreamDefaultReader<string>;
  #rest = "";

  constructor(response: Response) {
    this.#reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  }

  static async open(
    { http }: { http: { url: string } },
    id: string,
    last?: string,
  ): Promise<EventClient> {
    const headers: Record<string, string> = last === undefined ? {} : { "last-event-id": last };
    const response = await fetch(`${http.url}/runs/${id}/events`, { headers });
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    return new EventClient(response);
  }

  /** Reads until the events so far satisfy a condition, or the stream ends. */
  async until(enough: (events: SentEvent[]) => boolean = () => false): Promise<SentEvent[]> {
    while (!enough(this.events)) {
      const { done, value } = await this.#reader.read();
      if (done) break;
      const blocks = (this.#rest + value).split("\n\n");
      this.#rest = blocks.pop()!;
      for (const block of blocks) {
        const [, id, type, data] = /^(?:id: (.*)\n)?event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
        if (type !== undefined) this.events.push({ id, type, data: JSON.parse(data!) });
      }
    }
    return this.events;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel();
  }
}
