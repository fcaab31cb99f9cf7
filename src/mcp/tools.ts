import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  type Tool,
} from "@modelcontextprotocol/server";
import { coreTool } from "../engine/tools/core.ts";
import type { HookedCall, Hooks, HookSettings } from "../engine/hooks.ts";
import type { Workspace } from "../engine/workspace.ts";
import { AdmissionQueue } from "../platform/admission_queue.ts";
import { stripControl } from "../platform/terminal.ts";
import type { ProcessRequest, ToolArguments, ToolDefinition } from "../plugins/api.ts";
import { authorize } from "../policy/gate.ts";
import { Grants } from "../policy/grants.ts";
import type { Operator } from "../policy/operator.ts";
import type { WorktreeGuard } from "../policy/paths.ts";
import { Policy, runsNothing } from "../policy/policy.ts";
import { policySettings } from "../policy/settings.ts";
import { runTool } from "../tools/execute.ts";
import { prepareChecked } from "../tools/prepare.ts";
import { activityLine, type ToolRegistry } from "../tools/registry.ts";
import { type RunAgent, runAgentTool } from "./run_agent.ts";

/** Calls of all clients that run at once, and that wait. */
const LIMITS = { running: 16, waiting: 256 };

/** Characters of a line of progress. */
const LONGEST_LINE = 200;

/** Cancellation and progress of one call. */
export interface CallHooks {
  signal: AbortSignal;
  /** Called with an activity line once the tool runs, and when it goes on to something else. */
  started?: (activity: string) => void;
  /**
   * Whether the client counts as the person who confirms calls: every client on stdio, and over HTTP one with a
   * token. Any user of the machine can send a request without one.
   */
  confirmed: boolean;
}

/**
 * The tools of a workspace for MCP clients (specification 4.2), offered and authorized by the policy. A client
 * has no session here, so there is no log and no audit.
 *
 * The core tools, which act for an agent of svc, are not offered. Neither is the category `mcp`: clients connect
 * to servers themselves, and a server that is connected to itself would call itself without end. Without a session,
 * no command runs in the background.
 */
export class McpTools {
  readonly #workspace: Workspace;
  readonly #guard: WorktreeGuard;
  readonly #policy: Policy;
  readonly #queue = new AdmissionQueue(LIMITS);
  readonly #runAgent: ToolDefinition;

  constructor(workspace: Workspace, run: RunAgent) {
    const { config } = workspace;
    this.#workspace = workspace;
    this.#runAgent = runAgentTool(run, workspace.tools);
    this.#guard = workspace.guard.sealed(); // no client changes svc's own settings (5.3.9)
    this.#policy = new Policy(policySettings(config, config.get("mode")), this.#guard, config);
  }

  /** The answer to `tools/list`, in the order of the registry, and then `run_agent`. */
  list(): Tool[] {
    const tools = this.#tools;
    const own = this.#runAgent.name;
    return tools.schema((tool) => this.#offers(tool)).map(({ function: described }) => ({
      name: described.name,
      description: described.description,
      inputSchema: described.parameters as Tool["inputSchema"],
      annotations: { readOnlyHint: READS.includes(tools.find(described.name)!.permission) },
    })).sort((one, other) => Number(one.name === own) - Number(other.name === own));
  }

  /**
   * Runs one call. An error of the tool and a denial of the policy are results with `isError`.
   *
   * @throws ProtocolError for an unknown tool, and when too many calls wait
   */
  async call(name: string, args: ToolArguments, hooks: CallHooks): Promise<CallToolResult> {
    const { config, clock, sandbox } = this.#workspace;
    const tools = this.#tools;
    const found = tools.find(name);
    if (found === undefined || !this.#has(found)) {
      const message = `Unknown tool: ${name.slice(0, 128)}`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
    }
    const prepare = (written: { name: string; arguments: string }) =>
      prepareChecked(tools, (tool) => this.#offers(tool), written);
    const given = await prepare({ name, arguments: JSON.stringify(args) });
    if (!given.ok) return failure(given.message);
    const watching = await this.#hooks(hooks.signal);
    const release = await this.#queue.enter(hooks, hooks.signal);
    if (release === undefined) throw new ProtocolError(BUSY, "Too many calls are waiting.");
    try {
      const hooked = await watching?.call("", given, prepare) ?? { prepared: given };
      const { prepared } = hooked;
      if (!prepared.ok) return failure(prepared.message);
      const { tool } = prepared;
      const authorization = await this.#authorize(tool, prepared.args, hooks, hooked);
      if (!authorization.granted) return failure(authorization.message);
      hooks.started?.(activityLine(tool, prepared.args));
      const { signal } = hooks;
      const { environment } = authorization;
      const max_result_chars: number = config.get("tool_max_result_chars");
      const images: CallToolResult["content"] = [];
      const context = {
        config,
        paths: authorization.paths,
        signal,
        session: "",
        reads: this.#policy.reads(),
        max_result: max_result_chars || undefined,
        progress: (text: string) => {
          const line = stripControl(this.#workspace.mask(text)).trim().split("\n").at(-1)!;
          if (line !== "") hooks.started?.(line.slice(0, LONGEST_LINE).toWellFormed());
        },
        attach: async (name: string, image: Uint8Array<ArrayBuffer>) => {
          const { imageAttachment } = await import("../engine/attachments.ts");
          const { media_type = "", content } = imageAttachment(name, image);
          images.push({ type: "image", mimeType: media_type, data: content.toBase64() });
        },
        key: (name: string, address: string) => this.#workspace.key(name, address),
        run: (request: ProcessRequest) =>
          sandbox.run({ ...request, env: { ...request.env, ...environment } }, signal),
      };
      const mask = (text: string) => this.#workspace.mask(text);
      const outcome = await runTool(tool, prepared.args, context, {
        max_result_chars,
        clock,
        mask,
      });
      const { output, is_error } = await watching?.result("", tool, prepared.args, outcome) ??
        outcome;
      return { content: [{ type: "text", text: output }, ...images], isError: is_error };
    } finally {
      release();
    }
  }

  /** The tools of the workspace, and `run_agent`. */
  get #tools(): ToolRegistry {
    return this.#workspace.tools.with(this.#runAgent, "svc");
  }

  /** Resolves when no call runs or waits. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  #has(tool: ToolDefinition): boolean {
    return coreTool(tool) === undefined && tool.permission !== "mcp" && !runsNothing(tool);
  }

  #offers(tool: ToolDefinition): boolean {
    return this.#has(tool) && this.#policy.offers(tool) && tool.offer?.("") !== false;
  }

  /** The operator's programs that watch the calls, where the settings have some. */
  async #hooks(signal: AbortSignal): Promise<Hooks | undefined> {
    const { config, sandbox, paths, warn } = this.#workspace;
    const settings: HookSettings = config.get("hooks");
    if (Object.keys(settings).length === 0) return undefined;
    const { Hooks } = await import("../engine/hooks.ts");
    return new Hooks({
      ...{ settings, signal, tell: warn, worktree: paths.worktree, mode: config.get("mode") },
      ...{ session: "", log: "", role: "", sub_agent: false },
      mask: (text) => this.#workspace.mask(text),
      run: (request) => sandbox.run(request, signal),
    });
  }

  #authorize(
    tool: ToolDefinition,
    args: ToolArguments,
    { signal, confirmed }: CallHooks,
    { refusal = "", demand = "" }: HookedCall,
  ) {
    return authorize({
      tool,
      args,
      policy: this.#policy,
      operator: this.#operator(confirmed && this.#policy.resolve(tool, args).outside.length === 0),
      grants: new Grants(),
      guard: this.#guard,
      refuse: () => Promise.resolve(refusal),
      demand: () => Promise.resolve(demand),
      preview: () => Promise.resolve(""),
      run: 0,
      session: "",
      signal,
    });
  }

  /**
   * A client that counts as the person has confirmed its calls, so a call that the policy would ask about runs
   * (4.2), unless `mcp_server.allow_ask` is false. A client cannot grant access to protected paths or paths outside
   * the worktree.
   */
  #operator(confirmed: boolean): Operator {
    const granted = confirmed && this.#workspace.config.get("mcp_server.allow_ask");
    return {
      confirm: () => Promise.resolve({ granted, scope: "once", by: "mcp client" }),
      ask: () => Promise.resolve(undefined),
    };
  }
}

/** Categories of tools that change nothing. */
const READS = ["read", "list", "web"];

/** A server error of the range that JSON-RPC reserves for implementations. */
const BUSY = -32000;

function failure(message: string): CallToolResult {
  return { content: [{ type: "text", text: message }], isError: true };
}
