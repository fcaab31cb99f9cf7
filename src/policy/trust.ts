import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { type ConfigKey, type ConfigValues, settingOf } from "../config/keys.ts";
import { merge } from "../config/key_path.ts";
import type { Clock } from "../platform/clock.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import type { Action, ConfigView } from "../plugins/api.ts";
import { actionOf } from "./policy.ts";
import { type PolicySettings, policySettings } from "./settings.ts";

const RANK: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };

/** Worktrees in `worktrees.json`; the ones seen longest ago are dropped. */
const MAX_WORKTREES = 500;

export interface TrustRequest {
  config: Config;
  /** Names of the local plugins that will be imported. */
  plugins: string[];
  /** The addresses that the user has connected. */
  known: () => string[];
  worktree: string;
  /** `~/.config/svc` */
  user: string;
  clock: Clock;
  warn: (message: string) => void;
}

/**
 * Warns of the openings of a worktree when they differ from those of the last warning, which
 * `worktrees.json` in the user's directory holds. Where that file cannot be written, as in a container,
 * every start warns.
 *
 * An opening is something that the worktree's own files allow and the defaults and the user's settings do
 * not: local plugins, and settings of `.svc/config.json`. A cloned repository may bring such files along.
 * Flags of this run come from the operator and are not openings.
 */
export async function trustNotice(request: TrustRequest): Promise<void> {
  const { worktree, user, clock, warn } = request;
  const found = openings(request);
  if (found.length === 0) return;
  const file = new RegistryFile(join(user, "worktrees.json"), clock, warn);
  const seen = entries(file.read()).find(([path]) => path === worktree)?.[1];
  if (JSON.stringify(seen) === JSON.stringify(found)) return;
  warn(
    `${join(worktree, ".svc")} ${found.join("; ")}. This is said once. If it is none of your ` +
      "doing, look at that folder before you let an agent work here.",
  );
  try {
    await file.update((value) => {
      const others = entries(value).filter(([path]) => path !== worktree);
      return Object.fromEntries([...others.slice(1 - MAX_WORKTREES), [worktree, found]]);
    });
  } catch {
    // The next start warns again.
  }
}

function entries(value: unknown): [string, unknown][] {
  return Array.isArray(value) ? [] : Object.entries(value ?? {});
}

/** The openings, one phrase each. */
function openings({ config, plugins, known }: TrustRequest): string[] {
  const own = withoutLocal(config);
  const before = policySettings(own, own.get("mode"));
  const after = policySettings(config, config.get("mode"));
  const found = [...widened(before, after)];
  if (plugins.length > 0) found.unshift(`runs code of its own (plugins ${list(plugins)})`);
  const servers = config.origin("mcp.servers") === "local" ? config.get("mcp.servers") : [];
  const theirs = servers.filter((each) => !own.get("mcp.servers").some(same(each)));
  const programs = theirs.filter(({ transport }) => transport !== "http");
  const addresses = theirs.filter(({ transport }) => transport === "http");
  if (programs.length > 0 && actionOf(after, "mcp") !== "deny") {
    found.push(`starts the programs ${list(programs.map(commandLine))} as MCP servers`);
  }
  if (addresses.length > 0 && actionOf(after, "mcp") !== "deny") {
    found.push(`takes tools from ${list(addresses.map(({ url = "" }) => url))} by MCP`);
  }
  const address = config.origin("base_url") === "local" ? config.get("base_url") : "";
  if (address !== "" && !isLoopback(address) && !known().includes(address)) {
    found.push(`sends the conversation to ${list([address])}`);
  }
  const hook = config.origin("report.webhook") === "local" ? config.get("report.webhook") : "";
  if (hook !== "" && !isLoopback(hook)) {
    // The host only: such addresses carry keys.
    const host = URL.canParse(hook) ? new URL(hook).host : "an address that is none";
    found.push(`sends reports of job runs to ${list([host])}`);
  }
  found.push(...searches(config));
  return found;
}

/** New addresses that searches and prompts are sent to, and private hosts that web tools may reach. */
function* searches(config: Config): Generator<string> {
  const own = withoutLocal(config);
  const asked = (view: ConfigView): string =>
    view.get("web.search_url") || view.get("web.search_engine");
  if (asked(config) !== asked(own)) yield `sends web searches to ${list([asked(config)])}`;
  if (config.get("web_search") && !own.get("web_search")) yield "searches the web for every prompt";
  const hosts = without(config.get("web.allow_private"), own.get("web.allow_private"));
  if (hosts.length > 0) {
    yield `lets web tools reach ${list(hosts)} in a private network`;
  }
}

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
  if (bash === "ask" && commands.length > 0) {
    yield `runs unasked what begins with ${list(commands)}`;
  }
  if (bash === "allow" && before.bash_allow.length > 0) {
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

/** The configuration without `.svc/config.json`. */
function withoutLocal(config: Config): ConfigView {
  return {
    get(key) {
      if (config.origin(key) === "override") return config.get(key);
      const fallback = settingOf(key as ConfigKey).default;
      const own = config.getFrom("global", key);
      return own === undefined ? fallback : merge(fallback, own);
    },
  };
}

function without(list: string[], others: string[]): string[] {
  return list.filter((each) => !others.includes(each));
}

type McpServer = ConfigValues["mcp.servers"][number];

function same(one: McpServer): (other: McpServer) => boolean {
  return (other) => JSON.stringify(other) === JSON.stringify(one);
}

function commandLine({ command = "", args = [], env = {} }: McpServer): string {
  const set = Object.keys(env).map((name) => `${name}=...`); // the value may be a key
  return [...set, command, ...args].join(" ");
}

/** Quoted and shortened: the words come from a file that the operator may not have read. */
function list(words: string[]): string {
  const shown = words.slice(0, 8).map((word) => JSON.stringify(word.slice(0, 80)));
  return shown.join(", ") + (words.length > 8 ? `, and ${words.length - 8} more` : "");
}

function isLoopback(address: string): boolean {
  const host = URL.canParse(address) ? new URL(address).hostname : "";
  return host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
