import type {
  Client,
  ElicitRequestParams,
  ElicitResult,
  JsonSchemaValidator,
  PriorDiscovery,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import type { SourceHost } from "../../../src/plugins/api.ts";
import { LineTransport } from "./line_transport.ts";
import { Login, loginNeeded } from "./login.ts";
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

/** How a server is connected to. */
export interface Opening {
  events: ServerEvents;
  /** Milliseconds that a program may take to answer the probe. Default: five seconds. */
  probe_ms?: number;
  /** A login that is made now. Default: the one that is kept for the address, if any. */
  login?: Login;
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
 * @throws when the server cannot be reached, does not speak the protocol, or the signal aborts
 */
export async function openServer(
  settings: ServerSettings,
  host: SourceHost,
  signal: AbortSignal,
  opening: Opening,
): Promise<Opened> {
  const open = (prior?: PriorDiscovery) => connect(settings, host, signal, opening, prior);
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
  { events, probe_ms = PROBE, login = keptLogin(settings, host) }: Opening,
  prior?: PriorDiscovery,
): Promise<Opened> {
  const { Client, parseJSONRPCMessage } = await import("@modelcontextprotocol/client");
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
    concealer(settings, host),
  );
  const transport = line ?? await httpTransport(settings, host, login);
  const leave = () => void transport.close().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  try {
    await client.connect(transport, { timeout, prior });
    signal.throwIfAborted();
    return { client, trouble: () => line?.trouble ?? "" };
  } catch (error) {
    await transport.close().catch(() => {});
    signal.throwIfAborted();
    if (line === undefined) {
      if (login?.needed) throw new Error(loginNeeded(settings, "its login has expired"));
      const { status } = (error as { data?: { status?: unknown } }).data ?? {};
      const barred = status === 401 && login === undefined && !hasAuthorization(settings);
      throw barred ? new Error(loginNeeded(settings, "it requires a login (HTTP 401)")) : error;
    }
    if (line.gone) throw new WentAway(line);
    throw new Error(withTrouble((error as Error).message, line.trouble), { cause: error });
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** The login that is kept for the address of a server, unless the settings have another for it. */
function keptLogin(settings: ServerSettings, { logins }: SourceHost): Login | undefined {
  const kept = settings.transport === "http" && !hasAuthorization(settings) &&
    logins.read(settings.url) !== undefined;
  return kept ? new Login(settings, logins) : undefined;
}

function hasAuthorization({ headers }: ServerSettings): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

/** A transport to a server over HTTP. Its `headers` are sent to its own origin only, and not for a login elsewhere. */
export async function httpTransport(
  settings: ServerSettings,
  { user_agent }: SourceHost,
  login: Login | undefined,
): Promise<StreamableHTTPClientTransport> {
  const { StreamableHTTPClientTransport: Transport } = await import("@modelcontextprotocol/client");
  const url = new URL(settings.url);
  const own = Object.entries(settings.headers);
  return new Transport(url, {
    requestInit: { headers: { "user-agent": user_agent, ...login ? {} : settings.headers } },
    authProvider: login,
    fetch: login === undefined ? boundedFetch : (to, init) => {
      const headers = new Headers(init?.headers);
      const { href } = new URL(to);
      if (href === url.href) { for (const [name, value] of own) headers.set(name, value); }
      // Codes, secrets and tokens of a login are in the bodies of its requests.
      const redirect = href === url.href || init?.method !== "POST"
        ? {}
        : { redirect: "error" as const };
      return boundedFetch(to, { ...init, headers, ...redirect });
    },
  });
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
  { headers, env, url }: Pick<ServerSettings, "headers" | "env" | "url">,
  { logins }: Pick<SourceHost, "logins">,
): (text: string) => string {
  const configured = [...Object.entries(headers), ...Object.entries(env)]
    .filter(([name]) => CREDENTIAL.test(name))
    .flatMap(([, value]) => [value, value.trim(), value.replace(/^\s*[a-z]+\s+/i, "").trim()])
    .filter((value) => value.length >= LEAST);
  return (text) => {
    const { access_token, refresh_token } = logins.read(url)?.tokens ?? {};
    const secrets = [...configured, access_token, refresh_token].filter(Boolean)
      .sort((a, b) => b.length - a.length);
    return secrets.reduce((rest, secret) => rest.replaceAll(secret, "(hidden)"), text);
  };
}
