import { resolve } from "node:path";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { Ask } from "../../asks/store.ts";
import { AgentAccess } from "../../fleet/agent_access.ts";
import { tailLog } from "../../fleet/logs.ts";
import { Roster } from "../../fleet/roster.ts";
import { FleetPaths } from "../../fleet/snapshot.ts";
import { type AgentView, fleetOverview, type Overview } from "../../fleet/status.ts";
import { errorMessage } from "../../platform/error.ts";
import { fileStamp, writeFileAtomic } from "../../platform/files.ts";
import { stripControl } from "../../platform/terminal.ts";
import type { Turn } from "../../sessions/schema.ts";
import { type ConsoleContext, consoleFolder } from "../console.ts";
import { HttpError } from "../http.ts";
import { Figures } from "./charts.tsx";
import {
  Action,
  Badge,
  Block,
  Count,
  Empty,
  type Fact,
  Facts,
  Form,
  Section,
  Time,
  type Tone,
} from "./components.tsx";
import { answerOf, AskCard } from "./inbox.tsx";
import type { ConsolePart, FormRoute, PageRequest } from "./page.ts";
import { SignIns, type Viewer } from "./sign_in.ts";

/** The session of an agent in which the console chats, and the turns of it that are shown. */
const SESSION = "console";
const TURNS = 5;
/** Lines of an agent's log. */
const LINES = 100;
/** Milliseconds in which an agent has to accept a message. */
const LIMIT = 10_000;

/** An agent with its questions. */
interface Agent {
  view: AgentView;
  asks: Ask[];
}

/** The agents of a supervisor, and what waits for a person in each of their worktrees. */
export function fleetPart(context: ConsoleContext): ConsolePart {
  const { paths, environment, trust, clock, warn } = context.workspace;
  const files = new FleetPaths(paths.state);
  const roster = new Roster(paths.state, trust, warn);

  const overview = () => fleetOverview(paths.state, roster, clock, warn);
  const access = (dir: string) =>
    new AgentAccess(resolve(paths.worktree, dir), {
      user: paths.user,
      environment,
      trusted: trust.all,
      clock,
      warn,
    });
  const asksOf = (dir: string): Ask[] => {
    try {
      return access(dir).asks.list("pending");
    } catch {
      return []; // its folder is gone, as its state says
    }
  };

  async function showAll({ viewer }: PageRequest) {
    const { supervisor, agents } = await overview();
    const known = agents.map((view): Agent => ({ view, asks: asksOf(view.dir) }));
    return {
      title: "Fleet",
      body: <FleetView supervisor={supervisor} agents={known} viewer={viewer} />,
    };
  }

  async function showAgent({ params: { name = "" }, query, viewer }: PageRequest) {
    const { agents } = await overview();
    const view = agents.find((agent) => agent.name === name);
    if (view === undefined) throw new HttpError(404, `agent not found: ${name}`);
    let turns: Turn[] = [];
    let fault = "";
    let link = "";
    try {
      const { sessions, paths } = access(view.dir);
      turns = (await sessions.page(SESSION, TURNS))?.turns ?? [];
      if (query.has("open") && view.port !== null) {
        const key = new SignIns(consoleFolder({ paths }), clock).makeLink(viewer.role);
        link = `http://127.0.0.1:${view.port}/console/sign-in?key=${key}`;
      }
    } catch (error) {
      fault = errorMessage(error);
    }
    const log = tailLog(files.logOf(name), LINES).join("\n");
    return {
      title: name,
      body: (
        <>
          <Section id="state" title="State" live={["fleet"]}>
            {fault !== "" && <p class="error">{stripControl(fault)}</p>}
            <State view={view} />
            <div class="actions">
              <Button viewer={viewer} view={view} action="restart">Restart</Button>
              {view.enabled
                ? <Button viewer={viewer} view={view} action="disable">Disable</Button>
                : <Button viewer={viewer} view={view} action="enable">Enable</Button>}
              {view.port !== null && link === "" && (
                <a href={`/console/fleet/${name}?open=1`}>Open its own console</a>
              )}
            </div>
            {link !== "" && (
              <p>
                <a href={link} rel="noreferrer">Sign in to the console of {name}</a>{" "}
                <span class="quiet small">The link works once, on the machine of the agent.</span>
              </p>
            )}
          </Section>
          <Section id="chat" title="Chat" live={["fleet"]}>
            {turns.length === 0
              ? <Empty>Nothing was said here yet.</Empty>
              : turns.map((turn) => <Exchange turn={turn} />)}
          </Section>
          {view.port !== null && (
            <Form
              viewer={viewer}
              role="operate"
              action={`/console/fleet/${name}/chat`}
              class="stack"
            >
              <label for="prompt">Message</label>
              <textarea id="prompt" name="prompt" required></textarea>
              <button type="submit" class="primary">Send</button>
            </Form>
          )}
          <Section id="log" title="Log" live={["fleet"]}>
            {log === "" ? <Empty>The log is empty.</Empty> : <Block>{log}</Block>}
          </Section>
        </>
      ),
    };
  }

  const forms: FormRoute[] = [
    {
      path: "/console/fleet/:name",
      role: "operate",
      async submit(form, { params: { name = "" } }) {
        const { dir } = roster.need(name);
        const action = form.get("action") ?? "";
        if (!["restart", "enable", "disable"].includes(action)) {
          throw new HttpError(400, "no such action");
        }
        if (action !== "restart") await roster.enable(name, action === "enable");
        const { agents } = await overview();
        const { state } = agents.find((agent) => agent.name === name) ?? {};
        if (action === "restart" || action === "enable" && state === "crashed") {
          writeFileAtomic(files.requestOf(name), "");
        }
        access(dir); // says what is wrong with its folder
        return `/console/fleet/${name}`;
      },
    },
    {
      path: "/console/fleet/:name/chat",
      role: "operate",
      async submit(form, { params: { name = "" } }) {
        const { dir } = roster.need(name);
        const { agents } = await overview();
        const port = agents.find((agent) => agent.name === name)?.port ?? null;
        if (port === null) throw new HttpError(409, `the agent ${name} is not running`);
        const body = { prompt: form.get("prompt") ?? "", session: SESSION };
        const signal = AbortSignal.timeout(LIMIT);
        let failure: string;
        try {
          const response = await access(dir).post(port, "/runs", body, { signal });
          const answer = await response.json();
          if (response.ok) return `/console/fleet/${name}`;
          failure = String(answer?.error ?? `status ${response.status}`);
        } catch (error) {
          failure = errorMessage(error);
        }
        throw new HttpError(502, `${name} did not take the message: ${failure}`);
      },
    },
    {
      path: "/console/fleet/:name/asks/:id",
      role: "answer",
      async submit(form, { params: { name = "", id = "" } }) {
        const { asks } = access(roster.need(name).dir);
        await asks.answer(Number(id), answerOf(form, asks, id));
        return "/console/fleet";
      },
    },
  ];
  return {
    pages: [
      { path: "/console/fleet", nav: "Fleet", show: showAll },
      { path: "/console/fleet/:name", show: showAgent },
    ],
    forms,
    stamps: () => ({
      fleet: [
        fileStamp(files.snapshot),
        ...(roster.read()?.agents ?? []).flatMap(({ name, dir }) => {
          const folder = resolve(paths.worktree, dir, ".svc");
          return [
            fileStamp(files.logOf(name)),
            fileStamp(`${folder}/asks.json`),
            fileStamp(`${folder}/sessions/.${SESSION}.journal`),
          ];
        }),
      ].join(),
    }),
  };
}

function FleetView({ supervisor, agents, viewer }: {
  supervisor: Overview["supervisor"];
  agents: Agent[];
  viewer: Viewer;
}): JSX.Element {
  const enabled = agents.filter(({ view }) => view.enabled);
  const healthy = enabled.filter(({ view }) => wordOf(view) === "healthy");
  const asks = agents.flatMap(({ view, asks }) => asks.map((ask) => ({ ask, agent: view.name })));
  return (
    <>
      <Section id="supervisor" title="Supervisor" live={["fleet"]}>
        {supervisor === null
          ? (
            <Empty>
              No supervisor runs. Start one with <code>svc fleet up</code>.
            </Empty>
          )
          : (
            <p>
              Process {supervisor.pid}, since <Time at={supervisor.since} />
            </p>
          )}
        {agents.length > 0 && (
          <Figures
            figures={[
              ["Healthy", `${healthy.length} of ${enabled.length}`],
              ["Restarts", <Count of={agents.reduce((sum, { view }) => sum + view.restarts, 0)} />],
              ["Questions", <Count of={asks.length} />],
            ]}
          />
        )}
      </Section>
      {asks.length > 0 && (
        <Section id="questions" title="Questions" count={asks.length} live={["fleet"]}>
          <ul class="cards">
            {asks.map(({ ask, agent }) => (
              <li class="card">
                <AskCard ask={{ ...ask, job: "" }} agent={agent} viewer={viewer} />
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section id="agents" title="Agents" count={agents.length} live={["fleet"]}>
        {agents.length === 0
          ? (
            <Empty>
              The fleet is empty. Add an agent with <code>svc fleet add</code>.
            </Empty>
          )
          : (
            <ul class="cards">
              {agents.map(({ view }) => (
                <li class="card">
                  <h3>
                    <a href={`/console/fleet/${view.name}`}>{view.name}</a>
                  </h3>
                  <State view={view} />
                </li>
              ))}
            </ul>
          )}
      </Section>
    </>
  );
}

function State({ view }: { view: AgentView }): JSX.Element {
  const { dir, port, since, restarts, retry_at, error, enabled } = view;
  const word = wordOf(view);
  const tones: Record<string, Tone> = { failing: "bad", restarting: "warn", stopping: "warn" };
  const facts: Fact[] = [
    [
      "State",
      <>
        <Badge tone={tones[word]}>{word}</Badge> {!enabled && <Badge>disabled</Badge>}{" "}
        {since !== "" && (
          <>
            since <Time at={since} />
          </>
        )}
      </>,
    ],
    ["Folder", <span class="mono">{stripControl(dir)}</span>],
    ["Port", port === null ? "none" : String(port)],
    ["Restarts", <Count of={restarts} />],
  ];
  if (retry_at !== "") facts.push(["Starts again", <Time at={retry_at} />]);
  if (error !== "") facts.push(["Error", <span class="error">{stripControl(error)}</span>]);
  return <Facts facts={facts} />;
}

/** The state of an agent in one word. */
function wordOf({ state, healthy, failing }: AgentView): string {
  if (state !== "running") return state;
  return failing ? "failing" : healthy ? "healthy" : "starting";
}

function Button({ viewer, view, action, children }: {
  viewer: Viewer;
  view: AgentView;
  action: string;
  children: string;
}): JSX.Element {
  return (
    <Action
      viewer={viewer}
      role="operate"
      action={`/console/fleet/${view.name}`}
      fields={{ action }}
    >
      {children}
    </Action>
  );
}

/** A prompt and its answer. */
function Exchange({ turn: { parts, status, started_at } }: { turn: Turn }): JSX.Element {
  const said = parts.find(({ type }) => type === "user");
  const answer = parts.flatMap((part) => part.type === "text" ? [part.text] : []).at(-1) ?? "";
  return (
    <article class="card">
      <p class="prose quiet">{stripControl(said?.type === "user" ? said.text : "")}</p>
      {answer !== "" && <p class="prose">{stripControl(answer)}</p>}
      <p class="small">
        {status !== "ok" && <Badge>{status}</Badge>} <Time at={started_at} />
      </p>
    </article>
  );
}
