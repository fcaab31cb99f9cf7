import { nearest } from "../platform/error.ts";
import { type Definition, optionsOf, subcommands } from "./command.ts";
import type { UnexpectedWord } from "./options.ts";

/** Options by the names that other programs have for them. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  address: "--host",
  bind: "--host",
  continue: "--session-id",
  cwd: "--path",
  dir: "--path",
  directory: "--path",
  every: "--interval",
  format: "--output",
  json: "--output",
  resume: "--session-id",
  schedule: "--cron",
  turns: "--max-rounds",
  "max-turns": "--max-rounds",
};

/**
 * A sentence about what was meant by a word that belongs to no term; empty where nothing is near.
 *
 * @param path the command's name, and the subcommand's where one is named
 */
export function suggestion(
  command: Definition,
  path: string[],
  { word, inGroup }: UnexpectedWord,
): string {
  const options = [...optionsOf(command, path).keys()];
  const guess = !word.startsWith("-")
    ? inGroup ? nearest(word, subcommands(command)) : undefined
    : nearestOption(word, options);
  if (guess !== undefined) return ` Did you mean \`${guess}\`?`;
  const [name = "", subcommand] = path;
  const has = subcommands(command).find((each) =>
    subcommand !== undefined && optionsOf(command, [name, each]).has(word)
  );
  return has === undefined ? "" : ` \`${name} ${has}\` has it.`;
}

/** The option that is meant: by its name elsewhere, one with the same words and more, or nearly the same letters. */
function nearestOption(wrong: string, options: string[]): string | undefined {
  const name = wrong.replace(/^-+/, "");
  const known = OTHER_NAMES[name];
  if (known !== undefined && options.includes(known)) return known;
  if (!wrong.startsWith("--")) return undefined;
  const words = name.split("-");
  const longer = options.filter((option) => {
    const its = option.slice(2).split("-");
    return words.every((word) => its.includes(word));
  });
  return longer.find((option) => option.startsWith(wrong)) ?? longer[0] ??
    nearest(wrong, options.filter((option) => option[2] === wrong[2]));
}

/** How to change the setting that has the name of an unknown option; undefined when there is none. */
export async function settingHint(wrong: string, program: string): Promise<string | undefined> {
  const { CONFIG_KEYS } = await import("../config/keys.ts");
  const key = wrong.replace(/^-+/, "").replaceAll("-", "_");
  const isKey = wrong.startsWith("-") && (CONFIG_KEYS as readonly string[]).includes(key);
  return isKey ? `\`${key}\` is a setting: ${program}config set ${key} VALUE` : undefined;
}
