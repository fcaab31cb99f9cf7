import { join } from "node:path";
import { fileStamp } from "../../platform/files.ts";
import type { ConsoleContext } from "../console.ts";
import type { ConsolePart, Topic } from "./page.ts";

/** Milliseconds between two looks at the files, which other processes change too. */
const INTERVAL = 1000;
/** Looks after which a comment keeps the connection open. */
const SILENT = 15;

/**
 * The event stream of a page: `change` with the topics that changed, separated by spaces. The page fetches its
 * regions anew.
 *
 * @param follows the session of the topic `session`
 */
export function liveEvents(
  context: ConsoleContext,
  { follows, signal, parts }: { follows: string; signal: AbortSignal; parts: ConsolePart[] },
): Response {
  const { clock } = context.workspace;
  const encoder = new TextEncoder();
  const gone = new AbortController();
  const ended = AbortSignal.any([signal, gone.signal, context.stopping]);
  const events = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (text: string) => controller.enqueue(encoder.encode(text));
      const look = () =>
        Object.assign(stamps(context, follows), ...parts.map(({ stamps }) => stamps?.()));
      let known: Record<string, string> = look();
      send(": the page is live\n\n");
      try {
        for (let silent = 0; !ended.aborted; silent++) {
          await clock.sleep(INTERVAL, ended);
          const now: Record<string, string> = look();
          const changed = Object.keys(now).filter((topic) => now[topic] !== known[topic]);
          known = now;
          if (changed.length > 0) send(`event: change\ndata: ${changed.join(" ")}\n\n`);
          else if (silent >= SILENT) send(": still here\n\n");
          if (changed.length > 0 || silent >= SILENT) silent = 0;
        }
      } catch (error) {
        if (!ended.aborted) throw error;
      }
      if (!gone.signal.aborted) controller.close();
    },
    cancel: () => gone.abort(),
  });
  return new Response(events, { headers: { "content-type": "text/event-stream" } });
}

/** What tells that a part of the worktree changed, without reading it. */
function stamps(
  { workspace: { paths, sessions, asks }, turns, runs: accepted, jobs }: ConsoleContext,
  follows: string,
): Record<Exclude<Topic, "fleet">, string> {
  const runs = turns.list().map(({ id, status, agents }) =>
    `${id}${status}${agents.map(({ status }) => status)}`
  );
  const open = accepted.store.open().map((id) =>
    fileStamp(join(paths.state, "runs", `${id}.json`))
  );
  const [newest] = sessions.newest();
  return {
    asks: fileStamp(asks.path),
    jobs: fileStamp(jobs.register.path),
    sessions: `${newest?.name} ${newest?.updated}`,
    session: sessions.stamp(follows),
    runs: [...runs, ...open].join(),
    trust: fileStamp(join(paths.user, "trust.json")),
  };
}
