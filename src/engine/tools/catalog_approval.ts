import type { Catalog } from "../../catalog/catalog.ts";
import { type Role, role } from "../../catalog/schema.ts";
import {
  authorityUnder,
  type Ceiling,
  exceeding,
  listsExceeding,
  rootCeiling,
} from "../../policy/roles.ts";
import { actionOf } from "../../policy/policy.ts";
import type { PolicySettings } from "../../policy/settings.ts";
import type { Agents } from "../agents.ts";
import type { CatalogChange } from "./core.ts";

/**
 * Why an agent's change of the catalog needs an approval; empty when it does not. A saved entry outlives the agent
 * and is used by others, which may do more than it. So an approval is needed for an entry that could do more than
 * the agent may hand down, that lifts a denial, or that changes the model, a file or who answers questions; and
 * for any change of an existing entry by an agent with less than full rights (specification 5.3.6, 5.3.9).
 *
 * @throws SvcError (exit 2) for an entry that is none
 */
export async function approvalNeeded(change: CatalogChange, agents: Agents): Promise<string> {
  const { kind, name, entry } = change;
  const catalog = await agents.workspace.catalog();
  catalog.reload(); // the entries on disk count
  const root = rootCeiling(agents.workspace.config, "build");
  const { ceiling } = agents.authority;
  const broken = catalog.list(kind).some((each) => each.name === name && each.broken !== undefined);
  if (broken) return `the ${kind} ${name} has a broken part, which may deny something`;
  if (kind !== "role") {
    const less = [...exceeding(root.ceiling, ceiling), ...listsExceeding(root.ceiling, ceiling)];
    if (less.length === 0 || catalog.get(kind, name) === undefined) return "";
    return `the ${kind} ${name} is there already, and others that use it may do more than this agent ` +
      `(${less.join(", ")})`;
  }
  return roleApproval({ name, entry, root, ceiling }, catalog);
}

function roleApproval(
  { name, entry, root, ceiling }: Omit<CatalogChange, "kind"> & {
    root: Ceiling;
    ceiling: PolicySettings;
  },
  catalog: Catalog,
): string {
  const before = catalog.get("role", name)?.value;
  // A removed role could be created again, so removing it lifts its denials.
  const after = catalog.wouldBe("role", name, entry) ?? role.parse({});
  const then = authorityUnder(root, after);
  const more = entry === undefined ? [] : [then.own, then.ceiling].flatMap((each) => [
    ...exceeding(each, ceiling),
    ...listsExceeding(each, ceiling),
  ]);
  if (more.length > 0) {
    return `the role ${name} could do more than this agent may hand down: ${list(more)} (its ` +
      "tool_permission can deny them)";
  }
  if (before !== undefined) {
    const now = authorityUnder(root, before);
    const lifted = [
      ...exceeding(then.own, now.own),
      ...exceeding(then.ceiling, now.ceiling),
      ...released(before, after).filter((each) => actionOf(root.ceiling, each) === "ask"),
    ];
    if (lifted.length > 0) {
      return `the role ${name} is denied what would be open then: ${list(lifted)}`;
    }
  }
  const changed = (["model", "instructions", "ask_policy"] as const).filter((field) =>
    differs(field, before, after)
  );
  return changed.length === 0 ? "" : `the role ${name} gets another ${changed.join(" and ")}`;
}

/** The categories that a role closes with `ask`, and that a person or the sandbox could open afterwards. */
function released(before: Role, after: Role): string[] {
  const actions = [
    [before.tool_permission, after.tool_permission],
    [before, after].map((each) => ({ ...each.tool_permission, ...each.grant_permission })),
  ];
  return actions.flatMap(([then = {}, now = {}]) =>
    Object.keys(then).filter((category) =>
      then[category] === "ask" && now[category] !== "ask" && now[category] !== "deny"
    )
  );
}

/** Whether a field has changed to a value that is not empty. */
function differs(
  field: "model" | "instructions" | "ask_policy",
  before: Role | undefined,
  after: Role,
): boolean {
  if (field !== "ask_policy") return after[field] !== "" && after[field] !== before?.[field];
  return JSON.stringify(after.ask_policy ?? {}) !== JSON.stringify(before?.ask_policy ?? {});
}

function list(categories: string[]): string {
  return [...new Set(categories)].join(", ");
}
