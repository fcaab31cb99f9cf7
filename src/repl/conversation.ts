import { CONFIG_KEYS } from "../config/keys.ts";
import { ROOT_RUN, type TurnEvent } from "../engine/events.ts";
import { type Run, RunRegistry } from "../engine/runs.ts";
import type { PreparedAgent, StartedAgent } from "../engine/start.ts";
import type { TurnOptions } from "../engine/turn.ts";
import { SESSION_NEEDS, type Workspace } from "../engine/workspace.ts";
import { usageError } from "../platform/error.ts";
import { Grants } from "../policy/grants.ts";
import type { Operator } from "../policy/operator.ts";
import type { Backend } from "../providers/resolve.ts";
import type { NewAttachment } from "../sessions/attachments.ts";
import type { Session } from "../sessions/session.ts";

export interface ConversationOptions {
  workspace: Workspace;
  operator: Operator;
  /** A session to go on in, or to make under this name; otherwise one gets a name with its first turn. */
  session?: string;
  /** The role of new sessions. */
  role?: string;
  /** Whether the model that the configuration refers to counts as approved (specification 5.2). */
  granted: boolean;
  /** Whether a person is there who can be asked. */
  attended: boolean;
}

/**
 * The active session and its agents. An agent is started when a turn needs it, and again when settings,
 * connection or role have changed since; its runs and grants are kept.
 */
export class Conversation {
  readonly #options: ConversationOptions;
  #name: string | undefined;
  #session: Session | undefined;
  #runs: RunRegistry;
  #agents = new Map<number, { agent: StartedAgent; made: string }>();
  #grants = new Map<number, Grants>();
  /** Slash commands that were typed since the last turn. */
  #typed: string[] = [];
  /** What goes to the model with the next message. */
  #given: NewAttachment[] = [];

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#name = options.session && options.workspace.sessions.resolve(options.session);
    this.#runs = this.#newRuns();
  }

  /** The session's name; undefined until it has one. */
  get name(): string | undefined {
    return this.#name;
  }

  /** Whether the model that the configuration refers to needs the person's approval (specification 5.2). */
  get approves(): boolean {
    const { workspace: { config }, granted } = this.#options;
    return !granted && !config.get("approve_models") && !config.get("unattended");
  }

  get runs(): RunRegistry {
    return this.#runs;
  }

  /** The role that the root runs as; empty for none. */
  get role(): string {
    return this.#runs.list()[0]?.role ?? this.#options.role ?? "";
  }

  /** Goes over to another session; without a name to a new one, made with its first turn. */
  async switchTo(name: string | undefined): Promise<void> {
    await this.close();
    this.#name = name;
    this.#runs = this.#newRuns();
    this.#grants.clear();
  }

  /** Adds an attachment to the next message. */
  give(attachment: NewAttachment): void {
    this.#given.push(attachment);
  }

  /** Logs a slash command (specification 2.2) with the next turn, or when the session is closed. */
  log(command: string): void {
    this.#typed.push(command);
  }

  /** Opens the session, and creates it where it is missing. */
  open(): Session {
    const { workspace: { sessions }, role } = this.#options;
    this.#session ??= this.#name === undefined
      ? sessions.create("ses", { role })
      : sessions.open(this.#name, { role });
    this.#name = this.#session.name;
    return this.#session;
  }

  /** A turn of the focused run's agent; events of other runs have their own numbers. */
  async *turn(run: number, prompt: string, options: TurnOptions): AsyncGenerator<TurnEvent> {
    const agent = await this.agent(run);
    const commands = this.#typed.splice(0);
    const attachments = [...this.#given.splice(0), ...options.attachments ?? []];
    yield* agent.turn(prompt, { ...options, commands, attachments });
  }

  /** What the operator allowed a run until the session ends, in words. */
  approvals(run: number): string[] {
    return this.#grants.get(run)?.covers ?? [];
  }

  /** The agent of a run as the settings are now. */
  async agent(run: number): Promise<StartedAgent> {
    const prepared = await this.#prepare(run);
    const made = this.#signature(run, prepared);
    const there = this.#agents.get(run);
    if (there?.made === made) return there.agent;
    await there?.agent.close();
    this.#agents.delete(run);
    const agent = run === ROOT_RUN
      ? prepared.open(this.open())
      : await prepared.openRun(this.#runOf(run));
    this.#agents.set(run, { agent, made });
    return agent;
  }

  /** The backend of the root agent as the settings are now. */
  async backend(): Promise<Backend> {
    const { workspace, role } = this.#options;
    await workspace.load(SESSION_NEEDS);
    const { sessionRole } = await import("../engine/start.ts");
    const { model } = await sessionRole(workspace, { role, session: this.#name }) ?? {};
    return workspace.backend({ role_model: model });
  }

  /** Closes the agents and the session with their commands in the background; what was said is in its log. */
  async close(): Promise<void> {
    await this.#logTyped();
    const { commands } = this.#options.workspace;
    for (const { agent } of this.#agents.values()) {
      await commands.end(agent.session.name);
      await agent.close();
    }
    this.#agents.clear();
    this.#session?.close();
    this.#session = undefined;
  }

  /** Whether no one can approve calls. */
  get headless(): boolean {
    const { workspace, attended } = this.#options;
    return !attended || workspace.config.get("unattended");
  }

  /** Logs the commands after the last turn as a turn of their own, unless the session was never made. */
  async #logTyped(): Promise<void> {
    const commands = this.#typed.splice(0);
    if (this.#session === undefined || commands.length === 0) return;
    const busy = new AbortController();
    try {
      await this.#session.acquireTurn(busy.signal, () => busy.abort());
    } catch {
      return; // another process has a turn in it
    }
    const log = this.#session.beginTurn({ model: "", provider: "", mode: "", reasoning: false });
    for (const text of commands) log.append({ type: "command", text });
    log.end("ok");
  }

  async #prepare(run: number): Promise<PreparedAgent> {
    const { workspace, operator, role, granted } = this.#options;
    await workspace.load(SESSION_NEEDS);
    const grants = this.#grants.get(run) ?? new Grants();
    this.#grants.set(run, grants);
    const { prepareAgent } = await import("../engine/start.ts");
    return await prepareAgent(workspace, {
      session: this.#name,
      role,
      operator,
      headless: this.headless,
      model_named: granted,
      runs: this.#runs,
      grants,
    });
  }

  #runOf(id: number): Run {
    const run = this.#runs.list()[id - 1];
    if (run === undefined) throw usageError("focus_target", `There is no run #${id}.`);
    return run;
  }

  #newRuns(): RunRegistry {
    return new RunRegistry(this.#options.workspace.config.get("run_buffer_max_lines"));
  }

  /** Changes whenever an agent that was started before would no longer be the one to use. */
  #signature(run: number, { role, backend }: PreparedAgent): string {
    const { config } = this.#options.workspace;
    // Another agent may have resumed the run since, as another role and under less rights.
    const line = [...this.#runs.line(run), this.#runs.list()[run - 1]]
      .map((each) => [each?.id, each?.role, each?.stage]);
    const { provider, base_url, api_key, model } = backend;
    const settings = CONFIG_KEYS.map((key) => config.get(key));
    return JSON.stringify([settings, provider, base_url, api_key, model, role, line]);
  }
}
