import { join, relative } from "node:path";
import type { LocalEntry } from "../catalog/layers.ts";
import { isReserved, merge } from "../config/key_path.ts";
import { type ComparedKey, type ConfigKey, type ConfigValues, settingOf } from "../config/keys.ts";
import { isObject } from "../platform/files.ts";
import type { Action, ConfigView } from "../plugins/api.ts";
import { BUNDLED } from "../plugins/bundled.ts";
import { actionOf, FOLLOWS } from "./policy.ts";
import { type PolicySettings, policySettings } from "./settings.ts";

/**
 * Something that a worktree's own files would allow and the user's would not: code, a program, an address, a command,
 * or wider permissions. It takes effect only when it is trusted.
 */
export interface Opening {
  /** `plugin:<name>`, `mcp:<server>`, `setting:<key>`, `role:`, `team:`, `job:`, `fleet:` or `fixture:<name>`. */
  id: string;
  /** One phrase for people. Words of the file are quoted and shortened. */
  text: string;
  /** SHA-256 of the content, hexadecimal; undefined: too large to be accepted by itself. */
  digest: () => string | undefined;
}

/** The settings of a worktree's file after untrusted openings are left out, and its openings. */
export interface Screened {
  values: Map<ConfigKey, unknown>;
  openings: (Opening & { accepted: boolean })[];
}

interface ScreeningRequest {
  lower: ConfigView;
  local: ReadonlyMap<ConfigKey, unknown>;
  accepts: (opening: Opening) => boolean;
  /** Names of the connected providers. */
  connected: () => string[];
}

/** Compares the settings of a worktree's file with those of the lower layers, one by one. */
export function screenSettings(request: ScreeningRequest): Screened {
  const { lower, local } = request;
  const at = new Screening(request);
  for (const [key, value] of local) {
    const { trust } = settingOf(key);
    const equal = canonical(value) === canonical(lower.get(key));
    const text = key === "hooks" ? hooksText(value as ConfigValues["hooks"]) : "";
    if (trust === "harmless" || equal || trust === "opening" && at.opens(key, value, text)) {
      at.values.set(key, value);
    }
  }
  // In the order of the table: a mode depends on the modes.
  for (const key of Object.keys(COMPARISONS) as ComparedKey[]) {
    const value = local.get(key);
    if (value === undefined || at.values.has(key)) continue;
    const counts = COMPARISONS[key](at, key as never, value as never);
    if (counts !== undefined) at.values.set(key, counts);
  }
  return { values: at.values, openings: at.openings };
}

function hooksText(hooks: ConfigValues["hooks"]): string {
  const commands = Object.entries(hooks).flatMap(([event, entries = []]) =>
    entries.flatMap((entry) =>
      entry.hooks.map(({ command }) => `${JSON.stringify(command)} at ${event}`)
    )
  );
  return `runs ${commands.join(", ")}`;
}

class Screening {
  readonly values = new Map<ConfigKey, unknown>();
  readonly lower: ConfigView;
  readonly local: ReadonlyMap<ConfigKey, unknown>;
  readonly connected: () => string[];
  readonly #accepts: (opening: Opening) => boolean;
  readonly #openings = new Map<string, Opening & { accepted: boolean }>();

  constructor({ lower, local, accepts, connected }: ScreeningRequest) {
    this.lower = lower;
    this.local = local;
    this.connected = connected;
    this.#accepts = accepts;
  }

  get openings(): Screened["openings"] {
    return [...this.#openings.values()];
  }

  /** Records an opening. @returns whether it is accepted */
  opens(name: string, value: unknown, text = ""): boolean {
    const id = name.startsWith("mcp:") ? name : `setting:${name}`;
    const shown = settingOf(name as ConfigKey)?.secret ? "a secret" : list([value]);
    const opening = openingOf(id, text || `sets ${name} to ${shown}`, value);
    const accepted = this.#openings.get(id)?.accepted ?? this.#accepts(opening);
    this.#openings.set(id, { ...opening, accepted });
    return accepted;
  }

  /** The lower layers with other values for some settings. */
  with(values: { [key: string]: unknown }): ConfigView {
    return {
      get: (key) =>
        Object.hasOwn(values, key) ? merge(this.lower.get(key), values[key]) : this.lower.get(key),
    };
  }

  /** The phrases for permissions that the changed settings widen, in the given modes. */
  widened(values: Record<string, unknown>, modes: string[]): string {
    const after = this.with(values);
    const found = modes.flatMap((mode) => [
      ...widened(policySettings(this.lower, mode), policySettings(after, mode)),
    ]);
    return [...new Set(found)].join("; ");
  }

  /** The modes of the lower layers. */
  get modes(): string[] {
    return ["build", "plan", ...Object.keys(this.lower.get("modes") ?? {})];
  }
}

/** The part of a local value that takes effect; undefined: none. */
type Comparison = {
  [K in ComparedKey]: (at: Screening, key: K, value: ConfigValues[K]) => unknown;
};

/** A new `compared` setting needs an entry here, or the type check fails. */
const COMPARISONS: Comparison = {
  provider: backend,
  base_url: backend,
  model: backend,
  model_fallback: subset((names) =>
    `sends the conversation to ${names} when the model cannot answer`
  ),
  tool_permission: toolPermission,
  "tools.allow": (at, key, value) => {
    const lower = at.lower.get(key);
    const text = at.widened({ [key]: value }, at.modes);
    if (text === "" || at.opens(key, value, text)) return value;
    const both = value.filter((name) => lower.includes(name));
    return both.length > 0 ? both : undefined;
  },
  "tools.deny": (at, key, value) => {
    const lower = at.lower.get(key);
    const text = at.widened({ [key]: value }, ["build"]);
    return text === "" || at.opens(key, value, text) ? value : [...new Set([...lower, ...value])];
  },
  modes: (at, key, value) =>
    counting(value, (name, mode) => {
      const text = at.widened({ [key]: { [name]: mode } }, [name]);
      return text === "" || at.opens(`modes.${name}`, mode, text);
    }),
  mode: (at, key, value) => {
    const before = policySettings(at.lower, at.lower.get(key));
    const after = at.with({ modes: at.values.get("modes") ?? {} });
    const text = [...widened(before, policySettings(after, value))].join("; ");
    return text === "" || at.opens(key, value, text) ? value : undefined;
  },
  ask_policy: (at, key, value) =>
    counting(value, (name, policy) => {
      const lower = at.lower.get(key)[name];
      const narrower = ASK_POLICIES.indexOf(policy) >= ASK_POLICIES.indexOf(lower);
      return narrower || at.opens(`${key}.${name}`, policy);
    }),
  text_calls: (at, key, value) =>
    value !== "run" || at.opens(key, value, "runs tool calls that the model writes as text")
      ? value
      : undefined,
  unattended: (at, key, value) => value || at.opens(key, value) ? value : undefined,
  "budget.turn": budget,
  "budget.job_run": budget,
  "budget.job_day": budget,
  "budget.day": budget,
  unattended_timeout: timeLimit,
  "jobs.timeout": timeLimit,
  plugins: (at, key, value) => {
    const lower = at.lower.get(key);
    if (value.length > 0 && (lower.length === 0 || without(value, lower).length === 0)) {
      return value;
    }
    if (at.opens(key, value, `enables the plugins ${list(without(value, lower)) || "(all)"}`)) {
      return value;
    }
    const both = value.filter((name) => lower.includes(name));
    return both.length > 0 ? both : undefined;
  },
  "mcp.servers": (at, key, value) => {
    const lower = at.lower.get(key).map(canonical);
    const accepted = value.filter((server) =>
      lower.includes(canonical(server)) ||
      at.opens(`mcp:${server.name}`, server, serverText(server))
    );
    return accepted.length > 0 || value.length === 0 ? accepted : undefined;
  },
  "mcp_server.allow_ask": narrowedByFalse,
  "sandbox.mode": (at, key, value) => {
    const order = ["off", "auto", "require"];
    const narrower = order.indexOf(value) >= order.indexOf(at.lower.get(key));
    return narrower || at.opens(key, value) ? value : undefined;
  },
  "sandbox.deny_read": (at, key, value) => {
    const lower: string[] = at.lower.get(key);
    const lifted = without(lower, value);
    const text = `lets commands read ${list(lifted)}`;
    const counts = lifted.length === 0 || at.opens(key, value, text);
    return counts ? value : [...new Set([...lower, ...value])];
  },
  "sandbox.write": subset(),
  "sandbox.network": narrowedByFalse,
  "sandbox.env": subset(),
  "web.allow_private": subset((hosts) => `lets web tools reach ${hosts} in a private network`),
  web_search: narrowedByFalse,
  memory_enabled: narrowedByFalse,
  "memory.role": narrowedByFalse,
  "memory.team": narrowedByFalse,
  "memory.job": narrowedByFalse,
};

/** A limit counts where there is none, or a higher one. */
function budget(at: Screening, key: ComparedKey, value: object): unknown {
  const lower: Record<string, number> = at.lower.get(key);
  return counting(value, (name, limit) => {
    const narrower = lower[name] === undefined || limit <= lower[name];
    return narrower || at.opens(`${key}.${name}`, limit);
  });
}

/** A limit in seconds, of which 0 is none. */
function timeLimit(at: Screening, key: ComparedKey, value: number): number | undefined {
  const lower: number = at.lower.get(key);
  const narrower = lower === 0 || (value > 0 && value <= lower);
  return narrower || at.opens(key, value) ? value : undefined;
}

function narrowedByFalse(at: Screening, key: ComparedKey, value: boolean): boolean | undefined {
  return !value || at.opens(key, value) ? value : undefined;
}

/**
 * A list that widens with each name; those of the lower layers count in any case.
 *
 * @param text what the other names allow
 */
function subset(text = (_names: string) => "") {
  return (at: Screening, key: ComparedKey, value: string[]): string[] => {
    const lower: string[] = at.lower.get(key);
    const others = without(value, lower);
    if (others.length === 0 || at.opens(key, value, text(list(others)))) return value;
    return value.filter((each) => lower.includes(each));
  };
}

/** The fields of an object setting that count; undefined for none. */
function counting<T extends object>(
  value: T,
  counts: (name: string, field: never) => boolean,
): Record<string, unknown> | undefined {
  const fields = Object.entries(value).filter(([name, field]) =>
    !isReserved(name) && counts(name, field as never)
  );
  return fields.length > 0 ? Object.fromEntries(fields) : undefined;
}

/** `tool_permission`: the categories one by one, then `bash_allow` under those that count. */
function toolPermission(
  at: Screening,
  key: "tool_permission",
  { bash_allow, ...categories }: ConfigValues["tool_permission"],
): unknown {
  const counts = counting(categories, (name, action) => {
    const text = at.widened({ [key]: { [name]: action } }, at.modes);
    return text === "" || at.opens(`${key}.${name}`, action, text);
  }) ?? {};
  if (bash_allow === undefined) return counts;
  const base = at.with({ [key]: counts });
  const wider = at.with({ [key]: { ...counts, bash_allow } });
  const found = at.modes.flatMap((mode) => [
    ...widened(policySettings(base, mode), policySettings(wider, mode)),
  ]);
  const text = [...new Set(found)].join("; ");
  const listed = text === "" || at.opens(`${key}.bash_allow`, bash_allow, text);
  return listed ? { ...counts, bash_allow } : counts;
}

/** The settings of the backend; the first that is set gives the opening its name. */
export const BACKEND = ["base_url", "provider", "model"];

/**
 * Provider, address and model count together: alone, a model would be sent to another provider. They are an opening
 * when requests would go to another address than without the worktree's file.
 */
function backend(at: Screening, _key: ComparedKey, value: string): string | undefined {
  const set = BACKEND.filter((each) => at.local.has(each as ConfigKey));
  const named = Object.fromEntries(set.map((each) => [each, at.local.get(each as ConfigKey)]));
  const differs = (each: "provider" | "base_url") =>
    at.local.has(each) && named[each] !== at.lower.get(each);
  const [prefix, ...rest] = String(named.model ?? "").split("/") as [string, ...string[]];
  const other = rest.length > 0 && prefix !== (at.lower.get("provider") || undefined) &&
    [...BUNDLED.flatMap(({ manifest }) => manifest.provides.providers ?? []), ...at.connected()]
      .includes(prefix);
  if (!differs("provider") && !differs("base_url") && !other) return value;
  const to = named.base_url || named.provider || named.model;
  return at.opens(set[0]!, named, `sends the conversation to ${list([to])}`) ? value : undefined;
}

const RANK: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };

/** Phrases for what some settings allow beyond others. */
function* widened(before: PolicySettings, after: PolicySettings): Generator<string> {
  const categories = [...new Set([before, after].flatMap(({ actions }) => Object.keys(actions)))];
  for (const action of ["allow", "ask"] as const) {
    const opened = categories.filter((category) =>
      actionOf(after, category) === action && RANK[action] < RANK[actionOf(before, category)]
    );
    const verb = action === "allow" ? "allows" : "no longer denies";
    if (opened.length > 0) yield `${verb} the categories ${list(opened)}`;
  }
  const bash = actionOf(after, "bash");
  const commands = without(after.bash_allow, before.bash_allow);
  const listed = actionOf(before, "bash") === "allow" && before.bash_allow.length > 0;
  if (bash === "ask" && listed) yield "asks for commands that your list denies";
  const any = actionOf(before, "bash") === "allow" && !listed;
  if (bash === "ask" && commands.length > 0 && !any) {
    yield `runs unasked what begins with ${list(commands)}`;
  }
  if (bash === "allow" && listed) {
    if (after.bash_allow.length === 0) yield "runs any command, whatever your list says";
    else if (commands.length > 0) yield `runs what begins with ${list(commands)}`;
  }
  const lifted = without(before.deny, after.deny);
  if (lifted.length > 0) yield `no longer denies the tools ${list(lifted)}`;
  const narrowed = before.allow.length > 0;
  if (narrowed && (after.allow.length === 0 || without(after.allow, before.allow).length > 0)) {
    yield "offers tools beyond your tools.allow";
  }
}

function without(list: readonly string[], others: readonly string[]): string[] {
  return list.filter((each) => !others.includes(each));
}

/** The opening of a role that widens the lower layers' or the configuration, and of a team that drops a stage's mode. */
export function entryOpening(config: ConfigView, local: LocalEntry): Opening | undefined {
  const { kind, name, entry } = local;
  const wider = kind === "role" ? roleWidening(config, local) : teamWidening(local);
  if (wider.length === 0) return undefined;
  return openingOf(`${kind}:${name}`, `widens ${list([...new Set(wider)])}`, entry);
}

function roleWidening(config: ConfigView, { entry, lower }: LocalEntry): string[] {
  const settings = policySettings(config, "build");
  const fields = (raw: LocalEntry["entry"], field: string) =>
    (raw[field] ?? {}) as Record<string, string>;
  const lowerAction = (field: string, category: string) => {
    const actions = fields(lower, field);
    return actions[category] ?? actions[FOLLOWS.get(category) ?? ""];
  };
  const above = (field: "tool_permission" | "grant_permission") =>
    Object.entries(fields(entry, field)).flatMap(([category, action]) => {
      const set = actionOf(settings, category);
      const before = lowerAction(field, category) ?? lowerAction("tool_permission", category);
      // A role that an agent saved never exceeds the configuration.
      const limits = entry.accepted === false ? [before ?? action] : [set, before ?? set];
      const wider = limits.some((each) => RANK[action as Action] < RANK[each as Action]);
      return wider ? [`${category} (${action})`] : [];
    });
  const asks = Object.entries(fields(entry, "ask_policy")).flatMap(([about, policy]) => {
    const before = fields(lower, "ask_policy")[about] ?? config.get("ask_policy")[about];
    return ASK_POLICIES.indexOf(policy) < ASK_POLICIES.indexOf(before) ? ["ask_policy"] : [];
  });
  const opens = Object.entries(fields(lower, "tool_permission")).some(([category, action]) =>
    RANK[action as Action] < RANK[actionOf(settings, category)]
  );
  const prompt = ["system_prompt", "instructions", "skills"].filter((field) =>
    entry[field] !== undefined
  );
  return [
    ...above("tool_permission"),
    ...above("grant_permission"),
    ...asks,
    ...opens ? prompt : [],
  ];
}

function teamWidening({ entry, lower }: LocalEntry): string[] {
  const stages = (team: LocalEntry["entry"]) =>
    (team.stages as (string | { role: string; mode?: string })[] ?? []).map((stage) =>
      typeof stage === "string" ? { role: stage, mode: "" } : { mode: "", ...stage }
    );
  if (entry.stages === undefined) return [];
  return stages(lower).flatMap(({ role, mode }) => {
    const kept = stages(entry).filter((stage) => stage.role === role);
    const same = kept.length > 0 && kept.every((stage) => stage.mode === mode);
    return mode === "" || same ? [] : [`the stage ${role} without its mode ${mode}`];
  });
}

/** From the widest to the strictest. */
const ASK_POLICIES: string[] = ["auto", "lead", "human", "deny"];

/** The opening of a JSON value. */
export function openingOf(id: string, text: string, value: unknown): Opening {
  return { id, text, digest: () => sha256([canonical(value)]) };
}

/** Files and bytes of the largest plugin that can be accepted by itself. */
const MAX_FILES = 5000;
const MAX_BYTES = 32 * 1024 * 1024;

/** The opening of a plugin: a digest over the relative paths and the bytes of all of its files. */
export function pluginOpening({ name, path }: { name: string; path: string }): Opening {
  const text = `runs the code of ${list([path])} in svc's own process`;
  return { id: `plugin:${name}`, text, digest: () => digestOfFiles(path) };
}

/** Undefined for more than the bounds, and where a link leads out of the folder or a file cannot be read. */
function digestOfFiles(root: string): string | undefined {
  const parts: (string | Uint8Array)[] = [];
  let bytes = 0;
  try {
    const real = Deno.realPathSync(root);
    const visit = (path: string): boolean => {
      const { isDirectory, isFile, isSymlink, size } = Deno.lstatSync(path);
      const name = relative(real, path);
      if (isDirectory) {
        const names = Array.from(Deno.readDirSync(path), ({ name }) => name).sort();
        return names.every((each) => visit(join(path, each)));
      }
      bytes += size;
      if (parts.length >= 3 * MAX_FILES || bytes > MAX_BYTES) return false;
      if (isSymlink) {
        const target = Deno.realPathSync(path);
        if (relative(real, target).startsWith("..")) return false;
        parts.push("link", name, relative(real, target));
        return true;
      }
      if (isFile) parts.push("file", name, Deno.readFileSync(path));
      return isFile;
    };
    return visit(real) ? sha256(parts) : undefined;
  } catch {
    return undefined;
  }
}

/** The digest of parts; each is preceded by its length, so that no two lists have the same bytes. */
function sha256(parts: (string | Uint8Array)[]): string {
  // Loaded on first use: most worktrees have nothing to compare.
  const hash = process.getBuiltinModule("node:crypto").createHash("sha256");
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest("hex");
}

/** JSON with the names of objects in order. */
function canonical(value: unknown): string {
  return JSON.stringify(
    value,
    (_, each) =>
      isObject(each)
        ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => a < b ? -1 : 1))
        : each,
  ) ?? "";
}

type McpServer = ConfigValues["mcp.servers"][number];

function serverText({ transport, url = "", command = "", args = [], env = {} }: McpServer): string {
  if (transport === "http") return `takes tools from ${list([url])} by MCP`;
  const set = Object.keys(env).map((name) => `${name}=...`); // the value may be a key
  return `starts the program ${list([[...set, command, ...args].join(" ")])} as an MCP server`;
}

/** A word without quotes where it has nothing but letters, digits and the characters of ids. */
export function plainly(word: string): string {
  return /^[\w.:@/-]+$/.test(word) ? word : JSON.stringify(word);
}

/** Quoted and shortened: the words come from a file that the operator may not have read. */
export function list(
  words: readonly unknown[],
  quoted = (word: string) => JSON.stringify(word),
): string {
  const shown = words.slice(0, 8).map((word) => {
    const text = typeof word === "string" ? word : JSON.stringify(word);
    const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
    return typeof word === "string" ? quoted(short) : short;
  });
  return shown.join(", ") + (words.length > 8 ? `, and ${words.length - 8} more` : "");
}
