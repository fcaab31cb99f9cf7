import { join, resolve } from "node:path";
import { Config } from "../../config/config.ts";
import type { TurnEvent } from "../../engine/events.ts";
import { fleetOverview } from "../../fleet/overview.ts";
import { systemClock } from "../../platform/clock.ts";
import { errorMessage, SvcError } from "../../platform/error.ts";
import { readTextIfExists } from "../../platform/files.ts";
import { openPaths } from "../../platform/paths.ts";
import { stripControl } from "../../platform/terminal.ts";
import type { FleetContext } from "./context.ts";
import { type Io, toJson } from "../io.ts";
import { readPrompt } from "../turn/read_prompt.ts";
import { turnRenderer } from "../turn/show_turn.ts";

/** What `fleet chat` is passed. */
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
  const agent = openAgent(resolve(paths.worktree, roster.need(name).dir), paths.user);
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
    const response = await fetch(`http://127.0.0.1:${port}/chat`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(output === "text" && { accept: "text/event-stream, application/json" }),
        ...(agent.token !== undefined && { authorization: `Bearer ${agent.token}` }),
      },
      body: JSON.stringify({ prompt, ...(session !== undefined && { session }) }),
      redirect: "error",
      signal: interrupt.signal,
    });
    const streamed = (response.headers.get("content-type") ?? "").includes("event-stream");
    const result = streamed
      ? await showEvents(response.body!, agent.asks, io)
      : await showWhole(response, output, { name, io });
    return result === "ok" || result === "truncated" ? 0 : 1;
  } catch (error) {
    if (interrupt.signal.aborted) throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
    const { cause = error } = error as Error;
    throw new SvcError("chat_failed", `${name} did not answer: ${errorMessage(cause)}.`, {
      hint: `Its log: svc fleet logs ${name}`,
      cause: error,
    });
  } finally {
    interrupt.release();
  }
}

/**
 * Shows a turn while it goes on, as `svc run --output text` does.
 *
 * @returns the status of the turn
 */
async function showEvents(
  body: ReadableStream<Uint8Array>,
  asks: string,
  io: Io,
): Promise<string> {
  const { createParser } = await import("eventsource-parser");
  const show = turnRenderer({ output: "text", verbose: false }, asks, io);
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

/** The same for an answer that comes as one: JSON was asked for, or the agent's program is another. */
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

/** An agent's folder: where its questions are parked, and a token that it takes where it wants one. */
function openAgent(dir: string, user: string): { asks: string; token: string | undefined } {
  const paths = openPaths(dir, user);
  const file = Config.open(paths).get("serve.token_file");
  const token = file === "" ? undefined : readTextIfExists(file)?.split("\n")
    .map((line) => line.trim()).find((line) => line !== "" && !line.startsWith("#"));
  return { asks: join(paths.state, "asks.json"), token };
}
