import { basename, resolve } from "node:path";
import type { Catalog } from "../catalog/catalog.ts";
import type { Scope } from "../catalog/files.ts";
import type { Entry } from "../catalog/layers.ts";
import type { Kind } from "../catalog/schema.ts";
import type { Workspace } from "../engine/workspace.ts";
import { errorMessage, nearest, usageError } from "../platform/error.ts";
import { isObject } from "../platform/files.ts";
import { stripControl } from "../platform/terminal.ts";
import { type Command, defineCommand, pathOption, textOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import { type Io, toJson } from "./io.ts";
import { nameOf, pathOf } from "./names.ts";
import { actionsOption, readActions } from "./tool_permission.ts";
import { openWorkspace } from "./workspace.ts";
import {
  argument,
  choice,
  command,
  type Fields,
  multiple,
  option,
  optional,
  string,
  type ValuesOf,
  withDefault,
} from "./options.ts";

/** `svc roles`. */
export const roles = catalogCommand({
  kind: "role",
  fields: {
    description: textOption("--description", "TEXT", "What the role is for, in one line."),
    system_prompt: textOption("--system-prompt", "TEXT", "Who the agent is and how it works."),
    instructions: textOption(
      "--instructions",
      pathOf("FILE"),
      "A Markdown file with more of that.",
    ),
    model: textOption("--model", nameOf("models", "REF"), "A model, or <provider>/<model>."),
    tags: textOption("--tags", "WORDS", "Separated by commas."),
    skills: textOption("--skills", "WORDS", "Skills that always belong to its prompt, by commas."),
    tool_permission: actionsOption("--tool-permission"),
    grant_permission: actionsOption(
      "--grant-permission",
      "What the role may hand down at most; may be repeated.",
    ),
  },
  entryOf: async ({ tags, skills, tool_permission, grant_permission, ...rest }, workspace) => ({
    ...rest,
    tags: words(tags),
    skills: words(skills),
    tool_permission: await actionsOf(tool_permission, workspace),
    grant_permission: await actionsOf(grant_permission, workspace),
  }),
  entryOfFile: jsonEntry,
  details: roleDetails,
  more: {
    parser: command(
      "accept",
      {
        action: "accept",
        name: argument(nameOf("roles")),
        global: option("--global", "The role in ~/.config/svc; default: this worktree's, in .svc."),
        path: pathOption,
      },
      "Make a role that an agent has saved your own: what it allows is then allowed where the " +
        "configuration asks.",
    ),
    async run({ name, global, path }, io) {
      const workspace = openWorkspace(path, io);
      const catalog = await workspace.catalog();
      const scope = global ? "global" : "local";
      await catalog.accept(scope, name);
      if (scope === "local") await acceptEntry(workspace, "role", name);
      io.note(`The ${scope} role ${name} is accepted; see its rights with: svc roles show ${name}`);
      return 0;
    },
  },
  examples: [
    "svc roles list programming",
    "svc roles show code-reviewer",
    "svc roles accept clerk",
    "svc roles new tester --model groq/llama-3.3-70b-versatile --global",
    'svc roles new clerk --system-prompt "You keep the minutes." --tool-permission bash=deny',
    "svc roles new clerk --file clerk.json --force",
    "svc roles remove clerk",
  ],
});

/** The rights that a root agent of a role would have now, for `roles show`. */
async function roleDetails(workspace: Workspace, name: string): Promise<Details> {
  await workspace.load({ tools: "all", roles: "all" });
  const { roleRights } = await import("../policy/rights.ts");
  const catalog = await workspace.catalog();
  const { config } = workspace;
  const rights = roleRights(catalog.need("role", name).value, {
    config,
    origins: catalog.permissionOrigins(name, "tool_permission"),
    sandboxed: await workspace.sandbox.full(),
    categories: workspace.tools.list().map(({ permission }) => permission),
  });
  const width = Math.max(...rights.map(({ category }) => category.length));
  const lines = rights.map(({ category, action, reason }) =>
    `  ${category.padEnd(width)}  ${action.padEnd(5)}  ${reason}\n`
  );
  const title = `rights of svc run --role ${name} now, in mode ${config.get("mode")}`;
  return {
    fields: { rights },
    text: `\n${title} (ask: refused where no one can approve):\n\n${lines.join("")}`,
  };
}

/** The actions of an option; undefined when it is not passed. */
async function actionsOf(pairs: readonly string[], workspace: Workspace) {
  return pairs.length === 0 ? undefined : await readActions(pairs, workspace);
}

/** `svc skills`. */
export const skills = catalogCommand({
  kind: "skill",
  fields: {},
  entryOf: () => ({}),
  entryOfFile: (text) => ({ text }),
  more: {
    parser: command(
      "validate",
      {
        action: "validate",
        skills: multiple(argument(nameOf("skills"))),
        path: pathOption,
      },
      "Check skills that are folders by the format of agentskills.io; exit code 1 when one is at fault, 2 for a folder without SKILL.md.",
    ),
    async run({ skills: named, path }, io) {
      const { foldersWithoutSkill, skillProblems, skillRoots } = await import(
        "../catalog/skills.ts"
      );
      const workspace = openWorkspace(path, io);
      await workspace.load({ skills: "all" });
      const catalog = await workspace.catalog();
      const known = catalog.list("skill");
      const without = (["local", "global"] as const)
        .flatMap((scope) => skillRoots(scope, workspace.paths)).flatMap(foldersWithoutSkill)
        .filter((folder) => {
          const name = basename(folder);
          return named.length === 0 ||
            named.includes(name) && !known.some((skill) => skill.name === name);
        });
      for (const folder of without) {
        io.note(`The folder ${folder} has no SKILL.md: it is no skill.`);
      }
      if (without.length > 0 && named.length > 0) return 2;
      const all = named.length === 0 ? known : named.map((name) => catalog.need("skill", name));
      const folders = all.filter(({ value }) => value.folder !== "");
      let code = 0;
      for (const { name, value: { folder } } of folders) {
        const problems = skillProblems(folder, name);
        if (problems.length > 0) code = 1;
        io.out(`${name}  ${problems.length === 0 ? "ok" : folder}\n`);
        for (const problem of problems) io.out(`  ${stripControl(problem)}\n`);
      }
      if (without.length > 0) return 2;
      if (folders.length === 0) io.note("There is no skill that is a folder with a SKILL.md.");
      return code;
    },
  },
  examples: [
    "svc skills list",
    "svc skills validate",
    "svc skills show release-notes",
    "svc skills new release-notes --file release-notes.md",
    "svc skills remove release-notes",
  ],
});

/** What `show` adds to an entry. */
interface Details {
  /** Further fields of the JSON output. */
  fields: Record<string, unknown>;
  /** Further lines of the text output. */
  text: string;
}

/** The differences between the commands of roles, teams and skills. */
export interface CatalogCommand<
  Own extends Fields,
  More extends { action: "run" | "accept" | "validate" } = never,
> {
  kind: Kind;
  /** The options of `new` that hold fields of an entry. */
  fields: Own;
  /** The fields of an entry from the options; undefined ones were not passed. */
  entryOf(
    fields: ValuesOf<Own>,
    workspace: Workspace,
  ): Record<string, unknown> | Promise<Record<string, unknown>>;
  /** The fields of an entry from a file's text. */
  entryOfFile(text: string): Record<string, unknown>;
  /** What `show` adds to an entry. Default: nothing. */
  details?(workspace: Workspace, name: string): Promise<Details>;
  /** A subcommand that only this kind has. */
  more?: Pick<Command<More>, "parser" | "run" | "textAfter">;
  examples: string[];
}

/** `svc roles`, `svc teams` and `svc skills` (specification 4.7): list, show, new and remove. */
export function catalogCommand<
  const Own extends Fields,
  More extends { action: "run" | "accept" | "validate" } = never,
>(
  { kind, fields, entryOf, entryOfFile, details, more, examples }: CatalogCommand<Own, More>,
): Command<unknown> {
  const name = argument(nameOf(`${kind}s`));
  const output = withDefault(
    option("--output", choice(["text", "json"]), "Default: text."),
    "text",
  );
  const global = option(
    "--global",
    "Those of all worktrees, in ~/.config/svc; default: this worktree's, in .svc.",
  );
  const tag = optional(argument(string("TAG"), "Only those with this tag."));
  const list = command(
    "list",
    { action: "list", output, path: pathOption, tag: kind === "skill" ? undefined : tag },
    `List the ${kind}s, and where each comes from.`,
  );
  const show = command(
    "show",
    { action: "show", name, output, path: pathOption },
    `Show the effective ${kind}.`,
  );
  const make = command(
    "new",
    {
      action: "new",
      name,
      file: textOption(
        "--file",
        pathOf("FILE"),
        `${kind === "skill" ? "The text" : "A JSON object of fields"}; - reads standard input.`,
      ),
      fields,
      force: option("--force", "Replace an existing one."),
      global,
      path: pathOption,
    },
    `Write a ${kind}. Fields that it leaves out come from the ${kind} of the same name in a lower ` +
      "layer; without any field, the effective one is copied.",
  );
  const remove = command(
    "remove",
    { action: "remove", name, global, path: pathOption },
    `Remove a ${kind}; one of the same name in a lower layer takes effect again.`,
  );
  return defineCommand({
    parser: command(
      `${kind}s`,
      more === undefined ? [list, show, make, remove] : [list, show, make, remove, more.parser],
      `Show and change the ${kind}s.`,
    ),
    bare: "list",
    textAfter: more?.textAfter,
    examples,
    async run(values, io) {
      if (isMore(values)) return await more!.run(values, io);
      const workspace = openWorkspace(values.path, io);
      await workspace.load({ [`${kind}s`]: "all" });
      const catalog = await workspace.catalog();
      if (values.action === "list") {
        const all = catalog.list(kind).filter(({ value }) =>
          values.tag === undefined || "tags" in value && value.tags.includes(values.tag)
        );
        if (values.output === "json") io.out(toJson(all, 2) + "\n");
        else printLists(io, entries(all, io));
        if (values.output !== "json" && all.length === 0) {
          io.note(
            values.tag === undefined
              ? `There are no ${kind}s; write one: ${io.program}${kind}s new`
              : `No ${kind} has the tag ${JSON.stringify(values.tag)}.`,
          );
        }
        return 0;
      }
      if (values.action === "show") {
        const entry = catalog.need(kind, values.name);
        const { fields = {}, text = "" } = await details?.(workspace, values.name) ?? {};
        io.out(
          values.output === "json"
            ? toJson({ ...entry, ...fields }, 2) + "\n"
            : page(entry) + stripControl(text),
        );
        return 0;
      }
      const scope = values.global ? "global" : "local";
      if (values.action === "remove") {
        await catalog.remove(kind, scope, values.name);
        const lower = catalog.get(kind, values.name)?.origin;
        io.note(
          `The ${scope} ${kind} ${values.name} is removed` +
            (lower === undefined ? "." : `; the ${lower} one is in effect.`),
        );
        return 0;
      }
      const given = {
        ...values.file === undefined ? {} : entryOfFile(await readEntry(values.file, io)),
        ...defined(await entryOf(values.fields as ValuesOf<Own>, workspace)), // the union of the values is wider than the subcommand's
      };
      const entry = Object.keys(given).length > 0 ? given : copyOf(catalog, kind, values.name);
      await catalog.save(kind, scope, values.name, entry, { replace: values.force });
      if (scope === "local") {
        await acceptEntry(workspace, kind, values.name);
        catalog.reload();
      }
      noteSaved(kind, scope, values.name, io);
      if (kind === "role") await noteOpened(workspace, values.name, entry, io);
      if (kind === "team") await noteUnknownRoles(workspace, values.name, io);
      return 0;
    },
  });
}

function isMore<More extends { action: "run" | "accept" | "validate" }>(
  values: More | { action: string },
): values is More {
  return ["run", "accept", "validate"].includes(values.action);
}

/** The JSON object that a file holds. */
export function jsonEntry(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw usageError("usage", `The file is not valid JSON: ${errorMessage(error)}.`);
  }
  if (isObject(value)) return value;
  throw usageError("usage", "The file must hold a JSON object of fields.");
}

/** Splits `a,b` at commas; undefined stays undefined. */
export function words(text: string | undefined): string[] | undefined {
  return text?.split(",").map((word) => word.trim()).filter((word) => word !== "");
}

async function readEntry(file: string, io: Io): Promise<string> {
  if (file === "-") return await io.readInput();
  try {
    return await Deno.readTextFile(resolve(io.environment.cwd, file));
  } catch (error) {
    throw usageError("usage", `${file} cannot be read: ${errorMessage(error)}.`);
  }
}

function defined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/**
 * The non-empty fields of the effective entry, to copy. Without the path of its instructions, which is
 * relative to the folder of its own layer and stays in effect, and without the mark of an agent's entry.
 */
function copyOf(catalog: Catalog, kind: Kind, name: string): Record<string, unknown> {
  if (catalog.list(kind).some((entry) => entry.name === name)) {
    const entry = catalog.need(kind, name);
    const fields = Object.entries(entry.value).filter(([, value]) => !isEmpty(value));
    return Object.fromEntries(
      fields.filter(([field]) => !["instructions", "accepted", "folder", "hidden"].includes(field)),
    );
  }
  throw usageError(
    "usage",
    `There is no ${kind} ${JSON.stringify(name)} to copy, and no field of a new one was passed.`,
    `See: svc ${kind}s new --help`,
  );
}

function noteSaved(kind: Kind, scope: Scope, name: string, io: Io): void {
  io.note(`The ${scope} ${kind} ${name} is saved; see it with: svc ${kind}s show ${name}`);
}

/** Says what a role allows that the configuration asks about: a role of a person opens it, a copied one too. */
async function noteOpened(
  { config }: Workspace,
  name: string,
  { tool_permission }: Record<string, unknown>,
  io: Io,
): Promise<void> {
  const { actionOf } = await import("../policy/policy.ts");
  const { policySettings } = await import("../policy/settings.ts");
  const settings = policySettings(config, config.get("mode"));
  const opened = Object.entries(tool_permission ?? {}).filter(([category, action]) =>
    action === "allow" && actionOf(settings, category) === "ask"
  );
  if (opened.length === 0) return;
  const categories = opened.map(([category]) => category).join(", ");
  io.note(
    `It opens ${categories}: as ${name}, calls that you would be asked about run without an approval.`,
  );
}

/** One line each: name, origin, description, tags. */
function entries(all: Entry<{ description: string; tags?: string[] }>[], io: Io): string {
  const rows = all.map(({ name, origin, broken, value: { description, tags = [] } }) => {
    const shown = `${description}${tags.length > 0 ? ` [${tags.join(", ")}]` : ""}`;
    const line = stripControl(broken === undefined ? shown : `broken: ${broken}`);
    return [name, origin, line.replace(/\s+/g, " ")];
  });
  return listText(io, ["NAME", "ORIGIN", "DESCRIPTION"], rows);
}

/** An entry for people: its short fields a line each, then its texts. */
function page({ name, origin, layers, value }: Entry<object>): string {
  const fields = Object.entries(value).filter(([, field]) => !isEmpty(field));
  const isText = ([, field]: [string, unknown]) =>
    typeof field === "string" && field.includes("\n");
  const from = layers.length === 1
    ? origin
    : `${origin}, over ${layers.slice(0, -1).join(" and ")}`;
  return stripControl([
    `${name} (${from})`,
    ...fields.filter((field) => !isText(field)).map(([field, value]) =>
      `${field}: ${inline(value)}`.replace(": \n", ":\n")
    ),
    ...fields.filter(isText).map(([field, value]) => `\n${field}:\n\n${value.trim()}`),
  ].join("\n")) + "\n";
}

function inline(value: unknown): string {
  if (Array.isArray(value)) {
    return value.every((item) => typeof item !== "object")
      ? value.join(", ")
      : value.map((item, index) => `\n  ${index + 1}. ${inline(item)}`).join("");
  }
  if (!isObject(value)) return String(value);
  return Object.entries(value).filter(([, field]) => !isEmpty(field))
    .map(([name, field]) => `${name}=${inline(field)}`).join(", ");
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === "" ||
    typeof value === "object" && Object.keys(value!).length === 0;
}

/** Warns about stages whose role does not exist yet: a run would fail. */
export async function noteUnknownRoles(workspace: Workspace, team: string, io: Io): Promise<void> {
  await workspace.load({ roles: "all", teams: "all" });
  const catalog = await workspace.catalog();
  const roles = catalog.list("role").map(({ name }) => name);
  const stages = catalog.need("team", team).value.stages.map(({ role }) => role);
  for (const role of new Set(stages)) {
    if (roles.includes(role)) continue;
    const guess = nearest(role, roles);
    const hint = guess === undefined ? "" : ` Did you mean ${guess}?`;
    io.note(`warning: There is no role ${JSON.stringify(role)}, and no run without it.${hint}`);
  }
}

/** Records that the person trusts an entry of the worktree's catalog. */
async function acceptEntry(workspace: Workspace, kind: string, name: string): Promise<void> {
  const openings = await workspace.entryOpenings();
  await workspace.trust.accept(openings.filter(({ id }) => id === `${kind}:${name}`));
}
