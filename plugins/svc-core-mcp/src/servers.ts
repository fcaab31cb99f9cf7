import type {
  ConfigView,
  LoginDialog,
  SourceHost,
  ToolDefinition,
  ToolSource,
} from "../../../src/plugins/api.ts";
import type { Connection } from "./connection.ts";

/** Milliseconds that a prompt waits for servers; slower ones are available to the next prompt. */
const PATIENCE = 10_000;

/** The servers of the current configuration; a source of their imported tools. */
export class Servers implements ToolSource {
  readonly permission = "mcp";
  readonly #host: SourceHost;
  readonly #probe_ms: number | undefined;
  readonly #connections = new Map<string, Connection>();
  readonly #said = new Map<string, string>();

  /** @param probe_ms see `openServer` */
  constructor(host: SourceHost, probe_ms?: number) {
    this.#host = host;
    this.#probe_ms = probe_ms;
  }

  async tools(signal: AbortSignal): Promise<ToolDefinition[]> {
    const connections = await this.list();
    if (connections.length === 0) return [];
    const over = new AbortController();
    // An unattended run may have no later prompt, so a server has its timeout for its first connection.
    const waits = connections.map(({ settings: { timeout }, problem }) =>
      this.#host.config.get("unattended") && problem === "" ? timeout * 1000 : 0
    );
    const patience = Math.max(PATIENCE, ...waits);
    const late = this.#host.sleep(patience, AbortSignal.any([over.signal, signal])).catch(() => {});
    await Promise.race([late, Promise.all(connections.map((each) => each.ready()))]);
    over.abort();
    const tools = new Map<string, ToolDefinition>();
    const most = this.#host.config.get("mcp.defer") || Infinity;
    const deferred: Connection[] = [];
    for (const connection of connections) {
      const defers = connection.tools.length > most;
      if (defers) deferred.push(connection);
      for (const tool of connection.tools) {
        if (tools.has(tool.name)) continue;
        tools.set(tool.name, defers ? { ...tool, offer: () => false } : tool);
      }
      this.#report(connection);
    }
    if (deferred.length > 0) {
      const { findingTools } = await import("./found_tools.ts");
      const names = deferred.map(({ settings: { name } }) => name);
      for (const tool of findingTools(names, new Map(tools))) tools.set(tool.name, tool);
    }
    return [...tools.values()];
  }

  /** All servers in the order of the configuration. Removed or changed ones are disconnected. */
  async list(): Promise<Connection[]> {
    const wanted = serverSettings(this.#host.config);
    for (const [name, connection] of this.#connections) {
      if (JSON.stringify(wanted.get(name)) === JSON.stringify(connection.settings)) continue;
      this.#connections.delete(name);
      await connection.leave();
    }
    if (wanted.size === 0) return [];
    const { Connection } = await import("./connection.ts");
    return Array.from(wanted, ([name, settings]) => {
      const connection = this.#connections.get(name) ??
        new Connection(settings, this.#host, this.#probe_ms);
      this.#connections.set(name, connection);
      return connection;
    });
  }

  async state(): Promise<object[]> {
    return (await this.list()).map(({ settings, state, problem, revision, tools, skipped }) => ({
      name: settings.name,
      transport: settings.transport,
      prefix: settings.prefix,
      state,
      problem: state === "failed" ? problem : "",
      revision,
      tools: tools.map(({ name, short = "" }) => ({ name, short })),
      skipped: state === "connected" ? skipped : [],
    }));
  }

  async login(name: string, dialog: LoginDialog): Promise<boolean> {
    const { logIn } = await import("./login.ts");
    return await logIn(this.#http(name), this.#host, dialog);
  }

  async logout(name: string, dialog: Pick<LoginDialog, "remark" | "signal">): Promise<boolean> {
    const settings = this.#http(name);
    const { url } = settings;
    if (this.#host.logins.read(url) === undefined) return false;
    const { revokeLogin } = await import("./login.ts");
    await revokeLogin(settings, this.#host, dialog);
    await this.#host.logins.write(url, undefined);
    return true;
  }

  #http(name: string): ServerSettings {
    const settings = serverSettings(this.#host.config).get(name);
    if (settings?.transport !== "http") throw new Error("it is no server over HTTP");
    return settings;
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#connections.values(), (each) => each.leave()));
    this.#connections.clear();
  }

  /** Warns about a problem of a server once. */
  #report({ settings: { name }, state, problem, skipped }: Connection): void {
    const wrong = state === "starting"
      ? "is starting; its tools come with a later prompt"
      : state === "failed"
      ? `is not connected: ${problem}`
      : skipped.length > 0
      ? `offers what cannot be used: ${skipped.slice(0, 3).join(", ")}`
      : "";
    if (wrong !== "" && this.#said.get(name) !== wrong) {
      this.#host.warn(`The MCP server ${name} ${wrong}.`);
    }
    this.#said.set(name, wrong);
  }
}

/** One entry of `mcp.servers` (specification 2.10), complete. */
export interface ServerSettings {
  name: string;
  transport: "stdio" | "http";
  command: string;
  args: string[];
  cwd: string | undefined;
  env: Record<string, string>;
  url: string;
  headers: Record<string, string>;
  /** The client that is registered for svc at the authorization server; undefined: svc registers one. */
  oauth: { client_id: string; client_secret?: string; port?: number } | undefined;
  prefix: string;
  /** Whether a program runs in the sandbox. */
  sandbox: boolean;
  /** Seconds before a request is cancelled. */
  timeout: number;
}

/** The servers of the configuration by name; the first one of each name. */
export function serverSettings(config: ConfigView): Map<string, ServerSettings> {
  const servers = new Map<string, ServerSettings>();
  for (const entry of config.get("mcp.servers")) {
    if (servers.has(entry.name)) continue;
    servers.set(entry.name, {
      name: entry.name,
      transport: entry.transport ?? "stdio",
      command: entry.command ?? "",
      args: entry.args ?? [],
      cwd: entry.cwd ?? undefined,
      env: entry.env ?? {},
      url: URL.parse(entry.url ?? "")?.href ?? entry.url ?? "",
      headers: entry.headers ?? {},
      oauth: entry.oauth,
      prefix: entry.prefix || entry.name,
      sandbox: entry.sandbox ?? true,
      timeout: entry.timeout ?? 60,
    });
  }
  return servers;
}
