import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { Ask, AskStore } from "../../asks/store.ts";
import { openingsOf, type StatedOpening } from "../../commands/trust.ts";
import type { DayBudget } from "../../engine/meter.ts";
import { healthOf, type JobHealth } from "../../jobs/health.ts";
import { stripControl, visible } from "../../platform/terminal.ts";
import type { ConsoleContext } from "../console.ts";
import { HttpError } from "../http.ts";
import { Action, Badge, Count, Empty, Form, Section, Time } from "./components.tsx";
import type { ConsolePart, PageRequest } from "./page.ts";
import { SessionLink } from "./sessions.tsx";
import type { Viewer } from "./sign_in.ts";

/** Entries of a list; the others are counted. */
const MOST = 50;

/** What waits for a person. */
export interface Inbox {
  /** With the job that asks; empty: none does. */
  asks: (Ask & { job: string })[];
  jobs: JobHealth[];
  openings: StatedOpening[];
  budgets: DayBudget[];
}

/** The first page: what waits for a person, with the forms to deal with it. */
export function inboxPart(context: ConsoleContext): ConsolePart {
  const { asks } = context.workspace;
  return {
    pages: [{
      path: "/console",
      nav: "Inbox",
      async show({ viewer }) {
        return {
          title: "Inbox",
          body: <InboxView inbox={await inboxOf(context)} viewer={viewer} />,
        };
      },
    }],
    forms: [{
      path: "/console/asks/:id",
      role: "answer",
      async submit(form, { params: { id = "" } }: PageRequest) {
        await asks.answer(Number(id), answerOf(form, asks, id));
        return "/console";
      },
    }],
  };
}

/**
 * The answer to an ask in a form: a text, or an option.
 *
 * @throws HttpError 404; SvcError `ask_unknown`
 */
export function answerOf(form: URLSearchParams, asks: AskStore, id: string): string {
  if (!/^\d{1,15}$/.test(id)) throw new HttpError(404, `ask not found: ${id}`);
  const option = asks.need(Number(id)).options[Number(form.get("option") ?? NaN)];
  return form.get("answer")?.trim() || option || "";
}

async function inboxOf({ workspace, jobs: { register } }: ConsoleContext): Promise<Inbox> {
  const { asks, sessions, clock, trust, spending } = workspace;
  const now = clock.now();
  const pending = asks.list("pending").reverse();
  const jobs = register.list();
  // The last run of a verified job did not fail.
  const names = jobs.filter(({ status }) => status !== "verified").map(({ name }) => name);
  for (const { origin } of pending.slice(0, MOST)) await sessions.current(origin);
  const histories = register.histories({ names, since: now });
  return {
    asks: pending.map((ask, index) => ({
      ...ask,
      job: index < MOST ? sessions.summary(ask.origin)?.job ?? "" : "",
    })),
    jobs: jobs.map((job) => healthOf(job, histories.get(job.name) ?? [], now)),
    openings: trust.pending
      ? (await openingsOf(workspace)).filter(({ state }) => state !== "accepted")
      : [],
    budgets: await spending.dayBudgets(),
  };
}

function InboxView({ inbox, viewer }: { inbox: Inbox; viewer: Viewer }): JSX.Element {
  const waiting = inbox.jobs.filter(({ waiting }) => waiting);
  const failing = inbox.jobs.filter(({ failing, blocked, stuck }) => failing || blocked || stuck);
  return (
    <>
      <Group
        id="asks"
        title="Questions"
        live="asks"
        of={inbox.asks}
        empty="No agent waits for an answer."
      >
        {(ask) => <AskCard ask={ask} viewer={viewer} />}
      </Group>
      <Group
        id="approvals"
        title="Approvals"
        live="jobs"
        of={waiting}
        empty="No job waits for approval."
      >
        {(job) => <ApprovalCard job={job} viewer={viewer} />}
      </Group>
      <Group id="failing" title="Failing jobs" live="jobs" of={failing} empty="No job fails.">
        {(job) => <FailureCard job={job} />}
      </Group>
      <Group
        id="openings"
        title="Not trusted"
        live="trust"
        of={inbox.openings}
        empty="Nothing that the worktree opens waits to be trusted."
      >
        {(opening) => <OpeningCard opening={opening} />}
      </Group>
      <Group
        id="budgets"
        title="Budgets"
        live="runs"
        of={inbox.budgets}
        empty="No budget of the day is nearly used up."
      >
        {({ job, message, reached }) => (
          <>
            <Badge tone={reached ? "bad" : "warn"}>{reached ? "reached" : "nearly reached"}</Badge>
            {" "}
            {job !== "" && <JobLink name={job} />} {stripControl(message)}
          </>
        )}
      </Group>
    </>
  );
}

/** A titled list of cards, of which the first ones are shown. */
function Group<T>({ id, title, live, of, empty, children }: {
  id: string;
  title: string;
  live: "asks" | "jobs" | "trust" | "runs";
  of: T[];
  empty: string;
  children: (each: T) => Child;
}): JSX.Element {
  const more = of.length - MOST;
  return (
    <Section id={id} title={title} count={of.length} live={[live]}>
      {of.length === 0 ? <Empty>{empty}</Empty> : (
        <ul class="cards">
          {of.slice(0, MOST).map((each) => <li class="card">{children(each)}</li>)}
        </ul>
      )}
      {more > 0 && (
        <p class="quiet">
          and <Count of={more} /> more
        </p>
      )}
    </Section>
  );
}

/** A question with the form to answer it. `agent` names the agent of the fleet that asks, if another one does. */
export function AskCard({ ask, agent, viewer }: {
  ask: Ask & { job: string };
  agent?: string;
  viewer: Viewer;
}): JSX.Element {
  const { question, context, options, origin, kind, permission, created_at, job, worker } = ask;
  const id = agent === undefined ? `${ask.id}` : `${agent}-${ask.id}`;
  const field = `answer-${id}`;
  const action = agent === undefined
    ? `/console/asks/${id}`
    : `/console/fleet/${agent}/asks/${ask.id}`;
  return (
    <>
      <div class="head">
        <p class="quiet small">
          #{ask.id}{" "}
          {kind === "permission" && (
            <Badge tone="warn">{`permission ${visible(permission)}`.trim()}</Badge>
          )} from {agent !== undefined ? <a href={`/console/fleet/${agent}`}>{agent}</a> : (
            <>
              {job === "" ? "session" : <JobLink name={job} />}{" "}
              {origin !== "" && <SessionLink name={origin} />}
              {worker !== undefined && ` on ${stripControl(worker)}`}
            </>
          )}
        </p>
        <Time at={created_at} />
      </div>
      <p class="prose question">{visible(question)}</p>
      {context !== "" && (
        <details id={`context-${id}`}>
          <summary class="quiet">Context</summary>
          <div class="prose">{visible(context)}</div>
        </details>
      )}
      <Form viewer={viewer} role="answer" action={action} class="stack">
        {options.length > 0 && (
          <fieldset>
            <legend>Answer with</legend>
            {options.map((option, index) => (
              <label class="option">
                <input
                  type="radio"
                  name="option"
                  value={String(index)}
                  id={`option-${id}-${index}`}
                />{" "}
                {visible(option)}
              </label>
            ))}
          </fieldset>
        )}
        <label for={field}>{options.length > 0 ? "Or in your own words" : "Answer"}</label>
        <textarea id={field} name="answer" required={options.length === 0}></textarea>
        <button type="submit" class="primary">Answer</button>
      </Form>
    </>
  );
}

function JobLink({ name }: { name: string }): JSX.Element {
  return <a href={`/console/jobs/${encodeURIComponent(name)}`}>{stripControl(name)}</a>;
}

function ApprovalCard({ job, viewer }: { job: JobHealth; viewer: Viewer }): JSX.Element {
  const { name, status, created_at, next_run_at } = job;
  const gate = (gate: string) => ({
    viewer,
    role: "operate" as const,
    action: `/console/jobs/${encodeURIComponent(name)}`,
    fields: { gate },
  });
  return (
    <>
      <div class="head">
        <h3>
          <JobLink name={name} />
        </h3>
        <Time at={created_at} />
      </div>
      <p>
        {status === "proposed"
          ? "The job is proposed and does not run until it is approved."
          : "Its next run waits for approval."}
        {next_run_at !== "" && (
          <>
            {" "}It is due at <Time at={next_run_at} />.
          </>
        )}
      </p>
      <div class="actions">
        <Action {...gate("approve")} tone="primary">Approve</Action>
        <Action {...gate("reject")}>Reject</Action>
      </div>
    </>
  );
}

function FailureCard({ job }: { job: JobHealth }): JSX.Element {
  const { name, blocked, stuck, failing, last_run, running_session } = job;
  const at = blocked?.since ?? last_run?.finished_at ?? "";
  const session = stuck ? running_session : last_run?.session ?? "";
  return (
    <>
      <div class="head">
        <h3>
          <JobLink name={name} /> {blocked && <Badge tone="bad">blocked</Badge>}
          {stuck && <Badge tone="warn">stuck</Badge>} {failing && <Badge>failed</Badge>}
        </h3>
        <Time at={at} />
      </div>
      <p class="prose">
        {stuck
          ? "Its attempt runs for longer than several of its intervals."
          : stripControl(blocked?.reason ?? last_run?.reason ?? "")}
      </p>
      {session !== "" && (
        <p class="small">
          Session <SessionLink name={session} />
        </p>
      )}
    </>
  );
}

/** Only a person at the machine accepts an opening: a token of the server must not decide what the machine trusts. */
function OpeningCard({ opening: { id, state, text } }: { opening: StatedOpening }): JSX.Element {
  return (
    <>
      <div class="head">
        <h3>
          <code>{visible(id)}</code>
        </h3>
        <Badge tone="warn">{state}</Badge>
      </div>
      <p>It {visible(text)}. Until it is trusted, it is left out.</p>
      <p class="quiet small">
        To trust it on the machine: <code>svc trust --accept {visible(id)}</code>
      </p>
    </>
  );
}
