import type {
  PlanEntryStatus,
  SessionUpdate,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
} from "@agentclientprotocol/sdk";
import { parsePatch } from "diff";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { editsOf } from "../commands/changes.ts";
import { ROOT_RUN, type TurnEvent } from "../engine/events.ts";
import { MESSAGE } from "../engine/turn.ts";
import type { Workspace } from "../engine/workspace.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import type { ToolArguments } from "../plugins/api.ts";
import type { Part, Turn } from "../sessions/schema.ts";
import { activityLine } from "../tools/registry.ts";

/** Sends an update of a session to its client. */
export type Send = (update: SessionUpdate) => Promise<void>;

type Call = TurnEvent & { type: "tool_call" };

/** A call without its result. */
interface OpenCall {
  id: string;
  event: Call;
  /** The end of what it has printed. */
  printed: string;
  /** Whether the client has the diff of what it changes. */
  diff: boolean;
  /** The agent's plan, which is shown in place of the call. */
  plan: SessionUpdate | undefined;
}

/** Characters kept of what a running call prints. */
const PRINTED = 8000;

/** Shows the turns of a session to its client: running ones by their events, earlier ones by the log. */
export class Updates {
  readonly #workspace: Pick<Workspace, "tools" | "paths">;
  readonly #send: Send;
  readonly #open: OpenCall[] = [];
  /** Ids of calls by their arguments: a question about a call may arrive before the event. */
  readonly #ids = new WeakMap<ToolArguments, string>();
  /** The roles of the runs that the agent has started. */
  readonly #roles = new Map<number, string>();
  #calls = 0;

  constructor(workspace: Pick<Workspace, "tools" | "paths">, send: Send) {
    this.#workspace = workspace;
    this.#send = send;
  }

  /** Shows what an event says. Notices and the end of a turn are shown elsewhere; other agents show their calls. */
  async event(event: TurnEvent): Promise<void> {
    const own = event.run === ROOT_RUN;
    switch (event.type) {
      case "token":
        if (own) await this.#send(said("agent_message_chunk", event.content));
        break;
      case "thinking":
        if (own) await this.#send(said("agent_thought_chunk", event.content));
        break;
      case "run_started":
        this.#roles.set(event.run, event.role);
        break;
      case "tool_call":
        await this.#begin(event);
        break;
      case "tool_output":
        await this.#printed(event);
        break;
      case "permission":
        await this.#decided(event);
        break;
      case "tool_result":
        await this.#end(event);
        break;
      case "usage": {
        const { usage: { prompt_tokens = 0, completion_tokens = 0 }, window } = event;
        if (!own || window === undefined) break;
        const used = prompt_tokens + completion_tokens;
        await this.#send({ sessionUpdate: "usage_update", used, size: window });
      }
    }
  }

  /** Ends the calls without a result, after a turn that was cancelled. */
  async endTurn(): Promise<void> {
    for (const { id, plan } of this.#open.splice(0)) {
      if (plan === undefined) await this.#update(id, { status: "failed" });
    }
  }

  /** The id of the call that a question is about. */
  idOf({ run, tool, input }: { run: number; tool: string; input: ToolArguments }): string {
    const known = this.#ids.get(input) ?? this.#last(run, tool)?.id ?? this.newId();
    this.#ids.set(input, known);
    return known;
  }

  newId(): string {
    return `call-${++this.#calls}`;
  }

  /** What a question about a call shows of it: its title, its kind and the files that it concerns. */
  about(
    tool: string,
    input: ToolArguments,
  ): { title: string; kind: ToolKind; locations: ToolCallLocation[] } {
    const found = this.#workspace.tools.find(tool);
    return {
      title: found === undefined ? tool : activityLine(found, input),
      kind: kindOf(tool, found?.permission ?? ""),
      locations: this.#locations(tool, input),
    };
  }

  /** The diff that a preview or the arguments of a call show; empty where they show none. */
  diffs(args: ToolArguments, preview: string, clean = stripControl): ToolCallContent[] {
    const { worktree } = this.#workspace.paths;
    return changes(args, preview).map(({ path, before, after }) => ({
      type: "diff",
      path: resolve(worktree, path),
      oldText: before === undefined ? null : clean(before),
      newText: clean(after),
    }));
  }

  /** Shows turns of the log, as their updates came. */
  async replay(turns: readonly Turn[]): Promise<void> {
    for (const { index, parts } of turns) {
      for (const [at, part] of parts.entries()) await this.#part(part, `call-${index}-${at + 1}`);
    }
  }

  async #part(part: Part, id: string): Promise<void> {
    switch (part.type) {
      case "user": {
        const text = part.text.startsWith(MESSAGE) ? part.text.slice(MESSAGE.length) : part.text;
        await this.#send(said("user_message_chunk", text));
        for (const { name } of part.attachments ?? []) {
          const uri = pathToFileURL(resolve(this.#workspace.paths.worktree, name)).href;
          const content = { type: "resource_link" as const, name: oneLine(name), uri };
          await this.#send({ sessionUpdate: "user_message_chunk", content });
        }
        break;
      }
      case "text":
        await this.#send(said("agent_message_chunk", part.text));
        break;
      case "thinking":
        await this.#send(said("agent_thought_chunk", part.text));
        break;
      case "command":
        if (part.text.startsWith("/")) await this.#send(said("user_message_chunk", part.text));
        break;
      case "tool": {
        const { name, input, output, is_error } = part;
        const plan = planOf(name, input);
        if (plan !== undefined) {
          if (!is_error) await this.#send(plan);
          break;
        }
        const diff = is_error ? [] : this.#editOf(name, input);
        await this.#send({
          sessionUpdate: "tool_call",
          toolCallId: id,
          name,
          ...this.about(name, input),
          status: is_error ? "failed" : "completed",
          content: diff.length > 0 ? diff : [text(output)],
          rawInput: input,
          rawOutput: output,
        });
      }
    }
  }

  async #begin(event: Call): Promise<void> {
    const { run, name, category, status, arguments: input } = event;
    const id = this.#ids.get(input) ?? this.newId();
    this.#ids.set(input, id);
    const plan = run === ROOT_RUN ? planOf(name, input) : undefined;
    this.#open.push({ id, event, printed: "", diff: false, plan });
    if (plan !== undefined) return;
    const from = run === ROOT_RUN ? "" : `#${run} ${this.#roles.get(run) ?? ""}`.trim() + ": ";
    await this.#send({
      sessionUpdate: "tool_call",
      toolCallId: id,
      name,
      title: oneLine(from + (status || name)),
      kind: kindOf(name, category),
      status: "pending",
      locations: this.#locations(name, input),
      rawInput: input,
    });
  }

  async #printed({ run, id, content, skipped }: TurnEvent & { type: "tool_output" }) {
    const call = this.#find(run, id);
    if (call === undefined) return;
    const gap = skipped === 0 ? "" : `… ${skipped} lines left out\n`;
    call.printed = (call.printed + gap + content).slice(-PRINTED).toWellFormed();
    await this.#update(call.id, { status: "in_progress", content: [text(call.printed)] });
  }

  async #decided({ run, tool, decision, preview = "" }: TurnEvent & { type: "permission" }) {
    const call = this.#last(run, tool);
    if (call === undefined || call.plan !== undefined || decision !== "granted") return;
    const content = this.diffs(call.event.arguments, preview);
    call.diff = preview !== "" && content.length > 0;
    await this.#update(call.id, { status: "in_progress", ...call.diff && { content } });
  }

  async #end(event: TurnEvent & { type: "tool_result" }): Promise<void> {
    const { run, id, name, output, is_error, details = {} } = event;
    const call = this.#find(run, id);
    if (call === undefined) return;
    this.#open.splice(this.#open.indexOf(call), 1);
    if (call.plan !== undefined) return is_error ? undefined : await this.#send(call.plan);
    const input = call.event.arguments;
    const failed = is_error || (details.exit_code ?? 0) !== 0;
    const diff = is_error ? [] : this.#editOf(name, input);
    const content = call.diff && !is_error ? undefined : diff.length > 0 ? diff : [text(output)];
    await this.#update(call.id, {
      status: failed ? "failed" : "completed",
      ...content !== undefined && { content },
      ...details.line && { locations: this.#locations(name, input, details.line) },
      rawOutput: output,
    });
  }

  /** The diff of an edit, by its arguments. */
  #editOf(name: string, input: ToolArguments): ToolCallContent[] {
    return this.#workspace.tools.find(name)?.permission === "edit" ? this.diffs(input, "") : [];
  }

  #locations(name: string, args: ToolArguments, line?: number): ToolCallLocation[] {
    const { tools, paths: { worktree } } = this.#workspace;
    const paths = [tools.find(name)?.path_arg ?? []].flat().flatMap((each) => args[each] ?? []);
    return paths.filter((path) => typeof path === "string" && path !== "").map((path) => ({
      path: resolve(worktree, path),
      ...line !== undefined && { line },
    }));
  }

  #find(run: number, id: string): OpenCall | undefined {
    return this.#open.find(({ event }) => event.run === run && event.id === id);
  }

  #last(run: number, tool: string): OpenCall | undefined {
    return this.#open.findLast(({ event }) => event.run === run && event.name === tool);
  }

  #update(
    toolCallId: string,
    change: Omit<
      Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>,
      "sessionUpdate" | "toolCallId"
    >,
  ): Promise<void> {
    return this.#send({ sessionUpdate: "tool_call_update", toolCallId, ...change });
  }
}

/** An update with a text of a message. */
function said(
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  message: string,
): SessionUpdate {
  return { sessionUpdate, content: { type: "text", text: stripControl(message) } };
}

/** A text as it is, not as Markdown. */
export function text(content: string): ToolCallContent {
  const plain = stripControl(content);
  const longest = plain.match(/`{3,}/g)?.reduce((most, run) => Math.max(most, run.length), 2) ?? 2;
  const fence = "`".repeat(longest + 1);
  return { type: "content", content: { type: "text", text: `${fence}\n${plain}\n${fence}` } };
}

const KINDS: Record<string, ToolKind> = {
  read: "read",
  list: "search",
  edit: "edit",
  bash: "execute",
  dev: "execute",
  vcs: "execute",
  web: "fetch",
};

function kindOf(name: string, category: string): ToolKind {
  return name === "grep" ? "search" : KINDS[category] ?? "other";
}

const STATES = new Map<unknown, PlanEntryStatus>([
  ["active", "in_progress"],
  ["done", "completed"],
]);

/** The plan that a call of the tool `plan` writes; undefined for any other call. */
function planOf(name: string, { steps }: ToolArguments): SessionUpdate | undefined {
  if (name !== "plan" || !Array.isArray(steps)) return undefined;
  const entries = steps.map((each) => ({
    content: oneLine(String(each?.step)),
    priority: "medium" as const,
    status: STATES.get(each?.state) ?? "pending",
  }));
  return { sessionUpdate: "plan", entries };
}

/** What a call changes in a file, or in a part of it. Without `before`: all of it is new. */
interface Change {
  path: string;
  before?: string;
  after: string;
}

function changes(args: ToolArguments, preview: string): Change[] {
  const { path, content, mode } = args;
  if (/^--- [^\n]*\n\+\+\+ /m.test(preview)) return patched(preview, path);
  if (typeof path !== "string") return [];
  if (typeof content === "string" && mode !== "a") return [{ path, after: content }];
  return editsOf(args).map((edit) => ({ path, ...edit }));
}

/** The parts of files that a unified diff changes: of a file, where one is named. */
function patched(patch: string, file: unknown): Change[] {
  return parsePatch(patch).flatMap(({ oldFileName, newFileName, hunks }) =>
    hunks.map(({ lines }) => {
      const side = (signs: string) =>
        lines.filter((line) => signs.includes(line[0] ?? " ")).map((line) => line.slice(1)).join(
          "\n",
        );
      const named = newFileName === "/dev/null" ? oldFileName : newFileName;
      const path = typeof file === "string" ? file : named ?? "";
      return { path, ...oldFileName !== "/dev/null" && { before: side(" -") }, after: side(" +") };
    })
  );
}
