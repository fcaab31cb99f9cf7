import { errorMessage } from "../platform/error.ts";
import type { ToolDefinition } from "../plugins/api.ts";
import { actionOf, pathsOf, Policy } from "../policy/policy.ts";
import type { NewAttachment } from "../sessions/attachments.ts";
import type { NewPart } from "../sessions/schema.ts";
import type { Session, TurnLog } from "../sessions/session.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import { Account, startDeadline, turnTimeout } from "./budget.ts";
import { mayChange } from "./changes.ts";
import type { Checker } from "./checker.ts";
import { checkedRounds, type CheckedScope, withAnswer } from "./checks.ts";
import { NestedInstructions, ProviderContext } from "./context.ts";
import { COMMANDS_NOTE, LoggedTurn } from "./conversation.ts";
import {
  addRefused,
  failTurn,
  followLoss,
  TURN_LEFT,
  type TurnEvent,
  TurnFailure,
  type TurnResult,
  unfinishedResult,
} from "./events.ts";
import { quotaWait, TurnModels } from "./models.ts";
import type { Reply } from "./reply.ts";
import { Repetition } from "./repetition.ts";
import type { Hooks, HookSettings } from "./hooks.ts";
import type { AgentScope, TurnScope } from "./scope.ts";
import type { TurnMessage, TurnTask } from "./task.ts";
import { tracedTurn } from "./trace.ts";
import { fittingReply } from "./window.ts";

/** How one turn is run. */
export interface TurnOptions {
  signal?: AbortSignal;
  task?: TurnTask;
  /** The slash commands that were typed since the turn before, for the log alone (specification 2.2). */
  commands?: string[];
  /** What is given with the prompt. */
  attachments?: NewAttachment[];
  /** The messages of a person that have arrived since the last call: the model is sent them before its next reply. */
  messages?: () => TurnMessage[] | Promise<TurnMessage[]>;
  /** The time left to wait for quotas, of the turn that this one is a part of. Default: the task's. */
  quota_wait?: { seconds: number };
  /** What the turn is counted in. Default: an account of its own, with the limits of the task. */
  account?: Account;
}

/** One agent on one session. Turns run one after another. */
export class Engine {
  readonly #agent: AgentScope;
  readonly #policy: Policy;
  readonly #context: ProviderContext;

  constructor(agent: AgentScope) {
    const { rights: { settings, limit, guard }, config } = agent;
    this.#agent = agent;
    this.#policy = new Policy(settings, guard, config, limit);
    this.#context = new ProviderContext(agent, this.#policy);
  }

  /**
   * Runs one turn and yields what happens (specification 6.2). The last event is `turn_finished`.
   * Aborting the signal, or leaving the iteration, cancels the turn and its child processes; what was
   * produced is kept in the log with status `cancelled`.
   */
  async *turn(
    prompt: string,
    options: TurnOptions = {},
  ): AsyncGenerator<TurnEvent, void> {
    const { runs, run, rights } = this.#agent;
    runs.resume(run, { task: prompt });
    try {
      for await (const event of tracedTurn(this.#agent, prompt, this.#turn(prompt, options))) {
        if (event.run === run) runs.record(event); // events of other runs were recorded by their engine
        if (event.type === "turn_finished" && event.run === run) {
          runs.finish(run, event.result.status);
        }
        yield event;
      }
    } finally {
      rights.grants.endTurn();
      runs.finish(run, "cancelled"); // when the consumer left the iteration
    }
  }

  async *#turn(
    prompt: string,
    {
      signal,
      account,
      task = account?.task ?? {},
      commands: typed = [],
      attachments = [],
      messages,
      quota_wait,
    }: TurnOptions,
  ): AsyncGenerator<TurnEvent, void> {
    const {
      session,
      provider,
      meter,
      clock,
      run,
      rights: { settings },
      config,
      changes,
      commands,
    } = this.#agent;
    const closing = new AbortController();
    const seconds = account === undefined ? turnTimeout(task, config) : 0;
    const deadline = startDeadline(clock, seconds);
    const signals = [...signal ? [signal] : [], closing.signal, deadline.signal];
    const either = AbortSignal.any(signals);
    const started = clock.now();
    const pending: TurnEvent[] = [];
    const tell = (message: string) =>
      pending.push({ type: "notice", run, level: "warning", message });
    const { model } = provider;
    const result = unfinishedResult({ model, provider: provider.name, session: session.name });
    if (task.verify !== undefined) result.verified = false;
    account ??= new Account(task);
    const { usage: total_usage } = account;
    let log: TurnLog | LoggedTurn | undefined;
    let checker: Checker | undefined;
    let hooks: Hooks | undefined;
    let endChanges = () => Promise.resolve();
    const warnOfChanges = () => {
      const message = changes.warning();
      if (message !== "") tell(message);
    };
    let ended = false;
    const end = async (status: TurnResult["status"]) => {
      if (ended) return;
      ended = true;
      await hooks?.settle();
      await endChanges();
      warnOfChanges();
      Object.assign(result, { status, total_usage, cost: account.cost });
      const { provider: name } = result;
      log?.end(status, {
        ...(result.model !== model || name !== provider.name) &&
          { model: result.model, provider: name },
        usage: result.usage,
        cost: account.cost,
      });
      try {
        if (log !== undefined) await session.flush();
      } catch (error) {
        if (log instanceof LoggedTurn) log.forget();
        throw error;
      }
    };
    try {
      const waiting = Promise.withResolvers<"waiting">();
      const acquired = session.acquireTurn(either, () => waiting.resolve("waiting"));
      acquired.catch(() => {}); // the consumer may have left by then
      if (await Promise.race([acquired, waiting.promise]) === "waiting") {
        const message = `Session ${session.name} is busy with another turn; waiting for it.`;
        yield { type: "notice", run, level: "warning", message };
      }
      followLoss(await acquired, closing);
      await this.#context.load();
      const environment = await this.#context.environment(either);
      meter.begin(account, result.usage);
      log = session.beginTurn({
        model,
        provider: provider.name,
        mode: settings.mode,
        reasoning: config.get("reasoning"),
        environment,
      });
      endChanges = changes.begin(session.name, log.index);
      this.#agent.used();
      const turn = log = await this.#context.begin(log, environment);
      // What they write belongs to the turn in which they run.
      if (commands.of(session.name)?.running.length) await changes.scan(session.name);
      for (const text of typed) turn.append({ type: "command", text });
      turn.append(await userPart(session, prompt, attachments)); // before the event: who sees that can rely on it
      await session.share();
      yield {
        type: "turn_started",
        run,
        session: session.name,
        index: log.index,
        model,
        provider: provider.name,
        mode: settings.mode,
      };
      yield* pending.splice(0);
      const tools = await this.tools(either);
      hooks = await this.#hooks(either, tell);
      const told = await hooks?.turnStart(prompt) ?? "";
      if (told !== "") turn.append({ type: "system", text: told });
      const found = await this.#searchFirst(prompt, { signal: either, tell });
      if (found !== "") turn.append({ type: "system", text: found });
      await this.#context.compose(tools, tell);
      yield* pending.splice(0);
      const models = new TurnModels([this.#agent, ...this.#agent.fallbacks], {
        quota_wait: quota_wait ?? quotaWait(task, config),
        now: () => clock.now(),
      });
      const shared = {
        agent: this.#agent,
        log: turn,
        signal: either,
        result,
        task,
        models,
        messages,
        hooks,
      };
      const repetition = new Repetition();
      const policy = this.#policy;
      checker = await this.#checker({ ...shared, policy, tools }, tell);
      const counted = { round: 1, most: task.max_rounds ?? config.get("max_rounds") };
      const scope = await withAnswer({ ...shared, policy, tools, repetition, checker, counted });
      yield* checkedRounds(scope, () => runRounds(this.#context, scope));
      await end(result.status);
    } catch (thrown) {
      failTurn(
        result,
        thrown,
        either,
        (error) => this.#agent.mask(errorMessage(error)),
        (message) => log && session.recordError(0, message),
      );
      const { status } = result;
      try {
        await end(status); // the next turn waits for it
      } catch (unwritten) {
        if (status === "cancelled" && unwritten !== either.reason) {
          result.errors.push({ code: 0, message: errorMessage(unwritten) });
        }
      }
    } finally {
      // Reached with a turn still open when the consumer leaves the iteration.
      deadline.stop();
      closing.abort(TURN_LEFT);
      await checker?.ended();
      try {
        await end("cancelled");
      } catch {
        // The next turn of this session closes it.
      }
    }
    yield* pending.splice(0);
    for (const { message } of result.errors) yield { type: "notice", run, level: "error", message };
    result.duration = Math.max(0, clock.now() - started) / 1000;
    yield { type: "turn_finished", run, result };
  }

  /**
   * Runs one tool call that a person typed (specification 4.7 `/tool`): through the policy like a model's, and
   * into the log as a turn of its own.
   *
   * @param text what was typed, for the log
   */
  async *call(
    text: string,
    call: { name: string; arguments: string },
    { signal }: { signal: AbortSignal },
  ): AsyncGenerator<TurnEvent, void> {
    const { session, config, rights: { settings, grants }, changes } = this.#agent;
    const closing = new AbortController();
    signal = AbortSignal.any([signal, closing.signal]);
    const tools = await this.tools(signal);
    followLoss(await session.acquireTurn(signal), closing);
    const head = { model: "", provider: "", mode: settings.mode };
    const log = new LoggedTurn(
      session.beginTurn({ ...head, reasoning: config.get("reasoning") }),
    );
    let status: TurnResult["status"] = "error";
    const endChanges = changes.begin(session.name, log.index);
    try {
      log.append({ type: "command", text });
      await session.share();
      const id = `call_${log.index}`;
      const tool_calls = [{ id, type: "function" as const, function: call }];
      const scope = { agent: this.#agent, policy: this.#policy, tools, log, signal };
      const batch = yield* (await import("./call.ts")).runCalls({ tool_calls }, scope);
      if (batch.calls.every(({ is_error }) => !is_error)) status = "ok";
    } finally {
      grants.endTurn();
      await endChanges();
      log.end(signal.aborted ? "cancelled" : status);
      await session.flush();
    }
  }

  /** Reads the log before the first turn. @throws as `ProviderContext.load` */
  load(): Promise<void> {
    return this.#context.load();
  }

  /** Releases the providers. The session stays open: its opener closes it. */
  async close(): Promise<void> {
    this.#context.close();
    for (const { provider } of [this.#agent, ...this.#agent.fallbacks]) await provider.close?.();
  }

  /** The tools of a turn that begins now. Sources whose tools could not be called anyway are not asked. */
  tools(signal: AbortSignal): Promise<ToolRegistry> {
    const { tools, rights: { settings, headless, grants } } = this.#agent;
    const open = (category: string) => {
      const action = actionOf(settings, category);
      return action === "allow" || grants.has(category) || (action === "ask" && !headless);
    };
    return tools.forTurn(open, signal);
  }

  /** The project's own checker, where the settings have one and the turn may change files. */
  async #checker(
    scope: TurnScope,
    tell: (message: string) => void,
  ): Promise<Checker | undefined> {
    if (this.#agent.config.get("dev.check_cmd").trim() === "") return undefined;
    if (!scope.tools.list().some((tool) => mayChange(tool, {}) && offers(tool, scope))) return;
    const { Checker } = await import("./checker.ts");
    return new Checker(this.#agent, scope.signal, tell);
  }

  /** The operator's programs that watch the turn, where the settings have some. */
  async #hooks(
    signal: AbortSignal,
    tell: (message: string) => void,
  ): Promise<Hooks | undefined> {
    const { config, sandbox, session, prompt: { worktree }, rights, runs, run, mask } = this.#agent;
    const settings: HookSettings = config.get("hooks");
    if (Object.keys(settings).length === 0) return undefined;
    const { Hooks } = await import("./hooks.ts");
    const { role = "", parent = 0 } = runs.resolve(`#${run}`) ?? {};
    return new Hooks({
      ...{ settings, worktree, role, mask, signal, tell },
      run: (request) => sandbox.run(request, signal),
      session: session.name,
      log: session.path,
      sub_agent: parent !== 0,
      mode: rights.settings.mode,
    });
  }

  /** The results of a web search for the prompt, where the setting `web_search` is on. */
  #searchFirst(
    prompt: string,
    { signal, tell }: Pick<TurnScope, "signal"> & { tell: (message: string) => void },
  ): Promise<string> | "" {
    const { search, config, provider, key } = this.#agent;
    if (search === undefined || !config.get("web_search")) return "";
    const refusal = (probe: ToolDefinition, query: string) => {
      const { action, reason } = this.#policy.resolve(probe, { query });
      return action === "allow" ? "" : reason;
    };
    const scope = { config, provider, key, search: search(), refusal, signal };
    return import("./search.ts").then(({ searchFirst }) => searchFirst(prompt, scope, tell));
  }
}

/** Rounds in which every call was refused, after which the loop stops (specification 5.3.7). */
const REFUSAL_CAP = 3;

/**
 * Rounds of one reply and its tool calls each, until the model answers without calling a tool, a tool ends
 * the loop, or a cap is reached.
 *
 * @returns the answer; undefined after a tool that ends the loop
 * @throws TurnFailure a sentence that says which cap was reached; the signal's reason when it aborts
 */
async function* runRounds(
  context: ProviderContext,
  scope: CheckedScope & { models: TurnModels },
): AsyncGenerator<TurnEvent, Reply | undefined> {
  const { agent: { session, run, meter }, tools, signal, result, checker, counted, models } = scope;
  const { most } = counted;
  const nested = new NestedInstructions(scope.agent, context.conversation);
  let refusals = 0;
  for (let first = true;; counted.round++, first = false) {
    yield* takeMessages(scope);
    yield* tellCommands(context, scope, first);
    const schema = tools.schema((tool) => offers(tool, scope));
    await session.share(); // what tools did
    const reply = yield* fittingReply(context, schema, scope);
    for (const { code, message } of reply.errors) session.recordError(code, message);
    yield* meter.notices(run);
    if (reply.tool_calls.length === 0) {
      const answered = reply.status !== "empty" && reply.status !== "error";
      if (answered && counted.round !== most && (yield* takeMessages(scope))) continue;
      if (result.tool_calls.length > 0 && !answered) {
        yield {
          type: "notice",
          run,
          level: "warning",
          message: "The tool results so far are saved; a follow-up can ask for the answer again.",
        };
      }
      return reply;
    }
    await session.share(); // a process that lost the session runs no more tools
    checker?.begin();
    const window = context.window(models.provider);
    const room = (length: number) => window.room(length, reply.tool_calls.length, signal);
    const batch = yield* (await import("./call.ts")).runCalls(reply, { ...scope, room });
    const complaints = await checker?.endRound() ?? "";
    if (complaints !== "") scope.log.append({ type: "user", text: complaints });
    const touched = batch.calls.flatMap(({ name, arguments: args, refused }) => {
      const tool = refused ? undefined : tools.find(name);
      return tool === undefined ? [] : pathsOf(tool, args);
    });
    const { notes, warnings } = nested.notes(touched);
    for (const text of notes) scope.log.append({ type: "user", text });
    for (const message of warnings) yield { type: "notice", run, level: "warning", message };
    result.tool_calls.push(...batch.calls);
    addRefused(result, batch.refused);
    result.denied.push(...batch.denied);
    signal.throwIfAborted();
    refusals = batch.calls.every(({ refused }) => refused) ? refusals + 1 : 0;
    if (refusals === REFUSAL_CAP) {
      throw new TurnFailure(
        "refused",
        `Stopped: every tool call of ${REFUSAL_CAP} rounds in a row was refused.`,
      );
    }
    if (batch.stop) return undefined;
    meter.checkCalls();
    const repeated = scope.repetition?.endRound() ?? "";
    if (repeated !== "") scope.log.append({ type: "user", text: repeated });
    if (counted.round === most) {
      throw new TurnFailure(
        "rounds",
        `Stopped after ${most} rounds of tool calls (max_rounds). Their results are saved; a follow-up ` +
          "goes on from there.",
      );
    }
  }
}

/** How a message begins in the log, and for the model. */
export const MESSAGE = "[message] ";

/** Logs the messages that have arrived for the turn. Returns whether there were any. */
async function* takeMessages(
  { agent: { run, session }, log, messages }: TurnScope,
): AsyncGenerator<TurnEvent, boolean> {
  const arrived = await messages?.() ?? [];
  for (const { text, attachments = [] } of arrived) {
    log.append(await userPart(session, MESSAGE + text, attachments));
    yield { type: "message", run, content: text, at: String(log.parts) };
  }
  return arrived.length > 0;
}

/**
 * Tells the model, and the person, which commands have ended in the background, and the model which run there. The note
 * follows the conversation and stays in it, so that what was sent is sent again.
 *
 * @param first whether another process may have run those of the last note
 */
async function* tellCommands(
  { conversation }: ProviderContext,
  { agent: { run, session, commands, mask }, log }: TurnScope,
  first: boolean,
): AsyncGenerator<TurnEvent> {
  const own = commands.of(session.name);
  if (own === undefined && !(first && conversation.note(COMMANDS_NOTE))) return;
  const { commandsNote } = await import("./background_commands.ts");
  const { note, ended } = commandsNote(own, conversation.note(COMMANDS_NOTE), mask);
  if (note !== "") log.append({ type: "system", text: note });
  if (ended !== "") yield { type: "notice", run, level: "info", message: ended };
}

/** A text of a person for the log, with attachments, which are kept. */
async function userPart(
  { attachments: kept }: Session,
  text: string,
  given: NewAttachment[],
): Promise<NewPart & { type: "user" }> {
  const attachments = await Promise.all(given.map((each) => kept.keep(each)));
  return { type: "user", text, ...(attachments.length > 0 && { attachments }) };
}

/** Whether a tool is offered to the model: by the policy, alone or with a grant of the agent's, and by the tool itself. */
function offers(
  tool: ToolDefinition,
  { policy, agent: { provider, rights: { grants } } }: TurnScope,
): boolean {
  if (tool.offer?.(provider.model) === false) return false;
  return policy.offers(tool) || (grants.has(tool.permission) && policy.offers(tool, true));
}
