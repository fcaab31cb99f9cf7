import * as z from "zod/mini";
import type { JSX } from "hono/jsx/jsx-runtime";
import { changesOf, type FileChange } from "../../commands/changes.ts";
import { shortened } from "../../commands/format.ts";
import { digestWithRuns, type PastRun, tokensOf } from "../../jobs/digest.ts";
import { outcomeText } from "../../jobs/schema.ts";
import { stripControl } from "../../platform/terminal.ts";
import type { TurnResult } from "../../engine/events.ts";
import type { RunStore } from "../../engine/run_store.ts";
import { isSince } from "../../jobs/schedule.ts";
import type { JobsDigest } from "../../plugins/api.ts";
import { plural } from "../../platform/text.ts";
import type { Part } from "../../sessions/schema.ts";
import type { ConsoleContext } from "../console.ts";
import { writtenDuration } from "../http.ts";
import { Figures, Periods, TimeLine } from "./charts.tsx";
import {
  Badge,
  Count,
  Duration,
  Empty,
  Facts,
  Money,
  Pager,
  Section,
  Time,
} from "./components.tsx";
import type { ConsolePart } from "./page.ts";
import { pageNumber, sessionPath } from "./sessions.tsx";

/** How far back the page looks; the second is shown first. */
const PERIODS = ["12h", "24h", "3d", "7d"];
/** Runs on a page. */
const PAGE = 25;
/** Accepted runs that are looked at. */
const ACCEPTED = 500;
/** Characters of an answer. */
const CONTENT = 300;
/** Bytes of session logs that a page reads for its changes. */
const LOGS = 4_000_000;
/** Lines of a file's diff. */
const LINES = 200;

/** What was done since a time: every run of a job or a client on one time line. */
export function nightPart({ workspace, jobs, runs: { store } }: ConsoleContext): ConsolePart {
  return {
    pages: [{
      path: "/console/night",
      nav: "Last night",
      async show({ query }) {
        const { data: seconds = 86_400 } = z.safeParse(writtenDuration, query.get("since"));
        const until = workspace.clock.now();
        const since = until - seconds * 1000;
        const night = await digestWithRuns(jobs, [], since);
        const { digest } = night;
        const runs: NightRun[] = [...night.runs, ...acceptedSince(store, since)]
          .sort((one, other) => one.finished_at < other.finished_at ? 1 : -1);
        const asks = workspace.asks.list("pending").length;
        const pages = Math.max(1, Math.ceil(runs.length / PAGE));
        const at = pageNumber(query, pages);
        const checks = new Map(jobs.register.list().map(({ name, verify }) => [name, verify]));
        const shown = runs.slice((at - 1) * PAGE, at * PAGE).map((run) =>
          run.id === undefined ? { ...run, verify: checks.get(run.job) } : withResult(store, run)
        );
        const changes = await changesByRun(workspace.sessions, shown);
        return {
          title: "Last night",
          body: (
            <>
              <Periods
                options={PERIODS.map((period) => ({
                  href: `/console/night?since=${period}`,
                  text: period,
                  current: period === (query.get("since") ?? PERIODS[1]),
                }))}
              />
              <Summary digest={digest} runs={runs} asks={asks} />
              <Section id="runs" title="Runs" count={runs.length} live={["jobs", "runs"]}>
                {runs.length === 0 ? <Empty>Nothing ran in this time.</Empty> : (
                  <>
                    <Line runs={runs} since={since} until={until} />
                    <ol class="timeline">
                      {shown.map((run) => <RunView run={run} changes={changes.get(run)} />)}
                    </ol>
                    <Pager path="/console/night" query={query} at={at} pages={pages} />
                  </>
                )}
              </Section>
            </>
          ),
        };
      },
    }],
  };
}

/** A run of a job, or one that the server accepted from a client. */
interface NightRun extends PastRun {
  /** Of an accepted run. */
  id?: string;
  prompt?: string;
  /** The command that checks the work. */
  verify?: string;
}

/** The accepted runs that ended since a time, without their results. Those of hooks are runs of jobs. */
function acceptedSince(store: RunStore, since: number): NightRun[] {
  const from = new Date(since).toISOString();
  return store.list({ limit: ACCEPTED, states: ["done", "failed", "cancelled"] })
    .filter(({ ended_at, request }) => request.hook === undefined && isSince(ended_at, from))
    .map(({ id, state, reason, error, session, started_at, ended_at, queued_at, request }) => ({
      ...{ id, session, job: "", attempts: 1, tokens: 0, cost: 0, denied: [], content: "" },
      prompt: request.prompt,
      verify: request.task.verify,
      status: state === "done" ? "verified" : "failed",
      reason: error || reason || (state === "done" ? "" : state),
      started_at: started_at || queued_at,
      finished_at: ended_at,
      duration: (Date.parse(ended_at) - Date.parse(started_at || ended_at)) / 1000,
    }));
}

/** An accepted run with what its last turn used, and how its work was checked. */
function withResult(store: RunStore, run: NightRun): NightRun {
  const result = store.get(run.id!)?.result as Partial<TurnResult> | undefined;
  if (result === undefined) return run;
  const { total_usage: usage, cost = null, verified, denied = [] } = result;
  return { ...run, tokens: tokensOf(usage), cost, checked: verified === true, denied };
}

/** The files that each run changed, with those of its sub-agents; none for runs with too long logs. */
async function changesByRun(
  sessions: ConsoleContext["workspace"]["sessions"],
  runs: NightRun[],
): Promise<Map<NightRun, FileChange[]>> {
  const found = new Map<NightRun, FileChange[]>();
  let left = LOGS;
  for (const run of runs) {
    const parts: Part[] = [];
    const names = new Set([run.session]);
    let used = 0;
    for (const name of names) {
      await sessions.current(name);
      used += sessions.bytes(name);
      if (used > left) break;
      const log = sessions.read(name);
      for (const { started_at, ended_at, parts: some } of log?.turns ?? []) {
        if (started_at > run.finished_at || ended_at !== "" && ended_at < run.started_at) continue;
        for (const part of some) parts.push(part);
      }
      for (const sub of log?.sub_sessions ?? []) names.add(sub);
    }
    if (used > left) continue;
    left -= used;
    found.set(run, changesOf(parts));
  }
  return found;
}

function Summary({ digest, runs, asks }: {
  digest: JobsDigest;
  runs: PastRun[];
  asks: number;
}): JSX.Element {
  const { total, failing, blocked, stuck, waiting } = digest;
  const failed = runs.filter(({ status }) => status === "failed").length;
  const refused = digest.denied.reduce((sum, { times }) => sum + times, 0);
  const names = (some: { job: string }[]) => [...new Set(some.map(({ job }) => job))];
  const troubles: [string, string[]][] = [
    ["Failing", names(failing)],
    ["Blocked", names(blocked)],
    ["Running for several intervals", stuck],
    ["Waiting for approval", waiting],
  ];
  return (
    <Section id="summary" title="Summary" live={["jobs", "asks"]}>
      <Figures
        figures={[
          ["Runs", <Count of={runs.length} />],
          ["Failed", <Count of={failed} />],
          ["Cost", <Money cost={total.cost} />],
          ["Tokens", <Count of={total.tokens} />],
          ["Refused calls", <Count of={refused} />],
          [
            "Questions",
            asks === 0 ? <Count of={0} /> : (
              <a href="/console">
                <Count of={asks} />
              </a>
            ),
          ],
        ]}
      />
      <Facts
        facts={troubles.filter(([, names]) => names.length > 0)
          .map(([what, names]) => [what, <JobLinks names={names} />])}
      />
    </Section>
  );
}

/** Links to jobs; the last of many are counted. */
function JobLinks({ names }: { names: string[] }): JSX.Element {
  const shown = names.slice(0, 20);
  return (
    <>
      {shown.map((name, index) => (
        <>
          {index > 0 && ", "}
          <a href={`/console/jobs/${name}`}>{name}</a>
        </>
      ))}
      {names.length > shown.length && ` and ${names.length - shown.length} more`}
    </>
  );
}

/** Runs that the time line draws. */
const DRAWN = 1000;

function Line({ runs, since, until }: {
  runs: PastRun[];
  since: number;
  until: number;
}): JSX.Element {
  const failed = runs.filter(({ status }) => status === "failed").length;
  const at = (time: number) => new Date(time).toISOString();
  return (
    <figure>
      <TimeLine
        since={since}
        until={until}
        label={`${runs.length} runs, of which ${failed} failed. The list below has each of them.`}
        spans={runs.slice(0, DRAWN).map((run) => ({
          from: Date.parse(run.started_at),
          to: Date.parse(run.finished_at),
          tone: toneOf(run),
          label: `${run.job}, ${outcomeText(run)}`,
        }))}
      />
      <div class="axis">
        <Time at={at(since)} />
        <Time at={at((since + until) / 2)} />
        <span class="quiet">now</span>
      </div>
    </figure>
  );
}

/** A run that ended without a check is neither good nor bad. */
function toneOf({ status, checked }: PastRun) {
  return status === "failed" ? "bad" : checked ? "good" : "active";
}

function RunView({ run, changes }: {
  run: NightRun;
  changes: FileChange[] | undefined;
}): JSX.Element {
  const { job, prompt = "", session, status, checked, verify, reason, content, attempts, denied } =
    run;
  const link = sessionPath(session);
  return (
    <li class={toneOf(run)}>
      <div class="head">
        <Time at={run.started_at} />
        <h3>
          {job === ""
            ? <a href={link}>{stripControl(shortened(prompt, 80))}</a>
            : <a href={`/console/jobs/${job}`}>{job}</a>}
        </h3>
        <Badge tone={toneOf(run)}>{outcomeText({ status, checked })}</Badge>
        <span class="quiet small">
          <Duration seconds={run.duration} />, cost <Money cost={run.cost} />,{" "}
          <Count of={run.tokens} /> tokens{attempts > 1 && `, ${attempts} attempts`}
        </span>
        {session !== "" && <a class="small" href={link}>Session</a>}
      </div>
      {checked && verify !== undefined && (
        <p class="quiet small">
          Checked by <code>{stripControl(shortened(verify, 200))}</code>
        </p>
      )}
      {reason !== "" && <p class="error">{stripControl(reason)}</p>}
      {content !== "" && <p class="prose">{stripControl(brief(content))}</p>}
      {changes === undefined
        ? (
          <p class="small">
            <a href={link}>The changes are in the session</a>
          </p>
        )
        : changes.length > 0 && <Changes changes={changes} id={`changes-${session}`} />}
      {denied.length > 0 && (
        <details id={`refused-${session}`}>
          <summary>{plural(denied.length, "refused call")}</summary>
          <ul>
            {denied.map(({ tool, reason }) => (
              <li>
                <code>{stripControl(tool)}</code>: {stripControl(reason)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

/** The files that were changed, with their diffs folded. */
export function Changes({ changes, id }: { changes: FileChange[]; id: string }): JSX.Element {
  const total = (of: "added" | "removed") => changes.reduce((sum, change) => sum + change[of], 0);
  return (
    <details id={id}>
      <summary>
        {plural(changes.length, "changed file")}{" "}
        <Lines added={total("added")} removed={total("removed")} />
      </summary>
      {changes.map(({ path, added, removed, lines }) => (
        <>
          <p class="small mono">
            {path} <Lines added={added} removed={removed} />
          </p>
          <Diff lines={lines} path={path} />
        </>
      ))}
    </details>
  );
}

function Lines({ added, removed }: { added: number; removed: number }): JSX.Element {
  return (
    <span class="number">
      <ins>+{added}</ins> <del>−{removed}</del>
    </span>
  );
}

/** The lines of a diff. */
export function Diff({ lines, path }: { lines: string[]; path: string }): JSX.Element {
  const shown = lines.slice(0, LINES);
  return (
    <pre class="block diff" tabindex={0} role="group" aria-label={`Changes of ${path}`}>
      {shown.map((line) => {
        const kind = { "+": "added", "-": "removed" }[line[0] ?? ""];
        return <span class={kind}>{`${shortened(line, 400)}\n`}</span>;
      })}
      {lines.length > shown.length && `… ${lines.length - shown.length} more lines`}
    </pre>
  );
}

function brief(content: string): string {
  const text = content.trim();
  return text.length <= CONTENT ? text : `${text.slice(0, CONTENT).toWellFormed()}…`;
}
