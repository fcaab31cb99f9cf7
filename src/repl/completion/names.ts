import { CONFIG_KEYS } from "../../config/keys.ts";
import { COMMANDS } from "../commands/table.ts";
import type { Source } from "../commands/command.ts";
import { EVERYTHING } from "../conversation.ts";
import { STEPS } from "../focus.ts";
import type { Shell } from "../shell.ts";

/** The names of a kind that there are now. */
export async function names(
  source: Exclude<Source, "files">,
  { workspace, conversation }: Shell,
): Promise<readonly string[]> {
  const { config, sessions, asks } = workspace;
  switch (source) {
    case "commands":
      return Object.keys(COMMANDS);
    case "keys":
      return CONFIG_KEYS;
    case "modes":
      return [...new Set(["build", "plan", ...Object.keys(config.get("modes"))])];
    case "sessions":
      return sessions.newest().map(({ name }) => name);
    case "asks":
      return asks.list("pending").map(({ id }) => String(id));
    case "jobs": {
      const { jobContext } = await import("../../jobs/context.ts");
      return jobContext(workspace).register.list().map(({ name }) => name).sort();
    }
    case "runs":
      return [...handles(conversation.runs.list()), ...STEPS, "log"];
    case "targets":
      return [
        ...handles(conversation.runs.list()),
        ...new Set(conversation.runs.list().map(({ role }) => role).filter((role) => role !== "")),
        ...sessions.newest().map(({ name }) => name),
      ];
  }
  const { plugins } = await workspace.load(EVERYTHING);
  switch (source) {
    case "providers":
      return [...workspace.providers.names(), ...workspace.connections.list().keys()];
    case "models":
      return workspace.models.list().map(({ provider, model }) => `${provider}/${model}`);
    case "tools":
      return workspace.tools.list().map(({ name }) => name);
    case "plugins":
      return plugins.map(({ name }) => name);
    case "roles":
    case "teams":
    case "skills": {
      const kind = source.slice(0, -1) as "role" | "team" | "skill";
      return (await workspace.catalog()).list(kind).map(({ name }) => name);
    }
  }
}

function handles(runs: readonly { id: number; session_id: string }[]): string[] {
  return runs.flatMap(({ id, session_id }) => [
    `#${id}`,
    ...session_id === "" ? [] : [`#${session_id}`],
  ]);
}
