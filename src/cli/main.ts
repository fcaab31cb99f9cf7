import { errorMessage, nearest, SvcError, usageError, writeHint } from "../platform/error.ts";
import { VERSION } from "../platform/environment.ts";
import type { Command } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { SHARED } from "../commands/table.ts";
import { processIo, processStreams } from "./io.ts";
import type { LoadAcp } from "./acp.ts";
import type { LoadServe } from "./serve.ts";

interface Entry {
  summary: string;
  // deno-lint-ignore no-explicit-any
  load(frontEnds: FrontEnds): Promise<Command<any>>;
}

/** Every command of the program. Only the one that is called is loaded. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  run: {
    summary: "run one agent turn and print its result",
    load: async () => (await import("./run.ts")).runTurn,
  },
  serve: {
    summary: "serve the agent over HTTP",
    load: async (frontEnds) => (await import("./serve.ts")).serveCommand(frontEnds.serve),
  },
  worker: {
    summary: "run the jobs and runs of a store that several machines share",
    load: async (frontEnds) => (await import("./worker.ts")).workerCommand(frontEnds.serve),
  },
  console: {
    summary: "print a link to the console of a running server",
    load: async (frontEnds) => (await import("./serve.ts")).consoleCommand(frontEnds.serve),
  },
  health: {
    summary: "ask a server whether it is healthy",
    load: async () => (await import("./health.ts")).health,
  },
  acp: {
    summary: "be the agent of an editor, by the Agent Client Protocol",
    load: async (frontEnds) => (await import("./acp.ts")).acpCommand(frontEnds.acp),
  },
  ...SHARED,
  mcp: {
    summary: "serve over MCP; list and connect MCP servers",
    load: async () => (await import("./mcp.ts")).mcp,
  },
  fleet: {
    summary: "keep many agents running, each in a folder of its own",
    load: async ({ serve }) => {
      const { fleetCommand } = await import("../commands/fleet/fleet.ts");
      return fleetCommand(async ({ port, path }, io) =>
        await (await serve!())(
          { action: "fleet", host: "127.0.0.1", console: true, port, path },
          io,
        )
      );
    },
  },
  eval: {
    summary: "measure how well a model uses tools",
    load: async () => (await import("../commands/eval.ts")).evaluate,
  },
  export: {
    summary: "write a session as Markdown",
    load: async () => (await import("../commands/sessions.ts")).exportSession,
  },
  store: {
    summary: "set up and check the PostgreSQL database that machines share",
    load: async () => (await import("../commands/store.ts")).store,
  },
  import: {
    summary: "import the files of another program",
    load: async () => (await import("../commands/import.ts")).importFiles,
  },
  "demo-model": {
    summary: "serve the built-in demo model, or a scripted one",
    load: async () => (await import("./demo_model.ts")).demoModel,
  },
};

/** Starts the terminal session (specification 4.4) with its options. */
export type Repl = (args: string[], io: Io) => Promise<number>;

/** The other front ends, which main.ts hands over: front ends do not import each other. */
export interface FrontEnds {
  /** Loads the terminal session; left out: `svc` without a command is wrong usage. */
  repl?(): Promise<Repl>;
  /** Loads the HTTP server. */
  serve?: LoadServe;
  /** Loads the server for editors. */
  acp?: LoadAcp;
}

/**
 * Runs the program with its arguments: a command, or without one the terminal session.
 *
 * @returns the exit code: 0 done, 1 the work failed, 2 wrong usage or configuration, 130 cancelled.
 */
export async function main(args: string[], io?: Io, frontEnds: FrontEnds = {}): Promise<number> {
  try {
    return await dispatch(args, io ?? processIo(), frontEnds);
  } catch (error) {
    const { note } = io ?? processStreams;
    note(`svc: ${errorMessage(error)}`);
    const known = error instanceof SvcError;
    const hint = known ? error.hint : writeHint(error);
    if (hint !== "") note(`hint: ${hint}`);
    return known ? error.exit : 1;
  }
}

async function dispatch(args: string[], io: Io, frontEnds: FrontEnds): Promise<number> {
  const [name = ""] = args;
  if (name === "--version" || name === "-V") {
    const verbose = args.includes("--verbose");
    io.out(
      verbose ? await (await import("./version.ts")).versionReport(io.environment) : `${VERSION}\n`,
    );
    return 0;
  }
  if (name === "--help" || name === "-h" || name === "help") {
    if (name === "help" && args[1] !== undefined) {
      return await dispatch([...args.slice(1), "--help"], io, frontEnds);
    }
    io.out(help());
    return 0;
  }
  if (name === "completion") {
    const { completion } = await import("./completion.ts");
    const completable = Object.entries(COMMANDS)
      .map(([name, { summary, load }]) => [name, { summary, load: () => load(frontEnds) }]);
    return await completion(args.slice(1), Object.fromEntries(completable), io);
  }
  if (frontEnds.repl !== undefined && (name === "" || name.startsWith("-"))) {
    return await (await frontEnds.repl())(args, io);
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
  return await runCommand(await entry.load(frontEnds), args, io);
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
  }  print a script that completes commands, options and names in your shell

Options:
  -h, --help     show help; "svc <command> --help" shows a command's options and examples
  -V, --version  show the version; with --verbose also the build, the commit and Deno

Examples:
  svc run --provider demo -p "how many lines does README.md have?"
  svc run --session-id nightly --output text "continue"
  svc config set mode plan --local
`;
}
