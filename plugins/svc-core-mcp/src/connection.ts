import type {
  CallToolResult,
  Client,
  ListToolsResult,
  Progress,
  Tool,
} from "@modelcontextprotocol/client";
import type {
  SourceHost,
  ToolArguments,
  ToolContext,
  ToolDefinition,
} from "../../../src/plugins/api.ts";
import { concealer, type Opened, openServer, withTrouble } from "./client.ts";
import { attachImages, cleanLine, importTool, resultText } from "./imported_tools.ts";
import type { ServerSettings } from "./servers.ts";

/** Tools of one server at most, and pages of its listing. */
const MAX_TOOLS = 500;
const MAX_PAGES = 64;
/** Milliseconds: the first wait after a failure, which doubles up to the second. */
const BACKOFF = 1000;
const MAX_BACKOFF = 60_000;
/** Milliseconds until the tools are listed again, unless the server announces a change. */
const FRESH = 60_000;

/** The state of a connection. */
type State = "connected" | "starting" | "failed" | "disconnected";

/** One server of the configuration with its connection and its imported tools. */
export class Connection {
  readonly settings: ServerSettings;
  readonly #host: SourceHost;
  readonly #probe_ms: number | undefined;
  readonly #conceal: (text: string) => string;
  #closing = new AbortController();
  #opened: Opened | undefined;
  #opening: Promise<void> | undefined;
  #left = false;
  #tools: ToolDefinition[] = [];
  #listed = -Infinity;
  #failures = 0;
  #retry = -Infinity;
  #problem = "";
  /** The tools that could not be imported, a phrase each. */
  skipped: string[] = [];

  constructor(settings: ServerSettings, host: SourceHost, probe_ms?: number) {
    this.settings = settings;
    this.#host = host;
    this.#probe_ms = probe_ms;
    this.#conceal = concealer(settings);
  }

  get state(): State {
    if (this.#opened !== undefined) return "connected";
    if (this.#opening !== undefined) return "starting";
    return this.#left || this.#problem === "" ? "disconnected" : "failed";
  }

  /** Why it is not connected; empty when nothing is wrong. */
  get problem(): string {
    return this.#problem;
  }

  get tools(): readonly ToolDefinition[] {
    return this.#opened === undefined ? [] : this.#tools;
  }

  /** The revision of the protocol that is spoken. */
  get revision(): string {
    return this.#opened?.client.getNegotiatedProtocolVersion() ?? "";
  }

  /**
   * Connects the server if necessary and updates its list of tools. Never throws: `problem` has the error.
   * After a failure it waits before the next attempt, unless `now`.
   */
  async ready(now = false): Promise<void> {
    if (now) {
      this.#left = false;
      this.#retry = -Infinity;
      this.#listed = -Infinity;
    }
    if (this.#left) return;
    if (this.#opened !== undefined && this.#host.now() < this.#listed + FRESH) return;
    if (this.#opened === undefined && this.#host.now() < this.#retry) return;
    this.#opening ??= this.#refresh().finally(() => this.#opening = undefined);
    await this.#opening;
  }

  /** Disconnects until `ready(true)`. */
  async leave(): Promise<void> {
    this.#left = true;
    this.#problem = "";
    this.#closing.abort(new Error("it was disconnected"));
    this.#closing = new AbortController();
    const client = this.#opened?.client;
    this.#opened = undefined;
    await client?.close().catch(() => {});
    await this.#opening;
  }

  async #refresh(): Promise<void> {
    const { signal } = this.#closing;
    let opened = this.#opened;
    try {
      if (opened === undefined) {
        opened = await openServer(
          this.settings,
          this.#host,
          signal,
          () => this.#listed = -Infinity,
          this.#probe_ms,
        );
        const { client } = opened;
        client.onclose = () => this.#lost(client);
      }
      await this.#list(opened.client);
      signal.throwIfAborted();
      this.#opened = opened;
      this.#problem = "";
      this.#failures = 0;
    } catch (error) {
      await opened?.client.close().catch(() => {});
      this.#opened = undefined;
      const why = withTrouble((error as Error).message, opened?.trouble() ?? "");
      if (!signal.aborted) this.#failed(why);
    }
  }

  #lost(client: Client): void {
    if (this.#opened?.client !== client) return;
    const why = this.#opened.trouble();
    this.#opened = undefined;
    this.#failed(why || "the connection was lost");
  }

  #failed(problem: string): void {
    this.#problem = cleanLine(this.#conceal(problem), 400).replace(/\.$/, "");
    this.#retry = this.#host.now() + Math.min(MAX_BACKOFF, BACKOFF * 2 ** this.#failures++);
  }

  async #list(client: Client): Promise<void> {
    const begun = this.#host.now();
    const listed: Tool[] = [];
    let cursor: string | undefined;
    let pages = 0;
    if (client.getServerCapabilities()?.tools !== undefined) {
      do {
        const params: { cursor?: string } = cursor === undefined ? {} : { cursor };
        const page: ListToolsResult = await client.request({ method: "tools/list", params }, {
          timeout: this.settings.timeout * 1000,
          signal: this.#closing.signal,
        });
        listed.push(...page.tools.slice(0, MAX_TOOLS + 1 - listed.length));
        cursor = page.nextCursor;
      } while (cursor !== undefined && listed.length <= MAX_TOOLS && ++pages < MAX_PAGES);
    }
    const headers = this.settings.transport === "http" && client.getProtocolEra() === "modern";
    this.#import(listed, headers);
    this.#listed = begun;
  }

  #import(listed: Tool[], headers: boolean): void {
    const tools = new Map<string, ToolDefinition>();
    this.skipped = listed.length > MAX_TOOLS ? [`more than ${MAX_TOOLS} tools`] : [];
    for (const each of listed.slice(0, MAX_TOOLS)) {
      const { name } = each;
      const made = importTool(
        this.settings.prefix,
        each,
        (args, context) => this.#call(each, args, context),
        headers,
      );
      if ("problem" in made) this.skipped.push(made.problem);
      else if (tools.has(made.tool.name)) this.skipped.push(`"${cleanLine(name, 80)}" twice`);
      else tools.set(made.tool.name, made.tool);
    }
    this.#tools = [...tools.values()];
  }

  async #call(
    tool: Tool,
    args: ToolArguments,
    { signal, progress, trace = {}, attach }: ToolContext,
  ): Promise<string> {
    await this.ready();
    const client = this.#opened?.client;
    const server = `the MCP server ${this.settings.name}`;
    if (client === undefined) {
      const why = this.#problem === "" ? "" : `: ${this.#problem}`;
      return `Error: ${server} is not connected${why}`;
    }
    try {
      const params = {
        name: tool.name,
        arguments: args,
        ...(Object.keys(trace).length > 0 && { _meta: trace }),
      };
      const timeout = this.settings.timeout * 1000;
      const onprogress = progress &&
        ((made: Progress) => progress(`${this.#conceal(progressLine(made))}\n`));
      const options = {
        timeout,
        maxTotalTimeout: timeout,
        signal,
        toolDefinition: tool,
        onprogress,
      };
      const result = await client.callTool(params, options);
      if (attach) await attachImages(result as CallToolResult, tool.name, attach);
      return this.#conceal(resultText(result as CallToolResult));
    } catch (error) {
      if (isForgotten(error)) {
        // The next call or prompt connects again.
        if (this.#opened?.client === client) this.#opened = undefined;
        await client.close().catch(() => {});
      }
      return `Error: ${server} ${this.#complaint(error)}`;
    }
  }

  #complaint(error: unknown): string {
    const { code, message, data } = error as { code?: unknown; message: string; data?: unknown };
    if (code === "REQUEST_TIMEOUT") {
      return `did not answer within ${this.settings.timeout} seconds; the request was cancelled`;
    }
    if (
      code === "UNSUPPORTED_RESULT_TYPE" && /input_required/.test(JSON.stringify([message, data]))
    ) {
      return "asked for input (input_required), which is not supported";
    }
    if (this.#opened === undefined && this.#problem !== "") return `is gone: ${this.#problem}`;
    return `answered: ${cleanLine(this.#conceal(message), 2000)}`;
  }
}

/** How far a call is, as its server says: `message 3/10`. */
function progressLine({ progress, total, message = "" }: Progress): string {
  const done = total === undefined ? `${progress}` : `${progress}/${total}`;
  return `${cleanLine(message, 200)} ${done}`.trim();
}

/** Whether the server has ended the session, which HTTP answers with 404. */
function isForgotten(error: unknown): boolean {
  return (error as { data?: { status?: unknown } }).data?.status === 404;
}
