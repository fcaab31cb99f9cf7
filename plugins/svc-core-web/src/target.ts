import { isPublicAddress } from "./address.ts";
import { WebError } from "./web_error.ts";

/** The addresses of a name, as the system's resolver gives them. */
export type Resolve = (host: string) => Promise<string[]>;

/** A place on the web with the addresses that were found and checked; only these may be dialled. */
export interface Target {
  url: URL;
  addresses: string[];
}

/** Addresses that are tried at most, the first that answers counts. */
const MAX_ADDRESSES = 4;

/**
 * Reads a URL that is to be fetched.
 *
 * @throws WebError when it is no http or https URL, or holds a user name or a password.
 */
export function parseTarget(text: string, base?: URL): URL {
  const shown = JSON.stringify(text.slice(0, 200));
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : undefined;
  if (url === undefined) throw new WebError(`${shown} is no web address`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new WebError(`${shown} is no http or https address`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new WebError(
      `the address of ${url.host} holds a user name or a password; leave them out`,
    );
  }
  url.hash = "";
  return url;
}

/**
 * Resolves the host of a URL once, and refuses it when any of its addresses is not of the public internet,
 * unless `allowed` lists the host (as `host` or `host:port`).
 *
 * @throws WebError when the host has no address, or one that is refused.
 */
export async function locate(url: URL, allowed: string[], resolve: Resolve): Promise<Target> {
  const host = hostname(url);
  const literal = host.includes(":") || /^[\d.]+$/.test(host);
  let addresses: string[];
  try {
    addresses = literal ? [host] : await resolve(host);
  } catch {
    addresses = [];
  }
  if (addresses.length === 0) throw new WebError(`the host ${host} has no address`);
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  const open = allowed.map((entry) => bare(entry.toLowerCase()))
    .some((entry) =>
      entry === host || entry === `${host}:${port}` || entry === `[${host}]:${port}`
    );
  if (!open && !addresses.every(isPublicAddress)) {
    throw new WebError(
      `${host} is a place in a private network or on this machine, which web tools do not reach ` +
        "(setting web.allow_private lists the exceptions)",
    );
  }
  // A network without IPv6 fails fast or never; IPv4 first costs nothing.
  const ordered = addresses.toSorted((a, b) => Number(a.includes(":")) - Number(b.includes(":")));
  return { url, addresses: ordered.slice(0, MAX_ADDRESSES) };
}

/** The host of a URL without the brackets of IPv6 and the dot of the root. */
export function hostname(url: URL): string {
  return bare(url.hostname);
}

function bare(host: string): string {
  return host.replace(/^\[([^\]]*)\]$/, "$1").replace(/\.$/, "");
}
