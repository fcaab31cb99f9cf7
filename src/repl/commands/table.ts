import type { SlashCommand } from "./command.ts";

type Load = () => Promise<{ command: SlashCommand }>;

/** Every slash command, in the order in which `/help` lists them. Only what is called is loaded. */
export const COMMANDS: Readonly<Record<string, Load>> = {
  help: () => import("./help.ts"),
  status: () => import("./status.ts"),
  session: () => import("./session.ts"),
  sessions: () => import("./sessions.ts"),
  history: () => import("./history.ts"),
  print: () => import("./print.ts"),
  compact: () => import("./compact.ts"),
  focus: () => import("./focus.ts"),
  mode: () => import("./mode.ts"),
  thinking: () => import("./thinking.ts"),
  connect: () => import("./connect.ts"),
  model: () => import("./model.ts"),
  models: () => import("./models.ts"),
  provider: () => import("./provider.ts"),
  config: () => import("./config.ts"),
  permissions: () => import("./permissions.ts"),
  roles: () => import("./roles.ts"),
  teams: () => import("./teams.ts"),
  skills: () => import("./skills.ts"),
  plugins: () => import("./plugins.ts"),
  tool: () => import("./tool.ts"),
  mcp: () => import("./mcp.ts"),
  asks: () => import("./asks.ts"),
  jobs: () => import("./jobs.ts"),
  memorize: () => import("./memorize.ts"),
  memory: () => import("./memory.ts"),
  unattended: () => import("./unattended.ts"),
  clear: () => import("./clear.ts"),
  version: () => import("./version.ts"),
  exit: () => import("./exit.ts"),
};

/** All commands with their names. */
export async function allCommands(): Promise<[name: string, command: SlashCommand][]> {
  return await Promise.all(
    Object.entries(COMMANDS).map(async ([name, load]): Promise<[string, SlashCommand]> => [
      name,
      (await load()).command,
    ]),
  );
}

/** The command of a name or an alias. */
export async function findCommand(
  name: string,
): Promise<{ name: string; command: SlashCommand } | undefined> {
  if (Object.hasOwn(COMMANDS, name)) return { name, command: (await COMMANDS[name]!()).command };
  const found = (await allCommands()).find(([, { aliases }]) => aliases?.includes(name));
  return found && { name: found[0], command: found[1] };
}
