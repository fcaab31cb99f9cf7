import type {
  AgentContext,
  ClientCapabilities,
  ContentBlock,
  McpServer,
  PromptResponse,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
} from "@agentclientprotocol/sdk";
import type { Io } from "../commands/io.ts";
import { requested } from "../commands/providers.ts";
import { openingsOf } from "../commands/trust.ts";
import { ROOT_RUN, type TurnEvent, type TurnResult } from "../engine/events.ts";
import { RunRegistry } from "../engine/runs.ts";
import { sessionRole, startAgent } from "../engine/start.ts";
import { SESSION_NEEDS, type Workspace } from "../engine/workspace.ts";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import { Grants } from "../policy/grants.ts";
import { checkMode } from "../policy/settings.ts";
import { availableCommands, runCommand } from "./commands.ts";
import { EditorOperator } from "./operator.ts";
import { promptOf } from "./prompt.ts";
import { Updates } from "./updates.ts";

/** What a session of an editor is opened with. */
export interface SessionRequest {
  /** Its name in the log, and for the client. */
  name: string;
  /** The workspace of this session alone, in which its mode, its model and its MCP servers are overrides. */
  workspace: Workspace;
  /** The role that new sessions run as. Default: the one that owns the session. */
  role?: string;
  /** Whether the model was named for the process, which approves it. */
  model_named: boolean;
  client: AgentContext;
  capabilities: ClientCapabilities;
  io: Io;
  /** The models that the backend in use offers, `<provider>/<model>` each. */
  offered(workspace: Workspace, signal: AbortSignal): Promise<string[]>;
}

type Notice = Pick<TurnEvent & { type: "notice" }, "level" | "message">;

const EFFORTS = ["off", "on", "auto", "low", "medium", "high"];
const FENCE = "````";

/** A session of an editor. Its prompts and commands run one after another. */
export class EditorSession {
  readonly workspace: Workspace;
  readonly #request: SessionRequest;
  readonly #updates: Updates;
  readonly #operator: EditorOperator;
  readonly #grants = new Grants();
  readonly #runs: RunRegistry;
  readonly #running = new Set<AbortController>();
  readonly #closing = new AbortController();
  /** Notices that the client is not sent yet. */
  readonly #notices: Notice[] = [];
  /** Slash commands since the last turn. */
  #typed: string[] = [];
  #offered: string[] = [];
  #model_named: boolean;
  #role_model: string | undefined;
  #line: Promise<unknown> = Promise.resolve();
  /** Whether the client is told what the worktree opens, and the title. */
  #noted = false;
  #titled = false;
  /** The options and the mode as the client knows them. */
  #shown = "";
  #mode = "";

  constructor(request: SessionRequest) {
    const { workspace, client, capabilities, name: sessionId } = request;
    this.#request = request;
    this.workspace = workspace;
    this.#model_named = request.model_named;
    this.#updates = new Updates(workspace, (update) => this.#send(update));
    this.#operator = new EditorOperator({
      client,
      capabilities,
      sessionId,
      workspace,
      updates: this.#updates,
    });
    this.#runs = new RunRegistry(workspace.config.get("run_buffer_max_lines"));
  }

  /** Takes a notice, which the client is sent with the next update. */
  notice(notice: Notice): void {
    this.#notices.push(notice);
  }

  /** Loads the plugins; the settings of the session are known then. @throws SvcError for an unknown role (exit 2) */
  async load(): Promise<{ modes: SessionModeState; configOptions: SessionConfigOption[] }> {
    const { workspace } = this;
    const { name: session, role } = this.#request;
    await workspace.load(SESSION_NEEDS);
    const begun = workspace.sessions.stamp(session) !== "";
    const found = await sessionRole(workspace, begun ? { session } : { role });
    this.#role_model = found?.model;
    const configOptions = this.options();
    this.#remember(configOptions);
    return { modes: this.#modes(), configOptions };
  }

  /** Sends the commands, and the models that the backend offers, once the client knows the session. */
  async announce(): Promise<void> {
    const { workspace } = this;
    const commands = await availableCommands(workspace);
    await this.#send({
      sessionUpdate: "available_commands_update",
      availableCommands: commands,
    });
    if (this.#request.capabilities.session?.notices) await this.#flush();
    const { signal } = this.#closing;
    this.#offered = await this.#request.offered(workspace, signal).catch(() => []);
    if (!signal.aborted) await this.#sendOptions();
  }

  /** Sends all turns of the log. */
  async replay(): Promise<void> {
    await this.#updates.replay(await this.workspace.sessions.turns(this.#request.name) ?? []);
  }

  /**
   * Runs a message or a slash command to its end.
   *
   * @param signal cancels it, as `cancel` does
   * @throws SvcError for a prompt that cannot run, and a turn that failed
   */
  async prompt(blocks: ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
    const stop = new AbortController();
    this.#running.add(stop);
    const either = AbortSignal.any([signal, stop.signal, this.#closing.signal]);
    const before = this.#line;
    const run = (async () => {
      await before.catch(() => {});
      if (either.aborted) return { stopReason: "cancelled" } as const;
      return await this.#run(blocks, either);
    })();
    this.#line = run;
    try {
      return await run;
    } finally {
      this.#running.delete(stop);
    }
  }

  /** Cancels what runs and what waits. */
  cancel(): void {
    for (const stop of this.#running) stop.abort(new DOMException("Interrupted.", "AbortError"));
  }

  /** @throws SvcError `unknown_mode` (exit 2) */
  async setMode(mode: string): Promise<void> {
    checkMode(this.workspace.config, mode);
    this.workspace.config.override("mode", mode);
    await this.#sendOptions();
  }

  /** @throws SvcError (exit 2) for an option or a value that the session does not have */
  setOption(id: string, value: unknown): SessionConfigOption[] {
    const { config } = this.workspace;
    const option = this.options().find((each) => each.id === id);
    const values = option?.type === "select" ? option.options : [];
    if (!values.some((each) => "value" in each && each.value === value)) {
      throw usageError("option", `The session has no option ${id} with the value ${value}.`);
    }
    if (id === "model") this.#setModel(String(value));
    else config.override(id, value);
    const options = this.options();
    this.#remember(options);
    return options;
  }

  #remember(options: SessionConfigOption[]): void {
    this.#shown = JSON.stringify(options);
    this.#mode = this.workspace.config.get("mode");
  }

  /** The settings of the session, and their values. */
  options(): SessionConfigOption[] {
    const { config } = this.workspace;
    const select = (
      id: string,
      name: string,
      category: string,
      currentValue: string,
      values: string[],
    ): SessionConfigOption => ({
      type: "select",
      id,
      name,
      category,
      currentValue,
      options: [...new Set([currentValue, ...values])].map((value) => ({
        value,
        name: oneLine(value),
      })),
    });
    const model = this.#model();
    const effort = config.get("reasoning");
    const reasoning = typeof effort === "boolean" ? effort ? "on" : "off" : effort;
    const { currentModeId, availableModes } = this.#modes();
    const approved = this.workspace.models.list()
      .map(({ provider, model }) => `${provider}/${model}`);
    return [
      select("mode", "Mode", "mode", currentModeId, availableModes.map(({ id }) => id)),
      ...model === "" ? [] : [
        select("model", "Model", "model", model, [...approved, ...this.#offered]),
      ],
      select("reasoning", "Reasoning", "thought_level", reasoning, EFFORTS),
    ];
  }

  /** Cancels what runs, and closes the workspace. @param signal ends background work early */
  async close(signal?: AbortSignal): Promise<void> {
    this.#closing.abort(new DOMException("The session was closed.", "AbortError"));
    await this.#line.catch(() => {});
    await this.workspace.close(signal);
  }

  async #run(blocks: ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
    if (!this.#noted) await this.#noteTrust();
    await this.#flush();
    const [first] = blocks;
    if (first?.type === "text" && first.text.trimStart().startsWith("/")) {
      if (await this.#command(blocks, signal)) {
        return { stopReason: signal.aborted ? "cancelled" : "end_turn" };
      }
    }
    const { text, attachments, left } = promptOf(blocks, this.workspace.paths.worktree);
    for (const message of left) this.notice({ level: "warning", message });
    const result = await this.#turn(text, attachments, signal);
    const { status, reason, errors } = result;
    if (!this.#titled) await this.#title();
    if (status === "cancelled") return { stopReason: "cancelled" };
    const failed = status === "error" && reason !== "rounds";
    const message = errors.map((each) => each.message).join(" ");
    if (failed) throw new SvcError(reason || "turn", message || "The turn failed.");
    if (message !== "") this.notice({ level: "error", message });
    await this.#flush();
    return {
      stopReason: status === "truncated"
        ? "max_tokens"
        : status === "error"
        ? "max_turn_requests"
        : "end_turn",
    };
  }

  async #turn(
    prompt: string,
    attachments: ReturnType<typeof promptOf>["attachments"],
    signal: AbortSignal,
  ): Promise<TurnResult> {
    const { workspace } = this;
    const { name, role } = this.#request;
    await workspace.sessions.current(name);
    const agent = await startAgent(workspace, {
      session: name,
      role: workspace.sessions.stamp(name) === "" ? role : undefined,
      operator: this.#operator,
      headless: workspace.config.get("unattended"),
      model_named: this.#model_named,
      runs: this.#runs,
      grants: this.#grants,
    });
    let result!: TurnResult;
    try {
      const commands = this.#typed.splice(0);
      for await (const event of agent.turn(prompt, { signal, attachments, commands })) {
        const own = event.run === ROOT_RUN;
        if (event.type === "turn_finished" && own) result = event.result;
        else if (event.type === "ask") this.notice({ level: "warning", message: parked(event) });
        // The errors of the turn itself are the answer to the prompt.
        else if (event.type === "notice" && !(own && event.level === "error")) this.notice(event);
        await this.#flush();
        await this.#updates.event(event);
      }
    } finally {
      await this.#updates.endTurn();
      await agent.close();
    }
    return result;
  }

  /** Runs a slash command; false when the message is none. */
  async #command(blocks: ContentBlock[], signal: AbortSignal): Promise<boolean> {
    const { workspace } = this;
    const { name, io } = this.#request;
    const message = blocks.map((block) => block.type === "text" ? block.text : "").join("");
    let sent: Promise<unknown> | undefined;
    const say = (text: string) =>
      this.#send({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    const typed = await runCommand(message, {
      workspace,
      io,
      operator: this.#operator,
      session: workspace.sessions.stamp(name) === "" ? undefined : name,
      approvals: this.#grants.covers,
      signal,
      print: (text) => sent = say(sent === undefined ? `${FENCE}\n${text}` : text),
    });
    if (typed === undefined) return false;
    if (sent !== undefined) await say(`\n${FENCE}\n`);
    if (typed !== "") this.#typed.push(typed);
    await this.#sendOptions();
    return true;
  }

  async #title(): Promise<void> {
    const summary = this.workspace.sessions.summary(this.#request.name);
    if (summary === undefined) return;
    this.#titled = true;
    await this.#send({
      sessionUpdate: "session_info_update",
      title: oneLine(summary.first_prompt),
      updatedAt: summary.updated_at,
    });
  }

  /** Says what the worktree would open and is not trusted. */
  async #noteTrust(): Promise<void> {
    const { workspace } = this;
    this.#noted = true;
    if (!workspace.trust.pending) return;
    const left = (await openingsOf(workspace)).filter(({ state }) => state !== "accepted");
    if (left.length === 0) return;
    const ids = left.map(({ id }) => oneLine(id)).join(", ");
    this.notice({
      level: "warning",
      message: `Left out, not being trusted: ${ids}. /trust shows and accepts them.`,
    });
  }

  #setModel(ref: string): void {
    const { config } = this.workspace;
    const provider = this.#provider();
    if (ref.startsWith(`${provider}/`)) config.override("model", ref.slice(provider.length + 1));
    else {
      config.release("provider");
      config.release("base_url");
      config.override("model", ref);
    }
    this.#model_named = true; // the person chose it
  }

  /** The provider of the settings, whatever the role's is; empty while none is configured. */
  #provider(): string {
    try {
      return requested(this.workspace).provider;
    } catch {
      return "";
    }
  }

  /** The model in use, with its provider; empty while none is configured. */
  #model(): string {
    try {
      const { provider, model } = this.workspace.backend({ role_model: this.#role_model });
      return `${provider}/${model}`;
    } catch {
      return "";
    }
  }

  #modes(): SessionModeState {
    const { config } = this.workspace;
    const currentModeId = config.get("mode");
    const ids = new Set(["build", "plan", ...Object.keys(config.get("modes")), currentModeId]);
    const availableModes = Array.from(ids, (id) => ({
      id,
      name: oneLine(id),
      ...id === "plan" && { description: "Reads and answers, and changes nothing." },
    }));
    return { currentModeId, availableModes };
  }

  /** Sends the settings when they are not what the client knows. */
  async #sendOptions(): Promise<void> {
    const configOptions = this.options();
    const shown = JSON.stringify(configOptions);
    if (shown === this.#shown) return;
    const before = this.#mode;
    this.#remember(configOptions);
    await this.#send({ sessionUpdate: "config_option_update", configOptions });
    const { currentModeId } = this.#modes();
    if (currentModeId !== before) {
      await this.#send({ sessionUpdate: "current_mode_update", currentModeId });
    }
  }

  /** Sends the notices. A client that takes none gets those that matter as text. */
  async #flush(): Promise<void> {
    const { notices } = this.#request.capabilities.session ?? {};
    for (const { level, message } of this.#notices.splice(0)) {
      const title = oneLine(message);
      if (notices) await this.#send({ sessionUpdate: "notice", severity: level, title });
      else {
        const sessionUpdate = level === "info" ? "agent_thought_chunk" : "agent_message_chunk";
        const text = `\n\n> svc: ${title}\n\n`;
        await this.#send({ sessionUpdate, content: { type: "text", text } });
      }
    }
  }

  /** Sends an update; one for a client that has gone is dropped. */
  async #send(update: SessionUpdate): Promise<void> {
    const { client, name: sessionId } = this.#request;
    await client.notify("session/update", { sessionId, update }).catch(() => {});
  }
}

function parked({ id, question }: TurnEvent & { type: "ask" }): string {
  return `Ask #${id} is parked: ${question} Answer it with: /asks answer ${id} TEXT`;
}

/**
 * Servers that a client hands over, as entries of the setting `mcp.servers`.
 *
 * @throws SvcError (exit 2) for one that svc cannot reach
 */
export function serverEntries(
  servers: readonly McpServer[],
): { name: string; [key: string]: unknown }[] {
  const pairs = (list: { name: string; value: string }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, value]));
  return servers.map((server) => {
    const { name } = server;
    const prefix = name.replace(/[^\w-]+/g, "_");
    if (!("type" in server)) {
      const { command, args, env } = server;
      return { name, prefix, command, args, env: pairs(env) };
    }
    if (server.type === "http") {
      return { name, prefix, transport: "http", url: server.url, headers: pairs(server.headers) };
    }
    throw usageError("mcp_server", `The MCP server ${name} uses SSE, which svc does not speak.`);
  });
}

/** The message of an error for the editor's user, with its hint. */
export function errorText(error: unknown): string {
  const hint = error instanceof SvcError && error.hint !== "" ? ` ${error.hint}` : "";
  return stripControl(errorMessage(error) + hint);
}
