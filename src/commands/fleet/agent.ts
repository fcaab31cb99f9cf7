import { resolve } from "node:path";
import { acceptNew } from "../../config/check.ts";
import { configFile } from "../../config/config.ts";
import { setInText } from "../../config/edit.ts";
import { changeConfigFile, parseObject } from "../../config/file.ts";
import { findKey, unknownKey } from "../../config/key_path.ts";
import type { TurnEvent } from "../../engine/events.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { AgentAccess } from "../../fleet/agent_access.ts";
import { fleetOverview } from "../../fleet/status.ts";
import { systemClock } from "../../platform/clock.ts";
import { openPaths } from "../../platform/environment.ts";
import { errorMessage, SvcError, usageError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import { checkMode } from "../../policy/settings.ts";
import { approveModels } from "../../providers/model_approval.ts";
import { checkProvider, parseModelRef } from "../../providers/resolve.ts";
import { type Io, toJson } from "../io.ts";
import { readPrompt } from "../prompt.ts";
import { readActions, readDenied } from "../tool_permission.ts";
import { turnRenderer } from "../turn.ts";
import { openWorkspace } from "../workspace.ts";
import type { FleetContext } from "./supervise.ts";

/** The arguments of `fleet config`. */
export interface AgentConfig {
  name: string;
  path: string;
  provider?: string;
  model?: string;
  mode?: string;
  system_prompt?: string;
  tools_deny: readonly string[];
  tool_permission: readonly string[];
  role?: string;
  approve_model: boolean;
}

/**
 * Writes the options into the agent's `.svc/config.json`, all or none; everything else in the file stays,
 * comments included. Options override the values of the role.
 *
 * @throws SvcError (exit 2) for an unknown role, mode, provider, tool or agent, an invalid value, and a model that is
 * not approved
 */
export async function configureAgent(
  { paths, roster, io }: FleetContext,
  values: AgentConfig,
): Promise<{ file: string; set: Record<string, unknown> }> {
  const { dir } = roster.need(values.name);
  const agent = openPaths(resolve(paths.worktree, dir), paths.user);
  const file = configFile(agent, "local");
  const workspace = openWorkspace(values.path, io);
  await workspace.load({ providers: "all", roles: "all" });
  const own = openWorkspace(agent.worktree, io);
  const set = { ...await ofRole(workspace, values.role), ...await passed(values, own) };
  if (Object.keys(set).length === 0) {
    throw usageError("usage", "There is nothing to write.", "See: svc fleet config --help");
  }
  if (values.mode !== undefined) checkMode(own.config, values.mode);
  if (values.provider !== undefined) {
    await own.load({ providers: "all" });
    checkProvider(values.provider, own);
  }
  const changes = Object.entries(set).map(([name, value]) => {
    const key = findKey(name);
    if (key === undefined) throw unknownKey(name);
    return { key, value: acceptNew(key, value) };
  });
  await approve(workspace, set.model, values);
  await own.trust.changing(Object.keys(set), async () => {
    await changeConfigFile(file, (text = "{}\n") => {
      for (const { key, value } of changes) text = setInText(text, key, value, file);
      parseObject(text, file); // the result must still be readable
      return text;
    });
    own.config.reload();
  });
  await own.close();
  return { file, set };
}

/** The settings that a role contributes: its prompt, model and tool permissions. */
async function ofRole(
  workspace: Workspace,
  role: string | undefined,
): Promise<Record<string, unknown>> {
  if (role === undefined) return {};
  const catalog = await workspace.catalog();
  const { model, tool_permission } = catalog.need("role", role).value;
  const { identity, skills } = catalog.prompt(role);
  return {
    system_prompt: [identity, skills].filter((part) => part !== "").join("\n\n"),
    ...(model !== "" && { model }),
    ...categories(Object.entries(tool_permission)),
  };
}

async function passed(values: AgentConfig, agent: Workspace): Promise<Record<string, unknown>> {
  const { provider, model, mode, system_prompt } = values;
  const given = { provider, model, mode, system_prompt };
  const tools_deny = await readDenied(values.tools_deny, agent);
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    ...(tools_deny.length > 0 && { "tools.deny": tools_deny }),
    ...categories(Object.entries(await readActions(values.tool_permission, agent))),
  };
}

function categories(actions: [string, unknown][]): Record<string, unknown> {
  return Object.fromEntries(actions.map(([name, value]) => [`tool_permission.${name}`, value]));
}

/** Approves a model that was passed; one that a role refers to needs `--approve-model`. */
async function approve(workspace: Workspace, model: unknown, values: AgentConfig): Promise<void> {
  if (typeof model !== "string") return;
  const ref = parseModelRef(model, workspace);
  const granted = values.approve_model || values.model !== undefined;
  await approveModels([ref], workspace.models, { granted });
}

/** The arguments of `fleet chat`. */
interface Chat {
  name: string;
  prompt?: string;
  session?: string;
  output: string;
}

/** `fleet chat`: one turn of an agent that runs, over its HTTP API; its answer is shown as it comes. */
export async function chatWithAgent(
  context: FleetContext,
  { name, prompt: given, session, output }: Chat,
): Promise<number> {
  const { paths, roster, warn, io } = context;
  const agent = new AgentAccess(resolve(paths.worktree, roster.need(name).dir), {
    user: paths.user,
    environment: io.environment,
    trusted: false,
    clock: systemClock,
    warn,
  });
  const prompt = await readPrompt(given, { unattended: false }, io, {
    missing: "There is nothing to say.",
    hint: `Try: svc fleet chat ${name} "what can you do?"`,
  });
  const { agents } = await fleetOverview(paths.state, roster, systemClock, warn);
  const port = agents.find((agent) => agent.name === name)?.port ?? undefined;
  if (port === undefined) {
    throw new SvcError("agent_down", `The agent ${name} is not running.`, {
      hint: "See why with: svc fleet status",
    });
  }
  const interrupt = io.onInterrupt();
  try {
    const response = await agent.post(port, "/chat", {
      prompt,
      ...(session !== undefined && { session }),
    }, {
      signal: interrupt.signal,
      ...(output === "text" && { accept: "text/event-stream, application/json" }),
    });
    const streamed = (response.headers.get("content-type") ?? "").includes("event-stream");
    const result = streamed
      ? await showEvents(response.body!, agent.asks.path, io)
      : await showWhole(response, output, { name, io });
    return result === "ok" || result === "truncated" ? 0 : 1;
  } catch (error) {
    if (interrupt.signal.aborted) throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
    const { cause = error } = error as Error;
    throw new SvcError(
      "chat_failed",
      `${name} did not answer: ${errorMessage(cause).replace(/\.$/, "")}.`,
      {
        hint: `Its log: svc fleet logs ${name}`,
        cause: error,
      },
    );
  } finally {
    interrupt.release();
  }
}

/**
 * Shows the events of a turn as they arrive, as `svc run --output text` does.
 *
 * @returns the status of the turn
 */
async function showEvents(
  body: ReadableStream<Uint8Array>,
  asks: string,
  io: Io,
): Promise<string> {
  const { createParser } = await import("eventsource-parser");
  const show = turnRenderer({ output: "text" }, asks, io);
  let status: string | undefined;
  const parser = createParser({
    onEvent({ event, data }) {
      const value = JSON.parse(data);
      if (event === "error") throw new Error(String(value.error));
      if (event === "result") status = String(value.status);
      else show(value as TurnEvent);
    },
  });
  for await (const text of body.pipeThrough(new TextDecoderStream())) parser.feed(text);
  if (status === undefined) throw new Error("its answer broke off");
  return status;
}

/** Shows an answer that arrives as one document: JSON was requested, or the agent cannot stream. */
async function showWhole(
  response: Response,
  output: string,
  { name, io }: { name: string; io: Io },
): Promise<string> {
  const result = await response.json();
  if (!response.ok) throw new Error(String(result?.error ?? `status ${response.status}`));
  const content = stripControl(String(result.content ?? "")).trim();
  io.out(output === "json" ? `${toJson(result, 2)}\n` : `${content}\n`);
  for (const { message } of result.errors ?? []) io.note(`${name}: ${message}`);
  return result.status;
}
