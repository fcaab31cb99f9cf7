/** A numbered section of the specification. One with subsections is a heading alone. */
export interface Section {
  number: string;
  title: string;
  /** What svc does, in a sentence or two. */
  text: string;
  deviations?: Deviation[];
}

export interface Deviation {
  /** What svc does instead, as sentences. */
  what: string;
  /** The reason, as sentences. */
  why: string;
  /** The name, without sections, of the test that shows it. */
  test: string;
}

/** The sections of the specification, with what svc does in each and where it deviates. */
export const SECTIONS: Section[] = [
  {
    number: "1",
    title: "What the service does",
    text:
      "svc runs one agent turn from the command line, the terminal session or the HTTP API, all with the same engine. Sessions, tools, roles and teams, jobs, asks, fleets, plugins and MCP are built around that turn.",
    deviations: [
      {
        what: "The core uses packages of the npm registry.",
        why:
          "Nothing has to be installed for them: the executable contains them, at exact versions that the lock file freezes. docs/architecture.md gives the reason for each.",
        test: "packages have exact versions, and the lock file is frozen",
      },
    ],
  },
  { number: "2", title: "Resources and their fields", text: "" },
  {
    number: "2.1",
    title: "Session",
    text:
      "A session is one append-only JSON document in `.svc/sessions/`. It is whole between any two writes, also when several processes write it or one is killed. An optional field may be absent or null.",
  },
  {
    number: "2.2",
    title: "Turn and part",
    text:
      "A turn has its status, model, provider, mode and reasoning, and its parts in order. A tool part has the call and its result. Parts have further fields with which later requests repeat earlier ones byte for byte (docs/architecture.md).",
  },
  {
    number: "2.3",
    title: "Session error entry",
    text:
      "Failures of a turn are entries with a code, a message and a time. A failure without a status has the code 0.",
  },
  {
    number: "2.4",
    title: "Permission audit entry",
    text:
      "Every decision on a tool call is recorded in the session. No setting turns that off. An approval adds `scope` (`once` or `always`) and `granted_by`; `path` is absent where a call has none.",
    deviations: [
      {
        what: "Calls of MCP clients are not recorded.",
        why: "They belong to no session. The client is the one that confirms and records them.",
        test:
          "an MCP client's call that the policy asks about runs, unless mcp_server.allow_ask is false",
      },
    ],
  },
  {
    number: "2.5",
    title: "Run",
    text: "Runs are numbered as they start. They form a log and a tree, and keep their output.",
  },
  {
    number: "2.6",
    title: "Job",
    text:
      "Jobs are stored in `.svc/jobs.json` with their history. A job's system prompt is composed from its role, task file, own prompt, memory and mode. A history entry has `started_at`, `finished_at`, `status`, `reason` (300 characters), `duration`, `session`, `attempt` and `content` (1000 characters). `tools_deny`, `tool_permission` and `approval_pending` are the keys that the specification does not name.",
    deviations: [
      {
        what: "The last writer does not win: each change applies to the entry as it is on disk.",
        why: "A scheduler and a person who edits jobs at the same time must not undo each other.",
        test: "changes of two processes to different jobs are both kept",
      },
      {
        what:
          "A job without `timeout` has that of the setting `jobs.timeout`, 2 hours. With 0 it has none.",
        why:
          "A backend that keeps a stream open and sends nothing would hold the job, and those behind it, for ever.",
        test: "an attempt without a timeout of its own has the setting's, and one with 0 has none",
      },
      {
        what:
          "A failure that no retry can change (a rejected key, a model that is gone, a missing role) ends the run with its first attempt, and a retry never begins before a time that the backend has announced.",
        why: "Such retries cost requests and time and fail again.",
        test:
          "a permanent failure of a job is one attempt, and the job is blocked until a due run works",
      },
      {
        what:
          "A run in plan mode reads the memory and does not write it. Roles and teams do the same.",
        why: "Plan mode changes nothing.",
        test: "a job in plan mode reads its memory and does not write it",
      },
      {
        what:
          "In a lasting session, a memory that has changed follows the conversation as a `system` part, instead of in the system prompt.",
        why: "The backend's cache of the conversation would be lost with each change.",
        test:
          "the runs of a job on a lasting session share their beginning, and its memory follows",
      },
    ],
  },
  {
    number: "2.7",
    title: "Ask (pending-ask inbox)",
    text:
      "Parked questions are stored in `.svc/asks.json` with their origin, kind and answer. The times are `created_at` and `answered_at`.",
  },
  {
    number: "2.8",
    title: "Fleet roster and state",
    text:
      "The roster `.svc/fleet.json` is edited by people and commands; the supervisor writes `.svc/fleet.state.json` and the logs. A damaged entry or snapshot is kept and reported, and the rest works.",
  },
  {
    number: "2.9",
    title: "Plugin manifest (`manifest.json`)",
    text:
      "A plugin is a folder with a manifest, or one module. All keys but the name have defaults.",
    deviations: [
      {
        what:
          "The default entry is `plugin.ts`, and a bare module is a `.ts`, `.js` or `.mjs` file.",
        why: "svc runs TypeScript and JavaScript on Deno.",
        test: "a missing entry of a plugin is an error, and the default entry is plugin.ts",
      },
      {
        what: "A Python plugin, or one with a `python` range, is listed as `incompatible`.",
        why: "svc has no Python interpreter. The key `deno` gives a range of Deno versions.",
        test: "Python plugins are incompatible: a file, an entry, a manifest",
      },
    ],
  },
  {
    number: "2.10",
    title: "MCP client server entry (config key `mcp.servers`, array)",
    text:
      "Servers over stdio and HTTP are configured by name, and their tools have a prefix. A program is started with its arguments, folder and environment.",
    deviations: [
      {
        what:
          "A server over stdio gets `PATH`, `HOME` and the configured `env`, and not the rest of svc's environment.",
        why: "A third party's program must not read the keys and tokens in it.",
        test:
          "an MCP server gets a minimal environment and what is configured for it, in its folder",
      },
    ],
  },
  {
    number: "2.11",
    title: "Job report payload (event `job.run.completed`)",
    text:
      "A report has the keys `event`, `job`, `status`, `duration`, `reason`, `session`, `started_at`, `finished_at`, `content`, `worktree`, `memory` and `parked_asks`. A parked ask has its `id`, `origin` and `question`.",
  },
  {
    number: "2.12",
    title: "Roles, teams, skills, providers, models",
    text:
      "Roles, teams and skills are merged from bundled, plugin, global and local layers, field by field; docs/roles.md lists their fields. Connections and approved models are stored per user.",
    deviations: [
      {
        what:
          "A role or team of a worktree that widens the lower layers' is left out until the user has accepted it.",
        why: "A cloned repository must not give its own agents more rights than the user did.",
        test:
          "roles and teams of the worktree that widen the lower layers' are left out until accepted",
      },
    ],
  },
  {
    number: "2.13",
    title: "Key configuration keys",
    text:
      "Settings are merged per key from defaults, the user's file, the worktree's file and overrides in memory. `svc config schema` has every key with its default; flat and nested spellings are the same.",
    deviations: [
      {
        what: "The default of `stream_retries` is 2.",
        why:
          "The limits (8) say three attempts in all, which are one and the retries; the default of 3 in this section would make four.",
        test: "the defaults are those of the specification",
      },
      {
        what:
          "A setting of the worktree that opens something (a program, an address, a permission) has no effect until the user has accepted it.",
        why: "A cloned repository must not run programs or send keys by its settings.",
        test: "each kind of setting that opens something is named, and left out",
      },
      {
        what: "An error of a noise tool stays in the log.",
        why: "The log would otherwise not say why a turn went as it did.",
        test:
          "noise_tools: their output is kept out of the log, not from the model, and their errors are in both",
      },
    ],
  },
  { number: "3", title: "States and transitions", text: "" },
  {
    number: "3.1",
    title: "Job status",
    text:
      "One table holds every transition of a job, for the scheduler and for commands. A refused trigger says why and changes nothing.",
    deviations: [
      {
        what: "`approve` of a proposed or parked job enables it too.",
        why:
          "`reject` disables a job, and earlier programs store a proposed one as disabled. An approval after which the job does not run would be none.",
        test:
          "a rejected job, and a proposed one that another program has disabled, runs once it is approved",
      },
    ],
  },
  {
    number: "3.2",
    title: "Ask",
    text:
      "An ask is pending until one answer is given, which goes into the origin session. A second answer is refused.",
  },
  {
    number: "3.3",
    title: "Turn status",
    text:
      "A turn is `running` until it ends as `ok`, `error`, `truncated`, `empty` or `cancelled`.",
  },
  {
    number: "3.4",
    title: "Fleet agent",
    text:
      "The supervisor's sweep moves each agent between `down`, `running`, `stopping`, `restarting` and `crashed`. Agents that a killed supervisor leaves are adopted by the next one.",
    deviations: [
      {
        what:
          "The count of failures towards `max_restarts` begins anew after ten minutes of health.",
        why: "An agent that fails once a week for months is not one that cannot run.",
        test: "earlier failures of an agent are reset after ten minutes of health, not before",
      },
      {
        what:
          "A started agent has 60 s until its first healthy probe. Failed probes count from then on.",
        why: "A start on a busy machine takes longer than two sweeps.",
        test: "an agent has 60 s to become healthy, in which failed probes do not count",
      },
    ],
  },
  {
    number: "3.5",
    title: "Plugin status",
    text:
      "Every plugin that is found is listed with its status and, unless it is loaded, the reason.",
  },
  {
    number: "3.6",
    title: "Focus and runs",
    text:
      "The terminal session's focus moves through the tree of runs; agents hand over with `handoff`.",
  },
  { number: "4", title: "Endpoints", text: "" },
  {
    number: "4.1",
    title: "HTTP API (`svc serve`)",
    text:
      "`svc serve` has the routes of the specification, and further ones that docs/http-api.md lists. The body of `POST /chat` is the turn result of `svc run`; an ask is answered once.",
    deviations: [
      {
        what:
          "`POST /chat` that accepts `text/event-stream` is answered with events, and `GET /metrics` with text.",
        why:
          "A client that asks for them needs the answer as it comes, and Prometheus its own format. Every other response is JSON.",
        test: "POST /chat as a stream sends each event under its type and ends with the result",
      },
    ],
  },
  {
    number: "4.2",
    title: "MCP server surface",
    text: "`svc mcp` and `POST /mcp` serve tools and sessions, in modern and legacy revisions.",
    deviations: [
      {
        what:
          "The tools that act for an agent (`ask`, `delegate`, `team`, `handoff`, `catalog`) and the imported tools are not served.",
        why:
          "The former need the loop of an agent, and a client reaches the latter's servers itself.",
        test: "core tools and tools of other servers are not offered to MCP clients",
      },
      {
        what: "Over HTTP a call that the policy asks about runs only for a client with a token.",
        why:
          "Any program of the machine reaches the port, and only the token shows that the operator has let a client in.",
        test: "POST /mcp: a request without a token gets no call that the policy asks about",
      },
      {
        what:
          "A call outside the worktree or to svc's own files is refused, although the policy asks about it.",
        why:
          "A client confirms the name and arguments of a tool; it cannot see where a path leads.",
        test: "an MCP client cannot access paths outside the worktree or change svc's settings",
      },
    ],
  },
  {
    number: "4.3",
    title: "MCP client",
    text: "Tools of configured servers are imported into the registry before each prompt.",
    deviations: [
      {
        what: "Where every imported call would be denied, its servers are not started.",
        why: "Their tools could not be used, and starting programs costs time and is a risk.",
        test: "no MCP server is started when no operator can approve calls",
      },
    ],
  },
  {
    number: "4.4",
    title: "CLI",
    text:
      "Every command of the specification is there, and `--help` describes each. `svc run` exits with 0 for `ok` and `truncated`, with 2 for wrong usage, with 3 at a limit that was set, with 130 when it is interrupted, and otherwise with 1; only the result goes to standard output.",
  },
  {
    number: "4.5",
    title: "Jobs CLI and REPL `/jobs`",
    text:
      "The commands are the same on the command line and in the terminal session. The scheduler runs due jobs; `jobs run` exits with 0 when the run is verified and with 1 when it has failed. Times are in UTC unless the schedule has a time zone.",
    deviations: [
      {
        what: "A timed-out attempt is cancelled, with its stream, tools and processes.",
        why:
          "An abandoned attempt would go on changing files and the shared session during the next one.",
        test: "a timed-out attempt is cancelled, and the next attempt follows",
      },
      {
        what:
          "The text of a run that no command has checked is `ended ok, not checked`. Its JSON says `verified`.",
        why: "The model's own word is no verification. `--verify` names a command that is.",
        test: "a job without a command ended ok and is not checked, wherever a person reads it",
      },
      {
        what: "During the backoff of a job the others run.",
        why: "A job with long backoffs would otherwise hold up all others for hours.",
        test: "a job in backoff does not hold up others, and is retried when due",
      },
    ],
  },
  {
    number: "4.6",
    title: "Fleet CLI",
    text: "The commands edit the roster; the supervisor acts on it with its next sweep.",
    deviations: [
      {
        what: "A restarted agent keeps its last port where it is free.",
        why: "Clients and bookmarks go on working.",
        test: "an agent that is restarted keeps its port, unless the roster gives it to another",
      },
    ],
  },
  {
    number: "4.7",
    title: "REPL slash commands",
    text: "Commands that the command line has too are the same definitions.",
    deviations: [
      {
        what: "`/skills list` has no filter by tag.",
        why: "A skill is a Markdown file whose first line is its description; it has no tags.",
        test:
          "skills are Markdown texts that are listed, shown, written and removed from the command line",
      },
    ],
  },
  {
    number: "4.8",
    title: "Tools",
    text:
      "The table in tests/engine/tools/tool_table_test.ts has every tool with its category, parameters and aliases. Questions of an agent go to its lead, the operator or the inbox, and permission requests to the one that `ask_policy` names.",
    deviations: [
      {
        what: "`team` has a category of its own, `team`, and not `delegate`.",
        why:
          "The bundled roles need it: a composer may delegate and may not start teams, as in the earlier implementation. Until it is set, its action is that of `delegate`.",
        test:
          "every tool has the category, parameters and aliases of the specification, and there is no other",
      },
      {
        what:
          "`file_edit` takes several `edits` in place of `old` and `new`, and refuses an `old` that occurs several times when no `count` is given.",
        why:
          "The first of several places is often not the one that is meant. With `count` 1 it is the first, as before.",
        test: "file_edit replaces nothing where old occurs several times and no count is given",
      },
      {
        what:
          "`apply_patch` is in addition to the table. A command of `run_command` that is `apply_patch` alone is its call.",
        why:
          "Some models are trained on this format, and write it where it is not offered, too. It is an edit with a diff, and no command.",
        test:
          "a command that is apply_patch alone is the call of the tool, and is decided as an edit",
      },
      {
        what:
          "A tool's handler gets the configuration with its context, and not as an argument `_config`.",
        why:
          "TypeScript has no keyword arguments, and the context is typed. An argument of that name is dropped.",
        test: "list_dir caps the number of entries, and gives the total",
      },
      {
        what: "The operator sees the question of a root run without the name of its session.",
        why: "It is the session that the operator works in. Questions of sub-agents carry theirs.",
        test:
          "ask of a root run reaches the operator as it is and the answer is the result; a lead's question reaches them too",
      },
    ],
  },
  {
    number: "4.9",
    title: "Plugin entry hooks (all optional)",
    text: "A plugin registers what it adds in hooks, each of which gets its own registrar.",
    deviations: [
      {
        what: "A plugin in `.svc/plugins/` is imported only after the user has accepted it.",
        why: "A cloned repository must not run its code by being there.",
        test: "a plugin is imported once it is accepted, and not after its files have changed",
      },
      {
        what:
          "A plugin that cannot be loaded does not replace one of the same name in a lower root.",
        why: "A broken or incompatible copy must not take away tools that work.",
        test: "a plugin that cannot be loaded replaces none of its name in a lower root",
      },
    ],
  },
  {
    number: "4.10",
    title: "Provider contract",
    text:
      "One implementation of the chat-completions protocol; vendors change defaults, headers and payload. `chat` and `chat_nonstreaming` take their options as an object.",
    deviations: [
      {
        what: "`/connect` sets the model when there is none and the backend offers only one.",
        why:
          "There is nothing to choose, and the first turn would fail without it. A model that is set is never changed.",
        test: "connect takes a lone model, and warns of a model that the backend does not list",
      },
      {
        what:
          "A ref of a provider that was connected by URL unfolds too, since its address is stored.",
        why: "Its models could otherwise be named only after switching to it.",
        test: "a model ref is split only for a provider with an address",
      },
    ],
  },
  { number: "5", title: "Authentication", text: "" },
  {
    number: "5.1",
    title: "Credentials",
    text:
      "Keys are in `~/.config/svc/providers.json` alone. The HTTP API listens on loopback; with a token file it requires a token there too.",
    deviations: [
      {
        what:
          "A key is sent only to the origin that it was stored for, also when the configuration names another base URL for the provider.",
        why: "The configuration of a cloned repository could otherwise send it anywhere.",
        test: "a key is sent only to the origin that it was stored for",
      },
    ],
  },
  {
    number: "5.2",
    title: "Model approval gate",
    text: "A model that only a ref names is used after the user has approved it.",
  },
  {
    number: "5.3",
    title: "Authorization: tool permission policy",
    text:
      "One policy resolves every tool call to `allow`, `ask` or `deny`, for roots and sub-agents alike.",
    deviations: [
      {
        what: "Sub-agents of a run in plan mode are in plan mode too.",
        why: "Otherwise an agent could change files in plan mode by delegating the change.",
        test: "plan mode holds for the agents of a plan, and a denied tool is denied to all",
      },
      {
        what:
          "What the `.svc` of a worktree opens beyond the user's own settings (plugins, MCP servers, jobs, fleets, commands, permissions) is left out until the user has accepted it.",
        why: "A cloned repository must not run code or widen permissions by being opened.",
        test: "no command runs, calls or widens anything of a clone that is not trusted",
      },
      {
        what:
          "Plan mode denies every call that may change something, not only the categories edit and bash.",
        why: "Commits, commands of the project and imported tools change files too.",
        test: "plan mode denies every call that may change something, whatever is set",
      },
      {
        what:
          "Inside the worktree, too, changes of svc's own files and of `.git` ask, and the file with the keys is closed to every tool.",
        why: "Settings and hooks decide what later calls may do.",
        test:
          "a change of svc's settings or of .git asks like a path outside the worktree, and reading does not",
      },
    ],
  },
  { number: "6", title: "Events", text: "" },
  {
    number: "6.1",
    title: "Job report event",
    text:
      "Each completed run is reported once to every registered service. The webhook signs the JSON when there is a secret, and repeats a delivery that failed for the moment.",
    deviations: [
      {
        what:
          "The webhook also gets runs that wait for approval, and the daily digest where it is set.",
        why: "An operator who reads only the webhook would otherwise not learn that a job waits.",
        test:
          "a run that waits for approval and a digest are posted to the webhook, other events are not",
      },
    ],
  },
  {
    number: "6.2",
    title: "Provider stream events (internal contract)",
    text:
      "A backend's stream becomes events for reasoning, content, tool calls, errors and its end.",
  },
  {
    number: "6.3",
    title: "MCP notifications",
    text: "Requests are answered with JSON-RPC; progress makes the answer an event stream.",
  },
  { number: "7", title: "Errors", text: "" },
  {
    number: "7.1",
    title: "HTTP API",
    text:
      'Every error body is `{"error": <string>}`: `invalid JSON body`, `missing "prompt"`, `missing "answer"`, `ask not found: <id>` and `not found`.',
  },
  {
    number: "7.2",
    title: "Session errors",
    text: "Failures of a backend are retried where that can help, and recorded where it did not.",
  },
  {
    number: "7.3",
    title: "Tool errors",
    text:
      "A failed, unknown or refused call is answered with a text that the model can act on. A call that the operator declines is `[cancelled]` and no error.",
  },
  {
    number: "7.4",
    title: "Job and run errors",
    text: "A run, team or job that cannot start or go on says why in one sentence.",
    deviations: [
      {
        what:
          "A run of a job that has a prompt does not need the default task file, and does not send its unchanged template.",
        why: "The prompt is the task. A task file that is named and missing fails the run.",
        test:
          "a job with a prompt may lack its default task file, and the unchanged template is no task",
      },
    ],
  },
  {
    number: "7.5",
    title: "MCP errors",
    text: "Invalid requests get the codes of JSON-RPC; requests for input are not supported.",
  },
  {
    number: "7.6",
    title: "Plugin and config errors",
    text: "Damaged files and plugins are reported, and the rest continues.",
  },
  {
    number: "8",
    title: "Limits",
    text:
      "The limits and their defaults. Further limits of svc (rounds of a turn, unattended turns, requests) are settings; `svc config schema` lists them.",
    deviations: [
      {
        what: "`delegate` calls of one reply run side by side, four at most.",
        why: "They are independent tasks. `delegate.max_parallel` 1 runs them one after the other.",
        test: "delegate.max_parallel bounds how many agents run side by side",
      },
      {
        what: "A second scheduler of a worktree is refused.",
        why: "Two would run every job twice.",
        test: "a worktree has one scheduler, and a second one fails with the process of the first",
      },
      {
        what:
          "A job that runs for several of its intervals, or longer than `jobs.timeout`, no longer counts for the one job at a time.",
        why: "One attempt that hangs must not stop all jobs of a worktree.",
        test: "a job that runs for several of its intervals is stuck, and holds up no other job",
      },
    ],
  },
  {
    number: "9",
    title: "Versioning",
    text: "Files and plugins carry versions; old session files do not load, old names of tools do.",
    deviations: [
      {
        what: "No provider plugin is appended to an older `plugins` list.",
        why:
          "The specification schedules that for removal, and svc has had all its provider plugins from its first version on.",
        test: "a list of plugins disables all others, of every root, and an empty one none",
      },
    ],
  },
];
