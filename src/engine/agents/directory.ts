import type { Catalog } from "../../catalog/catalog.ts";
import type { Entry } from "../../catalog/layers.ts";

/** Lines of one kind, and characters of one line, that a prompt gets at most. */
const MOST = 40;
const LONGEST = 120;

/**
 * Who can work for an agent, a line each, as a section of its system prompt: so it need not guess names. What
 * is broken is left out. Empty when there is nobody.
 *
 * @param offered which of the tools `delegate` and `team` the agent has
 */
export function directory(
  catalog: Catalog,
  offered: { delegate: boolean; team: boolean },
): string {
  const sections = [
    ...offered.delegate ? lines("Roles, for delegate:", catalog.list("role")) : [],
    ...offered.team ? lines("Teams, for team:", catalog.list("team")) : [],
  ];
  return sections.length === 0 ? "" : `## Who can work for you\n\n${sections.join("\n\n")}`;
}

function lines(heading: string, entries: Entry<{ description: string }>[]): string[] {
  const usable = entries.filter(({ broken }) => broken === undefined);
  if (usable.length === 0) return [];
  const shown = usable.slice(0, MOST).map(({ name, value: { description } }) =>
    `- ${name}${description === "" ? "" : `: ${short(description)}`}`
  );
  const rest = usable.length - shown.length;
  return [[heading, ...shown, ...rest > 0 ? [`- and ${rest} more`] : []].join("\n")];
}

function short(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST).toWellFormed()}...`;
}
