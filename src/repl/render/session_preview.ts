import { oneLine } from "../../platform/terminal.ts";
import type { SessionDocument } from "../../sessions/schema.ts";

/** What a saved session holds (specification 4.7 `/sessions preview`). */
export function previewLines(document: SessionDocument): string[] {
  const { turns, parent_id, sub_sessions, role, created_at, updated_at } = document;
  const kinds = new Map<string, number>();
  const tools = new Map<string, number>();
  for (const part of turns.flatMap(({ parts }) => parts)) {
    count(kinds, part.type);
    if (part.type === "tool") count(tools, part.name);
  }
  const prompt = turns.flatMap(({ parts }) => parts).find(({ type }) => type === "user");
  return [
    `session: ${document.session_name}`,
    `created: ${created_at}, last written: ${updated_at}`,
    `turns: ${turns.length}`,
    `parts: ${counts(kinds)}`,
    `tools: ${counts(tools)}`,
    `role: ${role || "-"}`,
    `parent: ${parent_id || "-"}`,
    `sub-sessions: ${sub_sessions.join(", ") || "-"}`,
    `begins: ${prompt !== undefined && "text" in prompt ? prompt.text.slice(0, 200) : "-"}`,
  ].map(oneLine);
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function counts(found: Map<string, number>): string {
  return Array.from(found, ([name, number]) => `${name} ${number}`).join(", ") || "-";
}
