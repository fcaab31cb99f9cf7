import { HttpError } from "./http_error.ts";

/** Whether a name or address to listen on is this machine alone. */
export function isLoopback(host: string): boolean {
  const name = bare(host);
  return name === "localhost" || name === "::1" || /^127\.\d+\.\d+\.\d+$/.test(name);
}

/**
 * Knows the names under which the server is reached, and the origins whose pages may use it. A page of
 * another site that has its own name lead to this address (DNS rebinding) still sends that name.
 */
export class Callers {
  readonly #names: Set<string>;
  readonly #origins: Set<string>;
  /** Bound to every address of the machine: each is then a name of ours, and none can be rebound. */
  readonly #everywhere: boolean;

  constructor(options: { host: string; hosts: string[]; origins: string[] }) {
    const { host, hosts, origins } = options;
    this.#names = new Set(["localhost", "127.0.0.1", "::1", host, ...hosts].map(bare));
    this.#origins = new Set(origins.map((origin) => origin.toLowerCase().replace(/\/$/, "")));
    this.#everywhere = ["0.0.0.0", "::"].includes(bare(host));
  }

  /**
   * The origin whose page may read the answer; undefined when no page of another origin asks.
   *
   * @throws HttpError 403 for a name that is not ours, or an origin that may not
   */
  check(headers: Headers): string | undefined {
    const host = headers.get("host") ?? "";
    if (!this.#isOurs(host)) throw new HttpError(403, "host not allowed");
    const origin = headers.get("origin")?.toLowerCase();
    if (origin === undefined) return undefined;
    if (this.#origins.has(origin)) return origin;
    if (origin === `http://${host.toLowerCase()}`) return undefined;
    throw new HttpError(403, "origin not allowed");
  }

  #isOurs(host: string): boolean {
    const name = nameOf(host);
    if (name === undefined) return false;
    return this.#names.has(name) || (this.#everywhere && isAddress(name));
  }
}

/** The name in a `Host` header; undefined where there is none. */
function nameOf(host: string): string | undefined {
  const [, name] = /^(\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i.exec(host) ?? [];
  return name === undefined ? undefined : bare(name);
}

function bare(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

function isAddress(name: string): boolean {
  return name.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(name);
}
