import { resolve } from "node:path";
import { type ConfigValues, HOOK_EVENTS } from "../config/keys.ts";
import { errorMessage } from "../platform/error.ts";
import { jsonOr } from "../platform/files.ts";
import { stripControl } from "../platform/terminal.ts";
import type {
  ProcessRequest,
  ProcessResult,
  ToolArguments,
  ToolDefinition,
} from "../plugins/api.ts";
import type { Operator } from "../policy/operator.ts";
import { pathsOf } from "../policy/policy.ts";
import type { ToolOutcome } from "../tools/execute.ts";
import type { Prepared } from "../tools/prepare.ts";
import { TurnFailure } from "./events.ts";

type HookEvent = keyof typeof HOOK_EVENTS;

/** The value of the setting `hooks`: by the name of an event, the programs that it starts. */
export type HookSettings = ConfigValues["hooks"];

/** The names of tools in other agents, which their hooks compare with. */
const TOOL_NAMES: Record<string, string> = {
  run_command: "Bash",
  file_read: "Read",
  file_write: "Write",
  file_edit: "Edit",
  apply_patch: "Edit",
  glob: "Glob",
  grep: "Grep",
  list_dir: "LS",
  web_fetch: "WebFetch",
  web_search: "WebSearch",
  delegate: "Task",
};

/** Seconds. */
const TIMEOUT = 60;
/** Characters of a hook's output that are read, and of a reason that the model is sent. */
const MAX_OUTPUT = 100_000;
const MAX_REASON = 10_000;
/** How often the programs of `turn_end` can have one turn go on. */
const MAX_RETURNS = 5;

/** What the programs of one event have decided together. */
interface Verdict {
  /** Why the work must not go on; empty when it may. */
  refusal: string;
  /** Why the operator has to approve the call; empty when the policy alone decides. */
  demand: string;
  /** Arguments in place of the call's. */
  input?: Record<string, unknown>;
  /** What the model is told; empty for nothing. */
  context: string;
}

/** A call of which hooks have decided: why it must not run, and why it needs an approval; empty or left out for neither. */
export interface HookedCall {
  prepared: Prepared;
  refusal?: string;
  demand?: string;
}

/** What a hook needs of the agent, or of the server, whose work it watches. */
export interface HookScope {
  settings: HookSettings;
  run: (request: ProcessRequest, signal: AbortSignal) => Promise<ProcessResult>;
  /** Real absolute path. */
  worktree: string;
  /** The name of the session, and the path of its log. */
  session: string;
  log: string;
  /** Empty without one. */
  role: string;
  /** Whether another agent has started this one. */
  sub_agent: boolean;
  mode: string;
  mask: (text: string) => string;
  signal: AbortSignal;
  /** Receives what the operator is to know. */
  tell: (message: string) => void;
}

/**
 * The operator's programs that watch an agent (setting `hooks`): each gets JSON on standard input and says on standard
 * output, or by its exit code, what it decides. They can refuse and change, and they approve nothing: the policy decides
 * about every call in addition.
 */
export class Hooks {
  readonly #scope: HookScope;
  readonly #asks: Promise<unknown>[] = [];
  #returns = 0;

  constructor(scope: HookScope) {
    this.#scope = scope;
  }

  /** A turn that begins. @returns a text for the model @throws TurnFailure `refused` */
  async turnStart(prompt: string): Promise<string> {
    const { refusal, context } = await this.#verdict("turn_start", { prompt });
    if (refusal !== "") throw new TurnFailure("refused", `A hook refused the turn: ${refusal}`);
    return context;
  }

  /**
   * A call before the policy decides about it.
   *
   * @param prepare prepares the call with other arguments
   * @returns the call, perhaps changed
   */
  async call(
    id: string,
    prepared: Prepared,
    prepare: (written: { name: string; arguments: string }) => Promise<Prepared>,
  ): Promise<HookedCall> {
    if (!prepared.ok) return { prepared };
    const { tool, args } = prepared;
    const { refusal, demand, input } = await this.#verdict("tool_call", { tool_use_id: id }, {
      tool,
      args,
    });
    if (input === undefined) return { prepared, refusal, demand };
    const changed = await prepare({ name: tool.name, arguments: JSON.stringify(input) });
    return { prepared: changed, refusal, demand };
  }

  /** The outcome of a call, with what hooks tell the model about it. */
  async result(
    id: string,
    tool: ToolDefinition,
    args: ToolArguments,
    outcome: ToolOutcome,
  ): Promise<ToolOutcome> {
    const { output, is_error } = outcome;
    const given = { tool_use_id: id, tool_response: { output, is_error } };
    const { refusal, context } = await this.#verdict("tool_result", given, { tool, args });
    const notes = [refusal, context].filter((note) => note !== "").map((note) =>
      `\n[hook] ${note}`
    );
    return notes.length === 0 ? outcome : { ...outcome, output: output + notes.join("") };
  }

  /** The end of a turn. @returns what the model is asked to do before it; empty for nothing */
  async turnEnd(content: string): Promise<string> {
    const again = this.#returns > 0;
    const given = { stop_hook_active: again, last_assistant_message: content };
    const { refusal } = await this.#verdict("turn_end", given);
    return refusal !== "" && this.#returns++ < MAX_RETURNS ? refusal : "";
  }

  /** A question that waits for a person. The person is asked meanwhile. */
  ask(message: string): void {
    this.#asks.push(this.#verdict("ask", { message }).catch(() => {}));
  }

  /** An operator whose confirmations are questions that wait for a person. */
  watched(operator: Operator): Operator {
    return {
      ...operator,
      ask: (request) => operator.ask(request),
      confirm: (request) => {
        this.ask(`Approve a call of ${request.tool}? ${request.reason}`);
        return operator.confirm(request);
      },
    };
  }

  /** Resolves when the programs of questions have ended. */
  async settle(): Promise<void> {
    await Promise.all(this.#asks);
  }

  /** A conversation that is about to be shortened. */
  async compaction(): Promise<void> {
    await this.#verdict("compaction", { trigger: "auto", custom_instructions: "" });
  }

  async #verdict(
    event: HookEvent,
    given: Record<string, unknown>,
    call?: WatchedCall,
  ): Promise<Verdict> {
    const verdict: Verdict = { refusal: "", demand: "", context: "" };
    const { settings, sub_agent, worktree } = this.#scope;
    for (const name of [event, ...HOOK_EVENTS[event]]) {
      if (name === (sub_agent ? "Stop" : "SubagentStop")) continue;
      for (const { matcher = "", hooks } of settings[name] ?? []) {
        if (call !== undefined && !matches(matcher, call.tool.name)) continue;
        for (const { command, timeout = TIMEOUT } of hooks) {
          const watched = call && { ...call, args: verdict.input ?? call.args };
          // Absolute, as other agents give them: guards compare them with the worktree.
          const files = name !== event && watched
            ? filesOf(watched).map((file) => resolve(worktree, file))
            : [];
          for (const file of files.length > 0 ? files : [undefined]) {
            const input = this.#input(name, name !== event, given, watched, file);
            await this.#run({ event, command, timeout, input }, verdict);
            if (verdict.refusal !== "" && event !== "tool_result") return verdict;
            if (watched && verdict.input) verdict.input = withPath(verdict.input, watched, file);
          }
        }
      }
    }
    return verdict;
  }

  /**
   * @param foreign whether the event has the name, and its data the form, that other agents give it
   * @param file_path a file of the call, absolute, for that form
   */
  #input(
    name: string,
    foreign: boolean,
    given: Record<string, unknown>,
    call: WatchedCall | undefined,
    file_path: string | undefined,
  ): string {
    const { worktree, session, log, role, mode } = this.#scope;
    const { tool, args } = call ?? {};
    return JSON.stringify({
      hook_event_name: name,
      session_id: session,
      transcript_path: log,
      cwd: worktree,
      permission_mode: foreign && mode !== "plan" ? "default" : mode,
      ...(role !== "" && { agent_type: role }),
      ...(tool !== undefined && {
        tool_name: foreign ? foreignName(tool.name) : tool.name,
        tool_input: { ...args, ...file_path !== undefined && { file_path } },
      }),
      ...given,
    });
  }

  async #run(
    { event, command, timeout, input }: {
      event: HookEvent;
      command: string;
      timeout: number;
      input: string;
    },
    verdict: Verdict,
  ): Promise<void> {
    const { run, worktree, signal, tell } = this.#scope;
    const clean = (text: string) =>
      stripControl(this.#scope.mask(text)).trim().slice(0, MAX_REASON).toWellFormed();
    /** A guard that cannot speak has not agreed. */
    const broken = (why: string) => {
      if (event === "tool_call") verdict.refusal = `the hook ${command} ${why}`;
      else tell(`The hook ${command} of ${event} ${why}.`);
    };
    let ended: ProcessResult;
    try {
      ended = await run({
        command: ["sh", "-c", command],
        cwd: worktree,
        timeout,
        stdin: input,
        env: { SVC_PROJECT_DIR: worktree, CLAUDE_PROJECT_DIR: worktree },
        errors: "apart",
        max_output: MAX_OUTPUT,
      }, signal);
    } catch (error) {
      broken(`cannot be run: ${clean(errorMessage(error))}`);
      return;
    }
    signal.throwIfAborted();
    const { code, output, errors = "", timed_out } = ended;
    if (timed_out) return broken(`did not end within ${timeout} seconds`);
    if (code === 2) {
      verdict.refusal = clean(errors) || clean(output) || `refused by the hook ${command}`;
      return;
    }
    if (code > 125) return broken(`was not run to its end (exit ${code}): ${clean(errors)}`);
    if (code !== 0) {
      tell(`The hook ${command} of ${event} failed (exit ${code}): ${clean(errors || output)}`);
      return;
    }
    const said = jsonOr(output.trim() || "{}", undefined);
    if (typeof said !== "object" || said === null) {
      if (output.trimStart().startsWith("{")) return broken("wrote JSON that cannot be read");
      if (event === "turn_start") verdict.context = joined(verdict.context, clean(output));
      return;
    }
    const { decision, reason, continue: goesOn, stopReason, systemMessage, hookSpecificOutput } =
      said as Record<string, unknown>;
    const own = (hookSpecificOutput ?? {}) as Record<string, unknown>;
    const text = (value: unknown) => typeof value === "string" ? clean(value) : "";
    if (text(systemMessage) !== "") tell(text(systemMessage));
    verdict.context = joined(verdict.context, text(own.additionalContext));
    const answer = own.permissionDecision ?? decision;
    const why = text(own.permissionDecisionReason) || text(reason) ||
      `refused by the hook ${command}`;
    if (answer === "ask") verdict.demand = why;
    else if (answer === "deny" || answer === "block") verdict.refusal = why;
    if (goesOn === false) verdict.refusal = event === "turn_end" ? "" : text(stopReason) || why;
    const { updatedInput } = own;
    if (typeof updatedInput === "object" && updatedInput !== null) {
      verdict.input = updatedInput as Record<string, unknown>;
    }
  }
}

interface WatchedCall {
  tool: ToolDefinition;
  args: ToolArguments;
}

/** The files of a call that reads or changes one, or applies a patch. */
function filesOf({ tool, args }: WatchedCall): string[] {
  if (Array.isArray(tool.path_arg)) return [];
  return pathsOf(tool, args).filter((path) => typeof path === "string");
}

/** Arguments that a program has changed, with the path under the tool's own name for it. */
function withPath(
  { file_path, ...input }: Record<string, unknown>,
  { tool: { path_arg } }: WatchedCall,
  file: string | undefined,
): Record<string, unknown> {
  if (file === undefined || file_path === undefined || file_path === file) return input;
  return { ...input, ...typeof path_arg === "string" && { [path_arg]: file_path } };
}

function joined(one: string, other: string): string {
  return [one, other].filter((text) => text !== "").join("\n\n");
}

function foreignName(tool: string): string {
  const [server, name] = tool.split(".");
  return TOOL_NAMES[tool] ?? (name === undefined ? tool : `mcp__${server}__${name}`);
}

/** Whether a matcher, a regular expression for a whole name, covers a tool; empty and `*` cover all. */
function matches(matcher: string, tool: string): boolean {
  if (matcher === "" || matcher === "*") return true;
  try {
    const pattern = RegExp(`^(?:${matcher})$`);
    return pattern.test(tool) || pattern.test(foreignName(tool));
  } catch {
    return true; // a matcher that is no pattern must not switch a guard off
  }
}
