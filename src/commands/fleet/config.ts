import { resolve } from "node:path";
import { acceptNew } from "../../config/check.ts";
import { Config, configFile } from "../../config/config.ts";
import { setInText } from "../../config/edit.ts";
import { changeConfigFile } from "../../config/file.ts";
import { parseObject } from "../../config/jsonc.ts";
import { findKey, unknownKey } from "../../config/key_path.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { usageError } from "../../platform/error.ts";
import { openPaths } from "../../platform/paths.ts";
import { checkMode } from "../../policy/settings.ts";
import { approveModels } from "../../providers/approvals.ts";
import { parseModelRef } from "../../providers/refs.ts";
import type { FleetContext } from "./context.ts";
import { openWorkspace } from "../workspace.ts";

/** What `fleet config` is passed. */
export interface AgentConfig {
  name: string;
  path: string;
  provider?: string;
  model?: string;
  mode?: string;
  system_prompt?: string;
  tools_deny: readonly string[];
  tool_permission: readonly string[];
  role?: string;
  approve_model: boolean;
}

/**
 * Writes what was passed into the agent's `.svc/config.json`, all of it or nothing; everything else in the
 * file stays, comments included. What is passed by itself counts over what the role brings.
 *
 * @throws SvcError (exit 2) for an unknown role, mode or agent, a value that will not do, and a model that is
 * not approved
 */
export async function configureAgent(
  { paths, roster, io }: FleetContext,
  values: AgentConfig,
): Promise<{ file: string; set: Record<string, unknown> }> {
  const { dir } = roster.need(values.name);
  const agent = openPaths(resolve(paths.worktree, dir), paths.user);
  const file = configFile(agent, "local");
  const workspace = openWorkspace(values.path, io);
  await workspace.load({ providers: "all", roles: "all" });
  const set = { ...await ofRole(workspace, values.role), ...passed(values) };
  if (Object.keys(set).length === 0) {
    throw usageError("usage", "There is nothing to write.", "See: svc fleet config --help");
  }
  if (values.mode !== undefined) checkMode(Config.open(agent), values.mode);
  const changes = Object.entries(set).map(([name, value]) => {
    const place = findKey(name);
    if (place === undefined) throw unknownKey(name);
    return { place, value: acceptNew(place, value) };
  });
  await approve(workspace, set.model, values);
  await changeConfigFile(file, (text = "{}\n") => {
    for (const { place, value } of changes) text = setInText(text, place, value, file);
    parseObject(text, file); // whatever the edits met, the file stays one that can be read
    return text;
  });
  return { file, set };
}

/** What a role inlines: its prompt, model and tool permissions. */
async function ofRole(
  workspace: Workspace,
  role: string | undefined,
): Promise<Record<string, unknown>> {
  if (role === undefined) return {};
  const catalog = await workspace.catalog();
  const { model, tool_permission } = catalog.need("role", role).value;
  const { identity, skills } = catalog.prompt(role);
  return {
    system_prompt: [identity, skills].filter((part) => part !== "").join("\n\n"),
    ...(model !== "" && { model }),
    ...categories(Object.entries(tool_permission)),
  };
}

function passed(values: AgentConfig): Record<string, unknown> {
  const { provider, model, mode, system_prompt, tools_deny, tool_permission } = values;
  const given = { provider, model, mode, system_prompt };
  const actions = tool_permission.map((word): [string, string] => {
    const [, category, action] = /^([^=]+)=(.*)$/.exec(word) ?? [];
    if (category !== undefined) return [category, action!];
    throw usageError("usage", `--tool-permission takes category=action, not "${word}".`);
  });
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    ...(tools_deny.length > 0 && { "tools.deny": tools_deny }),
    ...categories(actions),
  };
}

function categories(actions: [string, unknown][]): Record<string, unknown> {
  return Object.fromEntries(actions.map(([name, value]) => [`tool_permission.${name}`, value]));
}

/** A model that was passed is thereby approved; one that a role refers to needs `--approve-model`. */
async function approve(workspace: Workspace, model: unknown, values: AgentConfig): Promise<void> {
  if (typeof model !== "string") return;
  const ref = parseModelRef(model, workspace.providers, workspace.connections);
  const granted = values.approve_model || values.model !== undefined;
  await approveModels([ref], workspace.models, { granted });
}
