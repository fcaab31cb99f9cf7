import { Config, configFile, type ConfigScope } from "../config/config.ts";
import { setInFile, unsetInFile } from "../config/edit.ts";
import { findKey, groupKeys, unknownKey } from "../config/key_path.ts";
import { CONFIG_KEYS, settingOf } from "../config/keys.ts";
import type { Workspace } from "../engine/workspace.ts";
import { openPaths, type Paths, userDirectory } from "../platform/environment.ts";
import { errorMessage, usageError } from "../platform/error.ts";
import { isObject, jsonOr, statIfExists } from "../platform/files.ts";
import { checkMode } from "../policy/settings.ts";
import type { Trust } from "../policy/trust.ts";
import { defineCommand, pathOption } from "./command.ts";
import { type Io, toJson } from "./io.ts";
import { nameOf } from "./names.ts";
import { openTrust } from "./workspace.ts";
import { argument, command, multiple, option, string } from "./options.ts";

const scopes = {
  global: option("--global", "Your settings, ~/.config/svc/config.json."),
  local: option(
    "--local",
    "The worktree's settings, .svc/config.json (the default for set and unset).",
  ),
  path: pathOption,
};

const key = argument(nameOf("keys", "KEY"));

const get = command(
  "get",
  {
    action: "get",
    keys: multiple(argument(nameOf("keys", "KEY"))),
    origins: option("--show-origin", "Show where each value comes from."),
    changed: option("--changed", "Leave out what no file sets."),
    ...scopes,
  },
  "Print settings as JSON: all, the value of one, or an object of several. With --global or " +
    "--local, of that file only; the exit code is 1 when it does not set a key.",
);

const set = command("set", {
  action: "set",
  key,
  value: argument(string("VALUE"), "JSON if it reads as JSON, otherwise a text."),
  ...scopes,
}, "Write a setting; comments and layout of the file stay.");

const unset = command(
  "unset",
  { action: "unset", key, ...scopes },
  "Remove a setting from a file.",
);

const reload = command(
  "reload",
  { action: "reload", path: pathOption },
  "Read and check both files; print their paths and every warning.",
);

const schema = command(
  "schema",
  { action: "schema" },
  "Print the JSON Schema of a configuration file, for editors.",
);

/** `svc config` (specification 4.4): read and change settings. */
export const config = defineCommand({
  parser: command("config", [get, set, unset, reload, schema], "Read and change settings."),
  bare: "get",
  bareTakes: (word) => groupKeys(word).length > 0 || findKey(word) !== undefined,
  textAfter: { set: 1 },
  examples: [
    "svc config get",
    "svc config get --changed --show-origin",
    "svc config get model tool_permission.bash --show-origin",
    'svc config set tool_permission.bash_allow \'["git status", "git log"]\'',
    "svc config set provider openai --global",
    "svc config unset model",
    "svc config schema > .svc/config.schema.json",
  ],
  async run(values, io) {
    if (values.action === "schema") {
      const { configJsonSchema } = await import("../config/json_schema.ts");
      io.out(toJson(configJsonSchema(), 2) + "\n");
      return 0;
    }
    const live = values.path === "" ? io.live : undefined;
    const paths = live?.paths ??
      openPaths(values.path || io.environment.cwd, userDirectory(io.environment));
    const trust = live?.trust ?? openTrust(paths, io);
    if (values.action === "reload") {
      const before = live && CONFIG_KEYS.map((key) => live.config.get(key));
      live?.config.reload();
      const code = check(paths, trust, io);
      if (before !== undefined) tellChanges(before, live!.config, io);
      return code;
    }
    if (values.global && values.local) {
      throw usageError("usage", "--global and --local exclude each other.", "Pass one of them.");
    }
    const scope = values.global ? "global" : values.local ? "local" : undefined;
    if (values.action === "get") {
      return show(live?.config ?? open(paths, trust, io), paths, { ...values, scope }, io);
    }
    const file = configFile(paths, scope ?? "local");
    const settings = valid(paths, trust);
    const change = async () => {
      if (values.action === "set") {
        const value = jsonOr(values.value, values.value);
        const mode = values.key === "mode" && typeof value === "string" ? value : undefined;
        if (mode !== undefined && settings !== undefined) checkMode(settings, mode);
        await setInFile(file, values.key, value);
        io.note(`${values.key} is set in ${file}`);
      } else {
        const found = await unsetInFile(file, values.key);
        if (!found && findKey(values.key) === undefined) throw unknownKey(values.key);
        io.note(`${values.key} ${found ? "is removed from" : "was not set in"} ${file}`);
      }
      valid(paths, trust);
    };
    if (scope === "global") await change();
    else await trust.changing([values.key], change);
    // An override of this process would hide the change in a terminal session.
    const changed = findKey(values.key);
    if (changed !== undefined) live?.config.release(changed.key);
    noteRemaining(paths, trust, live, io);
    return 0;
  },
});

/** Says which settings have other values than before, in the order of CONFIG_KEYS. */
function tellChanges(before: unknown[], settings: Config, io: Io): void {
  let changed = false;
  for (const [index, key] of CONFIG_KEYS.entries()) {
    const [old, now] = [before[index], settings.get(key)].map((value) =>
      toJson(shown(key, value) ?? null)
    );
    if (old === now) continue;
    changed = true;
    io.note(`${key}: ${old} is ${now} now`);
  }
  if (!changed) io.note("No setting has changed.");
}

function show(
  settings: Config,
  paths: Paths,
  { keys: names, scope, origins, changed }: {
    keys: readonly string[];
    scope: ConfigScope | undefined;
    origins: boolean;
    changed: boolean;
  },
  io: Io,
): number {
  const keys = names.length === 0 ? CONFIG_KEYS : names.flatMap((name) => {
    const group = groupKeys(name);
    if (group.length === 0 && findKey(name) === undefined) throw unknownKey(name);
    return group.length === 0 ? [name] : group;
  });
  const result: Record<string, unknown> = {};
  let missing = false;
  for (const key of keys) {
    const all = scope === undefined ? settings.get(key) : settings.getFrom(scope, key);
    const value = shown(key, changed ? changedPart(settings, key, all) : all);
    if (value !== undefined) {
      const origin = () =>
        scope === undefined ? originOf(settings, paths, key, value) : configFile(paths, scope);
      result[key] = origins ? { value, origin: origin() } : value;
    } else if (names.includes(key)) {
      missing = true;
      io.note(`${key} is not set${scope === undefined ? "" : ` in ${configFile(paths, scope)}`}`);
    }
  }
  const [only] = keys;
  const single = names.length === 1 && keys.length === 1;
  if (!single) io.out(toJson(result, 2) + "\n");
  else if (!missing) io.out(toJson(result[only!], 2) + "\n");
  return missing ? 1 : 0;
}

/** A value without its secrets. */
function shown(name: string, value: unknown): unknown {
  const key = findKey(name)?.key;
  if (key === undefined || value === undefined || value === "") return value;
  if (settingOf(key).secret) return HIDDEN;
  return key === "mcp.servers" && Array.isArray(value) ? value.map(withoutSecrets) : value;
}

const HIDDEN = "(hidden)";

/** A server of `mcp.servers` with the names of its headers, variables and client alone: their values are keys. */
function withoutSecrets(server: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(server).map(([name, value]) => [
      name,
      ["headers", "env", "oauth"].includes(name) && isObject(value)
        ? Object.fromEntries(Object.keys(value).map((each) => [each, HIDDEN]))
        : value,
    ]),
  );
}

/** Where a value comes from: a file or `default`; for a merged object, where each field comes from. */
function originOf(settings: Config, paths: Paths, key: string, value: unknown): unknown {
  if (isObject(value) && Object.keys(value).length > 0) {
    return Object.fromEntries(
      Object.entries(value)
        .map(([name, field]) => [name, originOf(settings, paths, `${key}.${name}`, field)]),
    );
  }
  const origin = settings.origin(key);
  return origin === "global" || origin === "local" ? configFile(paths, origin) : origin;
}

/** The part of a value that is not a default; undefined: none. */
function changedPart(settings: Config, key: string, value: unknown): unknown {
  if (settings.origin(key) === "default") return undefined;
  if (!isObject(value)) return value;
  const fields = Object.entries(value)
    .map(([name, field]) => [name, changedPart(settings, `${key}.${name}`, field)] as const)
    .filter(([, field]) => field !== undefined);
  return fields.length > 0 ? Object.fromEntries(fields) : undefined;
}

function check(paths: Paths, trust: Trust, io: Io): number {
  const { warnings } = Config.open(paths, trust.screen);
  const files = (["global", "local"] as const).map((scope) => configFile(paths, scope));
  io.out(toJson({ files: files.filter((file) => statIfExists(file)?.isFile), warnings }, 2) + "\n");
  return 0;
}

/** The settings; undefined when a file is wrong, since a file with several errors is repaired one by one. */
function valid(paths: Paths, trust: Trust): Config | undefined {
  try {
    return Config.open(paths, trust.screen);
  } catch {
    return undefined;
  }
}

function open(paths: Paths, trust: Trust, io: Io): Config {
  const settings = Config.open(paths, trust.screen);
  for (const warning of settings.warnings) io.note(`warning: ${warning}`);
  return settings;
}

/** Warns about other errors in the files after a change; they do not make it fail. */
function noteRemaining(paths: Paths, trust: Trust, live: Workspace | undefined, io: Io): void {
  try {
    open(paths, trust, io);
    live?.config.reload();
  } catch (error) {
    io.note(`warning: ${errorMessage(error)}`);
  }
}
