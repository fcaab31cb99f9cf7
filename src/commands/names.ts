import type { Workspace } from "../engine/workspace.ts";
import type { Suggestion } from "./help.ts";
import { string, type Value } from "./options.ts";

/** Kinds of names that completion looks up in a worktree. */
export type NameKind =
  | "agents"
  | "asks"
  | "jobs"
  | "keys"
  | "logs"
  | "models"
  | "modes"
  | "plugins"
  | "connections"
  | "providers"
  | "roles"
  | "servers"
  | "sessions"
  | "skills"
  | "teams"
  | "tools"
  | SessionNameKind;

/** Kinds that only a terminal session has: its commands, its runs, and the targets of `--run`. */
export type SessionNameKind = "commands" | "runs" | "targets";

/** Candidates that are offered at most. */
const MOST = 200;

/** A name; completion offers the names of its kind. */
export function nameOf(names: NameKind, metavar = "NAME"): Value<string> {
  return { ...string(metavar), names };
}

/** A path; completion offers files and folders. */
export function pathOf(metavar: "FILE" | "DIR" | "SOURCE"): Value<string> {
  const files = metavar === "FILE" ? "file" : metavar === "DIR" ? "directory" : "any";
  return { ...string(metavar), files };
}

/** Replaces the kinds among suggestions by the names that begin with `word`. */
export async function lookUp(
  suggestions: readonly Suggestion[],
  word: string,
  names: (kind: NameKind) => Promise<readonly string[]>,
): Promise<Exclude<Suggestion, { names: NameKind }>[]> {
  const found = [];
  for (const suggestion of suggestions) {
    if (!("names" in suggestion)) {
      found.push(suggestion);
      continue;
    }
    const { before } = suggestion;
    const start = word.slice(before.length).toLowerCase();
    found.push(
      ...(await names(suggestion.names))
        .filter((name) => name.toLowerCase().startsWith(start)).slice(0, MOST)
        .map((name) => ({ text: before + name })),
    );
  }
  return found;
}

/** The names of a kind in a worktree. */
export async function namesOf(
  kind: Exclude<NameKind, SessionNameKind>,
  workspace: Workspace,
): Promise<readonly string[]> {
  switch (kind) {
    case "keys":
      return (await import("../config/keys.ts")).CONFIG_KEYS;
    case "modes":
      return [...new Set(["build", "plan", ...Object.keys(workspace.config.get("modes"))])];
    case "sessions":
      return (await workspace.sessions.index({ limit: 1000 })).names;
    case "asks":
      return workspace.asks.list("pending").map(({ id }) => String(id));
    case "servers":
      return workspace.config.get("mcp.servers").map(({ name }) => name);
    case "agents": {
      const { Roster } = await import("../fleet/roster.ts");
      const agents = new Roster(workspace.paths.state, workspace.trust, () => {}).read()?.agents ??
        [];
      return agents.map(({ name }) => name);
    }
    case "jobs": {
      const { jobContext } = await import("../jobs/context.ts");
      return jobContext(workspace).register.list().map(({ name }) => name).sort();
    }
    case "models":
      return workspace.models.list().map(({ provider, model }) => `${provider}/${model}`);
    case "logs":
      return (await import("./logs.ts")).logNames(workspace.paths.state);
    case "connections":
      return [...workspace.connections.list().keys()];
    case "providers":
      await workspace.load({ providers: "all" });
      return [
        ...new Set([...workspace.providers.names(), ...workspace.connections.list().keys()]),
      ];
    case "tools":
      await workspace.load({ tools: "all" });
      return workspace.tools.list().map(({ name }) => name);
    case "plugins": {
      const { discoverPlugins } = await import("../plugins/discovery.ts");
      return (await discoverPlugins(workspace.discovery)).map(({ name }) => name);
    }
    case "roles":
    case "teams":
    case "skills":
      await workspace.load({ [kind]: "all" });
      return (await workspace.catalog()).list(kind.slice(0, -1) as "role" | "team" | "skill")
        .map(({ name }) => name);
  }
}
