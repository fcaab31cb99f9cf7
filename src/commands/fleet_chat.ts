import { resolve } from "node:path";
import { Config } from "../config/config.ts";
import { fleetOverview } from "../fleet/overview.ts";
import { systemClock } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { readTextIfExists } from "../platform/files.ts";
import { openPaths } from "../platform/paths.ts";
import type { FleetContext } from "./fleet.ts";
import { readPrompt } from "./read_prompt.ts";

/** `fleet chat`: one turn of an agent that runs, over its HTTP API. */
export async function chatWithAgent(
  context: FleetContext,
  { name, prompt: given, session }: { name: string; prompt?: string; session?: string },
  print: (value: unknown, text: string) => void,
): Promise<number> {
  const { paths, roster, warn, io } = context;
  const { dir } = roster.need(name);
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
    const token = tokenOf(resolve(paths.worktree, dir), paths.user);
    const response = await fetch(`http://127.0.0.1:${port}/chat`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ prompt, ...(session !== undefined && { session }) }),
      redirect: "error",
      signal: interrupt.signal,
    });
    const result = await response.json();
    if (!response.ok) throw new Error(String(result?.error ?? `status ${response.status}`));
    print(result, `${String(result.content ?? "").trim()}\n`);
    for (const { message } of result.errors ?? []) io.note(`${name}: ${message}`);
    return result.status === "ok" || result.status === "truncated" ? 0 : 1;
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

/** A token that the agent takes, where it wants one. */
function tokenOf(dir: string, user: string): string | undefined {
  const path = Config.open(openPaths(dir, user)).get("serve.token_file");
  return path === "" ? undefined : readTextIfExists(path)?.split("\n").map((line) => line.trim())
    .find((line) => line !== "" && !line.startsWith("#"));
}
