import type { TurnEvent, TurnResult } from "../../src/engine/events.ts";
import { type AgentRequest, prepareAgent, type PreparedAgent } from "../../src/engine/start.ts";
import type { Engine } from "../../src/engine/turn.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { headlessOperator, type Operator } from "../../src/policy/operator.ts";
import type { Session } from "../../src/sessions/session.ts";
import { type Reply, type Script, startBackend, type TestBackend } from "./backend.ts";
import { type Project, project } from "./project.ts";
import { trusting } from "./trust.ts";

/** A whole agent in this process: real worktree, plugins, policy, log and backend. */
export interface TestAgent extends AsyncDisposable {
  project: Project;
  backend: TestBackend;
  workspace: Workspace;
  session: Session;
  engine: Engine;
  warnings: string[];
  /** Runs a turn to its end. */
  turn(prompt: string, signal?: AbortSignal): Promise<{ events: TurnEvent[]; result: TurnResult }>;
  /** Another engine on the same session, as another process would have it. */
  another(): Engine;
  /** An agent on the same session that differs as the request says. */
  prepare(request?: Partial<AgentRequest>): Promise<PreparedAgent>;
}

const ENV: Record<string, string> = { PATH: "/usr/local/bin:/usr/bin:/bin" };

export async function agent(
  script: Script | Reply[],
  options: {
    files?: Record<string, string>;
    /** Files of the user's folder, `~/.config/svc`. */
    user?: Record<string, string>;
    /** Environment variables in addition to `PATH`. */
    env?: Record<string, string>;
    config?: Record<string, unknown>;
    operator?: Operator;
    headless?: boolean;
    clock?: Clock;
    role?: string;
  } = {},
): Promise<TestAgent> {
  const place = await project(options.files);
  const user = Object.entries(options.user ?? {});
  const home = await project(
    Object.fromEntries(user.map(([file, text]) => [`.config/svc/${file}`, text])),
  );
  const backend = startBackend(script);
  const warnings: string[] = [];
  const workspace = Workspace.open({
    path: place.path,
    environment: {
      home: home.path,
      cwd: place.path,
      get: (name) => ({ ...ENV, ...options.env })[name] ?? trusting(name),
    },
    warn: (message) => warnings.push(message),
    clock: options.clock,
    overrides: {
      base_url: backend.url,
      model: "test",
      stream_retry_delay: 0,
      memory_enabled: false, // it costs a request that a script would have to answer
      ...options.config,
    },
  });
  const providers = options.config?.provider === undefined ? {} : { providers: "all" as const };
  await workspace.load({ tools: "all", ...providers });
  const session = workspace.sessions.create("ses");
  const prepare = (request: Partial<AgentRequest> = {}) =>
    prepareAgent(workspace, {
      session: session.name,
      operator: options.operator ?? headlessOperator(false),
      headless: options.headless ?? true,
      role: options.role,
      ...request,
    });
  const prepared = await prepare();
  const another = () => prepared.open(session).engine;
  const engine = another();
  return {
    project: place,
    backend,
    workspace,
    session,
    engine,
    warnings,
    another,
    prepare,
    turn: (prompt, signal) => collect(engine.turn(prompt, { signal })),
    async [Symbol.asyncDispose]() {
      session.close();
      await workspace.background.settle(AbortSignal.abort());
      await workspace.close();
      await backend.close();
      await place[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

/** All events of a turn, and its result. */
export async function collect(
  turn: AsyncGenerator<TurnEvent>,
): Promise<{ events: TurnEvent[]; result: TurnResult }> {
  const events: TurnEvent[] = [];
  for await (const event of turn) events.push(event);
  const last = events.at(-1);
  if (last?.type !== "turn_finished") throw new Error("the last event is not turn_finished");
  return { events, result: last.result };
}

/** The results of a run's tool calls, in their order; run 1 is that of the turn itself. */
export function results(events: TurnEvent[], run = 1): string[] {
  return events.flatMap((event) =>
    event.type === "tool_result" && event.run === run ? [event.output] : []
  );
}

/** Names of the sub-sessions, in the order in which their runs started. */
export function subs(events: TurnEvent[]): string[] {
  return events.flatMap((event) => event.type === "run_started" ? [event.session] : []);
}

/** The system prompt of the backend's n-th request. */
export function systemOf(it: TestAgent, n = 0): string {
  return it.backend.chats[n].messages[0].content;
}
