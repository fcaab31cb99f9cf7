import type { ConfigView } from "../../../src/plugins/api.ts";

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
  prefix: string;
  /** Seconds before a request is cancelled. */
  timeout: number;
}

/** The servers of the configuration; of several with one name, the first. */
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
      url: entry.url ?? "",
      headers: entry.headers ?? {},
      prefix: entry.prefix || entry.name,
      timeout: entry.timeout ?? 60,
    });
  }
  return servers;
}
