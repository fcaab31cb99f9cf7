/**
 * The plugin API (specification 4.9): the types a plugin may import. A plugin is handed everything it
 * needs at run time and imports no code of the service.
 *
 * @module
 */

// This file imports nothing: `svc plugins new` gives it to a plugin as it is.

/** What the permission policy answers for a call (specification 5.3). */
export type Action = "allow" | "ask" | "deny";

/** The arguments of a call after cleaning: declared ones only, no nulls. */
// deno-lint-ignore no-explicit-any
export type ToolArguments = Record<string, any>;

/** A JSON Schema object that describes a tool's parameters. */
export interface ParameterSchema {
  type: "object";
  properties: Record<string, Record<string, unknown>>;
  required?: string[];
  /** Declares arguments of any other name: `true`, or what their values are like. */
  additionalProperties?: boolean | Record<string, unknown>;
  /** Declares arguments by patterns of their names. Patterns are not run here. */
  patternProperties?: Record<string, unknown>;
}

/** Read access to the configuration; what the specification calls `_config`. */
export interface ConfigView {
  /** The effective value of a key such as `tools.deny`, or undefined for an unknown key. */
  // deno-lint-ignore no-explicit-any
  get(key: string): any;
}

/** File access for tools. Every path goes through here, because links are resolved here. */
export interface ToolPaths {
  /** Absolute real path of the worktree. */
  readonly worktree: string;
  /**
   * The real absolute path that `path` (relative to the worktree, or absolute) stands for. The last
   * components may not exist yet.
   *
   * @throws when it leads outside the worktree and this call was not approved for that place.
   */
  resolve(path: string): string;
  /** Like `Deno.open` on `resolve(path)`, and checks afterwards that what was opened is that place. */
  open(path: string, options: Deno.OpenOptions): Promise<Deno.FsFile>;
  /** True when an absolute real path is the worktree, lies in it, or was approved for this call. */
  contains(path: string): boolean;
}

/** A child process to run to its end. */
export interface ProcessRequest {
  /** Program and arguments. Never a shell string, unless the shell itself is the program. */
  command: string[];
  cwd: string;
  /** Seconds; the whole process group is ended after that. */
  timeout: number;
  /** Extra environment variables. */
  env?: Record<string, string>;
  /** Text for standard input, which is empty otherwise. */
  stdin?: string;
  /** Characters of output kept, half from the start and half from the end (default 200,000). */
  max_output?: number;
  /** `false`: standard error is thrown away, so that `output` is standard output and nothing else. */
  errors?: false;
}

/** How a child process ended. */
export interface ProcessResult {
  /** Exit code; 128 + signal number when a signal ended it. */
  code: number;
  /** Standard output and error in the order they arrived, cut in the middle at `max_output`. */
  output: string;
  timed_out: boolean;
  cancelled: boolean;
}

/** A program that was started, and its pipes. */
export interface Child {
  readonly pid: number;
  readonly input: WritableStream<Uint8Array>;
  readonly output: ReadableStream<Uint8Array>;
  readonly errors: ReadableStream<Uint8Array>;
  /** Its exit code, once it and all that it left in its group have ended. */
  readonly ended: Promise<number>;
  /** Ends it and its group: at once with its input closed, a second later with SIGTERM, then SIGKILL. */
  stop(): Promise<void>;
}

/** What a tool handler is given beside its arguments. */
export interface ToolContext {
  readonly config: ConfigView;
  readonly paths: ToolPaths;
  /** Aborts when the turn is cancelled. */
  readonly signal: AbortSignal;
  /** Name of the session the call belongs to. */
  readonly session: string;
  /** `false`: the agent may not read files as it likes, so a result quotes none that it did not give itself. */
  readonly reads?: boolean;
  /**
   * The key that `svc connect` stored under a name, if it was stored for this address; else empty. It may
   * be sent to that address and nowhere else, and told to nobody.
   */
  key(name: string, address: string): string;
  /** Runs a child process in a group of its own that never outlives the call. */
  run(request: ProcessRequest): Promise<ProcessResult>;
}

/** A tool, as a plugin registers it. */
export interface ToolDefinition {
  /** Canonical name, the only one advertised to the model. */
  name: string;
  /** What the model reads. */
  description: string;
  parameters: ParameterSchema;
  /** Policy category: `read`, `list`, `edit`, `bash`, `web`, `vcs`, `mcp`, `delegate`, `ask`, ... */
  permission: string;
  /** Returns the result text. A text that starts with `Error:`, or a throw, marks the call as failed. */
  handler(args: ToolArguments, context: ToolContext): string | Promise<string>;
  /** Heading under which listings group the tool. Default: the permission category. */
  category?: string;
  /** Names of the parameters that hold file system paths; worktree scoping checks each. */
  path_arg?: string | string[];
  /** The parameter shown on activity lines. Default: the first required one. */
  key_arg?: string;
  /** Other names that resolve to this tool at call time. */
  aliases?: string[];
  /** Arguments that an alias stands for; those of the call win. */
  alias_args?: Record<string, ToolArguments>;
  /** Other spellings of parameters, alias to canonical name. */
  param_aliases?: Record<string, string>;
  /** One-line description for listings. Default: the first sentence of `description`. */
  short?: string;
  /** The parameter that query refinement may rewrite. */
  refine?: string;
  /**
   * `false`: never confirm-gated. A function: what a confirmation shows of the call, such as a diff; a text that
   * begins with `Error:` says why the call can do nothing, and goes to the model without asking anybody.
   */
  confirm?: false | ((args: ToolArguments, context: ToolContext) => string | Promise<string>);
  /** `stop`: the agent loop ends after the batch that holds this call. */
  loop?: "continue" | "stop";
  /** True when front ends show the result text itself, not only an activity line. */
  echo?: boolean;
  /** True when calls of one batch may run side by side. Default: categories `read`, `list`, `web`. */
  parallel?: boolean;
  /** Activity line while the call runs. */
  status?(args: ToolArguments): string;
  /** A soft note for a result that is no error (an empty file, no matches), or empty. */
  note?(result: string): string;
  /** True when a result that lacks the `Error:` prefix is an error all the same. */
  error?(result: string): boolean;
  /**
   * Per-invocation resolver: refines a non-deny base action for these arguments. Undefined leaves it.
   * `config` is the effective configuration.
   */
  permission_fn?(args: ToolArguments, config: ConfigView): Action | undefined;
}

/** One message of the chat-completions protocol. */
export interface ChatMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string | null;
  reasoning_content?: string;
  /** Blocks of reasoning as the backend gave them with the calls of this turn. */
  reasoning_details?: Record<string, unknown>[];
  tool_calls?: WireToolCall[];
  tool_call_id?: string;
}

/** A tool call as the protocol writes it. */
export interface WireToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
  /** What the backend wants back with the call in the same turn, such as the signature of its reasoning. */
  extra_content?: Record<string, unknown>;
}

/** A tool as the protocol advertises it. */
export interface WireTool {
  type: "function";
  function: { name: string; description: string; parameters: ParameterSchema };
}

/** Token counts as the backend reports them. */
export type Usage = Record<string, number>;

/** What a provider's stream yields (specification 6.2). */
export type StreamEvent =
  | { type: "thinking"; content: string }
  | { type: "token"; content: string }
  | {
    type: "tool_calls";
    tool_calls: WireToolCall[];
    /** To be sent back with the calls, in the same turn. */
    reasoning_details?: Record<string, unknown>[];
  }
  | { type: "error"; code: number; message: string }
  | { type: "wait"; seconds: number; reason: string }
  | { type: "done"; reason: string; usage: Usage };

/** The reasoning setting after reading the config key `reasoning`. */
export type Reasoning = "off" | "on" | "auto" | "low" | "medium" | "high";

/** What a provider is constructed with. */
export interface ProviderOptions {
  /** Registered name of the provider. */
  name: string;
  /** Empty: the class's default. With or without a trailing `/v1`. */
  base_url: string;
  /** Empty when none is stored. */
  api_key: string;
  /** Empty: the class's default. */
  model: string;
  /** Session the provider is bound to. */
  session_id: string;
  /** `svc/<version>` */
  user_agent: string;
  temperature: number;
  /** 0 leaves it out of the payload. */
  max_tokens: number;
  reasoning: Reasoning;
  /** Seconds without a byte from the backend after which a request fails. */
  idle_timeout: number;
  /** Seconds spent at most on waiting before retries of 429 and 5xx answers. */
  retry_budget: number;
}

/** Options of one request. */
export interface ChatOptions {
  stream?: boolean;
  tools?: WireTool[];
  signal?: AbortSignal;
  /** Told by `chat_nonstreaming` of the token counts that the backend reports. */
  spend?: (usage: Usage) => void;
}

/** A model backend (specification 4.10). */
export interface Provider {
  readonly name: string;
  readonly model: string;
  readonly base_url: string;
  session_id: string;
  /** Whether earlier thinking is echoed back as `reasoning_content`. */
  readonly echo_reasoning: boolean;
  /** Streams one completion. Failures are `error` events; only a cancelled signal throws. */
  chat(messages: ChatMessage[], options?: ChatOptions): AsyncGenerator<StreamEvent>;
  /** One short answer without tools, for auxiliary decisions. Throws SvcError on failure. */
  chat_nonstreaming(messages: ChatMessage[], options?: ChatOptions): Promise<string>;
  /** Model ids the backend advertises. Throws SvcError on failure. */
  list_models(signal?: AbortSignal): Promise<string[]>;
  check_connection(signal?: AbortSignal): Promise<{ ok: boolean; message: string }>;
  /** Releases what the provider holds, such as a server of its own. */
  close?(): Promise<void>;
}

/** A provider class with the attributes the registry reads (specification 4.10). */
export interface ProviderClass {
  new (options: ProviderOptions): Provider;
  readonly DEFAULT_BASE_URL: string;
  readonly DEFAULT_MODEL: string;
  /** URL substrings by which a host is recognised. */
  readonly HOST_PATTERNS: readonly string[];
  readonly ECHO_REASONING: boolean;
  /** True where the names of tools may have letters, digits, `_` and `-` alone, as MCP's do not. */
  readonly PLAIN_TOOL_NAMES?: boolean;
  /** True for one that the program serves itself: it takes no key, and has no address to speak of. */
  readonly BUILT_IN?: boolean;
}

/** What a source of tools may use for as long as the workspace is open. */
export interface SourceHost {
  readonly config: ConfigView;
  /** `svc/<version>` */
  readonly user_agent: string;
  /**
   * Starts a program that runs beside, in the worktree by default. Of the environment it gets `HOME`, `PATH`,
   * `LANG`, `TMPDIR` and `USER`, and what `env` adds. It ends with this process at the latest.
   *
   * @throws when it cannot start
   */
  start(request: { command: string[]; cwd?: string; env?: Record<string, string> }): Child;
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after so many milliseconds; rejects when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Says something to whoever runs the program, in one line. */
  warn(message: string): void;
}

/** Tools that come and go while the program runs, such as those of MCP servers. */
export interface ToolSource {
  /** The policy category of all its tools: where that is shut, the source is not asked. */
  readonly permission: string;
  /** The tools that there are now, asked for before each prompt. Soon done, and does not throw. */
  tools(signal: AbortSignal): Promise<ToolDefinition[]>;
  /** How it is doing, as JSON values for programs; nothing is connected for that. */
  state?(): Promise<object[]>;
  /** Lets go of all that it holds. */
  close(): Promise<void>;
}

/** Handed to `register_tools`. */
export interface ToolRegistrar {
  register(tool: ToolDefinition): void;
  /** A source of tools, one a plugin. @returns what `make` makes, or made when it was called before */
  source<S extends ToolSource>(make: (host: SourceHost) => S): S;
}

/** Handed to `register_providers`. */
export interface ProviderRegistrar {
  /**
   * Takes a class with the attributes of `ProviderClass`.
   *
   * @throws when one is missing, or the name belongs to a bundled provider and the plugin is not bundled.
   */
  register(name: string, provider: new (options: ProviderOptions) => object): void;
  /** The chat-completions client, to extend. */
  // deno-lint-ignore no-explicit-any
  readonly OpenAICompatibleProvider: any;
}

/** What a command is given beside what was typed behind its name. */
export interface CommandContext {
  readonly config: ConfigView;
  /** Absolute real path of the worktree. */
  readonly worktree: string;
  /** Name of the active session; empty until it has one. */
  readonly session: string;
  /** Aborts on Ctrl-C; nobody waits for the command any more then. */
  readonly signal: AbortSignal;
}

/** A slash command of the terminal session. */
export interface CommandDefinition {
  /** Lower case letters, digits and dashes; not that of a command of the program. */
  name: string;
  description: string;
  aliases?: string[];
  usage?: string;
  /** Returns the text to show, if any. */
  run(args: string, context: CommandContext): unknown;
}

/** Handed to `register_commands`. */
export interface CommandRegistrar {
  register(command: CommandDefinition): void;
}

/** What a job run came to: event `job.run.completed` (specification 2.11). */
export interface JobReport {
  event: "job.run.completed";
  job: string;
  status: "verified" | "failed";
  /** Seconds from the start of the first attempt to the end of the last. */
  duration: number;
  /** Why it failed; empty when it did not. */
  reason: string;
  /** Name of the session; empty when the run never got to one. */
  session: string;
  started_at: string;
  finished_at: string;
  /** The answer. */
  content: string;
  worktree: string;
  /** The job's memory with its white space folded, the first 1000 characters. */
  memory: string;
  /** Questions of this run that wait for a human; `origin` is the session that asked. */
  parked_asks: { id: number; origin: string; question: string }[];
}

/** A step of a job (specification 6.1). */
export interface JobEvent {
  event:
    | "job.proposed"
    | "job.approved"
    | "job.will_run"
    | "job.executing"
    | "job.verified"
    | "job.failed"
    | "job.timeout"
    | "job.waiting_approval";
  job: string;
  /** ISO 8601 in UTC. */
  timestamp: string;
  worktree: string;
  /** What belongs to a run: empty, or 0, outside of one. */
  session: string;
  attempt: number;
  /** For `failed` and `timeout`. */
  reason: string;
}

/** A service registered as `report`. What it does wrong is logged, and never fails a run. */
export interface ReportService {
  /** Told once of each run that is over. It has 30 seconds. */
  report(payload: JobReport, config: ConfigView): unknown;
  /** Told of each step of each job. It has 10 seconds, during which the job waits. */
  job_event?(event: JobEvent, config: ConfigView): unknown;
}

/** One result of a search. */
export interface SearchResult {
  title: string;
  url: string;
  /** An excerpt, or empty. */
  snippet: string;
}

/** What a search is given beside its query; see {@linkcode ToolContext}. */
export type SearchContext = Pick<ToolContext, "config" | "signal" | "key">;

/** A service registered as `search`. The one registered last is asked. */
export interface SearchService {
  /** @param num results at most; default: the setting `search_results`. */
  search(query: string, num: number | undefined, context: SearchContext): Promise<SearchResult[]>;
  /** The results for a person. */
  display(query: string, results: SearchResult[]): string;
  /** The results for a model that is about to answer; empty when there is nothing worth telling. */
  context(query: string, results: SearchResult[]): string;
}

/** Handed to `register_services`. Several services may share a name. */
export interface ServiceRegistrar {
  register(name: string, service: Record<string, unknown>): void;
}

/** Handed to `register_roles`, `register_teams` and `register_skills`. */
export interface CatalogRegistrar {
  add_plugin(entry: { name: string } & Record<string, unknown>): void;
}

/** Handed to `register_fixtures`. */
export interface FixtureRegistrar {
  register(fixture: { id: string } & Record<string, unknown>): void;
}

/** What a plugin's entry module may export; every hook is optional and may be async. */
export interface PluginModule {
  register_tools?(registry: ToolRegistrar): void | Promise<void>;
  register_providers?(providers: ProviderRegistrar): void | Promise<void>;
  register_commands?(commands: CommandRegistrar): void | Promise<void>;
  register_services?(services: ServiceRegistrar): void | Promise<void>;
  register_roles?(roles: CatalogRegistrar): void | Promise<void>;
  register_teams?(teams: CatalogRegistrar): void | Promise<void>;
  register_skills?(skills: CatalogRegistrar): void | Promise<void>;
  register_fixtures?(fixtures: FixtureRegistrar): void | Promise<void>;
}
