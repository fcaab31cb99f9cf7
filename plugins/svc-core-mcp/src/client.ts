import type { Client, JsonSchemaValidator } from "@modelcontextprotocol/client";
import type { SourceHost } from "../../../src/plugins/api.ts";
import { LineTransport } from "./line_transport.ts";
import type { ServerSettings } from "./servers.ts";

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

/** Bytes of one answer, or of one event of a stream. */
const MOST = 16 * 1024 * 1024;
const LINE_FEED = 10;

/** `fetch`, with answers that end in an error where they get too large. */
async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const events = (response.headers.get("content-type") ?? "").includes("text/event-stream");
  let length = 0;
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        // An event is over at an empty line: a stream may be long, none of its events.
        const over = events ? afterEmptyLine(bytes) : -1;
        length = over < 0 ? length + bytes.length : bytes.length - over;
        if (length > MOST) throw new Error("the answer is too large");
        controller.enqueue(bytes);
      },
    }),
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

/** Where the last event in these bytes ends; -1 when none does. */
function afterEmptyLine(bytes: Uint8Array): number {
  for (let at = bytes.lastIndexOf(LINE_FEED); at > 0; at = bytes.lastIndexOf(LINE_FEED, at - 1)) {
    if (bytes[at - 1] === LINE_FEED || (bytes[at - 1] === 13 && bytes[at - 2] === LINE_FEED)) {
      return at + 1;
    }
  }
  return -1;
}

/** Names of headers and variables whose values are credentials. */
const CREDENTIAL = /auth|cookie|credential|key|passw|secret|session|signature|token/i;
/** Characters of a value that is worth hiding: a shorter one stands in too many words. */
const LEAST = 8;

/**
 * Takes a server's credentials out of a text: its complaint about a header quotes the header, and so does
 * that of the package which sends it. What they are is known to whoever wrote the configuration.
 */
export function concealer(
  { headers, env }: Pick<ServerSettings, "headers" | "env">,
): (text: string) => string {
  const secrets = [...Object.entries(headers), ...Object.entries(env)]
    .filter(([name]) => CREDENTIAL.test(name))
    .flatMap(([, value]) => [value, value.trim(), value.replace(/^\s*[a-z]+\s+/i, "").trim()])
    .filter((value) => value.length >= LEAST)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "(hidden)"), text);
}
