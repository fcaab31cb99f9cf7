/**
 * The plugin API (specification 4.9): the types that a plugin imports. A plugin imports no other code of svc;
 * every hook is passed the objects that it needs at run time.
 *
 * A plugin's entry module exports hooks; see {@linkcode PluginModule}. This one registers a tool:
 *
 * ```ts
 * export function register_tools(registry: ToolRegistrar): void {
 *   registry.register({
 *     name: "tide",
 *     description: "The tide at a harbour.",
 *     parameters: {
 *       type: "object",
 *       properties: { harbour: { type: "string" } },
 *       required: ["harbour"],
 *     },
 *     permission: "read",
 *     handler: ({ harbour }) => `${harbour}: high at noon`,
 *   });
 * }
 * ```
 *
 * @module
 */

// This file imports nothing: `svc plugins new` copies it into a plugin unchanged.

/** The decision of the permission policy for a call (specification 5.3). */
export type Action = "allow" | "ask" | "deny";

/** The arguments of a call: only declared ones, converted to the declared types, without nulls. */
// deno-lint-ignore no-explicit-any
export type ToolArguments = Record<string, any>;

/** A JSON Schema object that describes a tool's parameters. */
export interface ParameterSchema {
  type: "object";
  /** A JSON Schema for each parameter, by name. */
  properties: Record<string, Record<string, unknown>>;
  /** Names of the parameters that a call must have. Default: none. */
  required?: string[];
  /**
   * Accepts parameters of other names: `true`, or a JSON Schema for their values. Default: they are dropped
   * from a call.
   */
  additionalProperties?: boolean | Record<string, unknown>;
  /** Accepts parameters of other names, by pattern. Evaluated only in a schema with `allOf`, `if`, `$ref` or their like. */
  patternProperties?: Record<string, unknown>;
}

/** Read access to the configuration; the specification calls it `_config`. */
export interface ConfigView {
  /** The effective value of a key such as `tools.deny`; undefined for an unknown key. */
  // deno-lint-ignore no-explicit-any
  get(key: string): any;
}

/**
 * File access for tools. A tool uses it for every path, because it resolves symbolic links and checks the result
 * against the worktree and the approvals of the call.
 */
export interface ToolPaths {
  /** Absolute path of the worktree, with symbolic links resolved. */
  readonly worktree: string;
  /**
   * Resolves `path` (absolute, or relative to the worktree) to an absolute path without symbolic links. Its last
   * components need not exist.
   *
   * @throws Error when the path is outside the worktree and was not approved for this call.
   */
  resolve(path: string): string;
  /**
   * Opens a file like `Deno.open(resolve(path), options)`, and checks that no link was swapped in meanwhile. What is
   * opened for writing is kept before, so that the turn can be undone.
   *
   * @throws Error as `resolve` and `Deno.open` do.
   */
  open(path: string, options: Deno.OpenOptions): Promise<Deno.FsFile>;
  /** Whether an absolute path without symbolic links is in the worktree, or was approved for this call. */
  contains(path: string): boolean;
}

/** A program to run until it ends. */
export interface ProcessRequest {
  /** Program and arguments. No shell is involved unless the program is one. */
  command: string[];
  /** Absolute path of the folder to run in. */
  cwd: string;
  /** Seconds after which the whole process group is ended. */
  timeout: number;
  /** Environment variables to add to those of every command. Default: none. */
  env?: Record<string, string>;
  /** Text for standard input. Default: standard input is empty. */
  stdin?: string;
  /**
   * Characters of output to keep: half of them from the start, half from the end.
   *
   * @default {2_000_000}
   */
  max_output?: number;
  /** `false` discards standard error, `apart` returns it as `errors`. Default: it is part of the output. */
  errors?: false | "apart";
  /**
   * Is called with each piece of the output as it comes; {@linkcode ToolContext.progress}, for example. No more is read
   * before its promise resolves, so that a program that writes without end waits.
   */
  on_output?: (text: string) => void | Promise<void>;
}

/** The result of a program that was run. */
export interface ProcessResult {
  /** Exit code; 128 + signal number when a signal ended the program. */
  code: number;
  /** Standard output and standard error in order of arrival, cut in the middle at `max_output`. */
  output: string;
  /** Standard error, where the request wants it apart; cut like the output. */
  errors?: string;
  /** Whether the program was ended because of `timeout`. */
  timed_out: boolean;
  /** Whether the program was ended because the turn was cancelled. */
  cancelled: boolean;
}

/** A program that was started, and its pipes. */
export interface Child {
  readonly pid: number;
  /** Standard input of the program. */
  readonly input: WritableStream<Uint8Array>;
  /** Standard output of the program. */
  readonly output: ReadableStream<Uint8Array>;
  /** Standard error of the program. */
  readonly errors: ReadableStream<Uint8Array>;
  /** Resolves to the exit code once the program and the rest of its process group have ended. */
  readonly ended: Promise<number>;
  /** Ends the process group: closes `input`, sends SIGTERM after 1 second and SIGKILL after 2 more. */
  stop(): Promise<void>;
}

/** A command that runs in the background of a session. */
export interface BackgroundCommand {
  /** Its number in the session, from 1. */
  readonly id: number;
  /** The command line, on one line and cut at 80 characters. */
  readonly line: string;
  /** The exit code; undefined while it runs. */
  readonly code: number | undefined;
  /**
   * Returns the output since the last call, in whole lines while the command runs, after waiting for what `until` says.
   * The wait ends early when the command ends or `signal` aborts.
   */
  output(until: CommandWait, signal: AbortSignal): Promise<CommandOutput>;
  /** Ends the command as a timeout ends a program, and everything that it has started. */
  stop(): Promise<void>;
}

/** What to wait for; everything given must be there. Without `wait_for` and `port`: the end of the command. */
export interface CommandWait {
  /** A text in the output. */
  wait_for?: string;
  /** A TCP port of this machine that accepts connections. */
  port?: number;
  /** Seconds to wait at most. Default: 0. */
  timeout?: number;
}

/** The output of a background command since the last look. */
export interface CommandOutput {
  /** Standard output and standard error in order of arrival, without control characters. */
  output: string;
  /** Lines before these that were dropped, because only the newest 100,000 characters at least are kept. */
  skipped: number;
  /** Whether what was waited for is there. */
  reached: boolean;
  /** The exit code; undefined while the command runs. */
  code: number | undefined;
}

/** The background commands of a session. They end with the session, or with svc. */
export interface BackgroundCommands {
  /**
   * Starts a program as {@linkcode ToolContext.run} does, and returns while it runs.
   *
   * @param request.line the command line for lists
   * @throws Error as `run` does, and with `code` `too_many_commands`
   */
  start(
    request: Pick<ProcessRequest, "command" | "cwd" | "env"> & { line: string },
  ): Promise<BackgroundCommand>;
  /** The command with a number, also for some time after its end. */
  find(id: number): BackgroundCommand | undefined;
}

/** A question to a person. */
export interface Question {
  question: string;
  context: string;
  /** Answers to choose from. Others can be given, too. */
  options: string[];
}

/** What a tool's functions are passed in addition to the arguments. */
export interface ToolContext {
  readonly config: ConfigView;
  readonly paths: ToolPaths;
  /** Aborts when the turn is cancelled. */
  readonly signal: AbortSignal;
  /** Name of the session that the call belongs to. */
  readonly session: string;
  /** `false` when the agent may not read files: a result must not quote file contents. */
  readonly reads?: boolean;
  /**
   * The API key that `svc connect` stored under `name`; empty unless it was stored for `address`. Send it to that
   * address only, and never put it into a result.
   */
  key(name: string, address: string): string;
  /**
   * Runs a program in the sandbox that the settings `sandbox.*` require, with the environment of commands, in a
   * process group of its own. The group is ended when the program ends, at the timeout, and when the turn is
   * cancelled.
   *
   * @throws Error with `code` `program_not_found`, `program_refused`, `no_directory` or `no_sandbox` when it cannot
   *   start.
   */
  run(request: ProcessRequest): Promise<ProcessResult>;
  /** `traceparent` and `tracestate` for a program that continues the trace of the call; empty without telemetry. */
  readonly trace?: Record<string, string>;
  /**
   * Characters that the result may have, so that it fits the model's context. A longer one is cut in the middle, and
   * the whole is kept in a file. Default: any number.
   */
  readonly max_result?: number;
  /** The commands that the session runs in the background; undefined for a call without a session. */
  readonly commands?: BackgroundCommands;
  /**
   * Gives the model an image along with the result. A model that takes none is told its name.
   *
   * @param name a path, or what else tells where it is from
   * @throws Error for what is no PNG, JPEG, GIF or WebP, or has more than 5 MB
   */
  readonly attach?: (name: string, image: Uint8Array<ArrayBuffer>) => Promise<void>;
  /**
   * Shows text of a running call to the person: the output of a program, or how far a long call is. It is shown line by
   * line, a few times a second, and not all of it when much comes at once. The log and the model get the result only.
   */
  readonly progress?: (text: string) => void;
  /**
   * Asks the operator, never a model. In an unattended run the questions are parked; a later call of the same session
   * that asks the same gets the answers.
   *
   * @param signal aborts when the answers are not needed any more
   * @returns the answers in the order of the questions, or the ids of the parked asks; undefined when no one answers
   */
  readonly ask?: (
    questions: Question[],
    signal?: AbortSignal,
  ) => Promise<{ answers: string[] } | { parked: number[] } | undefined>;
}

/** What front ends show of a result in addition to its text. */
export interface ResultDetails {
  /** Exit code of the program that the call ran. Others than 0 are shown as a failure. */
  exit_code?: number;
  /** Where the output of that program begins in the result: an index. */
  output_at?: number;
  /** The line of the file, from 1, where the change begins that the call made. */
  line?: number;
}

/** A tool that the model can call. */
export interface ToolDefinition {
  /** Canonical name, the only one that the model sees: up to 128 letters, digits, `_`, `-` and `.`. */
  name: string;
  /** Description for the model. */
  description: string;
  parameters: ParameterSchema;
  /**
   * Category by which the permission policy decides: `read`, `list`, `edit`, `bash`, `web`, `vcs`, `dev`, `mcp`,
   * `delegate`, `ask`, or one of the plugin's own.
   */
  permission: string;
  /** Runs a call and returns the result text. A throw, or a text that starts with `Error:`, is a failed call. */
  handler(args: ToolArguments, context: ToolContext): string | Promise<string>;
  /** Heading of the tool in listings. Default: `permission`. */
  category?: string;
  /** Names of the parameters that hold file paths. The policy checks each against the worktree. */
  path_arg?: string | string[];
  /** Further file paths that a call names, such as those in a patch. The policy checks them too. */
  paths?(args: ToolArguments): string[];
  /**
   * Whether a call changes nothing, neither files nor anything elsewhere. Plan mode denies every other call.
   * Default: `true` for the categories `read`, `list` and `web`.
   */
  read_only?: boolean | ((args: ToolArguments) => boolean);
  /** Parameter that activity lines show. Default: the first required one. */
  key_arg?: string;
  /** Other names by which the tool can be called. */
  aliases?: string[];
  /** Arguments that an alias implies, by alias. Arguments of the call take precedence. */
  alias_args?: Record<string, ToolArguments>;
  /** Other names of parameters: alias to canonical name. */
  param_aliases?: Record<string, string>;
  /** One-line description for listings. Default: the first sentence of `description`. */
  short?: string;
  /** Name of the parameter that query refinement may rewrite. */
  refine?: string;
  /** Name of a setting that holds a list. While that is empty, the tool is not offered to the model. */
  needs_setting?: string;
  /** Whether the schema of the tool is sent to this model. A call that the model makes anyway is run. Default: `true`. */
  offer?(model: string): boolean;
  /**
   * `false`: a call is never confirmed. A function returns the text that a confirmation shows, such as a diff. When
   * that text starts with `Error:`, the call cannot succeed: the text is its result, and no approval is asked for.
   * Default: a confirmation shows the arguments.
   */
  confirm?: false | ((args: ToolArguments, context: ToolContext) => string | Promise<string>);
  /** The call of another tool that a call of this one means. Where there is no such tool, this one runs. */
  redirect?(args: ToolArguments): { name: string; arguments: ToolArguments } | undefined;
  /** `stop` ends the turn after the batch of calls that this call is in. Default: `continue`. */
  loop?: "continue" | "stop";
  /** Whether front ends show the result text in addition to the activity line. Default: `false`. */
  echo?: boolean;
  /** Whether calls of one batch may run concurrently. Default: `true` for the categories `read`, `list` and `web`. */
  parallel?: boolean;
  /** Activity line while the call runs. Default: the name and the argument `key_arg`. */
  status?(args: ToolArguments): string;
  /** Remark on a successful result, such as "no matches"; empty for none. */
  note?(result: string): string;
  /** Whether a result that does not start with `Error:` is an error. */
  error?(result: string): boolean;
  /** What front ends show of a result in addition to its text. */
  details?(result: string, args: ToolArguments): ResultDetails;
  /**
   * Decides for one call in place of the category's action, unless that is `deny`. Undefined keeps the category's
   * action.
   */
  permission_fn?(args: ToolArguments, config: ConfigView): Action | undefined;
}

/** A message of the chat-completions protocol. */
export interface ChatMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string | null;
  /** For the roles `user` and `tool`: the images that are sent along; `data` is base64. */
  images?: { name: string; media_type: string; data: string }[];
  /** Earlier thinking, for providers with `echo_reasoning`. */
  reasoning_content?: string;
  /** Of role `assistant`: the reasoning blocks that this provider and model sent with it, unchanged. */
  reasoning_details?: Record<string, unknown>[];
  tool_calls?: WireToolCall[];
  /** For role `tool`: the id of the call that this message answers. */
  tool_call_id?: string;
}

/** A tool call of the chat-completions protocol. */
export interface WireToolCall {
  id: string;
  type: "function";
  /** `arguments` is JSON text. */
  function: { name: string; arguments: string };
  /** Data that the backend expects back with the call in the same turn, such as a signature of its reasoning. */
  extra_content?: Record<string, unknown>;
}

/** A tool as the chat-completions protocol advertises it. */
export interface WireTool {
  type: "function";
  function: { name: string; description: string; parameters: ParameterSchema };
}

/** Token counts as the backend reports them. */
export type Usage = Record<string, number>;

/**
 * How a request failed:
 * - `overflow`: the conversation exceeds the context window.
 * - `permanent`: the same request fails again (key, model, exhausted credit).
 * - `announced`: the backend says when it answers again.
 * - `transient`: busy, failing or unreachable, with no time announced.
 * - `stalled`: the stream stays open and brings no content.
 */
export type FailureKind = "overflow" | "permanent" | "announced" | "transient" | "stalled";

/** An event of a provider's stream (specification 6.2). */
export type StreamEvent =
  | { type: "thinking"; content: string }
  | { type: "token"; content: string }
  | {
    type: "tool_calls";
    tool_calls: WireToolCall[];
    /** Reasoning blocks to send back with the reply. */
    reasoning_details?: Record<string, unknown>[];
  }
  | {
    type: "error";
    /** The HTTP status; 0: none. */
    code: number;
    message: string;
    kind?: FailureKind;
    /** Of an `announced` failure: when the backend may be asked again, in milliseconds since 1970. */
    retry_at?: number;
    /** Of an `overflow`: the size of the context window in tokens, where the backend names it. */
    window?: number;
  }
  | {
    type: "wait";
    seconds: number;
    reason: string;
    /** While the provider waits for a quota: when it opens, in milliseconds since 1970. Comes every 30 seconds. */
    retry_at?: number;
  }
  | {
    type: "done";
    reason: string;
    usage: Usage;
    /** Of a reply without tool calls: reasoning blocks to send back with it. */
    reasoning_details?: Record<string, unknown>[];
  };

/** A part of an assistant's message; `block` is one of its `reasoning_details`. */
export type ReplyPiece =
  | { text: string }
  | { call: WireToolCall }
  | { block: Record<string, unknown> };

/**
 * Translates the events of one answer in another protocol into chunks of the chat-completions protocol, and `[DONE]`.
 * A delta may have `reasoning_details`, see {@linkcode ChatMessage}.
 */
export type EventTranslator = (
  // deno-lint-ignore no-explicit-any
  event: Record<string, any>,
) => (Record<string, unknown> | "[DONE]")[];

/** The value of the setting `reasoning`. */
export type Reasoning = "off" | "on" | "auto" | "low" | "medium" | "high";

/** The options of a provider's constructor. */
export interface ProviderOptions {
  /** Registered name of the provider. */
  name: string;
  /** Address of the backend, with or without a trailing `/v1`. Empty: `DEFAULT_BASE_URL`. */
  base_url: string;
  /** Empty when no key is stored. */
  api_key: string;
  /** Empty: `DEFAULT_MODEL`. */
  model: string;
  /** Session that the provider works for. */
  session_id: string;
  /** `svc/<version>` */
  user_agent: string;
  temperature: number;
  /** 0 leaves the field out of the request. */
  max_tokens: number;
  reasoning: Reasoning;
  /** The setting `wire`: whether a vendor's own protocol is spoken, where the provider has one. Default: `auto`. */
  wire?: "auto" | "chat" | "native";
  /** Seconds without a byte from the backend after which a request fails. */
  idle_timeout: number;
  /** Seconds without content after which a stream fails, whatever else arrives. */
  content_timeout: number;
  /** Seconds to wait at most, in all, for a backend that is busy, fails or cannot be reached. */
  retry_budget: number;
  /** The times that backends have announced, which all processes of the worktree keep to. */
  quota?: QuotaGate;
  /** Admits the pieces of a large request, so that a server can answer others between them. */
  pace?: {
    turn(): Promise<void>;
  };
  /** What the provider waits with. Default: the system's time. */
  clock?: {
    /** Milliseconds since 1970. */
    now(): number;
    sleep(ms: number, signal?: AbortSignal): Promise<void>;
  };
}

/** When a backend may be asked again. */
export interface QuotaGate {
  /** Milliseconds since 1970; in the past: now. */
  opens_at(): number;
  /** Records an announced time. */
  close(until: number): Promise<void>;
}

/** Options of one request to a provider. */
export interface ChatOptions {
  stream?: boolean;
  tools?: WireTool[];
  signal?: AbortSignal;
  /** The protocol's parameter: the format that the answer must have. A provider whose backend has none ignores it. */
  response_format?: Record<string, unknown>;
  /** Most tokens of the reply, where it is fewer than the provider's `max_tokens`. */
  max_tokens?: number;
  /** What the request is for, as the ledger of usage names it: `search`, `summary`. Default of `chat`: `turn`. */
  purpose?: string;
  /** Called by `chat_nonstreaming` with the token counts that the backend reports. */
  spend?: (usage: Usage) => void;
  /** Called when the reply to an accepted request breaks off before its token counts, with the characters that arrived. */
  cut?: (arrived: number) => void;
  /** The time left to wait for announced quotas, from which the provider takes what it waits. Default: none. */
  quota_wait?: { seconds: number };
  /** Whether an answer that breaks off before it brought anything is requested again. Default: true. */
  retry_cut?: boolean;
  /** Whether a backend that refuses tools is told of them in text, and calls are found in its answers. Default: false. */
  text_tools?: boolean;
}

/** A model backend (specification 4.10). */
export interface Provider {
  readonly name: string;
  readonly model: string;
  readonly base_url: string;
  session_id: string;
  /** Whether messages to the backend carry earlier thinking as `reasoning_content`. */
  readonly echo_reasoning: boolean;
  /** Streams a completion. Failures are `error` events; it throws only when the signal aborts. */
  chat(messages: ChatMessage[], options?: ChatOptions): AsyncGenerator<StreamEvent>;
  /**
   * Returns one short completion without tools, for auxiliary decisions.
   *
   * @throws SvcError on failure
   */
  chat_nonstreaming(messages: ChatMessage[], options?: ChatOptions): Promise<string>;
  /**
   * Lists the model ids that the backend advertises.
   *
   * @throws SvcError on failure
   */
  list_models(signal?: AbortSignal): Promise<string[]>;
  /** Checks whether the backend answers. Throws only when the signal aborts. */
  check_connection(signal?: AbortSignal): Promise<{ ok: boolean; message: string }>;
  /** The tokens that a conversation may have, as the backend's list of models names them; undefined: it does not. */
  context_window?(signal?: AbortSignal): Promise<number | undefined>;
  /** Releases the provider's resources, such as a server that it runs. */
  close?(): Promise<void>;
}

/** A provider's class, with the static attributes that the registry reads (specification 4.10). */
export interface ProviderClass {
  new (options: ProviderOptions): Provider;
  readonly DEFAULT_BASE_URL: string;
  readonly DEFAULT_MODEL: string;
  /** Substrings of URLs by which host detection selects this provider. */
  readonly HOST_PATTERNS: readonly string[];
  /** Default of `echo_reasoning`. */
  readonly ECHO_REASONING: boolean;
  /** Whether tool names may contain only letters, digits, `_` and `-`. Names of MCP tools contain dots. */
  readonly PLAIN_TOOL_NAMES?: boolean;
  /** Whether svc itself serves the model, so that there is neither a key nor an address to configure. */
  readonly BUILT_IN?: boolean;
}

/** Services of svc for a source of tools. They last as long as the workspace is open. */
export interface SourceHost {
  readonly config: ConfigView;
  /** `svc/<version>` */
  readonly user_agent: string;
  /**
   * Starts a program that runs in the background and ends with svc at the latest. It gets the environment of
   * commands (`PATH`, `HOME`, `LANG`, ... and `sandbox.env`) and the variables of `env`.
   *
   * @param request.cwd folder to run in, absolute or relative to the worktree; default: the worktree
   * @param request.sandbox `false` runs it outside the sandbox
   * @throws Error with `code` `program_not_found`, `program_refused`, `no_directory` or `no_sandbox` when it cannot
   *   start
   */
  start(
    request: { command: string[]; cwd?: string; env?: Record<string, string>; sandbox?: boolean },
  ): Promise<Child>;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms` milliseconds; rejects when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Shows the operator a one-line warning. */
  warn(message: string): void;
  readonly logins: LoginStore;
}

/** Logins to servers, readable by the user alone. Tokens and secrets in them are masked in all output. */
export interface LoginStore {
  /** The login that is kept for an address. */
  // deno-lint-ignore no-explicit-any
  read(address: string): Record<string, any> | undefined;
  /** Keeps a login; undefined removes it. */
  write(address: string, login: object | undefined): Promise<void>;
}

/** How a person is guided through a login. */
export interface LoginDialog {
  /** Shows the address to open in a browser. */
  show(address: string): void;
  /** Lines that the person types: the address that the browser was sent to. */
  pasted: AsyncIterable<string>;
  /** Shows a remark on a line. */
  remark(text: string): void;
  signal: AbortSignal;
}

/** A source of tools that change while svc runs, such as those of MCP servers. */
export interface ToolSource {
  /** Policy category of all its tools. The source is not queried when the policy denies the category. */
  readonly permission: string;
  /** The current tools, queried before each turn. An external source has 10 seconds and must not throw. */
  tools(signal: AbortSignal): Promise<ToolDefinition[]>;
  /** The state of the source as JSON values. Opens no connection. */
  state?(): Promise<object[]>;
  /**
   * Lets a person log in to the server of this name, and keeps the login.
   *
   * @returns whether the server requires a login
   * @throws Error with the reason when there is no login
   */
  login?(name: string, dialog: LoginDialog): Promise<boolean>;
  /** Revokes the login where that is possible, and forgets it. @returns whether there was one */
  logout?(name: string, dialog: Pick<LoginDialog, "remark" | "signal">): Promise<boolean>;
  /** Releases the source's resources. */
  close(): Promise<void>;
}

/** The argument of `register_tools`. */
export interface ToolRegistrar {
  /** @throws Error when the definition is invalid, or a name is taken by another plugin. */
  register(tool: ToolDefinition): void;
  /**
   * Registers a source of tools; a plugin has one at most.
   *
   * @returns the source that `make` creates, or the one that an earlier call created
   */
  source<S extends ToolSource>(make: (host: SourceHost) => S): S;
}

/** The argument of `register_providers`. */
export interface ProviderRegistrar {
  /**
   * Registers a class with the static attributes of {@linkcode ProviderClass}.
   *
   * @throws Error when an attribute is missing, or when an external plugin uses the name of a bundled provider.
   */
  register(name: string, provider: new (options: ProviderOptions) => object): void;
  /** The client of the chat-completions protocol, a {@linkcode ProviderClass} to extend. */
  // deno-lint-ignore no-explicit-any
  readonly OpenAICompatibleProvider: any;
}

/** What a command is passed in addition to the text after its name. */
export interface CommandContext {
  readonly config: ConfigView;
  /** Absolute path of the worktree, with symbolic links resolved. */
  readonly worktree: string;
  /** Name of the active session; empty before its first turn. */
  readonly session: string;
  /** Aborts on Ctrl-C. The terminal session then continues without the command's result. */
  readonly signal: AbortSignal;
}

/** A slash command of the terminal session. */
export interface CommandDefinition {
  /** Name without the slash: lower case letters, digits, `-` and `_`. Names of svc's own commands are taken. */
  name: string;
  description: string;
  aliases?: string[];
  usage?: string;
  /** Returns the text to show, if any. */
  run(args: string, context: CommandContext): unknown;
}

/** The argument of `register_commands`. */
export interface CommandRegistrar {
  /** @throws Error when the definition is invalid or a name is taken. */
  register(command: CommandDefinition): void;
}

/** The result of a job run: event `job.run.completed` (specification 2.11). */
export interface JobReport {
  event: "job.run.completed";
  job: string;
  status: "verified" | "failed";
  /** The status in words: a run that no command of `verify` has checked "ended ok, not checked". */
  outcome: string;
  /** Seconds from the start of the first attempt to the end of the last. */
  duration: number;
  /** Why the run failed; empty for a verified run. */
  reason: string;
  /** Name of the session; empty when the run failed before it had one. */
  session: string;
  /** ISO 8601 in UTC. */
  started_at: string;
  /** ISO 8601 in UTC. */
  finished_at: string;
  /** The answer of the agent. */
  content: string;
  /** Whether the job's command of `verify` ended with exit code 0. Without one, a `verified` run is not checked. */
  checked: boolean;
  /** The answer to the job's `schema`. */
  data?: unknown;
  /** Calls that were refused, at most 20, and why. */
  denied: { tool: string; reason: string }[];
  worktree: string;
  /** The first 1000 characters of the job's memory, with white space collapsed. */
  memory: string;
  /** Token counts of all requests of the run, also of the agents that it started and of the job's memory. */
  usage: Usage;
  /** What they cost by the setting `prices`; null without a price. */
  cost: number | null;
  /** Questions of this run that wait for an answer; `origin` is the session that asked. */
  parked_asks: { id: number; origin: string; question: string }[];
}

/** A state change of a job (specification 6.1). */
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
  /** Session of the run; empty outside of a run. */
  session: string;
  /** Number of the attempt; 0 outside of a run. */
  attempt: number;
  /** Why, for `job.failed` and `job.timeout`; otherwise empty. */
  reason: string;
}

/** The end of a run that `POST /runs` or a hook has started. */
export interface RunReport {
  event: "run.ended";
  /** Id of the run. */
  run: string;
  state: "done" | "failed" | "cancelled";
  /** Why it did not end as it should: for programs, and as a sentence. */
  reason: string;
  error: string;
  session: string;
  worktree: string;
  /** ISO 8601 in UTC; `started_at` is empty for a run that did not begin. */
  queued_at: string;
  started_at: string;
  ended_at: string;
  /** The answer. */
  content: string;
  data?: unknown;
  verified?: boolean;
  /** Token counts of its last turn and of the agents that it started, and what they cost; null without a price. */
  usage: Usage;
  cost: number | null;
}

/** What the jobs of a worktree did since a time, and what waits for the operator. */
export interface JobsDigest {
  event: "jobs.digest";
  worktree: string;
  /** The time that the digest covers, ISO 8601 in UTC as all times here. */
  since: string;
  until: string;
  /** The jobs with an attempt in this time; `runs` counts attempts. */
  ran: { job: string; runs: number; failed: number; tokens: number; cost: number | null }[];
  /** Of all requests in this time, also those outside of jobs; `cost` is null when a model has no price. */
  total: { tokens: number; cost: number | null };
  /** The jobs whose last run failed. */
  failing: { job: string; at: string; reason: string }[];
  /** The jobs that cannot work. */
  blocked: { job: string; since: string; reason: string }[];
  /** The jobs with an attempt that runs for several of their intervals. */
  stuck: string[];
  /** The jobs of which a run waits for approval. */
  waiting: string[];
  /** The questions that wait for an answer; `job` is empty for one that no job has asked. */
  asks: { id: number; job: string; origin: string; question: string }[];
  /** The calls that were refused in this time. */
  denied: { job: string; tool: string; reason: string; times: number }[];
}

/** A service registered as `report`. Its failures are logged and never fail a run. */
export interface ReportService {
  /** Receives the report of each finished run. It has 30 seconds. */
  report(payload: JobReport, config: ConfigView): unknown;
  /**
   * Receives each state change of each job. It has 10 seconds, during which the job waits. `job.waiting_approval`
   * is the report of a run that waits for approval: it is sent once, and the service has 30 seconds.
   */
  job_event?(event: JobEvent, config: ConfigView): unknown;
  /** Receives the digest of a day, at the time of the setting `jobs.digest_at`. It has 30 seconds. */
  digest?(digest: JobsDigest, config: ConfigView): unknown;
  /** Receives the end of a run for the webhook that its request names. It has 30 seconds. */
  run_ended?(report: RunReport, webhook: string, config: ConfigView): unknown;
}

/** A result of a web search. */
export interface SearchResult {
  title: string;
  url: string;
  /** An excerpt, or empty. */
  snippet: string;
}

/** What a search is passed in addition to its query; see {@linkcode ToolContext}. */
export type SearchContext = Pick<ToolContext, "config" | "signal" | "key">;

/** A service registered as `search`. svc uses the one that was registered last. */
export interface SearchService {
  /** @param num maximum number of results; default: the setting `search_results` */
  search(query: string, num: number | undefined, context: SearchContext): Promise<SearchResult[]>;
  /** Formats the results for a person. */
  display(query: string, results: SearchResult[]): string;
  /** Formats the results as context for a model; empty when they are of no use. */
  context(query: string, results: SearchResult[]): string;
}

/** A service registered as `environment`: a line of the block that tells a new session where it works. */
export interface EnvironmentService {
  /** Returns the line; empty for none. All of them have 2 seconds together. A throw leaves the line out. */
  describe(context: ToolContext): string | Promise<string>;
}

/** The argument of `register_services`. */
export interface ServiceRegistrar {
  /**
   * Registers a service: `report` ({@linkcode ReportService}), `search` ({@linkcode SearchService}), `environment`
   * ({@linkcode EnvironmentService}) or a name of the plugin's own. Several services may share a name.
   */
  register(name: string, service: Record<string, unknown>): void;
}

/** The argument of `register_roles`, `register_teams` and `register_skills`. */
export interface CatalogRegistrar {
  /** Registers an entry with the fields of `roles.json`, `teams.json` or a skill. It must be JSON data. */
  add_plugin(entry: { name: string } & Record<string, unknown>): void;
}

/** The argument of `register_fixtures`. */
export interface FixtureRegistrar {
  /** Registers a fixture for `svc eval`. It must be JSON data. */
  register(fixture: { id: string } & Record<string, unknown>): void;
}

/**
 * The exports of a plugin's entry module. Every hook is optional and may be asynchronous. When a hook throws, its
 * registrations are dropped and the plugin's status is `error`; the other hooks still run.
 */
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
