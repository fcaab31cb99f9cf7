/** Commands that the command line and the terminal session both have: `svc jobs`, `/jobs`. */
export type SharedCommand = typeof SHARED_COMMANDS[number];

/** Commands that only the terminal session has. */
export type SessionCommand = keyof typeof SESSION_COMMANDS;

export const SHARED_COMMANDS = [
  "asks",
  "changes",
  "compact",
  "config",
  "connect",
  "disconnect",
  "doctor",
  "init",
  "jobs",
  "logs",
  "mcp",
  "memory",
  "model",
  "models",
  "permissions",
  "plugins",
  "provider",
  "redo",
  "roles",
  "sessions",
  "skills",
  "teams",
  "trust",
  "undo",
  "usage",
] as const;

/** With their aliases. */
export const SESSION_COMMANDS = {
  clear: ["new"],
  exit: ["quit", "q"],
  focus: [],
  help: ["h"],
  history: [],
  memorize: [],
  mode: [],
  print: [],
  session: [],
  status: [],
  thinking: [],
  tool: [],
  unattended: [],
  version: [],
} as const satisfies Record<string, readonly string[]>;

/** Whether svc itself has a slash command or an alias of this name; a plugin cannot register it. */
export function isOwnCommand(name: string): boolean {
  return Object.hasOwn(SESSION_COMMANDS, name) ||
    [...SHARED_COMMANDS, ...Object.values(SESSION_COMMANDS).flat()].some((own) => own === name);
}
