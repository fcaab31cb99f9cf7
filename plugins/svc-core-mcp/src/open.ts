import type { Client, JsonSchemaValidator } from "@modelcontextprotocol/client";
import type { SourceHost } from "../../../src/plugins/api.ts";
import { boundedFetch } from "./bounded_fetch.ts";
import { LineTransport } from "./line_transport.ts";
import { concealer } from "./secrets.ts";
import type { ServerSettings } from "./settings.ts";

/** Milliseconds that a server has for its answer to the probe. */
const PROBE = 5000;

/** A server's own patterns are not run here: one that takes forever would stop everything. */
const TRUSTING = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
  },
};

/** A connection that stands, and why it no longer does once it does not. */
export interface Opened {
  client: Client;
  trouble(): string;
}

/**
 * Connects a server (specification 4.3): `server/discover` first, and `initialize` when that says nothing. A
 * server that goes at the probe is started again without one.
 *
 * @param changed called when the server says that its tools are others now
 * @throws when it cannot be reached, does not speak the protocol, or the signal aborts
 */
export async function openServer(
  settings: ServerSettings,
  host: SourceHost,
  signal: AbortSignal,
  changed: () => void,
): Promise<Opened> {
  if (settings.transport === "http") return await open("auto", settings, host, signal, changed);
  try {
    return await open("auto", settings, host, signal, changed);
  } catch (error) {
    if (!(error instanceof WentAway) || signal.aborted) throw error;
    return await open("legacy", settings, host, signal, changed);
  }
}

/** The server ended while it was being connected. */
class WentAway extends Error {}

async function open(
  mode: "auto" | "legacy",
  settings: ServerSettings,
  host: SourceHost,
  signal: AbortSignal,
  changed: () => void,
): Promise<Opened> {
  const { Client, parseJSONRPCMessage, StreamableHTTPClientTransport } = await import(
    "@modelcontextprotocol/client"
  );
  signal.throwIfAborted();
  const timeout = settings.timeout * 1000;
  const client = new Client(
    { name: "svc", version: host.user_agent.replace(/^.*\//, "") },
    {
      capabilities: {},
      versionNegotiation: { mode, probe: { timeoutMs: Math.min(PROBE, timeout) } },
      inputRequired: { autoFulfill: false },
      jsonSchemaValidator: TRUSTING,
    },
  );
  client.onerror = () => {}; // what goes wrong shows in the call or the connection that it ends
  client.setNotificationHandler("notifications/tools/list_changed", changed);
  const line = settings.transport === "http" ? undefined : new LineTransport(
    host.start({
      command: [settings.command, ...settings.args],
      cwd: settings.cwd,
      env: settings.env,
    }),
    parseJSONRPCMessage,
    concealer(settings),
  );
  const transport = line ?? new StreamableHTTPClientTransport(new URL(settings.url), {
    requestInit: { headers: { "user-agent": host.user_agent, ...settings.headers } },
    fetch: boundedFetch,
  });
  const leave = () => void transport.close().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  try {
    await client.connect(transport, { timeout });
    signal.throwIfAborted();
    return { client, trouble: () => line?.trouble ?? "" };
  } catch (error) {
    await transport.close().catch(() => {});
    signal.throwIfAborted();
    if (line === undefined) throw error;
    if (line.gone) throw new WentAway(line.trouble);
    throw new Error(withTrouble((error as Error).message, line.trouble), { cause: error });
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** A complaint, with what is known beside it. */
export function withTrouble(complaint: string, trouble: string): string {
  return trouble === "" ? complaint : `${complaint}; ${trouble}`;
}
