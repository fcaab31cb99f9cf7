import { WebError } from "./text.ts";

/** Resolves a host name to its addresses. */
export type Resolve = (host: string) => Promise<string[]>;

/** A URL with the checked addresses of its host; only these may be connected to. */
export interface Target {
  url: URL;
  addresses: string[];
}

/** Addresses that are tried. */
const MAX_ADDRESSES = 4;

/**
 * Parses the URL of a request.
 *
 * @throws WebError when it is no http or https URL, or contains a user name or a password.
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
 * Resolves the host of a URL once, and refuses it when one of its addresses is not public, unless
 * `allowed` lists the host (as `host` or `host:port`).
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
  // IPv4 first: a network without IPv6 may not fail fast.
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

/**
 * Whether an IP address is public: not loopback, private, carrier-grade NAT, link-local, multicast or
 * reserved, and no IPv6 address that embeds such an IPv4 address.
 *
 * @param address as a resolver or a URL writes it, without brackets; any other text is not public.
 */
export function isPublicAddress(address: string): boolean {
  const four = parseIPv4(address);
  if (four !== undefined) return isPublicIPv4(four);
  const six = parseIPv6(address);
  return six !== undefined && isPublicIPv6(six);
}

/** Network and prefix length of the IANA special-purpose registry. All other addresses are public. */
const SPECIAL_IPV4: readonly [string, number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10], // carriers
  ["127.0.0.0", 8],
  ["169.254.0.0", 16], // the link, and the metadata of cloud machines
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3], // multicast, reserved, broadcast
];

function isPublicIPv4(address: number): boolean {
  return SPECIAL_IPV4.every(([network, length]) => {
    const shift = 32 - length;
    return address >>> shift !== parseIPv4(network)! >>> shift;
  });
}

/** Only 2000::/3 is assigned to the internet, and parts of it are special. */
function isPublicIPv6(groups: number[]): boolean {
  const [first, second, third] = groups as [number, number, number];
  const embedded = (at: number) => isPublicIPv4((groups[at]! << 16 | groups[at + 1]!) >>> 0);
  if (first === 0x64 && second === 0xff9b && groups.slice(2, 6).every((group) => group === 0)) {
    return embedded(6); // NAT64; its local variant 64:ff9b:1::/48 is not public
  }
  if (first >> 13 !== 1) return false; // loopback, mapped, unique local, link, multicast and the rest
  if (first === 0x2002) return embedded(1); // 6to4
  if (first === 0x2001 && second < 0x200) return false; // Teredo, ORCHID, benchmarks
  if (first === 0x2001 && second === 0xdb8) return false; // documentation
  return !(first === 0x3fff && second < 0x1000) &&
    !(first === 0x2620 && second === 0x4f && third === 0x8000);
}

function parseIPv4(text: string): number | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (match === null) return undefined;
  const bytes = match.slice(1).map(Number);
  if (bytes.some((byte) => byte > 255)) return undefined;
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}

/** The eight groups. An address with a zone is link-local and yields undefined. */
function parseIPv6(text: string): number[] | undefined {
  const url = `http://[${text}]/`;
  if (!/^[\da-f:.]+$/i.test(text) || !URL.canParse(url)) return undefined;
  const [head, tail] = new URL(url).hostname.slice(1, -1).split("::"); // one spelling, in hexadecimal
  const groups = (part: string | undefined) =>
    part ? part.split(":").map((group) => parseInt(group, 16)) : [];
  const [front, back] = [groups(head), groups(tail)];
  return [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back];
}
