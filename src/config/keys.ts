import * as z from "zod/mini";

/**
 * The plugins that come with the program, in the order in which they load; the default of the setting
 * `plugins`. `plugins/bundled.ts` has a module for each.
 */
export const BUNDLED_PLUGINS = [
  "svc-core-fs",
  "svc-core-edit",
  "svc-core-exec",
  "svc-core-git",
  "svc-core-dev",
  "svc-core-mcp",
  "svc-core-webhook",
  "svc-core-web",
  "svc-core-eval",
  "svc-core-anthropic",
  "svc-core-groq",
  "svc-core-ollama",
  "svc-core-openai",
  "svc-core-opencode",
  "svc-core-demo",
] as const;

/** Further plugins that come with the program. They load where the setting `plugins` names them. */
export const OPTIONAL_PLUGINS = ["svc-core-lsp"] as const;

/** The definition of one setting. */
export interface Setting<T = unknown> {
  /** For an object setting every field is optional, because layers merge per key. */
  readonly schema: () => z.ZodMiniType<T>;
  readonly default: T;
  /** One line; editors show it. */
  readonly description: string;
  /** Whether a wrong value in a file is a warning, and the default is used, instead of an error. */
  readonly lenient?: true;
  /** Whether commands never show the value. */
  readonly secret?: true;
  /**
   * Whether the worktree's file opens something with it (`policy/trust.ts`): never, always when it differs from the
   * value of the lower layers, or as a comparison with that value decides.
   */
  readonly trust: "harmless" | "opening" | "compared";
}

// Schemas are created when a value is checked; most never are.
const flag = () => z.boolean();
const text = () => z.string();
const name = () => z.string().check(z.minLength(1));
const names = () => z.array(name());
const count = () => z.int().check(z.gte(0));
const amount = () => z.number().check(z.gte(0));
const positive = () => z.number().check(z.positive());
const limits = () =>
  z.strictObject({
    cost: z.optional(z.number().check(z.positive())),
    tokens: z.optional(z.int().check(z.gte(1))),
    tool_calls: z.optional(z.int().check(z.gte(1))),
  });
const price = () =>
  z.strictObject({
    in: z.optional(amount()),
    out: z.optional(amount()),
    cached: z.optional(amount()),
    cache_write: z.optional(amount()),
  });
const storeAddress = () =>
  z.string().check(
    z.refine((given) => {
      const { password, searchParams } = URL.parse(given) ?? {};
      return !password && !searchParams?.has("password");
    }, {
      error: "must have no password: keep it with svc store password",
      abort: true,
    }),
    z.refine((given) => given === "" || /^postgres(ql)?:\/\/[^/\s]*\/[^/\s]+$/.test(given), {
      error: "must be an address such as postgres://user@host:5432/database",
    }),
  );
const action = () => z.enum(["allow", "ask", "deny"]);
const texts = () => z.record(z.string(), z.string());

/** The action of each category, and the commands that `run_command` runs without asking. */
export interface ToolPermission {
  bash_allow?: string[];
  [category: string]: "allow" | "ask" | "deny" | string[] | undefined;
}
// The inferred type gives bash_allow the type of a category, which no value has.
const toolPermission = () =>
  z.catchall(
    z.object({ bash_allow: z.optional(names()) }),
    action(),
  ) as unknown as z.ZodMiniType<ToolPermission>;

const mode = () =>
  z.strictObject({
    description: z.optional(text()),
    system_prompt: z.optional(text()),
    tool_permission: z.optional(toolPermission()),
    tools: z.optional(z.strictObject({ allow: z.optional(names()), deny: z.optional(names()) })),
    color: z.optional(text()),
  });

const mcpServer = () =>
  z.strictObject({
    name: name(),
    transport: z.optional(z.enum(["stdio", "http"])),
    command: z.optional(name()),
    args: z.optional(z.array(text())),
    cwd: z.optional(z.nullable(text())),
    env: z.optional(texts()),
    url: z.optional(name()),
    headers: z.optional(texts()),
    oauth: z.optional(z.strictObject({
      client_id: name(),
      client_secret: z.optional(name()),
      port: z.optional(z.int().check(z.positive(), z.lte(65535))),
    })),
    prefix: z.optional(text()),
    sandbox: z.optional(flag()),
    timeout: z.optional(positive()),
  }).check(z.refine(
    (server) => (server.transport === "http" ? server.url : server.command) !== undefined,
    { error: "must have a command, or a url and the transport http" },
  ));

const languageServer = () =>
  z.strictObject({
    name: name(),
    command: z.array(name()).check(z.minLength(1)),
    extensions: z.array(name()).check(z.minLength(1)),
  });

/** The events of the setting `hooks`, and what other agents call them. */
export const HOOK_EVENTS = {
  turn_start: ["UserPromptSubmit"],
  tool_call: ["PreToolUse"],
  tool_result: ["PostToolUse"],
  turn_end: ["Stop", "SubagentStop"],
  ask: ["Notification"],
  compaction: ["PreCompact"],
} as const;
const hooks = () =>
  z.partialRecord(
    z.enum(Object.entries(HOOK_EVENTS).flat(2)),
    z.array(z.strictObject({
      matcher: z.optional(text()),
      hooks: z.array(z.strictObject({
        type: z.optional(z.literal("command")),
        command: name(),
        timeout: z.optional(positive()),
      })),
    })),
  );

const askPolicy = () =>
  z.strictObject({
    permission: z.optional(z.enum(["auto", "human", "deny"])),
    direction: z.optional(z.enum(["auto", "human", "lead", "deny"])),
  });

type Made<T, Trust> = Setting<T> & { readonly trust: Trust };

function maker<const Trust extends Setting["trust"]>(trust: Trust) {
  return <S extends z.ZodMiniType>(
    schema: () => S,
    fallback: z.output<S>,
    description: string,
  ): Made<z.output<S>, Trust> => ({
    schema: schema as () => z.ZodMiniType<z.output<S>>,
    default: fallback,
    description,
    trust,
  });
}
const harmless = maker("harmless");
const compared = maker("compared");
const opening = maker("opening");

/** Places with secrets. Commands in a sandbox cannot read them. */
export const SECRET_PLACES = [
  ...["~/.config/svc", "~/.config/polyglav", "~/.ssh", "~/.gnupg", "~/.password-store"],
  "~/.local/share/keyrings",
  ...["~/.aws", "~/.azure", "~/.config/gcloud", "~/.config/doctl", "~/.kube", "~/.docker"],
  ...["~/.netrc", "~/.git-credentials", "~/.config/git/credentials", "~/.config/gh"],
  ...["~/.npmrc", "~/.yarnrc.yml", "~/.pypirc", "~/.cargo/credentials.toml", "~/.gem/credentials"],
  ...["~/.m2/settings.xml", "~/.terraform.d/credentials.tfrc.json", "~/.pgpass", "~/.my.cnf"],
  ...["~/.mozilla", "~/.config/chromium", "~/.config/google-chrome", "~/.thunderbird"],
  ...["~/.claude", "~/.claude.json", "~/.codex", "~/.bash_history", "~/.zsh_history"],
  ...["~/Library/Keychains", "~/Library/Application Support/Google/Chrome"],
];

/** Every setting (specification 2.13), in the order in which listings show them. */
export const SETTINGS = {
  provider: compared(text, "", "Name of the model backend; empty: none connected."),
  base_url: compared(text, "", "Address of the backend; empty: the provider's own."),
  model: compared(text, "", "Model id, or a provider/model ref; empty: the provider's default."),
  temperature: harmless(amount, 0.7, "Sampling temperature."),
  max_tokens: harmless(count, 8192, "Most tokens of one reply; 0 leaves it to the backend."),
  context_window: harmless(
    count,
    0,
    "Tokens that the model reads at most, with its reply; 0: as the backend says, or shows by refusing.",
  ),
  reasoning: harmless(
    () => z.literal([false, true, "off", "on", "auto", "low", "medium", "high"]),
    "auto",
    "How much the model reasons: off, on, auto, low, medium or high.",
  ),
  wire: harmless(
    () => z.literal(["auto", "chat", "native"]),
    "auto",
    "Protocol of providers that have one of their own: native, or chat completions; auto: native for anthropic.",
  ),
  idle_timeout: harmless(
    positive,
    120,
    "Seconds without a byte from the backend after which a request fails.",
  ),
  content_timeout: harmless(
    positive,
    300,
    "Seconds without content after which a stream fails, even if the backend keeps it open.",
  ),
  stream_retries: harmless(count, 2, "Further attempts after an empty or cut-off stream."),
  stream_retry_delay: harmless(amount, 0.5, "Seconds between those attempts."),
  retry_budget: harmless(
    amount,
    60,
    "Seconds of waiting at most for a backend that is busy, fails or cannot be reached.",
  ),
  quota_wait: harmless(
    amount,
    0,
    "Seconds of waiting at most in a turn for a quota that the backend says will open again.",
  ),
  model_fallback: compared(
    names,
    [],
    "Models, or provider/model refs, that are asked in order when the model cannot answer.",
  ),
  text_calls: compared(
    () => z.enum(["ask", "run", "off"]),
    "ask",
    "Tool calls that a model writes as text: ask it once to use the interface, run those that are certain, or off.",
  ),
  auto_continue: harmless(flag, true, "Ask a model that was cut off by max_tokens to go on."),
  auto_continue_max: harmless(count, 2, "How often one answer is continued at most."),
  max_rounds: harmless(
    count,
    200,
    "Model replies with tool calls in one turn, after which it ends as an error; 0: no cap.",
  ),
  approve_models: opening(
    flag,
    false,
    "Approve the models that the configuration, roles and teams refer to, as --approve-model does.",
  ),
  verify_timeout: harmless(
    amount,
    600,
    "Seconds that the command of --verify may take; 0: no cap.",
  ),
  prices: opening(
    () => z.record(name(), price()),
    {},
    "Prices by provider/model or provider/*: {in, out, cached, cache_write} per million tokens, in your currency.",
  ),
  "budget.turn": compared(limits, {}, "Most that a turn may use: {cost, tokens, tool_calls}."),
  "budget.job_run": compared(limits, {}, "Most that all attempts of a job's run may use."),
  "budget.job_day": compared(limits, {}, "Most that one job may use in a day (UTC)."),
  "budget.day": compared(
    limits,
    {},
    "Most that all agents of the worktree may use in a day (UTC).",
  ),
  "usage.keep_days": harmless(
    count,
    400,
    "Days for which the usage of models is kept in .svc/usage; 0: for good.",
  ),
  unattended_timeout: compared(
    amount,
    7200,
    "Seconds that a turn without an operator may take (of jobs: jobs.timeout); 0: no cap.",
  ),
  connect_check: harmless(flag, true, "Probe the backend on /connect and /provider."),

  mode: compared(name, "build", "The mode: build, plan, or one of modes."),
  modes: compared(() => z.record(name(), mode()), {}, "Custom modes by name."),
  system_prompt: harmless(
    text,
    "",
    "System prompt of runs without a role; empty: the built-in one.",
  ),
  project_instructions: harmless(
    text,
    "AGENTS.md",
    "File of the worktree that every agent's system prompt includes; empty: none.",
  ),
  project_instructions_max_chars: harmless(count, 20_000, "Characters of that file used at most."),
  environment: harmless(
    flag,
    true,
    "Tell a new session the system, the day, the Git branch and the kind of project.",
  ),

  "sandbox.mode": compared(
    () => z.enum(["off", "auto", "require"]),
    "auto",
    "Sandbox of commands: off, auto (where one works), or require (refuse commands without one).",
  ),
  "sandbox.deny_read": compared(names, SECRET_PLACES, "Paths that commands cannot read."),
  "sandbox.write": compared(names, [], "Paths that commands may write besides the worktree."),
  "sandbox.network": compared(flag, true, "Whether commands may use the network."),
  "sandbox.env": compared(names, [], "Further environment variables that commands get."),
  "tools.allow": compared(names, [], "The only tools offered to the model; empty: all."),
  "tools.deny": compared(names, [], "Tools that are never offered or run."),
  tool_permission: compared(
    toolPermission,
    {
      read: "allow",
      list: "allow",
      edit: "allow",
      web: "allow",
      delegate: "allow",
      ask: "allow",
      handoff: "allow",
      catalog: "allow",
      plan: "allow",
      bash: "ask",
      mcp: "ask",
      vcs: "ask",
      bash_allow: [],
    },
    "What each tool category may do: allow, ask or deny; bash_allow lists commands that run unasked.",
  ),
  ask_policy: compared(
    askPolicy,
    { permission: "auto", direction: "human" },
    "Who answers an agent's questions, by kind.",
  ),
  unattended: compared(
    flag,
    false,
    "No one is present: confirmations are denied, questions parked.",
  ),
  confirm_timeout: harmless(
    amount,
    0,
    "Seconds after which an unanswered confirmation is denied; 0 waits forever.",
  ),
  tool_max_result_chars: harmless(count, 100_000, "Characters of a tool result; 0: no cap."),
  session_tool_max_chars: harmless(count, 0, "Characters of a tool result in the log; 0: no cap."),
  noise_tools: harmless(
    names,
    ["web_fetch", "open", "fetch_page"],
    "Tools whose results the log replaces with a marker.",
  ),
  tool_analysis: harmless(flag, false, "Add a one-line insight to each tool result."),
  list_dir_max_entries: harmless(count, 200, "Entries of one list_dir result; 0: no cap."),

  plugins: compared(names, [...BUNDLED_PLUGINS], "Plugins to load; an empty list loads all found."),
  "mcp.servers": compared(() => z.array(mcpServer()), [], "MCP servers whose tools are imported."),
  "mcp.defer": harmless(
    count,
    20,
    "Tools of an MCP server above which they are found by search; 0: their schemas are always sent.",
  ),
  "lsp.servers": opening(
    () => z.array(languageServer()),
    [],
    "Language servers of the plugin svc-core-lsp: {name, command: [program, ...], extensions}.",
  ),
  "mcp_server.allow_ask": compared(flag, true, "Run ask-gated tools when serving MCP."),
  "serve.max_concurrent": opening(
    () => z.int().check(z.positive()),
    16,
    "Turns that svc serve runs side by side at most.",
  ),
  "serve.max_queue": opening(
    count,
    256,
    "Turns that may wait for their place in svc serve; further ones are answered with 429.",
  ),
  "serve.max_body": opening(
    () => z.int().check(z.positive()),
    1_048_576,
    "Bytes of a request body that svc serve accepts.",
  ),
  "serve.body_timeout": opening(
    positive,
    30,
    "Seconds within which a request body must have arrived.",
  ),
  "serve.timeout": opening(
    amount,
    1800,
    "Seconds after which a turn of svc serve is cancelled, its wait included; 0: never.",
  ),
  "serve.grace": opening(
    amount,
    30,
    "Seconds that running turns have to finish when svc serve is told to stop.",
  ),
  "serve.token_file": opening(
    text,
    "",
    "File of bearer tokens, one a line, of which requests to svc serve must bear one; empty: none.",
  ),
  "serve.console": opening(
    () => z.enum(["loopback", "on", "off"]),
    "loopback",
    "Serve the console at /console: on, off, or when svc serve listens on this machine alone.",
  ),
  "serve.hosts": opening(names, [], "Further names under which svc serve is reached."),
  "serve.cors_origins": opening(
    names,
    [],
    "Origins whose pages may use svc serve, such as https://example.org.",
  ),
  "serve.webhooks": opening(
    names,
    [],
    "Origins that runs may name as a webhook, such as https://example.org; that of report.webhook is one.",
  ),
  "serve.rate_limit": opening(
    count,
    0,
    "Requests a minute of one token, or without tokens of one address; 0: no limit.",
  ),
  "report.webhook": opening(text, "", "URL that gets a report of every job run; empty: none."),
  "report.secret": {
    ...opening(text, "", "Key that signs those reports; empty: they are not signed. Never shown."),
    secret: true,
  },
  "dev.test_cmd": opening(text, "", "Command that code_test runs."),
  "dev.lint_cmd": opening(text, "", "Command that code_lint runs."),
  "dev.format_cmd": opening(text, "", "Command that code_format runs."),
  "dev.check_cmd": opening(
    text,
    "",
    "Command that checks the project after a change; the model is told of its new complaints.",
  ),
  hooks: opening(
    hooks,
    {},
    "Programs that are started when a turn begins or ends, a tool is called, a person is asked.",
  ),
  "dev.check_timeout": harmless(positive, 60, "Seconds that one run of dev.check_cmd may take."),

  "web.search_engine": opening(
    () => z.enum(["duckduckgo", "searxng", "brave"]),
    "duckduckgo",
    "Who is asked when the web is searched: duckduckgo, searxng or brave.",
  ),
  "web.search_url": opening(
    text,
    "",
    "Address of the search engine, such as http://localhost:8888 of a SearXNG; empty: its own.",
  ),
  "web.allow_private": compared(
    names,
    [],
    "Hosts, as host or host:port, that web tools may reach on this machine or in a private network.",
  ),
  "web.timeout": harmless(positive, 30, "Seconds that fetching one page or search may take."),
  "web.max_bytes": harmless(
    () => z.int().check(z.positive()),
    4_194_304,
    "Bytes of a page that are read, unpacked; the rest is left out.",
  ),
  search_results: harmless(count, 5, "Results of one web search."),
  query_refine: harmless(flag, false, "Let the model rewrite search queries."),
  web_search: compared(flag, false, "Search the web before answering."),
  memory_enabled: compared(flag, true, "Keep role, team and job memories."),
  "memory.role": compared(flag, true, "Keep a memory for each role."),
  "memory.team": compared(flag, true, "Keep a memory for each team."),
  "memory.job": compared(flag, true, "Keep a memory for each job."),
  memory_max_chars: harmless(count, 2000, "Characters of a memory at most; 0: no cap."),
  "delegate.max_parallel": harmless(
    () => z.int().check(z.positive()),
    4,
    "Agents that one reply's delegate calls run side by side at most; 1: one after the other.",
  ),
  max_team_depth: harmless(count, 2, "How deep teams may start teams."),
  compact_keep: harmless(count, 4, "Turns kept as they are on compaction."),
  "sessions.keep_days": opening(
    count,
    0,
    "Days after the last write that a session is kept before the scheduler deletes it; 0: no limit.",
  ),
  "sessions.keep_count": opening(
    count,
    0,
    "Sessions of each job, and of everything else, that the scheduler keeps at most; 0: all.",
  ),
  "checkpoints.max_size": opening(
    count,
    256 * 1024 * 1024,
    "Bytes that are kept at most of the files that agents change, to show and undo it; 0: nothing is kept.",
  ),
  store: opening(
    storeAddress,
    "",
    "PostgreSQL database that several machines share, as postgres://user@host:port/database; empty: files alone.",
  ),
  project: opening(
    text,
    "",
    "Name of this worktree in the store, the same on every machine; empty: the name of its folder.",
  ),
  store_timeout: harmless(
    positive,
    30,
    "Seconds for which a store that cannot be reached is tried again before the work fails.",
  ),
  project_concurrency: harmless(
    count,
    0,
    "Due jobs and accepted runs of the project that run at the same time on all machines, without what a person waits for (svc run, POST /chat); 0: no limit.",
  ),
  "jobs.concurrency": harmless(
    () => z.int().check(z.positive()),
    1,
    "Jobs that run at the same time at most; 1: one after the other, in name order.",
  ),
  "jobs.clones_size": opening(
    count,
    10_000_000_000,
    "Bytes that the clones of jobs with a repository may take in ~/.cache/svc/clones.",
  ),
  "jobs.grace": harmless(
    amount,
    10,
    "Seconds that a running attempt has to finish when the scheduler is stopped.",
  ),
  "jobs.digest_at": harmless(
    text,
    "",
    "When the scheduler reports a digest each day, such as 07:00 or 07:00 Europe/Berlin; empty: never.",
  ),
  "jobs.heartbeat_url": opening(
    text,
    "",
    "URL that the scheduler calls after its healthy ticks, at most once a minute; empty: none.",
  ),
  "jobs.timeout": compared(
    amount,
    7200,
    "Seconds that an attempt of a job may take that sets no timeout of its own; 0: no cap.",
  ),
  "jobs.tick": harmless(positive, 15, "Seconds between two looks of the scheduler at what is due."),

  show_thinking: harmless(flag, false, "Show the model's reasoning."),
  show_errors: harmless(flag, true, "Show failed tool results."),
  show_notes: harmless(flag, true, "Show soft notes, such as an empty result."),
  status_spinner: harmless(flag, true, "Show a spinner while waiting."),
  word_streaming: harmless(flag, true, "Print answers word by word."),
  hide_confirm_input: harmless(flag, false, "Do not echo what is typed at a confirmation."),
  print_max_chars: harmless(count, 4000, "Characters of a part that /print shows; 0: no cap."),
  prompt_role: harmless(flag, false, "Name the active role in the input prompt."),
  delegate_echo: harmless(flag, true, "Show a sub-agent's answer and footer."),
  focus_on_delegate: {
    ...harmless(
      () => z.enum(["off", "ask", "on"]),
      "off",
      "Whether the focus follows a delegation: off, ask or on.",
    ),
    lenient: true,
  },
  subrun_verbosity: harmless(
    () => z.enum(["quiet", "summary", "full"]),
    "summary",
    "How much of a sub-agent's run is shown; full: its task, its texts and its reasoning too.",
  ),
  "repl.typed": harmless(
    () => z.enum(["next_round", "after_turn"]),
    "next_round",
    "When the model is sent what is typed during a turn: before its next reply, or as the next turn.",
  ),
  "repl.theme": {
    ...harmless(
      () => z.enum(["auto", "dark", "light", "both", "none"]),
      "auto",
      "Colours for a background: auto, dark (the terminal's own palette), light, both or none.",
    ),
    lenient: true,
  },
  run_buffer_max_lines: harmless(count, 2000, "Lines kept of a run's output."),
} satisfies Record<string, Setting>;

/** The name of a setting, dotted where it belongs to a group. */
export type ConfigKey = keyof typeof SETTINGS;

/** The value of each setting as `Config.get` returns it. */
export type ConfigValues = { [K in ConfigKey]: (typeof SETTINGS)[K]["default"] };

/** The settings for which `policy/trust.ts` has a comparison. */
export type ComparedKey = {
  [K in ConfigKey]: (typeof SETTINGS)[K]["trust"] extends "compared" ? K : never;
}[ConfigKey];

export const CONFIG_KEYS = Object.keys(SETTINGS) as ConfigKey[];

/** The setting of a key. */
export function settingOf(key: ConfigKey): Setting {
  return SETTINGS[key] as Setting;
}

/** The field names of objects inside settings, for suggestions. */
export function fieldNames(): string[] {
  return [mode(), mcpServer(), askPolicy(), limits(), price()].flatMap((object) =>
    Object.keys(object.shape)
  );
}
