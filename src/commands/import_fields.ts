import { BUNDLED_PLUGINS, type ConfigKey, SETTINGS } from "../config/keys.ts";
import { groupKeys, nest } from "../config/key_path.ts";
import { migratePlugins, takeLegacyPlugins } from "../config/layer.ts";
import { isObject } from "../platform/files.ts";
import { secretValues } from "../platform/secrets.ts";

/** The fields of an entry of the earlier implementation. */
export type Fields = Record<string, unknown>;

/** A setting in the names and values of svc; `note` says what is different. */
export interface Translated {
  name: string;
  value: unknown;
  note?: string;
}

/**
 * The settings of a `config.json`, one for each field of an object setting. A name that is none of svc stays.
 *
 * @throws SvcError `config_value` (exit 2) for the former plugin settings, when they are wrong
 */
export function settingsOf(raw: Fields): Translated[] {
  const bundled = BUNDLED_PLUGINS.map((name) => name.replace("svc-", "polyglav-"));
  const { settings, legacy } = takeLegacyPlugins(raw, "config.json");
  const found: Translated[] = [];
  const collect = (fields: Fields, prefix: string) => {
    for (const [field, value] of Object.entries(fields)) {
      const name = RENAMED[prefix + field] ?? prefix + field;
      const translate = TRANSLATED[name];
      const group = name === "memory_scopes" ? "memory" : name;
      if (groupKeys(group).length > 0 && isObject(value)) collect(value, `${group}.`);
      else if (translate !== undefined) found.push(...translate(value));
      else if (isObject(value) && isObject(SETTINGS[name as ConfigKey]?.default)) {
        const parts = name === "tool_permission" ? actionsOf(value) : value;
        for (const [each, part] of Object.entries(parts)) {
          found.push({ name: `${name}.${each}`, value: part });
        }
      } else found.push({ name, value });
    }
  };
  collect(nest(settings, () => {}), "");
  if (legacy !== undefined) {
    found.push(...plugins(migratePlugins(legacy, bundled, "config.json")));
  }
  return found;
}

const RENAMED: Record<string, string> = {
  memory: "memory_enabled",
  tools_output_drop: "noise_tools",
  tools_output_max_chars: "session_tool_max_chars",
};

const TRANSLATED: Record<string, (value: unknown) => Translated[]> = {
  plugins,
  mode: (value) => [{ name: "mode", value: modeOf(value) }],
  modes: (value) =>
    Object.entries(isObject(value) ? value : {}).map(([name, fields]) => ({
      name: `modes.${modeOf(name)}`,
      value: isObject(fields) ? modeFields(fields) : fields,
    })),
  "mcp.servers": mcpServers,
};

/** Why a setting is not imported that svc does not have; an agent may do more without the first ones. */
export const LOST: Record<string, string> = {
  grant_permission: "svc has no such setting: limit what a role hands down by its grant_permission",
  tool_calling: "svc has no such setting: to keep tools from a model, list them in tools.deny",
  access: "svc has no such setting: what mode plan denies is fixed",
  api_key: "keys are never copied; give it with: svc connect",
};

/** The modes `read` and `write` of later versions are `plan` and `build`; each denies at least as much. */
export function modeOf(mode: unknown): unknown {
  return mode === "read" ? "plan" : mode === "write" ? "build" : mode;
}

function modeFields({ cap, tool_permission, ...mode }: Fields): Fields {
  const given = isObject(tool_permission) ? actionsOf(tool_permission) : {};
  const denied = cap === "read" ? ["bash", "delegate", "dev", "edit", "mcp", "team", "vcs"] : [];
  const capped = Object.fromEntries(denied.map((category) => [category, "deny"]));
  return { ...mode, tool_permission: { ...given, ...capped } };
}

const RANK: unknown[] = ["allow", "ask", "deny"];

/** Actions by category. `call`, later the category of both, is `delegate` and `team`; the stricter action counts. */
export function actionsOf(permission: Fields): Fields {
  const entries = Object.entries(permission).map(([category, action]): [string, unknown] => [
    category,
    typeof action === "boolean" ? action ? "allow" : "deny" : action,
  ]);
  const { call, ...actions } = Object.fromEntries(entries);
  for (const category of call === undefined ? [] : ["delegate", "team"]) {
    const own = actions[category];
    actions[category] = RANK.indexOf(own) > RANK.indexOf(call) ? own : call;
  }
  return actions;
}

function plugins(value: unknown): Translated[] {
  if (!Array.isArray(value)) return [{ name: "plugins", value }];
  const names = value.map((name) => String(name).replace(/^polyglav-core-/, "svc-core-"));
  const known = names.filter((name) => BUNDLED_PLUGINS.some((each) => each === name));
  const dropped = names.filter((name) => !known.includes(name));
  // An empty list would load all plugins.
  if (dropped.length === 0 || known.length === 0) return [{ name: "plugins", value: names }];
  return [{ name: "plugins", value: known, note: `without ${dropped.join(", ")}` }];
}

/** The servers without the values that are keys by the names of their headers and variables. */
function mcpServers(value: unknown): Translated[] {
  if (!Array.isArray(value)) return [{ name: "mcp.servers", value }];
  const dropped: string[] = [];
  const servers = value.map((server) => {
    if (!isObject(server)) return server;
    const kept = { ...server };
    for (const field of ["env", "headers"]) {
      if (!isObject(server[field])) continue;
      kept[field] = Object.fromEntries(
        Object.entries(server[field]).filter(([name]) => {
          const secret = secretValues([[name, ""]]).length > 0;
          if (secret) dropped.push(`${field}.${name} of ${server.name}`);
          return !secret;
        }),
      );
    }
    return kept;
  });
  const note = dropped.length > 0 ? `keys are not copied: ${dropped.join(", ")}` : "";
  return [{ name: "mcp.servers", value: servers, note }];
}

/** The fields of a job in the values of svc. */
export function jobFields({ running: _, ...fields }: Fields): Fields {
  const { status, task_file, backoff, mode, tool_permission } = fields;
  const waits = status === "proposed" || status === "waiting_approval";
  return {
    ...fields,
    mode: modeOf(mode),
    ...isObject(tool_permission) && { tool_permission: actionsOf(tool_permission) },
    ...waits && { enabled: true }, // as its approval does there; it does not run before
    ...status === "executing" && { status: "failed" }, // the process that ran it is another program's
    ...typeof backoff === "number" && { backoff: Math.ceil(backoff) },
    ...typeof task_file === "string" && {
      task_file: task_file.replace(/^\.polyglav\/jobs\/(?=[^/]+\.md$)/, ".svc/jobs/"),
    },
  };
}

/**
 * The fields of a role.
 *
 * @param instructions the Markdown file in which later versions keep its prompt; empty: none
 */
export function roleFields(
  { callable = "allow", instructions: _, ...fields }: Fields,
  instructions: string,
): Fields {
  const [, head = "", body = instructions] =
    /^---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$/.exec(instructions) ?? [];
  const meta = head.split("\n").flatMap((line): [string, unknown][] => {
    const [, name, value = ""] = /^([^#:\s][^:]*):(.*)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name.trim(), jsonOrText(value.trim())]];
  });
  const role: Fields = { ...Object.fromEntries(meta), ...fields };
  if (body.trim() !== "") role.system_prompt ||= body.trim();
  for (const field of ["tool_permission", "grant_permission"]) {
    if (isObject(role[field])) role[field] = actionsOf(role[field]);
  }
  if (isObject(role.ask_policy)) {
    const routes = Object.entries(role.ask_policy).map((
      [kind, to],
    ) => [kind, to === "user" ? "human" : to]);
    role.ask_policy = Object.fromEntries(routes);
  }
  return callable === "allow" || callable === true ? role : { ...role, callable };
}

/** The fields of a team; undefined for one of a manager and members, which svc does not have. */
export function teamFields({ type, ...team }: Fields): Fields | undefined {
  if (type === "hierarchical") return undefined;
  const stages = isObject(team.stages) ? Object.keys(team.stages) : team.stages;
  if (!Array.isArray(stages)) return team;
  return {
    ...team,
    stages: stages.map((stage) =>
      isObject(stage) && stage.mode ? { ...stage, mode: modeOf(stage.mode) } : stage
    ),
  };
}

function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** What a file or folder is, that is not imported. */
export const LEFT: Record<string, string> = {
  eval: "fixtures have the same format: copy them to .svc/eval",
  "fleet.state.json": "the state of running agents; svc fleet up writes its own",
  "models.json": "models are approved anew: svc model, or --approve-model",
};
