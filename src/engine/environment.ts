import { NO_REASON, systemClock } from "../platform/clock.ts";
import { exists } from "../platform/files.ts";
import type { EnvironmentService } from "../plugins/api.ts";
import type { AgentScope } from "./scope.ts";

/** Characters of the block, and of one line of it. */
const MOST = 600;
const LONGEST = 200;
/** Milliseconds that the services have. */
const LIMIT = 2000;

/**
 * Where a session works, for the end of its system prompt: the system, the day, and what the services `environment`
 * say, such as the branch and the kind of project. It is written once for a session, into the head of its first turn,
 * so that later processes and other machines send the same bytes.
 */
export async function environmentBlock(
  agent: AgentScope,
  signal: AbortSignal,
): Promise<string> {
  const { clock, config, rights: { guard }, sandbox, mask } = agent;
  const shell = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"].some(exists) ? "bash" : "sh";
  const { os, arch } = Deno.build;
  const day = new Date(clock.now()).toISOString().slice(0, 10);
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const context = {
    config,
    paths: guard.callPaths([]),
    signal: either,
    session: agent.session.name,
    key: agent.key,
    // No one is warned here that commands run without a sandbox: nothing runs then.
    run: async (request: Parameters<Sandbox["run"]>[0]) => {
      const free = config.get("sandbox.mode") === "off" || await sandbox.kind() !== undefined;
      if (!free) throw new Error("there is no sandbox");
      return await sandbox.run(request, either);
    },
  };
  const late = systemClock.sleep(LIMIT, over.signal).then(() => "", () => "");
  const lines = await Promise.all(
    agent.environment().map((service) => Promise.race([describe(service, context), late])),
  );
  over.abort(NO_REASON);
  const facts = lines.filter((line) => line !== "").map((line) => `\n${mask(line)}`);
  const own = `## Environment\n\nSystem: ${os} ${arch}, shell ${shell}\nDate: ${day} (UTC)`;
  return [own, ...facts].join("").slice(0, MOST).toWellFormed();
}

type Sandbox = AgentScope["sandbox"];

/** The line of a service; empty when it fails. */
async function describe(
  service: EnvironmentService,
  context: Parameters<EnvironmentService["describe"]>[0],
): Promise<string> {
  try {
    const line = String(await service.describe(context) ?? "");
    return line.replace(/\s+/g, " ").trim().slice(0, LONGEST);
  } catch {
    return "";
  }
}
