import type {
  CallToolResult,
  Client,
  ElicitResult,
  InputRequiredResult,
  ListToolsResult,
  Progress,
  Tool,
} from "@modelcontextprotocol/client";
import type {
  Question,
  SourceHost,
  ToolArguments,
  ToolContext,
  ToolDefinition,
} from "../../../src/plugins/api.ts";
import { InputRequests } from "./elicitation.ts";
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
/** How often one call may ask for input, and milliseconds before one that only waits is made again. */
const MAX_ROUNDS = 10;
const PACE = 500;
/** Milliseconds of the longest timer. */
const LONGEST = 2 ** 31 - 1;
/** The code of an error that has addresses to open first (revision 2025-11-25). */
const URL_REQUIRED = -32042;

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
  readonly #running = new Set<RunningCall>();
  /** The tools that could not be imported, a phrase each. */
  skipped: string[] = [];

  constructor(settings: ServerSettings, host: SourceHost, probe_ms?: number) {
    this.settings = settings;
    this.#host = host;
    this.#probe_ms = probe_ms;
    this.#conceal = concealer(settings, host);
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
          {
            events: {
              changed: () => this.#listed = -Infinity,
              elicit: (params, signal) => this.#elicit(params, signal),
            },
            probe_ms: this.#probe_ms,
          },
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
    { signal, progress, trace = {}, attach, ask }: ToolContext,
  ): Promise<string> {
    await this.ready();
    const client = this.#opened?.client;
    const server = `the MCP server ${this.settings.name}`;
    if (client === undefined) {
      const why = this.#problem === "" ? "" : `: ${this.#problem}`;
      return `Error: ${server} is not connected${why}`;
    }
    const input = new InputRequests(
      server,
      ask && ((questions, signal) => ask(questions.map((each) => this.#concealed(each)), signal)),
    );
    const limit = new TimeLimit(this.settings.timeout * 1000, this.#host);
    const running = { input, limit };
    this.#running.add(running);
    try {
      const params = {
        name: tool.name,
        arguments: args,
        ...(Object.keys(trace).length > 0 && { _meta: trace }),
      };
      const onprogress = progress &&
        ((made: Progress) => progress(`${this.#conceal(progressLine(made))}\n`));
      const options = {
        timeout: LONGEST,
        signal: AbortSignal.any([signal, limit.signal]),
        // A result that requires input has no structured content.
        toolDefinition: { ...tool, outputSchema: undefined },
        onprogress,
        allowInputRequired: true,
      };
      const result = await this.#withInput(
        running,
        (responses) => client.callTool({ ...params, ...responses }, options),
        options.signal,
      );
      if (attach) await attachImages(result, tool.name, attach);
      return input.withNotes(this.#conceal(resultText(result)));
    } catch (error) {
      if (isForgotten(error)) {
        // The next call or prompt connects again.
        if (this.#opened?.client === client) this.#opened = undefined;
        await client.close().catch(() => {});
      }
      const late = limit.signal.aborted && !signal.aborted;
      return input.withNotes(`Error: ${server} ${late ? this.#late() : this.#complaint(error)}`);
    } finally {
      limit.end();
      this.#running.delete(running);
    }
  }

  /** Makes a call, and makes it again with what the operator gives, as long as its result requires input. */
  async #withInput(
    { input, limit }: RunningCall,
    call: (responses: object) => Promise<CallToolResult | InputRequiredResult>,
    signal: AbortSignal,
  ): Promise<CallToolResult> {
    let responses = {};
    let opened = false;
    for (let round = 0;; round++) {
      let result;
      try {
        result = await call(responses);
      } catch (error) {
        const { code, data } = error as { code?: unknown; data?: { elicitations?: unknown } };
        const addresses = data?.elicitations;
        if (code !== URL_REQUIRED || !Array.isArray(addresses) || opened) throw error;
        for (const each of addresses.slice(0, MAX_ROUNDS)) {
          const answer = await limit.without(() => input.answer({ ...each, mode: "url" }, signal));
          if (answer.action !== "accept") throw error;
        }
        opened = true;
        continue;
      }
      if (!("resultType" in result) || result.resultType !== "input_required") {
        return result as CallToolResult;
      }
      if (round === MAX_ROUNDS) throw new Error(`it asked for input ${MAX_ROUNDS} times`);
      const { inputRequests = {}, requestState } = result as InputRequiredResult;
      const inputResponses: Record<string, unknown> = {};
      for (const [key, { method, params }] of Object.entries(inputRequests)) {
        if (method !== "elicitation/create") {
          throw new Error(`it asked for ${cleanLine(method, 80)}, which is not supported`);
        }
        inputResponses[key] = await limit.without(() => input.answer(params, signal));
      }
      const none = Object.keys(inputResponses).length === 0;
      if (none) await this.#host.sleep(PACE, signal);
      responses = {
        ...(!none && { inputResponses }),
        ...(requestState !== undefined && { requestState }),
      };
    }
  }

  /** Answers a request that does not say to which call it belongs: there must be only one. */
  async #elicit(params: unknown, signal: AbortSignal): Promise<ElicitResult> {
    const [only, ...others] = this.#running;
    if (only === undefined) return { action: "decline" };
    if (others.length === 0) {
      return await only.limit.without(() => only.input.answer(params, signal));
    }
    for (const { input } of this.#running) {
      input.refuse("several calls were running, so it is not known which one it was for");
    }
    return { action: "decline" };
  }

  #concealed({ question, context, options }: Question): Question {
    return {
      question: this.#conceal(question),
      context: this.#conceal(context),
      options,
    };
  }

  #late(): string {
    return `did not answer within ${this.settings.timeout} seconds; the request was cancelled`;
  }

  #complaint(error: unknown): string {
    const { message } = error as Error;
    if (this.#opened === undefined && this.#problem !== "") return `is gone: ${this.#problem}`;
    return `answered: ${cleanLine(this.#conceal(message), 2000)}`;
  }
}

interface RunningCall {
  input: InputRequests;
  limit: TimeLimit;
}

/** A time limit that does not run while the operator is asked. */
class TimeLimit {
  readonly #host: SourceHost;
  readonly #over = new AbortController();
  #left: number;
  #pause = new AbortController();

  constructor(ms: number, host: SourceHost) {
    this.#left = ms;
    this.#host = host;
    this.#run();
  }

  /** Aborts when the time is over. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  async without<T>(work: () => Promise<T>): Promise<T> {
    this.#pause.abort();
    try {
      return await work();
    } finally {
      this.#run();
    }
  }

  end(): void {
    this.#left = Infinity;
    this.#pause.abort();
  }

  #run(): void {
    if (this.#left === Infinity) return;
    const pause = this.#pause = new AbortController();
    const begun = this.#host.now();
    this.#host.sleep(this.#left, pause.signal).then(
      () => this.#over.abort(new Error("it took too long")),
      () => this.#left -= this.#host.now() - begun,
    );
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
