import type { JSX } from "hono/jsx/jsx-runtime";
import { definition, nextOf } from "../../commands/jobs/view.ts";
import { isTrusted } from "../../jobs/context.ts";
import { type PastRun, runsOf } from "../../jobs/digest.ts";
import { healthOf, MAX_INTERVALS } from "../../jobs/health.ts";
import { readTask, taskPath } from "../../jobs/prompt.ts";
import { describeSchedule } from "../../jobs/schedule.ts";
import { type Job, outcomeText } from "../../jobs/schema.ts";
import { type GateTrigger, moveGate, transition } from "../../jobs/transitions.ts";
import { errorMessage } from "../../platform/error.ts";
import { stripControl, visible } from "../../platform/terminal.ts";
import { amount } from "../../usage/ledger.ts";
import type { ConsoleContext } from "../console.ts";
import { HttpError } from "../http.ts";
import { Bars, Figure } from "./charts.tsx";
import {
  Action,
  Badge,
  Block,
  Count,
  Duration,
  Empty,
  type Fact,
  Facts,
  Money,
  Pager,
  Section,
  Table,
  Time,
} from "./components.tsx";
import type { ConsolePart, PageRequest } from "./page.ts";
import { pageNumber, SessionLink } from "./sessions.tsx";
import type { Viewer } from "./sign_in.ts";

/** Jobs on a page of the list, and runs on a page of a job. */
const PAGE = 25;
/** Runs in the charts of the list. */
const RECENT = 20;
/** Characters of a task file that are shown. */
const TASK = 50_000;

/** The gates of a job, and a run by hand, as their buttons. */
const BUTTONS = {
  approve: "Approve",
  run: "Run now",
  enable: "Enable",
  disable: "Disable",
  reject: "Reject",
} as const;
type Button = keyof typeof BUTTONS;

/** The jobs: their states, histories, gates and tasks. */
export function jobsPart(context: ConsoleContext): ConsolePart {
  const { jobs, jobRuns } = context;
  return {
    pages: [
      { path: "/console/jobs", nav: "Jobs", show: (request) => listPage(context, request) },
      { path: "/console/jobs/:name", show: (request) => jobPage(context, request) },
    ],
    forms: [{
      path: "/console/jobs/:name",
      role: "operate",
      async submit(form, { params: { name = "" } }) {
        const button = form.get("gate") as Button;
        if (!Object.hasOwn(BUTTONS, button)) throw new HttpError(400, "no such gate");
        jobs.register.need(name);
        if (button === "run") await jobRuns.start(name);
        else await moveGate(jobs, name, button satisfies GateTrigger);
        return form.get("back") === "list" ? "/console/jobs" : `/console/jobs/${name}`;
      },
    }],
  };
}

function listPage({ jobs: context }: ConsoleContext, { query, viewer }: PageRequest) {
  const { register, clock } = context;
  const now = clock.now();
  const search = query.get("q")?.trim() ?? "";
  const all = register.list().filter(({ name }) => name.includes(search));
  // Those that need a person come first.
  const sorted = all.map((job) => ({ job, rank: rankOf(job) })).sort((one, other) =>
    one.rank - other.rank || (one.job.name < other.job.name ? -1 : 1)
  );
  const pages = Math.max(1, Math.ceil(sorted.length / PAGE));
  const at = pageNumber(query, pages);
  const shown = sorted.slice((at - 1) * PAGE, at * PAGE).map(({ job }) => job);
  const histories = register.histories({ names: shown.map(({ name }) => name) });
  return {
    title: "Jobs",
    body: (
      <>
        <form class="row" role="search">
          <label for="q">Name</label>
          <input id="q" name="q" type="search" value={search} />
          <button type="submit">Find</button>
        </form>
        <Section id="jobs" title="All jobs" count={all.length} live={["jobs"]}>
          {shown.length === 0
            ? (
              <Empty>
                {search === ""
                  ? (
                    <>
                      There are no jobs. Add one with <code>svc jobs add</code>.
                    </>
                  )
                  : "No job has such a name."}
              </Empty>
            )
            : (
              <ul class="cards">
                {shown.map((job) => (
                  <JobCard
                    job={job}
                    trusted={isTrusted(context, job)}
                    runs={runsOf(job.name, histories.get(job.name) ?? [])}
                    now={now}
                    viewer={viewer}
                  />
                ))}
              </ul>
            )}
          <Pager path="/console/jobs" query={query} at={at} pages={pages} />
        </Section>
      </>
    ),
  };
}

function rankOf({ status, enabled, blocked }: Job): number {
  if (enabled && (status === "proposed" || status === "waiting_approval")) return 0;
  if (blocked !== undefined || enabled && status === "failed") return 1;
  return enabled ? 2 : 3;
}

function JobCard({ job, trusted, runs, now, viewer }: {
  job: Job;
  trusted: boolean;
  runs: PastRun[];
  now: number;
  viewer: Viewer;
}): JSX.Element {
  const last = runs.at(-1);
  const gated = job.enabled && (job.status === "proposed" || job.status === "waiting_approval");
  return (
    <li class="card job">
      <div>
        <div class="head">
          <h3>
            <a href={`/console/jobs/${job.name}`}>{job.name}</a>
          </h3>
          <States job={job} trusted={trusted} />
        </div>
        <dl class="facts small">
          <dt>Schedule</dt>
          <dd>{scheduleText(job)}</dd>
          <dt>Next</dt>
          <dd>
            <Next job={job} now={now} />
          </dd>
          <dt>Last</dt>
          <dd>{last === undefined ? "never" : <Outcome run={last} />}</dd>
        </dl>
        {gated && (
          <div class="actions">
            <Gate viewer={viewer} job={job} button="approve" back="list" />
            <Gate viewer={viewer} job={job} button="reject" back="list" />
          </div>
        )}
      </div>
      <Multiples runs={runs.slice(-RECENT)} />
    </li>
  );
}

/** The durations and costs of runs, side by side. */
function Multiples({ runs, axis }: { runs: PastRun[]; axis?: true }): JSX.Element {
  if (runs.length === 0) return <p class="quiet small">No runs yet.</p>;
  const failed = runs.filter(({ status }) => status === "failed").length;
  const ends = axis && {
    from: <Time at={runs[0]!.started_at} />,
    to: <Time at={runs.at(-1)!.started_at} />,
  };
  const cost = (run: PastRun) => run.cost ?? 0;
  const bars = (value: (run: PastRun) => number, text: (run: PastRun) => string) =>
    runs.map((run) => {
      const at = run.started_at.slice(0, 16).replace("T", " ");
      return {
        value: value(run),
        tone: run.status === "failed" ? "bad" as const : "good" as const,
        label: `${at} UTC: ${text(run)}, ${outcomeText(run)}`,
      };
    });
  return (
    <div class="multiples">
      <Figure
        title="Duration"
        note={
          <>
            max <Duration seconds={Math.max(...runs.map(({ duration }) => duration))} />
          </>
        }
        {...ends}
      >
        <Bars
          label={`The durations of ${runs.length} runs, of which ${failed} failed.`}
          bars={bars(({ duration }) => duration, ({ duration }) => `${duration} s`)}
        />
      </Figure>
      <Figure
        title="Cost"
        note={
          <>
            max <Money cost={Math.max(...runs.map(cost))} />
          </>
        }
        {...ends}
      >
        <Bars
          label={`The costs of ${runs.length} runs.`}
          bars={bars(cost, (run) => run.cost === null ? "no price" : `cost ${amount(run.cost)}`)}
        />
      </Figure>
    </div>
  );
}

function States({ job, trusted }: { job: Job; trusted: boolean }): JSX.Element {
  const { status, enabled, blocked } = job;
  const words: Partial<Record<Job["status"], string>> = {
    executing: "running",
    waiting_approval: "waits for approval",
    verified: "ok",
  };
  const tones: Partial<Record<Job["status"], "active" | "warn">> = {
    executing: "active",
    waiting_approval: "warn",
  };
  return (
    <span>
      <Badge tone={tones[status]}>{words[status] ?? status}</Badge> {blocked !== undefined && (
        <>
          <Badge tone="bad">blocked</Badge>
          {" "}
        </>
      )}
      {!enabled && (
        <>
          <Badge>disabled</Badge>
          {" "}
        </>
      )}
      {!trusted && <Badge tone="warn">not trusted</Badge>}
    </span>
  );
}

function Next({ job, now }: { job: Job; now: number }): JSX.Element {
  const planned = job.enabled && job.status !== "executing" && job.status !== "proposed" &&
    Date.parse(job.next_run_at) > now;
  return planned ? <Time at={job.next_run_at} now={now} /> : <>{nextOf(job, now)}</>;
}

function Outcome({ run }: { run: PastRun }): JSX.Element {
  return (
    <>
      <OutcomeBadge run={run} /> <Time at={run.finished_at} />{" "}
      {run.reason !== "" && <span class="error">{stripControl(run.reason)}</span>}
    </>
  );
}

function OutcomeBadge({ run }: { run: PastRun }): JSX.Element {
  const tone = run.status === "failed" ? "bad" : run.checked ? "good" : "plain";
  return <Badge tone={tone}>{outcomeText(run)}</Badge>;
}

function scheduleText({ schedule }: Job): string {
  const { interval = 0 } = schedule;
  if (interval > 0 && interval % 3600 === 0) return `every ${interval / 3600} h`;
  if (interval > 0 && interval % 60 === 0) return `every ${interval / 60} min`;
  return stripControl(describeSchedule(schedule));
}

function Gate({ viewer, job, button, back = "job" }: {
  viewer: Viewer;
  job: Job;
  button: Button;
  back?: "job" | "list";
}): JSX.Element {
  return (
    <Action
      viewer={viewer}
      role="operate"
      action={`/console/jobs/${job.name}`}
      fields={{ gate: button, back }}
      tone={button === "approve" ? "primary" : button === "reject" ? "bad" : undefined}
    >
      {`${BUTTONS[button]}`}
      {back === "list" && <span class="hidden">{` ${job.name}`}</span>}
    </Action>
  );
}

/** Whether a gate would have an effect. */
function hasEffect(job: Job, button: Button): boolean {
  if (button === "enable") return !job.enabled;
  if (button === "disable") return job.enabled;
  if (button === "reject") return job.enabled || job.status !== "proposed";
  return !("refused" in transition(job, button));
}

function jobPage(
  { workspace, jobs: context }: ConsoleContext,
  { params: { name = "" }, query, viewer }: PageRequest,
) {
  const { register, clock, worktree } = context;
  const job = register.need(name);
  const history = register.history(name);
  const runs = runsOf(name, history);
  const now = clock.now();
  const health = healthOf(job, history, now);
  const trusted = isTrusted(context, job);
  const { fired, failed, stuck, blocked, running_session } = health;
  const origins = new Set([job.session, running_session, ...runs.map(({ session }) => session)]);
  const asks = workspace.asks.list("pending").filter(({ origin }) =>
    origin !== "" && origins.has(origin)
  );
  const facts: Fact[] = [
    ["Schedule", scheduleText(job)],
    ["Next run", <Next job={job} now={now} />],
    ["Last run", runs.length === 0 ? "never" : <Outcome run={runs.at(-1)!} />],
    ["Attempts", `${fired} (${failed} failed)`],
  ];
  if (running_session !== "") facts.push(["Running in", <SessionLink name={running_session} />]);
  if (job.running?.worker !== undefined) facts.push(["Worker", job.running.worker]);
  if (stuck) {
    facts.push(["Stuck", `its attempt runs for more than ${MAX_INTERVALS} of its intervals`]);
  }
  if (blocked !== null) {
    facts.push(["Blocked", <span class="error">{stripControl(blocked.reason)}</span>]);
  }
  if (asks.length > 0) {
    facts.push(["Questions", <a href="/console">{`${asks.length} in the inbox`}</a>]);
  }
  const pages = Math.max(1, Math.ceil(runs.length / PAGE));
  const at = pageNumber(query, pages);
  const shown = runs.toReversed().slice((at - 1) * PAGE, at * PAGE);
  return {
    title: name,
    body: (
      <>
        <Section id="state" title="State" live={["jobs", "asks"]}>
          <p>
            <States job={job} trusted={trusted} />
          </p>
          {!trusted && (
            <p>
              The job does not run before it is accepted: <code>svc trust</code>
            </p>
          )}
          <Facts facts={facts} />
          <div class="actions">
            {(Object.keys(BUTTONS) as Button[]).filter((button) => hasEffect(job, button))
              .map((button) => <Gate viewer={viewer} job={job} button={button} />)}
          </div>
        </Section>
        <Section id="history" title="History" count={runs.length} live={["jobs"]}>
          {runs.length > 0 && <Multiples runs={runs} axis />}
          <Table
            caption={`The runs of ${name}`}
            empty="It has not run yet."
            columns={[
              { head: "Started" },
              { head: "Outcome" },
              { head: "Attempts", number: true, wide: true },
              { head: "Duration", number: true },
              { head: "Tokens", number: true, wide: true },
              { head: "Cost", number: true },
              { head: "Refused", number: true, wide: true },
              { head: "Session", wide: true },
            ]}
            rows={shown.map((run) => [
              <Time at={run.started_at} />,
              <>
                <OutcomeBadge run={run} />
                {run.reason !== "" && <div class="small">{stripControl(run.reason)}</div>}
              </>,
              <Count of={run.attempts} />,
              <Duration seconds={run.duration} />,
              <Count of={run.tokens} />,
              <Money cost={run.cost} />,
              <Count of={run.denied.length} />,
              <>
                {run.session !== "" && <SessionLink name={run.session} />}
                {[run.worker, run.branch].filter((text) => text !== undefined).map((text) => (
                  <div class="small">{stripControl(text)}</div>
                ))}
              </>,
            ])}
          />
          <Pager path={`/console/jobs/${name}`} query={query} at={at} pages={pages} />
        </Section>
        <Task worktree={worktree} job={job} />
        <Section id="definition" title="Definition">
          <Facts
            facts={definition(job, workspace.config).map(([name, value]) => [name, visible(value)])}
            prose
          />
        </Section>
      </>
    ),
  };
}

function Task({ worktree, job }: { worktree: string; job: Job }): JSX.Element {
  const path = taskPath(worktree, job);
  let text = "";
  let fault = "";
  try {
    text = visible(readTask(worktree, job));
  } catch (error) {
    fault = errorMessage(error);
  }
  const cut = text.length > TASK ? `${text.slice(0, TASK).toWellFormed()}\n…` : text;
  return (
    <Section id="task" title="Task file">
      {path !== undefined && <p class="quiet small mono">{stripControl(path)}</p>}
      {fault !== ""
        ? <p class="error">{fault}</p>
        : text === ""
        ? <Empty>It has none: the prompt says what to do.</Empty>
        : <Block>{cut}</Block>}
    </Section>
  );
}
