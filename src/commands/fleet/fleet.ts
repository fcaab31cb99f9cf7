import { isAbsolute, relative, resolve } from "node:path";
import { agentCommand } from "../../fleet/agent_process.ts";
import { composeFile, systemdUnit } from "../../fleet/export.ts";
import { FleetPaths, SnapshotFile } from "../../fleet/snapshot.ts";
import {
  agentOpening,
  type Definition,
  isAgentName,
  NAME_OF_AGENT,
  nameFor,
  Roster,
  scanForAgents,
} from "../../fleet/roster.ts";
import { systemClock } from "../../platform/clock.ts";
import { openPaths, userDirectory } from "../../platform/environment.ts";
import { SvcError, usageError } from "../../platform/error.ts";
import { ownCommand } from "../../platform/detached.ts";
import { lstatIfExists, writeFileAtomic } from "../../platform/files.ts";
import { stripControl } from "../../platform/terminal.ts";
import { openTrust } from "../workspace.ts";
import { type Command, pathOption, textOption, trustOption } from "../command.ts";
import { chatWithAgent, configureAgent } from "./agent.ts";
import { type FleetContext, fleetDown, fleetStatus, fleetUp, watchStatus } from "./supervise.ts";
import { printLists } from "../format.ts";
import { type Io, toJson } from "../io.ts";
import { actionsOption, toolsDenyOption } from "../tool_permission.ts";
import { logOption, withJsonNotes } from "../log.ts";
import { showLog, tailOptions } from "../logs.ts";
import { nameOf, pathOf } from "../names.ts";
import {
  argument,
  choice,
  command,
  type InferValue,
  integer,
  option,
  optional,
  string,
  withDefault,
} from "../options.ts";

const output = withDefault(
  option("--output", choice(["text", "json"]), "text (default) or json."),
  "text",
);
const path = { path: pathOption };
const common = { output, path: pathOption };
const newName = argument(string("NAME"), "The agent.");
const name = argument(nameOf("agents"), "The agent.");

const init = command(
  "init",
  { action: "init", ...common },
  "Add every folder below that holds .svc/config.json to the roster.",
);
const add = command("add", {
  action: "add",
  name: newName,
  dir: option(
    "--dir",
    pathOf("DIR"),
    "The agent's folder, relative to the current directory; it is made if it is missing.",
  ),
  port: optional(
    option(
      "--port",
      integer("PORT", 1, 65535),
      "The port it prefers; default: the first free one from 8780.",
    ),
  ),
  max_restarts: optional(
    option(
      "--max-restarts",
      integer("N", 0),
      "Failures in a row after which it stays down; 0: never. Default: 10.",
    ),
  ),
  command: textOption(
    "--command",
    "COMMAND",
    "The command to run instead of svc serve; {port} and {dir} are replaced.",
  ),
  ...common,
}, "Add an agent to the roster.");
const remove = command(
  "remove",
  { action: "remove", name, ...common },
  "Remove an agent from the roster; it is stopped, its folder stays.",
);
const enable = command(
  "enable",
  { action: "enable", name, ...common },
  "Keep an agent running; one that has crashed is started again.",
);
const disable = command(
  "disable",
  { action: "disable", name, ...common },
  "Stop an agent, and keep it down.",
);

const config = command("config", {
  action: "config",
  name,
  provider: textOption("--provider", nameOf("providers"), "The model provider."),
  model: textOption(
    "--model",
    nameOf("models", "REF"),
    "A model, or <provider>/<model>; it is approved by this.",
  ),
  mode: textOption(
    "--mode",
    nameOf("modes", "MODE"),
    "build, plan, or a mode of its configuration.",
  ),
  system_prompt: textOption("--system-prompt", "TEXT", "Its system prompt."),
  tools_deny: toolsDenyOption,
  tool_permission: actionsOption("--tool-permission"),
  role: textOption(
    "--role",
    nameOf("roles"),
    "Copy the prompt, model and tool permissions of a role.",
  ),
  approve_model: option("--approve-model", "Approve the model that the role refers to."),
  ...common,
}, "Write what you pass, and nothing else, into the agent's .svc/config.json; comments stay.");

const up = command("up", {
  action: "up",
  detach: option("--detach", "Supervise in the background."),
  port: optional(
    option(
      "--port",
      integer("PORT", 0, 65535),
      "Answer GET /agents and /metrics on this port; 0 takes a free one.",
    ),
  ),
  sweep: withDefault(
    option(
      "--sweep",
      integer("SECONDS", 1),
      "Seconds between two checks of every agent; default: 2.",
    ),
    2,
  ),
  unhealthy_threshold: withDefault(
    option(
      "--unhealthy-threshold",
      integer("N", 1),
      "Failed health probes in a row that end an agent; default: 2.",
    ),
    2,
  ),
  grace: withDefault(
    option(
      "--grace",
      integer("SECONDS", 0),
      "Seconds that an agent has to end its turns when stopped; default: 35.",
    ),
    35,
  ),
  log: logOption,
  trust: trustOption,
  ...path,
}, "Keep every enabled agent running until interrupted.");
const down = command(
  "down",
  { action: "down", ...path },
  "Stop the supervisor and every agent, also those of a supervisor that is gone.",
);
const status = command("status", {
  action: "status",
  watch: option("--watch", "Show it again every two seconds."),
  ...common,
}, "Show every agent in one line.");
const restart = command("restart", {
  action: "restart",
  name: withDefault(
    argument(nameOf("agents"), "The agent; all (default): every one."),
    "all",
  ),
  ...path,
}, "Stop an agent, forget its failures, and start it again.");
const logs = command("logs", {
  action: "logs",
  name,
  count: withDefault(
    argument(integer("N", 0), "Lines; default: 50."),
    50,
  ),
  follow: tailOptions.follow,
  ...path,
}, "Show the end of an agent's log.");
const chat = command("chat", {
  action: "chat",
  name,
  prompt: optional(
    argument(string("PROMPT"), "The prompt; - or nothing reads it from standard input."),
  ),
  session: textOption("--session", "NAME", "Continue this session of the agent, or create it."),
  ...common,
}, "Have an agent run one turn, and print its answer.");
const consoleOf = command("console", {
  action: "console",
  port: withDefault(
    option("--port", integer("PORT", 0, 65535), "The port; default: 0, which takes a free one."),
    0,
  ),
  ...path,
}, "Serve a console of all agents on this machine until interrupted, and print a link to it.");
const exported = command("export", {
  action: "export",
  format: argument(choice(["compose", "systemd"], "FORMAT"), "compose, or systemd."),
  user: textOption("--user", "NAME", "systemd: a unit of the system that runs as this user."),
  ...path,
}, "Print a file for docker compose, or a systemd unit.");

/** All of `svc fleet`. */
export const fleetParser = command(
  "fleet",
  [
    init,
    add,
    remove,
    enable,
    disable,
    config,
    up,
    down,
    status,
    restart,
    logs,
    chat,
    consoleOf,
    exported,
  ],
  "Many agents, each in a folder of its own, under one supervisor.",
);

type FleetValues = InferValue<typeof fleetParser>;
type ServeConsole = (values: FleetValues & { action: "console" }, io: Io) => Promise<number>;

/**
 * `svc fleet` (specification 2.8, 3.4, 4.6): many agents under one supervisor.
 *
 * @param serveConsole of the front end that serves
 */
export const fleetCommand = (serveConsole: ServeConsole): Command<FleetValues> => ({
  parser: fleetParser,
  bare: "status",
  examples: [
    "svc fleet init",
    "svc fleet add notes --dir agents/notes --port 8785",
    "svc fleet config notes --role researcher --tool-permission web=allow",
    "svc fleet up --detach",
    "svc fleet status --watch",
    'svc fleet chat notes "what changed today?"',
    "svc fleet logs notes -f",
    "svc fleet console",
    "svc fleet export systemd > ~/.config/systemd/user/svc-fleet.service",
  ],
  async run(values, given) {
    const json = values.action === "up" && values.log === "json";
    const io = json ? withJsonNotes(given, systemClock) : given;
    const paths = openPaths(values.path || io.environment.cwd, userDirectory(io.environment));
    const warn = (message: string) => io.note(`warning: ${message}`);
    const trust = openTrust(paths, io, "trust" in values && values.trust);
    const roster = new Roster(paths.state, trust, warn);
    const files = new FleetPaths(paths.state);
    const context: FleetContext = { paths, files, roster, trust, io, warn };
    const print = (value: unknown, text: string) => {
      const json = "output" in values && values.output === "json";
      if (json) io.out(toJson(value, 2) + "\n");
      else printLists(io, stripControl(text));
    };
    switch (values.action) {
      case "init": {
        const added = await addFound(context);
        print({ added }, added.map(({ name, dir }) => `Added ${name}: ${dir}\n`).join(""));
        if (added.length === 0) {
          io.note("There is no folder with .svc/config.json to be added.");
          io.note("hint: Add one: svc fleet add NAME --dir DIR");
        }
        return 0;
      }
      case "add": {
        const agent = definitionOf(values, context);
        await roster.add([agent]);
        await trust.accept([agentOpening(roster.need(values.name))]);
        print(agent, `Added ${values.name}: ${agent.dir}\n`);
        return 0;
      }
      case "remove":
        await roster.remove(values.name);
        print({ removed: values.name }, `Removed ${values.name}; its folder stays.\n`);
        return 0;
      case "enable":
      case "disable": {
        const enabled = values.action === "enable";
        await roster.enable(values.name, enabled);
        if (enabled && isCrashed(context, values.name)) askForRestart(context, values.name);
        print({ name: values.name, enabled }, `${values.name} is ${values.action}d.\n`);
        return 0;
      }
      case "config": {
        const written = await configureAgent(context, values);
        print(written, `Wrote ${Object.keys(written.set).join(", ")} into ${written.file}\n`);
        io.note(`An agent that runs takes it up with: svc fleet restart ${values.name}`);
        return 0;
      }
      case "up":
        return await fleetUp(context, values);
      case "down":
        return await fleetDown(context);
      case "status":
        if (values.watch) await watchStatus(context, print);
        else print(...await fleetStatus(context));
        return 0;
      case "restart": {
        const names = values.name === "all"
          ? (roster.read()?.agents ?? []).map(({ name }) => name)
          : [roster.need(values.name).name];
        for (const name of names) askForRestart(context, name);
        io.out(`Told to restart: ${names.join(", ") || "none"}.\n`);
        return 0;
      }
      case "logs":
        return await showLog(files.logOf(roster.need(values.name).name), values, io);
      case "chat":
        return await chatWithAgent(context, values);
      case "console":
        return await serveConsole(values, io);
      case "export": {
        const { worktree } = paths;
        const agents = (roster.read()?.agents ?? []).filter(({ enabled }) => enabled);
        const { home } = io.environment;
        const svc = ownCommand(io.environment);
        const file = values.format === "compose"
          ? composeFile(agents, worktree)
          : systemdUnit({ svc, worktree, home, user: values.user });
        io.out(stripControl(file));
        return 0;
      }
    }
  },
});

/** Adds the folders that `fleet init` finds and no agent has yet. */
async function addFound({ paths, roster }: FleetContext): Promise<{ name: string; dir: string }[]> {
  const listing = roster.read();
  if (listing === undefined) throw brokenRoster(roster);
  const { worktree } = paths;
  const taken = new Set([...listing.agents.map(({ name }) => name), ...listing.broken]);
  const dirs = new Set(listing.agents.map(({ dir }) => resolve(worktree, dir)));
  const added: { name: string; dir: string }[] = [];
  for (const dir of scanForAgents(worktree)) {
    const name = dirs.has(resolve(worktree, dir)) ? undefined : nameFor(dir, taken);
    if (name === undefined || !isAgentName(name)) continue;
    taken.add(name);
    added.push({ name, dir });
  }
  await roster.add(added);
  return added;
}

/** The entry that `fleet add` writes: the options that were passed, and no defaults. */
function definitionOf(
  { name, dir, port, max_restarts, command }: {
    name: string;
    dir: string;
    port?: number;
    max_restarts?: number;
    command?: string;
  },
  { paths, io }: FleetContext,
): Partial<Definition> {
  if (!isAgentName(name)) {
    throw usageError(
      "agent_name",
      `${JSON.stringify(name)} is no name of an agent.`,
      NAME_OF_AGENT,
    );
  }
  if (command !== undefined) agentCommand({ name, command }, { svc: [], port: 0, dir: "" });
  const wanted = resolve(io.environment.cwd, dir);
  if (lstatIfExists(wanted) === undefined) {
    Deno.mkdirSync(wanted, { recursive: true });
    io.note(`Made the folder ${wanted}`);
  }
  const folder = openPaths(wanted, paths.user).worktree;
  const inside = relative(paths.worktree, folder);
  const outside = inside === "" || inside.startsWith("..") || isAbsolute(inside);
  return {
    name,
    dir: outside ? folder : inside,
    ...(port !== undefined && { prefer_port: port }),
    ...(max_restarts !== undefined && { max_restarts }),
    ...(command !== undefined && { command }),
  };
}

function brokenRoster({ path }: Roster): SvcError {
  return usageError("roster", `${path} cannot be read.`, "Put it right; nothing was changed.");
}

function isCrashed({ files, warn }: FleetContext, name: string): boolean {
  const { agents } = new SnapshotFile(files.snapshot, systemClock, warn).read();
  return agents.some((agent) => agent.name === name && agent.state === "crashed");
}

/** Writes the request file that a supervisor reads with its next sweep. */
function askForRestart({ files }: FleetContext, name: string): void {
  writeFileAtomic(files.requestOf(name), "");
}
