import { join } from "node:path";
import { errorMessage } from "../../platform/error.ts";
import { fileStamp } from "../../platform/files.ts";
import type { ConsoleContext } from "../console.ts";
import { EventStream } from "../event_stream.ts";
import type { ConsolePart, Topic } from "./page.ts";

/** Milliseconds between two looks at the files, which other processes change too. */
const INTERVAL = 1000;

/**
 * The event stream of a page: `change` with the topics that changed. The page fetches its regions anew.
 *
 * @param follows the session of the topic `session`
 */
export function liveEvents(
  context: ConsoleContext,
  { follows, parts }: { follows: string; parts: ConsolePart[] },
): Response {
  const { clock } = context.workspace;
  const stream = new EventStream(clock);
  stream.open();
  const ended = AbortSignal.any([stream.gone, context.stopping]);
  const look = async (): Promise<Record<string, string>> =>
    Object.assign(await stamps(context, follows), ...parts.map(({ stamps }) => stamps?.()));
  const tell = async () => {
    for (let known = await look();;) {
      await clock.sleep(INTERVAL, ended);
      const now = await look();
      const changed = Object.keys(now).filter((topic) => now[topic] !== known[topic]);
      known = now;
      if (changed.length > 0) stream.send("change", changed);
    }
  };
  tell().catch((error) => {
    if (!ended.aborted) {
      context.workspace.warn(`A page of the console is not live: ${errorMessage(error)}`);
    }
  }).finally(() => stream.close());
  return stream.response;
}

/** What tells that a part of the worktree changed, without reading it. */
async function stamps(
  { workspace: { paths, sessions, asks }, turns, runs: accepted, jobs }: ConsoleContext,
  follows: string,
): Promise<Record<Exclude<Topic, "fleet">, string>> {
  const runs = turns.list().map(({ id, status, agents }) =>
    `${id}${status}${agents.map(({ status }) => status)}`
  );
  const open = accepted.store.open().map((id) =>
    fileStamp(join(paths.state, "runs", `${id}.json`))
  );
  await sessions.current(follows);
  const newest = await sessions.lastWritten();
  return {
    asks: fileStamp(asks.path),
    jobs: fileStamp(jobs.register.path),
    sessions: newest,
    session: `${sessions.stamp(follows)} ${follows && writtenIn(accepted, follows)}`,
    runs: [...runs, ...open].join(),
    trust: fileStamp(join(paths.user, "trust.json")),
  };
}

/** Differs when a run of this server has written more in a session. */
function writtenIn(runs: ConsoleContext["runs"], session: string): string {
  const live = runs.store.open().map((id) => ({ id, events: runs.live(id) }));
  return live.filter(({ id, events }) => events && runs.store.get(id)?.session === session)
    .map(({ events }) => events!.stamp).join();
}
