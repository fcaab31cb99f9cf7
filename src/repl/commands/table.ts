import type { Command } from "../../commands/command.ts";
import { SHARED } from "../../commands/table.ts";
import { SESSION_COMMANDS, type SessionCommand } from "../../plugins/command_names.ts";
import type { Shell } from "../shell.ts";

/** One slash command (specification 4.7). */
// deno-lint-ignore no-explicit-any
export type SlashCommand<T = any> = Command<T, Shell, unknown>;

/** A slash command that is loaded when it is called. */
export interface SlashEntry {
  readonly summary: string;
  load(): Promise<SlashCommand>;
}

const SESSION: Readonly<Record<SessionCommand, SlashEntry>> = {
  help: {
    summary: "list the commands, or show one",
    load: async () => (await import("./help.ts")).help,
  },
  status: {
    summary: "session, model, runs, jobs, asks at a glance",
    load: async () => (await import("./settings.ts")).status,
  },
  session: {
    summary: "the active session: begin another, load one",
    load: async () => (await import("./sessions.ts")).session,
  },
  history: {
    summary: "the turns of this session, or of another run",
    load: async () => (await import("./turns.ts")).history,
  },
  print: {
    summary: "a turn again, or one part of it",
    load: async () => (await import("./turns.ts")).print,
  },
  focus: {
    summary: "the runs here, and where your messages go",
    load: async () => (await import("./turns.ts")).focus,
  },
  mode: {
    summary: "build, plan, or a mode of your own",
    load: async () => (await import("./settings.ts")).mode,
  },
  thinking: {
    summary: "show or hide reasoning, or set its effort",
    load: async () => (await import("./settings.ts")).thinking,
  },
  unattended: {
    summary: "whether a person is there to answer",
    load: async () => (await import("./settings.ts")).unattended,
  },
  tool: {
    summary: "run a tool yourself, under the same policy",
    load: async () => (await import("./tool.ts")).tool,
  },
  memorize: {
    summary: "write what a role, team or job remembers",
    load: async () => (await import("./agents.ts")).memorizeSession,
  },
  clear: {
    summary: "begin a new session",
    load: async () => (await import("./sessions.ts")).clear,
  },
  version: {
    summary: "show the version",
    load: async () => (await import("./settings.ts")).version,
  },
  exit: {
    summary: "leave; the session stays saved",
    load: async () => (await import("./settings.ts")).exit,
  },
};

/** Every slash command, in the order in which `/help` lists them. */
export const COMMANDS: Readonly<Record<string, SlashEntry>> = {
  ...SESSION,
  ...Object.fromEntries(
    Object.entries(SHARED).map(([name, { summary, load }]) => [
      name,
      { summary, load: async () => inSession(name, await load()) },
    ]),
  ),
};

/** The aliases of a command. */
export function aliasesOf(name: string): readonly string[] {
  return Object.hasOwn(SESSION_COMMANDS, name) ? SESSION_COMMANDS[name as SessionCommand] : [];
}

/** The command of a name or an alias. */
export function findCommand(word: string): { name: string; entry: SlashEntry } | undefined {
  const name = Object.hasOwn(COMMANDS, word)
    ? word
    : Object.keys(COMMANDS).find((each) => aliasesOf(each).includes(word));
  return name === undefined ? undefined : { name, entry: COMMANDS[name]! };
}

/** Replaces `svc asks` by `/asks` where the command is a slash command. */
export function asSlash(text: string): string {
  return text.replace(
    /\bsvc ([a-z]+)\b/g,
    (all, name) => Object.hasOwn(COMMANDS, name) ? `/${name}` : all,
  );
}

/** A shared command that works in the open session. */
function inSession(name: string, command: Command<unknown>): SlashCommand {
  return {
    ...command,
    async run(values, shell) {
      if (name === "teams" && values.action === "run") {
        const { runTeamHere } = await import("./agents.ts");
        if (await runTeamHere(values, shell)) return;
      }
      await command.run(values, shell.io);
    },
  };
}
