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
}

// Schemas are created when a value is checked; most never are.
const flag = () => z.boolean();
const text = () => z.string();
const name = () => z.string().check(z.minLength(1));
const names = () => z.array(name());
const count = () => z.int().check(z.gte(0));
const amount = () => z.number().check(z.gte(0));
const positive = () => z.number().check(z.positive());
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
    prefix: z.optional(text()),
    sandbox: z.optional(flag()),
    timeout: z.optional(positive()),
  }).check(z.refine(
    (server) => (server.transport === "http" ? server.url : server.command) !== undefined,
    { error: "must have a command, or a url and the transport http" },
  ));

const askPolicy = () =>
  z.strictObject({
    permission: z.optional(z.enum(["auto", "human", "deny"])),
    direction: z.optional(z.enum(["auto", "human", "lead", "deny"])),
  });

function setting<S extends z.ZodMiniType>(
  schema: () => S,
  fallback: z.output<S>,
  description: string,
): Setting<z.output<S>> {
  return { schema: schema as () => z.ZodMiniType<z.output<S>>, default: fallback, description };
}

/** Places with secrets. Commands in a sandbox cannot read them. */
export const SECRET_PLACES = [
  ...["~/.config/svc", "~/.ssh", "~/.gnupg", "~/.password-store", "~/.local/share/keyrings"],
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
  provider: setting(text, "", "Name of the model backend; empty: none connected."),
  base_url: setting(text, "", "Address of the backend; empty: the provider's own."),
  model: setting(text, "", "Model id, or a provider/model ref; empty: the provider's default."),
  temperature: setting(amount, 0.7, "Sampling temperature."),
  max_tokens: setting(count, 8192, "Most tokens of one reply; 0 leaves it to the backend."),
  reasoning: setting(
    () => z.literal([false, true, "off", "on", "auto", "low", "medium", "high"]),
    "auto",
    "How much the model reasons: off, on, auto, low, medium or high.",
  ),
  idle_timeout: setting(
    positive,
    120,
    "Seconds without a byte from the backend after which a request fails.",
  ),
  stream_retries: setting(count, 2, "Further attempts after an empty or cut-off stream."),
  stream_retry_delay: setting(amount, 0.5, "Seconds between those attempts."),
  retry_budget: setting(
    amount,
    60,
    "Seconds of waiting at most, before a stream starts, for a backend that answers 429 or 5xx.",
  ),
  auto_continue: setting(flag, true, "Ask a model that was cut off by max_tokens to go on."),
  auto_continue_max: setting(count, 2, "How often one answer is continued at most."),
  max_rounds: setting(
    count,
    200,
    "Model replies with tool calls in one turn, after which it ends as an error; 0: no cap.",
  ),
  connect_check: setting(flag, true, "Probe the backend on /connect and /provider."),

  mode: setting(name, "build", "The mode: build, plan, or one of modes."),
  modes: setting(() => z.record(name(), mode()), {}, "Custom modes by name."),
  system_prompt: setting(
    text,
    "",
    "System prompt of runs without a role; empty: the built-in one.",
  ),
  project_instructions: setting(
    text,
    "AGENTS.md",
    "File of the worktree that every agent's system prompt includes; empty: none.",
  ),
  project_instructions_max_chars: setting(count, 20_000, "Characters of that file used at most."),

  "sandbox.mode": setting(
    () => z.enum(["off", "auto", "require"]),
    "auto",
    "Sandbox of commands: off, auto (where one works), or require (refuse commands without one).",
  ),
  "sandbox.deny_read": setting(names, SECRET_PLACES, "Paths that commands cannot read."),
  "sandbox.write": setting(names, [], "Paths that commands may write besides the worktree."),
  "sandbox.network": setting(flag, true, "Whether commands may use the network."),
  "sandbox.env": setting(names, [], "Further environment variables that commands get."),
  "tools.allow": setting(names, [], "The only tools offered to the model; empty: all."),
  "tools.deny": setting(names, [], "Tools that are never offered or run."),
  tool_permission: setting(
    toolPermission,
    {
      read: "allow",
      list: "allow",
      edit: "allow",
      web: "allow",
      delegate: "allow",
      team: "allow",
      ask: "allow",
      handoff: "allow",
      catalog: "allow",
      bash: "ask",
      mcp: "ask",
      vcs: "ask",
      bash_allow: [],
    },
    "What each tool category may do: allow, ask or deny; bash_allow lists commands that run unasked.",
  ),
  ask_policy: setting(
    askPolicy,
    { permission: "auto", direction: "human" },
    "Who answers an agent's questions, by kind.",
  ),
  unattended: setting(
    flag,
    false,
    "No one is present: confirmations are denied, questions parked.",
  ),
  confirm_timeout: setting(
    amount,
    0,
    "Seconds after which an unanswered confirmation is denied; 0 waits forever.",
  ),
  tool_max_result_chars: setting(count, 100_000, "Characters of a tool result; 0: no cap."),
  session_tool_max_chars: setting(count, 0, "Characters of a tool result in the log; 0: no cap."),
  noise_tools: setting(
    names,
    ["web_fetch", "open", "fetch_page"],
    "Tools whose results the log replaces with a marker.",
  ),
  tool_analysis: setting(flag, false, "Add a one-line insight to each tool result."),
  list_dir_max_entries: setting(count, 200, "Entries of one list_dir result; 0: no cap."),

  plugins: setting(names, [...BUNDLED_PLUGINS], "Plugins to load; an empty list loads all found."),
  "mcp.servers": setting(() => z.array(mcpServer()), [], "MCP servers whose tools are imported."),
  "mcp_server.allow_ask": setting(flag, true, "Run ask-gated tools when serving MCP."),
  "serve.max_concurrent": setting(
    () => z.int().check(z.positive()),
    16,
    "Turns that svc serve runs side by side at most.",
  ),
  "serve.max_queue": setting(
    count,
    256,
    "Turns that may wait for their place in svc serve; further ones are answered with 429.",
  ),
  "serve.max_body": setting(
    () => z.int().check(z.positive()),
    1_048_576,
    "Bytes of a request body that svc serve accepts.",
  ),
  "serve.body_timeout": setting(
    positive,
    30,
    "Seconds within which a request body must have arrived.",
  ),
  "serve.timeout": setting(
    amount,
    1800,
    "Seconds after which a turn of svc serve is cancelled, its wait included; 0: never.",
  ),
  "serve.grace": setting(
    amount,
    30,
    "Seconds that running turns have to finish when svc serve is told to stop.",
  ),
  "serve.token_file": setting(
    text,
    "",
    "File of bearer tokens, one a line, of which requests to svc serve must bear one; empty: none.",
  ),
  "serve.hosts": setting(names, [], "Further names under which svc serve is reached."),
  "serve.cors_origins": setting(
    names,
    [],
    "Origins whose pages may use svc serve, such as https://example.org.",
  ),
  "serve.rate_limit": setting(
    count,
    0,
    "Requests a minute of one token, or without tokens of one address; 0: no limit.",
  ),
  "report.webhook": setting(text, "", "URL that gets a report of every job run; empty: none."),
  "report.secret": {
    ...setting(text, "", "Key that signs those reports; empty: they are not signed. Never shown."),
    secret: true,
  },
  "dev.test_cmd": setting(text, "", "Command that code_test runs."),
  "dev.lint_cmd": setting(text, "", "Command that code_lint runs."),
  "dev.format_cmd": setting(text, "", "Command that code_format runs."),

  "web.search_engine": setting(
    () => z.enum(["duckduckgo", "searxng", "brave"]),
    "duckduckgo",
    "Who is asked when the web is searched: duckduckgo, searxng or brave.",
  ),
  "web.search_url": setting(
    text,
    "",
    "Address of the search engine, such as http://localhost:8888 of a SearXNG; empty: its own.",
  ),
  "web.allow_private": setting(
    names,
    [],
    "Hosts, as host or host:port, that web tools may reach on this machine or in a private network.",
  ),
  "web.timeout": setting(positive, 30, "Seconds that fetching one page or search may take."),
  "web.max_bytes": setting(
    () => z.int().check(z.positive()),
    4_194_304,
    "Bytes of a page that are read, unpacked; the rest is left out.",
  ),
  search_results: setting(count, 5, "Results of one web search."),
  query_refine: setting(flag, false, "Let the model rewrite search queries."),
  web_search: setting(flag, false, "Search the web before answering."),
  memory_enabled: setting(flag, true, "Keep role, team and job memories."),
  "memory.role": setting(flag, true, "Keep a memory for each role."),
  "memory.team": setting(flag, true, "Keep a memory for each team."),
  "memory.job": setting(flag, true, "Keep a memory for each job."),
  memory_max_chars: setting(count, 2000, "Characters of a memory at most; 0: no cap."),
  "delegate.max_parallel": setting(
    () => z.int().check(z.positive()),
    4,
    "Agents that one reply's delegate calls run side by side at most; 1: one after the other.",
  ),
  max_team_depth: setting(count, 2, "How deep teams may start teams."),
  compact_keep: setting(count, 4, "Turns kept as they are on compaction."),
  "jobs.concurrency": setting(
    () => z.int().check(z.positive()),
    1,
    "Jobs that run at the same time at most; 1: one after the other, in name order.",
  ),
  "jobs.grace": setting(
    amount,
    10,
    "Seconds that a running attempt has to finish when the scheduler is stopped.",
  ),
  "jobs.tick": setting(positive, 15, "Seconds between two looks of the scheduler at what is due."),

  show_thinking: setting(flag, false, "Show the model's reasoning."),
  show_errors: setting(flag, true, "Show failed tool results."),
  show_notes: setting(flag, true, "Show soft notes, such as an empty result."),
  status_spinner: setting(flag, true, "Show a spinner while waiting."),
  word_streaming: setting(flag, true, "Print answers word by word."),
  hide_confirm_input: setting(flag, false, "Do not echo what is typed at a confirmation."),
  print_max_chars: setting(count, 4000, "Characters of a part that /print shows; 0: no cap."),
  prompt_role: setting(flag, false, "Name the active role in the input prompt."),
  delegate_echo: setting(flag, true, "Show a sub-agent's answer and footer."),
  focus_on_delegate: {
    ...setting(
      () => z.enum(["off", "ask", "on"]),
      "off",
      "Whether the focus follows a delegation: off, ask or on.",
    ),
    lenient: true,
  },
  subrun_verbosity: setting(
    () => z.enum(["quiet", "summary", "full"]),
    "summary",
    "How much of a sub-agent's run is shown.",
  ),
  run_buffer_max_lines: setting(count, 2000, "Lines kept of a run's output."),
} satisfies Record<string, Setting>;

/** The name of a setting, dotted where it belongs to a group. */
export type ConfigKey = keyof typeof SETTINGS;

/** The value of each setting as `Config.get` returns it. */
export type ConfigValues = { [K in ConfigKey]: (typeof SETTINGS)[K]["default"] };

export const CONFIG_KEYS = Object.keys(SETTINGS) as ConfigKey[];

/** The setting of a key. */
export function settingOf(key: ConfigKey): Setting {
  return SETTINGS[key] as Setting;
}

/** The field names of objects inside settings, for suggestions. */
export function fieldNames(): string[] {
  return [mode(), mcpServer(), askPolicy()].flatMap((object) => Object.keys(object.shape));
}
