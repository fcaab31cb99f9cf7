import { join } from "node:path";
import { usageError } from "../platform/error.ts";
import { type HeldLock, tryHold } from "../platform/files.ts";

/** The ports that agents get, both ends included. */
export interface PortRange {
  first: number;
  last: number;
}

/** The default range (specification 8). */
export const PORTS: PortRange = { first: 8780, last: 8890 };

/**
 * Reads `SVC_FLEET_PORT`: the first port of a range of 111, or a range such as `9000-9010`.
 *
 * @throws SvcError `usage` (exit 2)
 */
export function portRange(given = ""): PortRange {
  if (given === "") return PORTS;
  const [, first, last] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(given) ?? [];
  const start = Number(first ?? 0);
  const range = { first: start, last: last === undefined ? start + 110 : Number(last) };
  if (range.first > 0 && range.first <= range.last && range.first <= 65535) {
    return { ...range, last: Math.min(range.last, 65535) };
  }
  throw usageError("usage", `SVC_FLEET_PORT is no port: ${JSON.stringify(given.slice(0, 20))}.`);
}

/** A port that no other fleet of this user gets while it is held. */
export interface ReservedPort extends HeldLock {
  port: number;
}

/**
 * Finds a port with {@linkcode findPort} and holds a lock on it. An agent listens only some time after its
 * start; without the lock another supervisor could give the port away until then.
 *
 * @param folder where the locks are
 */
export function reservePort(
  range: PortRange,
  { folder, taken, ...wishes }: Parameters<typeof findPort>[1] & { folder: string },
): ReservedPort | undefined {
  const held = new Set(taken);
  for (;;) {
    const port = findPort(range, { taken: held, ...wishes });
    if (port === undefined) return undefined;
    let lock: HeldLock | undefined;
    try {
      lock = tryHold(join(folder, String(port)));
    } catch {
      return { port, release() {} }; // without a writable folder, ports are not locked
    }
    // The process that held the lock before may listen by now.
    if (lock !== undefined && canBind(port)) return { port, release: () => lock.release() };
    lock?.release();
    held.add(port);
  }
}

/**
 * A port on which an agent can listen and be reached: the preferred one, else the first free one of the range.
 * Ports that other agents prefer come last.
 *
 * @param taken ports of other agents, which are never returned even when no process listens there
 * @param wanted ports that agents prefer
 * @returns undefined when there is none
 */
export function findPort(
  range: PortRange,
  { prefer, taken, wanted = new Set() }: {
    prefer?: number;
    taken: ReadonlySet<number>;
    wanted?: ReadonlySet<number>;
  },
): number | undefined {
  const { first, last } = range;
  const all = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  const candidates = [
    ...(prefer === undefined ? [] : [prefer]),
    ...all.filter((port) => !wanted.has(port)),
    ...all.filter((port) => wanted.has(port)),
  ];
  return candidates.find((port) => !taken.has(port) && !BLOCKED.has(port) && canBind(port));
}

/** Ports that `fetch` and browsers refuse to reach (Fetch standard, "port blocking"). */
// deno-fmt-ignore
const BLOCKED: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

function canBind(port: number): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return true;
  } catch {
    return false;
  }
}
