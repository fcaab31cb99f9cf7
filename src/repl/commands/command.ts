import type { Line } from "../words.ts";
import type { Shell } from "../shell.ts";

/** Kinds of things that Tab completes. */
export type Source =
  | "sessions"
  | "targets"
  | "runs"
  | "roles"
  | "teams"
  | "skills"
  | "plugins"
  | "tools"
  | "providers"
  | "models"
  | "keys"
  | "modes"
  | "commands"
  | "files"
  | "asks"
  | "jobs";

/** One slash command (specification 4.7). */
export interface SlashCommand {
  /** One line for `/help`. */
  readonly summary: string;
  /** Complete forms, without the slash. */
  readonly usage: readonly string[];
  readonly aliases?: readonly string[];
  /** What may come as the next word, by the words before it: `""` as the first, `"load"` behind `load`. */
  readonly complete?: Readonly<Record<string, readonly string[] | Source>>;
  /** Options, and what their values are. */
  readonly flags?: Readonly<Record<string, true | readonly string[] | Source>>;
  /** Whether it hands the terminal to another program meanwhile: an editor. */
  lends?(line: Line): boolean;
  /** @throws SvcError for anything that a person should read */
  run(line: Line, shell: Shell): Promise<void>;
}

/** Checks a command's description; its name is that of its file. */
export function slashCommand(command: SlashCommand): SlashCommand {
  return command;
}
