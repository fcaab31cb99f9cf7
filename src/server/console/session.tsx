import type { JSX } from "hono/jsx/jsx-runtime";
import { shortened } from "../../commands/format.ts";
import type { Run } from "../../engine/run_store.ts";
import { changedTurns, sessionChanges, undo } from "../../engine/undo.ts";
import { stripControl } from "../../platform/terminal.ts";
import type { TurnChanges } from "../../sessions/changes.ts";
import type { Part, PermissionEntry, SessionDocument } from "../../sessions/schema.ts";
import type { SessionPage } from "../../sessions/store.ts";
import { activityLine } from "../../tools/registry.ts";
import { digest } from "../admission.ts";
import type { ConsoleContext } from "../console.ts";
import { HttpError } from "../http.ts";
import type { TurnRecord } from "../turns.ts";
import {
  Action,
  Badge,
  Count,
  Empty,
  type Fact,
  Facts,
  Form,
  Pager,
  Section,
  Time,
  type Tone,
} from "./components.tsx";
import { Diff } from "./night.tsx";
import type { ConsolePart, Page, PageRequest } from "./page.ts";
import { pageNumber, SessionLink, sessionPath } from "./sessions.tsx";
import type { Viewer } from "./sign_in.ts";
import { cut, Partial, TurnView, UndoButton } from "./transcript.tsx";

/** Turns on a page of a transcript. */
const PAGE = 20;
/** Characters of a line about a tool that is not here any more. */
const ACTIVITY = 160;
/** Sessions in a tree of sub-agents, and decisions in an audit. */
const TREE = 100;
const AUDIT = 200;

/** The transcript of a session, live or past. */
export function sessionPart(context: ConsoleContext): ConsolePart {
  const { workspace, turns, runs } = context;
  const { sessions, tools } = workspace;

  async function show({ params: { name = "" }, query, viewer }: PageRequest): Promise<Page> {
    const asked = query.has("page") ? pageNumber(query, Infinity) : undefined;
    await sessions.current(name);
    const found = await sessions.page(name, PAGE, asked);
    if (found === undefined) throw new HttpError(404, `session not found: ${name}`);
    const { head, at, pages } = found;
    const changed = await changedTurns(workspace, name, found.turns.map(({ index }) => index));
    const path = sessionPath(name);
    const last = at === pages;
    const pager = <Pager path={path} query={query} at={at} pages={pages} />;
    const describe = (tool: string, input: Record<string, unknown>) => {
      const known = tools.find(tool);
      if (known !== undefined) return activityLine(known, input);
      const { path, command } = input;
      return shortened(`${tool} ${String(path ?? command ?? "")}`, ACTIVITY);
    };
    return {
      title: head.session_name,
      follows: last ? name : undefined,
      body: (
        <div class="session">
          <div class="transcript">
            {pager}
            <Section id="transcript" title="Transcript" live={last ? ["session"] : undefined}>
              {found.turns.length === 0
                ? <Empty>The session has no turn yet.</Empty>
                : found.turns.map((turn) => (
                  <TurnView
                    turn={turn}
                    path={path}
                    describe={describe}
                    changed={changed.get(turn.index)}
                    viewer={viewer}
                  />
                ))}
              {last &&
                runsOf(name).map(({ id }) => <Partial parts={runs.live(id)?.partial ?? []} />)}
            </Section>
            {pager}
            <Section id="work" title="Work" live={["runs", "session"]}>
              <Work runs={runsOf(name)} turns={turnsOf(name)} viewer={viewer} path={path} />
            </Section>
            <Form viewer={viewer} role="operate" action={`${path}/messages`} class="stack">
              <label for="message">Message</label>
              <textarea id="message" name="message" required></textarea>
              <button type="submit" class="primary">Send</button>
              <p class="quiet small">
                A run that works in the session reads it before its next reply. Otherwise it begins
                a run, which continues without this page.
              </p>
            </Form>
          </div>
          <aside aria-label="About the session">
            <About page={found} />
            <Section id="agents" title="Sub-agents" live={["session", "sessions"]}>
              <Tree names={head.sub_sessions} sessions={sessions} />
            </Section>
            <Section id="audit" title="Audit" live={last ? ["session"] : undefined}>
              <Audit entries={auditOf(found)} />
            </Section>
            <Errors errors={head.errors} />
          </aside>
        </div>
      ),
    };
  }

  /** The accepted runs of a session that have not ended. */
  function runsOf(name: string): Run[] {
    const states = ["queued", "running", "waiting"] as const;
    return runs.store.list({ limit: 1000, states }).filter(({ session }) => session === name);
  }

  /** The turns of clients of this server that run or wait in a session. */
  function turnsOf(name: string): TurnRecord[] {
    return turns.list().filter(({ session, ended_at }) => session === name && ended_at === "");
  }

  async function send(form: URLSearchParams, { params: { name = "" } }: PageRequest) {
    const message = (form.get("message") ?? "").trim();
    if (message === "") throw new HttpError(400, "there is no message");
    await sessions.current(name);
    if (sessions.summary(name) === undefined) {
      throw new HttpError(404, `session not found: ${name}`);
    }
    const [run] = runsOf(name);
    if (run !== undefined) await runs.send(run.id, message);
    else {
      await runs.accept({
        request: { prompt: message, role: "", task: {}, confirmed: false, webhook: "" },
        session: name,
        body: digest(message).toHex(),
      });
    }
    return sessionPath(name);
  }

  async function cancel(form: URLSearchParams, { params: { name = "" } }: PageRequest) {
    const id = form.get("id") ?? "";
    const own = [...runsOf(name), ...turnsOf(name)].some((each) => String(each.id) === id);
    if (!own) throw new HttpError(409, "it has ended already");
    if (!await turns.cancel(id)) await runs.cancel(id);
    return sessionPath(name);
  }

  /** What one turn changed in files. */
  async function changes({ params: { name = "" }, query, viewer }: PageRequest): Promise<Page> {
    const turn = Number(query.get("turn"));
    const path = sessionPath(name);
    const found = await sessionChanges(workspace, { session: name, turn });
    const [{ state, files, interrupted, unknown }] = found!.turns as [TurnChanges];
    return {
      title: `Changes of turn ${turn}`,
      body: (
        <>
          <p>
            In session <SessionLink name={name} />
            {state === "undone" && ", taken back"}
          </p>
          {interrupted && (
            <p>
              The process ended in this turn. Later changes of these files may be among them.
            </p>
          )}
          {unknown !== "" && <p>What commands changed is not known: {stripControl(unknown)}.</p>}
          {files.map(({ path, from, change, added, removed, diff, note }) => (
            <section>
              <h2 class="mono">{stripControl(from === "" ? path : `${from} → ${path}`)}</h2>
              <p class="quiet">
                {change}, <ins>+{added}</ins> <del>−{removed}</del> {stripControl(note)}
              </p>
              {diff !== "" && (
                <Diff
                  lines={stripControl(diff).trimEnd().split("\n").slice(2)}
                  path={stripControl(path)}
                />
              )}
            </section>
          ))}
          {state !== "running" && (
            <UndoButton path={path} turn={turn} undone={state === "undone"} viewer={viewer} />
          )}
        </>
      ),
    };
  }

  async function takeBack(form: URLSearchParams, { params: { name = "" } }: PageRequest) {
    const turn = Number(form.get("turn"));
    await undo(workspace, { session: name, turn, redo: form.get("redo") === "true" });
    return sessionPath(name);
  }

  /** A long text of a part, whole. */
  async function whole({ params: { name = "" }, query }: PageRequest): Promise<Response> {
    const [index, position] = [Number(query.get("turn")), Number(query.get("part"))];
    await sessions.current(name);
    const [turn] = (await sessions.page(name, 1, index))?.turns ?? [];
    const part = turn?.index === index ? turn.parts[position] : undefined;
    const text = part === undefined
      ? undefined
      : query.get("of") === "input" && part.type === "tool"
      ? JSON.stringify(part.input, null, 2)
      : textOf(part);
    if (text === undefined) throw new HttpError(404, "there is no such text");
    return new Response(stripControl(text), {
      headers: { "content-type": "text/plain; charset=utf-8" },
    });
  }

  return {
    pages: [
      { path: "/console/sessions/:name", show },
      { path: "/console/sessions/:name/text", show: whole },
      { path: "/console/sessions/:name/changes", show: changes },
    ],
    forms: [
      { path: "/console/sessions/:name/messages", role: "operate", submit: send },
      { path: "/console/sessions/:name/cancel", role: "operate", submit: cancel },
      { path: "/console/sessions/:name/undo", role: "operate", submit: takeBack },
    ],
  };
}

function textOf(part: Part): string {
  return part.type === "tool"
    ? part.output
    : part.type === "command" && part.summary !== undefined
    ? part.summary
    : part.text;
}

function About({ page: { head, count } }: { page: SessionPage }): JSX.Element {
  const { role, job, parent_id, created_at, updated_at, session_id } = head;
  const facts: Fact[] = [
    ["Turns", <Count of={count} />],
    ["Created", <Time at={created_at} />],
    ["Changed", <Time at={updated_at} />],
  ];
  if (session_id !== "") facts.push(["Id", <code>#{stripControl(session_id)}</code>]);
  if (role !== "") facts.push(["Role", stripControl(role)]);
  if (job) {
    facts.push([
      "Job",
      <a href={`/console/jobs/${encodeURIComponent(job)}`}>{stripControl(job)}</a>,
    ]);
  }
  if (parent_id !== "") facts.push(["Parent", <SessionLink name={parent_id} />]);
  return <Facts facts={facts} />;
}

/** What runs in the session now, with a button to cancel it. */
function Work({ runs, turns, viewer, path }: {
  runs: Run[];
  turns: TurnRecord[];
  viewer: Viewer;
  path: string;
}): JSX.Element {
  const work = [
    ...runs.map(({ id, state, queued_at, messages }) => ({
      id,
      state,
      queued_at,
      about: messages.length > 0 ? `${messages.length} messages wait` : "",
    })),
    ...turns.map(({ id, status, queued_at, agents }) => ({
      id: String(id),
      state: status,
      queued_at,
      about: agents.length > 1 ? `${agents.length} agents` : "",
    })),
  ];
  if (work.length === 0) return <Empty>No run of this server works in the session.</Empty>;
  return (
    <ul class="cards">
      {work.map(({ id, state, queued_at, about }) => (
        <li class="card head">
          <span>
            <Badge>{state}</Badge> since <Time at={queued_at} /> <span class="quiet">{about}</span>
          </span>
          <Action
            viewer={viewer}
            role="operate"
            action={`${path}/cancel`}
            fields={{ id }}
            tone="bad"
          >
            Cancel
          </Action>
        </li>
      ))}
    </ul>
  );
}

/** The sub-agents of a session with theirs. */
function Tree({ names, sessions }: {
  names: string[];
  sessions: ConsoleContext["workspace"]["sessions"];
}): JSX.Element {
  let left = TREE;
  const branch = (names: string[]): JSX.Element => (
    <ul class="tree">
      {names.map((name) => {
        if (left-- <= 0) return left === -1 && <li class="quiet">and more</li>;
        const summary = sessions.summary(name);
        const below = summary === undefined ? [] : sessions.subSessions(name);
        return (
          <li>
            <SessionLink name={name} /> {summary?.running && <Badge>running</Badge>}
            <div class="quiet small clamp">
              {summary === undefined
                ? "was removed"
                : stripControl([summary.role, summary.first_prompt].filter(Boolean).join(": "))}
            </div>
            {below.length > 0 && branch(below)}
          </li>
        );
      })}
    </ul>
  );
  return names.length === 0 ? <Empty>It has started none.</Empty> : branch(names);
}

/** The decisions of the permission policy during the turns of a page, the newest first. */
function auditOf({ head: { permissions }, turns }: SessionPage): PermissionEntry[] {
  const [from, to] = [turns[0]?.started_at ?? "", turns.at(-1)?.ended_at ?? ""];
  return permissions.filter(({ timestamp }) => timestamp >= from && (to === "" || timestamp <= to))
    .reverse();
}

const DECISIONS: Record<PermissionEntry["decision"], Tone> = {
  granted: "good",
  declined: "warn",
  denied: "bad",
};

function Audit({ entries }: { entries: PermissionEntry[] }): JSX.Element {
  if (entries.length === 0) return <Empty>No decision of the permission policy.</Empty>;
  return (
    <>
      <ol class="audit">
        {entries.slice(0, AUDIT).map((entry) => {
          const { tool, action, decision, path, permission, scope, covers, granted_by, sandbox } =
            entry;
          const how = [
            `policy: ${action}`,
            scope,
            covers,
            granted_by && `by ${granted_by}`,
            sandbox && `sandbox: ${sandbox}`,
          ];
          return (
            <li>
              <div class="head">
                <span>
                  <code>{stripControl(tool)}</code> {stripControl(path ?? permission ?? "")}
                </span>
                <Badge tone={DECISIONS[decision]}>{decision}</Badge>
              </div>
              <p class="quiet small">
                <Time at={entry.timestamp} /> {stripControl(how.filter(Boolean).join(", "))}
              </p>
            </li>
          );
        })}
      </ol>
      {entries.length > AUDIT && (
        <p class="quiet">
          and <Count of={entries.length - AUDIT} /> earlier ones
        </p>
      )}
    </>
  );
}

function Errors({ errors }: Pick<SessionDocument, "errors">): JSX.Element | null {
  if (errors.length === 0) return null;
  return (
    <Section id="errors" title="Errors" count={errors.length}>
      <ol class="audit">
        {errors.slice(-20).reverse().map(({ code, message, timestamp }) => (
          <li>
            <p>{stripControl(cut(message, 1000))}</p>
            <p class="quiet small">
              <Time at={timestamp} /> {code > 0 && `status ${code}`}
            </p>
          </li>
        ))}
      </ol>
    </Section>
  );
}
