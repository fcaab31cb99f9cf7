import type { Pace } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import type { SessionSummary } from "./look.ts";
import type { SessionStore } from "./store.ts";

/** How long sessions are kept. 0 means no limit. */
export interface Retention {
  /** Days since the last write. */
  keep_days: number;
  /** The newest sessions, of each job and of everything that no job ran. */
  keep_count: number;
}

export interface PruneRequest {
  retention: Retention;
  /** The retention of jobs that have their own. */
  jobs: ReadonlyMap<string, Retention>;
  /** Sessions that stay with their whole tree: those with a parked ask, and those that a job continues. */
  kept: ReadonlySet<string>;
  /** Milliseconds since the epoch. */
  now: number;
  pace: Pace;
  /** Deletes nothing. */
  dry_run?: boolean;
}

/** A session that was deleted. */
export interface Pruned {
  name: string;
  bytes: number;
  updated_at: string;
  reason: "age" | "count" | "parent";
}

const DAY = 86_400_000;

/**
 * Deletes the sessions that the retention no longer keeps, each with the sessions that it spawned. A session in
 * which a turn runs stays, and so does one that cannot be read.
 */
export async function pruneSessions(
  sessions: SessionStore,
  { retention, jobs, kept, now, pace, dry_run = false }: PruneRequest,
): Promise<Pruned[]> {
  const all = new Map<string, SessionSummary>();
  for (const summary of await (await sessions.index({})).summaries()) {
    if (summary.created_at !== "") all.set(summary.name, summary); // others cannot be read
  }
  const trees = Map.groupBy(all.values(), ({ name }) => rootOf(name, all));
  const groups = Map.groupBy(trees, ([root]) => all.get(root)!.job);
  const pruned: Pruned[] = [];
  for (const [job, group] of groups) {
    const { keep_days, keep_count } = jobs.get(job) ?? retention;
    const written = (tree: SessionSummary[]) =>
      tree.reduce((newest, { updated_at }) => updated_at > newest ? updated_at : newest, "");
    const newest = group.map(([root, tree]) => ({ root, tree, updated_at: written(tree) }))
      .sort((one, other) => one.updated_at > other.updated_at ? -1 : 1);
    for (const [place, { root, tree, updated_at }] of newest.entries()) {
      const old = keep_days > 0 && now - Date.parse(updated_at) > keep_days * DAY;
      const many = keep_count > 0 && place >= keep_count;
      if (!old && !many || tree.some(({ name, running }) => running || kept.has(name))) continue;
      const reason = old ? "age" : "count";
      // The root last: until then the rest is found by it.
      for (const { name, bytes, updated_at } of tree.sort((one) => one.name === root ? 1 : -1)) {
        await pace.turn();
        if (!dry_run && !await removed(sessions, name)) break;
        pruned.push({ name, bytes, updated_at, reason: name === root ? reason : "parent" });
      }
    }
  }
  return pruned;
}

/** False when a turn has begun in the session meanwhile. */
async function removed(sessions: SessionStore, name: string): Promise<boolean> {
  try {
    return await sessions.delete(name);
  } catch (error) {
    if (error instanceof SvcError && error.code === "session_busy") return false;
    throw error;
  }
}

/** The first ancestor of a session that still exists. */
function rootOf(name: string, all: ReadonlyMap<string, SessionSummary>): string {
  const seen = new Set([name]);
  for (let at = name;;) {
    const parent = all.get(at)!.parent_id;
    if (!all.has(parent) || seen.has(parent)) return at;
    seen.add(at = parent);
  }
}
