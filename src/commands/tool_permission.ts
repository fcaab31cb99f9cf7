import { settingOf } from "../config/keys.ts";
import type { Workspace } from "../engine/workspace.ts";
import { nearest, usageError } from "../platform/error.ts";
import type { Action } from "../plugins/api.ts";
import { nameOf } from "./names.ts";
import { multiple, option, string, type Term } from "./options.ts";

/** An option that gives actions to categories of tools, such as `--tool-permission`. */
export function actionsOption(
  flag: `--${string}`,
  description = "allow, ask or deny for a category of tools; may be repeated.",
): Term<readonly string[]> {
  const value = string("CATEGORY=ACTION");
  return multiple(option(flag, value, description));
}

/** The `--tools-deny` option. */
export const toolsDenyOption = multiple(
  option("--tools-deny", nameOf("tools"), "A tool that it may not use; may be repeated."),
);

/**
 * The actions that an option gives to categories.
 *
 * @throws SvcError (exit 2) `usage` for a pair of another form, `unknown_category` for one of no tool
 */
export async function readActions(
  pairs: readonly string[],
  workspace: Workspace,
): Promise<Record<string, Action>> {
  const actions = Object.fromEntries(pairs.map((pair) => {
    const [, category, action] = /^([\w.-]+)=(allow|ask|deny)$/.exec(pair) ?? [];
    if (category !== undefined) return [category, action as Action];
    throw usageError(
      "usage",
      `${
        JSON.stringify(pair)
      } is not of the form category=action, and an action is "allow", "ask" or "deny".`,
    );
  }));
  const known = Object.entries(settingOf("tool_permission").default as Record<string, unknown>)
    .flatMap(([name, value]) => typeof value === "string" ? [name] : []);
  const others = Object.keys(actions).filter((category) => !known.includes(category));
  if (others.length === 0) return actions;
  await workspace.load({ tools: "all" });
  const categories = [
    ...new Set([...known, ...workspace.tools.list().map(({ permission }) => permission)]),
  ];
  for (const category of others.filter((category) => !categories.includes(category))) {
    const guess = nearest(category, categories);
    const tool = workspace.tools.find(category);
    throw usageError(
      "unknown_category",
      `There is no category ${JSON.stringify(category.slice(0, 80))} of tools.`,
      tool !== undefined
        ? `The tool ${tool.name} is in ${tool.permission}.`
        : guess === undefined
        ? `The categories are ${categories.join(", ")}.`
        : `Did you mean ${JSON.stringify(guess)}?`,
    );
  }
  return actions;
}

/**
 * The tools that `--tools-deny` names. Names with a dot are of imported tools, whose servers are not asked.
 *
 * @throws SvcError `unknown_tool` (exit 2)
 */
export async function readDenied(
  names: readonly string[],
  workspace: Workspace,
): Promise<string[]> {
  const plain = names.filter((name) => !name.includes("."));
  if (plain.length > 0) await workspace.load({ tools: "all" });
  const { tools } = workspace;
  const unknown = plain.find((name) => tools.find(name) === undefined);
  if (unknown === undefined) return [...names];
  const all = tools.list().map(({ name }) => name);
  const guess = nearest(unknown, all);
  throw usageError(
    "unknown_tool",
    `There is no tool ${JSON.stringify(unknown.slice(0, 80))}.`,
    guess === undefined
      ? `The tools are ${all.join(", ")}.`
      : `Did you mean ${JSON.stringify(guess)}?`,
  );
}
