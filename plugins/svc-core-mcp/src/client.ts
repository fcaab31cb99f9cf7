import type {
  Client,
  ElicitRequestParams,
  ElicitResult,
  JsonSchemaValidator,
  PriorDiscovery,
} from "@modelcontextprotocol/client";
import type { SourceHost } from "../../../src/plugins/api.ts";
import { LineTransport } from "./line_transport.ts";
import type { ServerSettings } from "./servers.ts";

/** Milliseconds that a program may take to answer the probe before it is sent `initialize` as well. */
const PROBE = 5000;

/** Schemas of a server are not validated here: a hostile pattern in one would block the process. */
const TRUSTING = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined });
  },
};

/** What a server may request or announce on its own. */
export interface ServerEvents {
  /** Its list of tools changed. */
  changed(): void;
  /** It needs input, in revisions before 2026-07-28. The signal aborts when it does not wait any more. */
  elicit(params: ElicitRequestParams, signal: AbortSignal): Promise<ElicitResult>;
}

/** An open connection; `trouble` says why it ended. */
export interface Opened {
  client: Client;
  trouble(): string;
}

/**
 * Connects to a server (specification 4.3): `server/discover` first, then `initialize` when that has no
 * answer. A program that exits at the probe is started again without it, and one that answers it after
 * `initialize` was sent, which it cannot accept any more, is started again as one of the newest revision.
 *
 * @param probe_ms milliseconds that a program may take to answer the probe
 * @throws when the server cannot be reached, does not speak the protocol, or the signal aborts
 */
export async function openServer(
  settings: ServerSettings,
  host: SourceHost,
  signal: AbortSignal,
  events: ServerEvents,
  probe_ms = PROBE,
): Promise<Opened> {
  const open = (prior?: PriorDiscovery) => connect(settings, host, signal, events, probe_ms, prior);
  try {
    return await open();
  } catch (error) {
    if (!(error instanceof WentAway) || signal.aborted) throw error;
    return await open(error.prior);
  }
}

/** The program ended during the connection; `prior` is the revision to start it again with. */
class WentAway extends Error {
  readonly prior: PriorDiscovery;

  constructor({ trouble, discovered: discover }: LineTransport) {
    super(trouble);
    this.prior = discover === undefined ? { kind: "legacy" } : { kind: "modern", discover };
  }
}

async function connect(
  settings: ServerSettings,
  host: SourceHost,
  signal: AbortSignal,
  events: ServerEvents,
  probe_ms: number,
  prior?: PriorDiscovery,
): Promise<Opened> {
  const { Client, parseJSONRPCMessage, StreamableHTTPClientTransport } = await import(
    "@modelcontextprotocol/client"
  );
  signal.throwIfAborted();
  const timeout = settings.timeout * 1000;
  const http = settings.transport === "http";
  const client = new Client(
    { name: "svc", version: host.user_agent.replace(/^.*\//, "") },
    {
      capabilities: { elicitation: { form: {}, url: {} } },
      versionNegotiation: {
        mode: "auto",
        probe: { timeoutMs: http ? timeout : Math.min(probe_ms, timeout) },
      },
      inputRequired: { autoFulfill: false },
      jsonSchemaValidator: TRUSTING,
    },
  );
  client.onerror = () => {}; // errors end a call or the connection, and are reported there
  client.setNotificationHandler("notifications/tools/list_changed", () => events.changed());
  client.setRequestHandler(
    "elicitation/create",
    ({ params }, { mcpReq }) => events.elicit(params, mcpReq.signal),
  );
  const line = http ? undefined : new LineTransport(
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
    await client.connect(transport, { timeout, prior });
    signal.throwIfAborted();
    return { client, trouble: () => line?.trouble ?? "" };
  } catch (error) {
    await transport.close().catch(() => {});
    signal.throwIfAborted();
    if (line === undefined) throw error;
    if (line.gone) throw new WentAway(line);
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

/**
 * `fetch` with a limit on the size of an answer. The signal also cancels the body: the one given to `fetch`
 * has no effect in Deno 2.9.6 once the garbage collector has taken the response, and the connection stays open.
 */
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
    init?.signal ? { signal: init.signal } : {},
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
