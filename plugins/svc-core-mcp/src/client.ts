import type { Client, JsonSchemaValidator } from "@modelcontextprotocol/client";
import type { SourceHost } from "../../../src/plugins/api.ts";
import { LineTransport } from "./line_transport.ts";
import type { ServerSettings } from "./servers.ts";

/** Milliseconds that a server may take to answer the probe. */
const PROBE = 5000;

/** Schemas of a server are not validated here: a hostile pattern in one would block the process. */
const TRUSTING = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
  },
};

/** An open connection; `trouble` says why it ended. */
export interface Opened {
  client: Client;
  trouble(): string;
}

/**
 * Connects to a server (specification 4.3): `server/discover` first, then `initialize` when that has no
 * answer. A server that exits at the probe is started again without it.
 *
 * @param changed called when the server announces that its list of tools changed
 * @throws when the server cannot be reached, does not speak the protocol, or the signal aborts
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

/** The server exited during the connection. */
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
  client.onerror = () => {}; // errors end a call or the connection, and are reported there
  client.setNotificationHandler("notifications/tools/list_changed", changed);
  const line = settings.transport === "http" ? undefined : new LineTransport(
    await host.start({
      command: [settings.command, ...settings.args],
      cwd: settings.cwd,
      env: settings.env,
      sandbox: settings.sandbox,
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

/** Appends the details of a failure to an error message. */
export function withTrouble(complaint: string, trouble: string): string {
  return trouble === "" ? complaint : `${complaint}; ${trouble}`;
}

/** Bytes of one answer, or of one event of a stream. */
const MOST = 16 * 1024 * 1024;
const LINE_FEED = 10;

/** `fetch` with a limit on the size of an answer. */
async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const events = (response.headers.get("content-type") ?? "").includes("text/event-stream");
  let length = 0;
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        // An empty line ends an event: only the size of each event is limited.
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

/** The end of the last complete event in these bytes, or -1. */
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
/** Characters of a secret; shorter values occur in too many words. */
const LEAST = 8;

/**
 * Returns a function that hides the credentials of a server in a text. Errors of a server and of the HTTP
 * client may quote the header that they are about.
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
