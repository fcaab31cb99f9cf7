import type { SessionStore } from "./store.ts";

/**
 * Appends a user part of `marker` and `text` to a session (specification 3.2), unless one with this
 * marker was appended at `since` (ISO 8601 UTC) or later. Callers keep others from doing the same at the same time.
 *
 * @returns the text behind the marker in the log; undefined when the session is missing or does not load
 * @throws SvcError `session_write`
 */
export function appendUserOnce(
  sessions: SessionStore,
  name: string,
  { marker, text, since }: { marker: string; text: string; since: string },
): string | undefined {
  const document = sessions.read(name);
  if (document === undefined) return undefined;
  for (const { model, provider, started_at, parts: [part] } of document.turns) {
    // What was appended is a turn that nothing served; no prompt can pass for one.
    if (model !== "" || provider !== "" || started_at < since || part?.type !== "user") continue;
    if (part.text.startsWith(marker)) return part.text.slice(marker.length);
  }
  const session = sessions.open(name);
  try {
    session.appendUser(marker + text);
  } finally {
    session.close();
  }
  return text;
}
