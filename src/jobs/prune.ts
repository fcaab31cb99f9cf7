import type { Workspace } from "../engine/workspace.ts";
import type { RunStore } from "../engine/run_store.ts";
import { Pace } from "../platform/clock.ts";
import { type Pruned, pruneSessions, type Retention } from "../sessions/retention.ts";
import { jobContext } from "./context.ts";

/**
 * Deletes the sessions of a worktree, with the records of the server's runs in them, that its settings, and the fields of its jobs, no longer keep. Sessions with a
 * question that waits for an answer stay, and those that a job continues.
 *
 * @param given takes the place of the settings and of the jobs' fields
 * @returns undefined when nothing limits how long sessions are kept
 */
export async function pruneWorktree(
  workspace: Workspace,
  { dry_run, given }: { dry_run?: boolean; given?: Retention } = {},
): Promise<Pruned[] | undefined> {
  const { sessions, asks, config, clock, spending } = workspace;
  if (!dry_run) {
    sessions.tidy();
    const shared = await workspace.store?.open();
    await shared?.records.clean();
    await shared?.requests.clean(spending.ledger.firstKept());
  }
  const jobs = jobContext(workspace).register.list();
  const retention = given ?? {
    keep_days: config.get("sessions.keep_days"),
    keep_count: config.get("sessions.keep_count"),
  };
  const own = new Map((given === undefined ? jobs : []).map((job) => [job.name, {
    keep_days: job.keep_days ?? retention.keep_days,
    keep_count: job.keep_count ?? retention.keep_count,
  }]));
  const limited = [retention, ...own.values()].some(({ keep_days, keep_count }) =>
    keep_days > 0 || keep_count > 0
  );
  if (!limited) return undefined;
  const { RunStore } = await import("../engine/run_store.ts");
  const { paths: { state, user }, store, warn } = workspace;
  const runs = new RunStore({ state, user, clock, warn, store });
  await runs.refresh();
  const kept = new Set([
    ...runs.open().map((id) => runs.get(id)?.session ?? ""),
    ...asks.list("pending").map(({ origin }) => origin),
    ...jobs.flatMap(({ session, running }) => [session, running?.session ?? ""]),
  ]);
  const request = { retention, jobs: own, kept, now: clock.now(), pace: new Pace(), dry_run };
  const pruned = await pruneSessions(sessions, request);
  if (!dry_run) await pruneRuns(runs, workspace, retention);
  return pruned;
}

/** Deletes the records of ended runs whose session is gone, or that never had one and are old. */
async function pruneRuns(
  runs: RunStore,
  { sessions, clock }: Workspace,
  { keep_days }: Retention,
): Promise<void> {
  const names = new Set(await sessions.names());
  const before = new Date(clock.now() - keep_days * 86_400_000).toISOString();
  await runs.prune(({ session, ended_at }) =>
    session === "" ? keep_days === 0 || ended_at >= before : names.has(session)
  );
}
