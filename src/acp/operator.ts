import type {
  AgentContext,
  ClientCapabilities,
  PermissionOption,
  RequestPermissionRequest,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import type { Workspace } from "../engine/workspace.ts";
import { oneLine, visible } from "../platform/terminal.ts";
import {
  type AskRequest,
  type ConfirmAnswer,
  type ConfirmRequest,
  type Operator,
  PARK,
} from "../policy/operator.ts";
import { text, type Updates } from "./updates.ts";

/** What questions to the editor's user need. */
export interface OperatorRequest {
  client: AgentContext;
  capabilities: ClientCapabilities;
  sessionId: string;
  workspace: Workspace;
  updates: Updates;
}

/** The user of an editor, who is asked through the protocol. A question of a turn that has ended is withdrawn. */
export class EditorOperator implements Operator {
  readonly #request: OperatorRequest;

  constructor(request: OperatorRequest) {
    this.#request = request;
  }

  async confirm(request: ConfirmRequest): Promise<ConfirmAnswer> {
    const { workspace: { config, clock }, updates } = this.#request;
    const denied = (by: string): ConfirmAnswer => ({ granted: false, scope: "once", by });
    if (config.get("unattended")) return denied("unattended");
    const { tool, input, reason, preview, choices = [{ covers: "every such call", opens: "" }] } =
      request;
    const diff = updates.diffs(input, preview, visible);
    const shown = preview === "" ? JSON.stringify(input, null, 2) : preview;
    const over = new AbortController();
    const late = new AbortController();
    const seconds = config.get("confirm_timeout");
    if (seconds > 0) {
      clock.sleep(seconds * 1000, over.signal).then(() => late.abort(), () => {});
    }
    try {
      const call = {
        toolCallId: updates.idOf(request),
        ...updates.about(tool, input),
        content: [...diff.length > 0 ? diff : [text(visible(shown))], text(visible(reason))],
        rawInput: input,
      };
      const option = await this.#choose(call, [
        { optionId: "once", name: "Allow once", kind: "allow_once" },
        ...choices.map(({ covers, opens }, index): PermissionOption => ({
          optionId: `always ${index}`,
          name: oneLine(
            visible(`Always allow ${covers}${opens === "" ? "" : `, which opens ${opens}`}`),
          ),
          kind: "allow_always",
        })),
        { optionId: "reject", name: "Reject", kind: "reject_once" },
      ], AbortSignal.any([request.signal, late.signal]));
      if (late.signal.aborted) return denied("confirm_timeout");
      const [, choice] = /^always (\d+)$/.exec(option ?? "") ?? [];
      if (option === "once") return { granted: true, scope: "once", by: "operator" };
      if (choice === undefined) return denied("operator");
      return { granted: true, scope: "always", choice: Number(choice), by: "operator" };
    } finally {
      over.abort();
    }
  }

  async ask(request: AskRequest): Promise<string | typeof PARK | undefined> {
    const { workspace: { config }, capabilities: { elicitation } } = this.#request;
    if (config.get("unattended")) return PARK;
    if (elicitation?.form) return await this.#form(request);
    const { question, context, options, signal } = request;
    if (options.length === 0) return PARK;
    const chosen = await this.choose(question, options, { context, signal });
    return chosen === undefined ? undefined : options[chosen];
  }

  async approveModels(models: string[]): Promise<boolean> {
    if (this.#request.workspace.config.get("unattended")) return false;
    const title = `Approve ${models.join(", ")} for use from now on?`;
    return await this.choose(title, ["Approve"]) === 0;
  }

  /** A question that is about no call. Returns the number of the chosen option; undefined when it is rejected. */
  async choose(
    question: string,
    options: string[],
    { context = "", signal }: { context?: string; signal?: AbortSignal } = {},
  ): Promise<number | undefined> {
    const { client, sessionId, updates } = this.#request;
    const toolCallId = updates.newId();
    const title = oneLine(visible(question));
    const content = context === "" ? [] : [text(visible(context))];
    const update = (status: "pending" | "completed") =>
      client.notify("session/update", {
        sessionId,
        update: { sessionUpdate: "tool_call", toolCallId, title, content, status },
      }).catch(() => {});
    await update("pending");
    const chosen = await this.#choose({ toolCallId, title, content }, [
      ...options.map((name, index): PermissionOption => ({
        optionId: `${index}`,
        name: oneLine(visible(name)),
        kind: "allow_once",
      })),
      { optionId: "reject", name: "No answer", kind: "reject_once" },
    ], signal);
    await update("completed");
    const index = Number(chosen);
    return index in options ? index : undefined;
  }

  /** The id of the chosen option; undefined when there is none. */
  async #choose(
    call: ToolCallUpdate,
    options: PermissionOption[],
    signal?: AbortSignal,
  ): Promise<string | undefined> {
    const { client, sessionId } = this.#request;
    const toolCall = { status: "pending" as const, ...call };
    const question: RequestPermissionRequest = { sessionId, toolCall, options };
    try {
      const { outcome } = await client.request("session/request_permission", question, {
        cancellationSignal: signal,
        stopWaitingOnCancel: true,
      });
      return outcome.outcome === "selected" ? outcome.optionId : undefined;
    } catch {
      return undefined; // the turn has ended, or the client has gone
    }
  }

  /** An answer in a form; the options are suggestions. */
  async #form({ question, context, options, signal }: AskRequest): Promise<string | undefined> {
    const { client, sessionId } = this.#request;
    const choice = { type: "string" as const, title: "Answer", enum: options.map(visible) };
    const other = { type: "string" as const, title: "Another answer" };
    try {
      const answer = await client.request("elicitation/create", {
        mode: "form",
        sessionId,
        message: visible(context === "" ? question : `${question}\n\n${context}`),
        requestedSchema: options.length === 0
          ? { type: "object", properties: { answer: { ...other, title: "Answer" } } }
          : { type: "object", properties: { choice, answer: other } },
      }, { cancellationSignal: signal, stopWaitingOnCancel: true });
      if (answer.action !== "accept") return undefined;
      const given = answer.content as Record<string, unknown> | null | undefined;
      const written = String(given?.answer ?? "").trim();
      const chosen = choice.enum.indexOf(String(given?.choice ?? ""));
      return written || options[chosen];
    } catch {
      return undefined;
    }
  }
}
