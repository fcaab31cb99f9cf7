import type { Catalog } from "../../catalog/catalog.ts";
import type { Entry } from "../../catalog/layers.ts";
import type { Kind } from "../../catalog/schema.ts";
import type { ToolArguments } from "../../plugins/api.ts";
import { errorMessage, SvcError } from "../../platform/error.ts";
import type { CoreTool } from "./core.ts";

const KINDS: readonly Kind[] = ["role", "team", "skill"];
const ACTIONS = ["list", "show", "save", "remove", "reload"];

/** The fields of an entry, and the JSON types that they have. The description of the tool explains them. */
const FIELDS = {
  description: { type: "string" },
  tags: { type: "array", items: { type: "string" } },
  system_prompt: { type: "string" },
  tool_permission: { type: "object" },
  grant_permission: { type: "object" },
  skills: { type: "array", items: { type: "string" } },
  model: { type: "string" },
  instructions: { type: "string" },
  ask_policy: { type: "object" },
  stages: { type: "array", items: {} },
  loop: { type: "object" },
  text: { type: "string" },
};

/** `catalog` (specification 4.8): looks at roles, teams and skills, and changes those of this worktree. */
export const catalogTool: CoreTool = {
  name: "catalog",
  description:
    "List, show, save or remove roles, teams and skills. save writes an entry of this worktree over " +
    "the other one of its name, field by field. reload reads the disk again. Fields: description (one line); " +
    "role: system_prompt, skills, model, tool_permission (category: allow, ask or deny; default and most: " +
    "its starter's), grant_permission (the most it hands down; default: its own), instructions (a Markdown " +
    "file), ask_policy; team: stages (role names, or objects: role, task_hint, handoff_note, skills, mode), " +
    "loop (until the last stage passes: from, until, max_iterations); skill: text.",
  parameters: {
    type: "object",
    properties: {
      action: { type: "string", enum: ACTIONS },
      kind: { type: "string", description: "role (default), team or skill; list: default all." },
      name: { type: "string" },
      ...FIELDS,
    },
    required: ["action"],
  },
  permission: "catalog",
  read_only: ({ action }) => ["list", "show", "reload"].includes(action),
  key_arg: "action",
  confirm: (args) => JSON.stringify(fieldsOf(args), null, 2),
  status: ({ action, kind = "", name = "" }) => `catalog ${[action, kind, name].join(" ").trim()}`,
  refuse: ({ action }, { immutable }) =>
    Promise.resolve(
      immutable && changes(action)
        ? "the configuration of this agent is written by its operator alone"
        : "",
    ),
  async demand(args, agent) {
    const kind = kindOf(args);
    if (!changes(args.action) || kind === undefined || !args.name) return "";
    const entry = args.action === "save" ? fieldsOf(args) : undefined;
    try {
      return await agent.approvalNeeded({ kind, name: args.name, entry });
    } catch (error) {
      // The call itself reports what is wrong with its entry.
      if (error instanceof SvcError && error.code === "catalog_entry") return "";
      throw error;
    }
  },
  async handler(args, { agent }) {
    const { action, name } = args;
    const catalog = await agent.catalog();
    if (action === "reload") {
      catalog.reload();
      return KINDS.map((kind) => `${catalog.list(kind).length} ${kind}s`).join(", ");
    }
    const kind = kindOf(args);
    if (kind === undefined) return "Error: catalog: kind must be role, team or skill";
    if (action === "list") {
      const kinds = args.kind === undefined ? KINDS : [kind];
      return kinds.flatMap((each) => catalog.list(each).map((entry) => line(each, entry)))
        .join("\n") || `(no ${kind}s)`;
    }
    if (!name) return `Error: catalog: ${action} needs a name`;
    try {
      return await act(catalog, kind, args);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      return `Error: ${errorMessage(error)}${action === "show" ? "" : ` ${error.hint}`}`.trim();
    }
  },
};

async function act(catalog: Catalog, kind: Kind, args: ToolArguments): Promise<string> {
  const { action, name } = args;
  if (action === "show") {
    const { origin, layers, value } = catalog.need(kind, name);
    return JSON.stringify({ kind, name, origin, layers, ...value }, null, 2);
  }
  if (action === "remove") {
    await catalog.remove(kind, "local", name);
    const left = catalog.get(kind, name);
    return left === undefined
      ? `Removed the ${kind} ${name}.`
      : `Removed. In effect: ${line(kind, left)}`;
  }
  const entry = kind === "role" ? { ...fieldsOf(args), accepted: false } : fieldsOf(args);
  await catalog.save(kind, "local", name, entry);
  const saved = `Saved. In effect: ${line(kind, catalog.need(kind, name))}`;
  return kind === "role"
    ? `${saved}\nIt has no more than the configuration allows until a person accepts it: svc roles accept ${name}`
    : saved;
}

function line(
  kind: Kind,
  { name, origin, broken, value: { description } }: Entry<{ description: string }>,
): string {
  const said = broken === undefined ? description : `broken: ${broken}`;
  return `${kind} ${name} (${origin})${said === "" ? "" : `: ${said.replace(/\s+/g, " ")}`}`;
}

function changes(action: unknown): boolean {
  return action === "save" || action === "remove";
}

/** `type` is the former name of `role`. */
function kindOf({ kind = "role" }: ToolArguments): Kind | undefined {
  const word = String(kind).trim().toLowerCase().replace(/s$/, "");
  return word === "type" ? "role" : KINDS.find((each) => each === word);
}

function fieldsOf(args: ToolArguments): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(FIELDS).flatMap((field) => args[field] === undefined ? [] : [[field, args[field]]]),
  );
}
