import { errorMessage, nearest, SvcError, usageError, writeHint } from "../platform/error.ts";
import { VERSION } from "../platform/environment.ts";
import type { Command } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { processIo, processStreams } from "./io.ts";

interface Entry {
  summary: string;
  // deno-lint-ignore no-explicit-any
  load: (others?: Others) => Promise<Command<any>>;
}

/** Every command of the program. Only the one that is asked for is loaded. */
const COMMANDS: Record<string, Entry> = {
  run: {
    summary: "run one agent turn and print its result",
    load: async () => (await import("./run.ts")).runTurn,
  },
  serve: {
    summary: "serve the agent over HTTP",
    load: (others) => others!.serve(), // whoever starts it brings it along
  },
  mcp: {
    summary: "serve tools and sessions over MCP, and look at MCP servers",
    load: async () => (await import("./mcp.ts")).mcp,
  },
  connect: {
    summary: "connect a model provider and store its key",
    load: async () => (await import("../commands/providers.ts")).connect,
  },
  model: {
    summary: "show the model in use, or choose another",
    load: async () => (await import("../commands/providers.ts")).model,
  },
  models: {
    summary: "show the models in use, or those a provider offers",
    load: async () => (await import("../commands/providers.ts")).models,
  },
  provider: {
    summary: "show the active provider, or switch to another",
    load: async () => (await import("../commands/providers.ts")).provider,
  },
  config: {
    summary: "read and change settings",
    load: async () => (await import("../commands/config.ts")).config,
  },
  asks: {
    summary: "list, show and answer the questions that agents have parked",
    load: async () => (await import("../commands/asks.ts")).asks,
  },
  jobs: {
    summary: "plan, run and watch jobs: named tasks that run by themselves",
    load: async () => (await import("../commands/jobs/jobs.ts")).jobs,
  },
  fleet: {
    summary: "keep many agents running, each in a folder of its own",
    load: async () => (await import("../commands/fleet/fleet.ts")).fleet,
  },
  compact: {
    summary: "summarise a session, so that its next turn sends less",
    load: async () => (await import("../commands/sessions.ts")).compactSession,
  },
  roles: {
    summary: "show and change the roles an agent can take",
    load: async () => (await import("../commands/catalog.ts")).roles,
  },
  teams: {
    summary: "show and change the teams, roles that work in turn",
    load: async () => (await import("../commands/teams.ts")).teams,
  },
  skills: {
    summary: "show and change the skills, texts that roles are given",
    load: async () => (await import("../commands/catalog.ts")).skills,
  },
  memory: {
    summary: "show and clear what roles, teams and jobs remember from run to run",
    load: async () => (await import("../commands/memory.ts")).memory,
  },
  plugins: {
    summary: "list, install, update and remove plugins, and write your own",
    load: async () => (await import("../commands/plugins/plugins.ts")).plugins,
  },
  eval: {
    summary: "measure how well a model uses tools",
    load: async () => (await import("../commands/eval.ts")).evaluate,
  },
  export: {
    summary: "write a session as Markdown",
    load: async () => (await import("../commands/sessions.ts")).exportSession,
  },
  permissions: {
    summary: "show what each tool category may do, and the permissions behind it",
    load: async () => (await import("../commands/permissions.ts")).permissions,
  },
  "demo-model": {
    summary: "serve the built-in demo model, or a scripted one",
    load: async () => (await import("./demo_model.ts")).demoModel,
  },
};

/** Starts the terminal session (specification 4.4) with its options. */
export type Repl = (args: string[], io: Io) => Promise<number>;

/** What else the program can be beside its commands; front ends do not know each other. */
export interface Others {
  /** Loads the terminal session. */
  repl(): Promise<Repl>;
  /** Loads the command that serves over HTTP. */
  // deno-lint-ignore no-explicit-any
  serve(): Promise<Command<any>>;
}

/**
 * Runs the program with its arguments: a command, or without one the terminal session.
 *
 * @returns the exit code: 0 done, 1 the work failed, 2 wrong usage or configuration, 130 cancelled.
 */
export async function main(args: string[], io?: Io, others?: Others): Promise<number> {
  try {
    return await dispatch(args, io ?? processIo(), others);
  } catch (error) {
    const { note } = io ?? processStreams;
    note(`svc: ${errorMessage(error)}`);
    const known = error instanceof SvcError;
    const hint = known ? error.hint : writeHint(error);
    if (hint !== "") note(`hint: ${hint}`);
    return known ? error.exit : 1;
  }
}

async function dispatch(args: string[], io: Io, others?: Others): Promise<number> {
  const [name = ""] = args;
  if (name === "--version" || name === "-V") {
    io.out(`${VERSION}\n`);
    return 0;
  }
  if (name === "--help" || name === "-h" || name === "help") {
    if (name === "help" && args[1] !== undefined) {
      return await dispatch([...args.slice(1), "--help"], io, others);
    }
    io.out(help());
    return 0;
  }
  if (name === "completion") {
    const { completion } = await import("./completion.ts");
    const completable = Object.entries(COMMANDS)
      .map(([name, { summary, load }]) => [name, { summary, load: () => load(others) }]);
    return await completion(args.slice(1), Object.fromEntries(completable), io);
  }
  if (others !== undefined && (name === "" || name.startsWith("-"))) {
    return await (await others.repl())(args, io);
  }
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) {
    const guess = nearest(name, Object.keys(COMMANDS));
    const prompt = /\s/.test(name)
      ? `To give it to the agent: svc run -p "..."`
      : "Try: svc --help";
    throw usageError(
      "unknown_command",
      `There is no ${name.startsWith("-") ? "option" : "command"} "${name}".`,
      guess === undefined ? prompt : `Did you mean "svc ${guess}"?`,
    );
  }
  const { runCommand } = await import("../commands/command.ts");
  return await runCommand(await entry.load(others), args, io);
}

function help(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const commands = Object.entries(COMMANDS)
    .map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}\n`).join("");
  return `svc ${VERSION}: an agent runtime for unattended work

Usage: svc [options]            a session in the terminal (svc --continue --help shows its options)
       svc <command> [options]

Commands:
${commands}  ${
    "completion".padEnd(width)
  }  print a script that completes commands and options in your shell

Options:
  -h, --help     show help; "svc <command> --help" shows a command's options and examples
  -V, --version  show the version

Examples:
  svc run --provider demo -p "how many lines does README.md have?"
  svc run --session-id nightly --output text "continue"
  svc config set mode plan --local
`;
}
