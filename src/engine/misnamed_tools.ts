import { nearest } from "../platform/error.ts";
import type { PolicySettings } from "../policy/settings.ts";
import type { ToolRegistry } from "../tools/registry.ts";

/**
 * What `tools.deny` and `tools.allow` probably mean where they name no tool, one sentence each: a denial with a
 * misspelt name denies nothing. A name that is near no tool's may be that of one that is not loaded here, and
 * one with a dot that of an MCP server's.
 */
export function misnamedTools(
  { allow, deny }: Pick<PolicySettings, "allow" | "deny">,
  tools: ToolRegistry,
): string[] {
  const known = tools.list().flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  const warnings = (setting: string, names: string[], effect: string) =>
    names.filter((name) => !name.includes(".") && tools.find(name) === undefined)
      .flatMap((name) => {
        const meant = nearest(name, known);
        const shown = JSON.stringify(name.slice(0, 80));
        return meant === undefined
          ? []
          : [`There is no tool ${shown}, so ${setting} ${effect}; did you mean ${meant}?`];
      });
  return [
    ...warnings("tools.deny", deny, "denies nothing with it"),
    ...warnings("tools.allow", allow, "allows nothing with it"),
  ];
}
