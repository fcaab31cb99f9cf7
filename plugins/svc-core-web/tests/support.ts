import { SETTINGS } from "../../../src/config/keys.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import type { Network } from "../src/download.ts";
import type { PageThreads } from "../src/page_threads.ts";
import { webPlugin } from "../src/plugin.ts";

/** A local web server with the paths that were requested. */
export interface TestSite extends AsyncDisposable {
  port: number;
  /** `127.0.0.1:<port>` */
  host: string;
  url: string;
  paths: string[];
  /** The headers of each request. */
  headers: Headers[];
}

export function site(
  handler: (request: Request, path: string) => Response | Promise<Response>,
  options: { hostname?: string; port?: number; cert?: string; key?: string } = {},
): TestSite {
  const { hostname = "127.0.0.1", port: wanted = 0, cert, key } = options;
  const paths: string[] = [];
  const headers: Headers[] = [];
  const serve = (request: Request) => {
    const { pathname, search } = new URL(request.url);
    paths.push(pathname + search);
    headers.push(new Headers(request.headers));
    return handler(request, pathname);
  };
  const place = { hostname, port: wanted, onListen() {} };
  const server = cert === undefined
    ? Deno.serve(place, serve)
    : Deno.serve({ ...place, cert, key: key! }, serve);
  const { port } = server.addr;
  return {
    port,
    host: `${hostname}:${port}`,
    url: `${cert === undefined ? "http" : "https"}://${hostname}:${port}`,
    paths,
    headers,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** A server that answers every request with these bytes, and closes. */
export function rawSite(answer: string | Uint8Array, keepOpen = false): TestSite {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.Conn>();
  const serving = (async () => {
    for await (const connection of listener) {
      open.add(connection);
      await connection.read(new Uint8Array(4096));
      const bytes = typeof answer === "string" ? new TextEncoder().encode(answer) : answer;
      try {
        for (let sent = 0; sent < bytes.length;) {
          sent += await connection.write(bytes.subarray(sent));
        }
        if (!keepOpen) connection.close();
      } catch {
        // the client has seen enough
      }
    }
  })();
  const { port } = listener.addr;
  const host = `127.0.0.1:${port}`;
  return {
    port,
    host,
    url: `http://${host}`,
    paths: [],
    headers: [],
    async [Symbol.asyncDispose]() {
      listener.close();
      await serving;
      for (const connection of open) {
        try {
          connection.close();
        } catch {
          // closed before
        }
      }
    },
  };
}

/** The tools of the plugin with default settings and the given resolver. */
export function web(
  options: {
    config?: Record<string, unknown>;
    resolve?: Network["resolve"];
    caCerts?: string[];
    threads?: PageThreads;
    key?: (name: string, address: string) => string;
  } = {},
): (
  name: string,
  args: Record<string, unknown>,
  scope?: { signal?: AbortSignal; session?: string },
) => Promise<string> {
  const { config = {}, caCerts, threads, key = () => "" } = options;
  const resolve = options.resolve ?? (() => Promise.resolve(["127.0.0.1"]));
  const defaults = Object.fromEntries(
    Object.entries(SETTINGS).map(([key, setting]) => [key, setting.default]),
  );
  const tools = pluginTools(webPlugin({ resolve, caCerts }, threads));
  return async (name, args, { signal, session = "test" } = {}) => {
    const context = toolContext({ worktree: "/", config: { ...defaults, ...config }, signal });
    const outcome = await tools.call(name, args, { ...context, session, key });
    return outcome.output;
  };
}

/** The text between the two marks. */
export function inside(result: string): string {
  const found = /----- begin (\w{8}) -----\n([^]*)\n----- end \1 -----/.exec(result);
  if (found === null) throw new Error(`no marks in: ${result}`);
  return found[2]!;
}
