/** Addresses kept of one session; numbers of older ones are no longer known. */
const PER_SESSION = 500;
const SESSIONS = 200;

/** The results that searches gave a session, by the number that its model was told. */
export class Findings {
  readonly #sessions = new Map<string, { first: number; addresses: string[] }>();

  /** @returns the number of the first; the others follow. */
  add(session: string, addresses: string[]): number {
    const found = this.#sessions.get(session) ?? { first: 1, addresses: [] };
    this.#sessions.delete(session); // to be the newest
    this.#sessions.set(session, found);
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= SESSIONS) break;
      this.#sessions.delete(oldest);
    }
    const number = found.first + found.addresses.length;
    found.addresses.push(...addresses);
    const surplus = Math.max(0, found.addresses.length - PER_SESSION);
    found.addresses.splice(0, surplus);
    found.first += surplus;
    return number;
  }

  /** The address of a number as a model writes it: `3`, `#3` or `[3]`. Undefined for what is none. */
  address(session: string, id: string): string | undefined {
    const number = /^\[?#?(\d{1,9})\]?$/.exec(id)?.[1];
    const found = this.#sessions.get(session);
    if (number === undefined || found === undefined) return undefined;
    return found.addresses[Number(number) - found.first];
  }
}
