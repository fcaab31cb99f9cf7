import type { Run } from "../engine/run_store.ts";
import type { Workspace } from "../engine/workspace.ts";
import type { ConfigView, RunReport } from "../plugins/api.ts";
import { HttpError } from "./http.ts";
import { runResult } from "./run_events.ts";

/**
 * Rejects a webhook whose origin the operator has not allowed: the server would otherwise send requests wherever a
 * client wants, also to services of this machine.
 *
 * @throws HttpError 403
 */
export function checkWebhook(config: ConfigView, webhook: string): void {
  if (webhook === "") return;
  const url = URL.parse(webhook);
  const web = /^https?:$/.test(url?.protocol ?? "") && url?.username === "" && url.password === "";
  const allowed = [...config.get("serve.webhooks"), config.get("report.webhook")];
  if (web && allowed.some((each) => URL.parse(each)?.origin === url.origin)) return;
  throw new HttpError(403, "the origin of the webhook is not allowed (setting serve.webhooks)");
}

/**
 * Tells the webhook of a run that it has ended, as reports of jobs are sent.
 *
 * @param signal aborts when the server stops
 * @returns false when that ended the report, which the next server repeats
 */
export async function tellWebhook(
  workspace: Workspace,
  run: Run,
  signal: AbortSignal,
): Promise<boolean> {
  const { id, state, reason, error, session, queued_at, started_at, ended_at } = run;
  const result = await runResult(workspace, run);
  const { content = "", data, verified, total_usage: usage = {}, cost = null } = result ?? {};
  const report: RunReport = {
    event: "run.ended",
    run: id,
    state: state as RunReport["state"],
    ...{ reason, error, session, worktree: workspace.paths.worktree },
    ...{ queued_at, started_at, ended_at, content, usage, cost },
    ...data !== undefined && { data },
    ...verified !== undefined && { verified },
  };
  const { reportRunEnd } = await import("../jobs/report.ts");
  const services = { workspace, report: workspace.reporters() };
  return await reportRunEnd(services, report, run.request.webhook, signal);
}
