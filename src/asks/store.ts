import { join } from "node:path";
import { type Clock, timestamp } from "../platform/clock.ts";
import { SvcError, usageError } from "../platform/error.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import { type Ask, askSchema } from "./schema.ts";

/** The sessions that asks come from and that their answers go to. */
export interface AskSessions {
  /**
   * Appends a user part of `marker` and `text` to a session, unless one with this marker was appended to
   * it at `since` or later.
   *
   * @returns the text behind the marker in the log; undefined when the session is missing or does not
   * load
   */
  appendUserOnce(
    session: string,
    part: { marker: string; text: string; since: string },
  ): string | undefined;
}

/** What a question is parked with. */
export interface ParkRequest {
  question: string;
  context?: string;
  options?: string[];
  /** Name of the session that asks. */
  origin: string;
  kind?: Ask["kind"];
  permission?: string;
}

/** An answered ask: the body of `POST /asks/<id>/answer` (specification 4.1). */
export interface Answered {
  ask: Ask;
  /** Name of the origin session. */
  session: string;
  /** The command line that lets the session go on. */
  resume: string;
  /** Whether the origin session has the answer in its log. */
  injected: boolean;
}

export interface AskStoreOptions {
  /** `<worktree>/.svc` */
  state: string;
  sessions: AskSessions;
  clock: Clock;
  warn: (message: string) => void;
}

/**
 * The inbox of questions for a human, `.svc/asks.json` (specification 2.7, 3.2): an array to which
 * entries are only added. Several processes may park and answer at the same time.
 */
export class AskStore {
  /** Where the asks lie. */
  readonly path: string;
  readonly #file: RegistryFile;
  readonly #sessions: AskSessions;
  readonly #clock: Clock;

  constructor({ state, sessions, clock, warn }: AskStoreOptions) {
    this.path = join(state, "asks.json");
    this.#file = new RegistryFile(this.path, clock, warn, Array.isArray);
    this.#sessions = sessions;
    this.#clock = clock;
  }

  /** The asks in the order in which they were parked. */
  list(filter: "all" | Ask["status"] = "all"): Ask[] {
    const entries = this.#file.read() as unknown[] | undefined;
    return this.#asks(entries ?? []).map(({ ask }) => ask)
      .filter((ask) => filter === "all" || ask.status === filter);
  }

  get(id: number): Ask | undefined {
    return this.list().find((ask) => ask.id === id);
  }

  /**
   * The ask of an id.
   *
   * @throws SvcError `ask_unknown` (exit 2)
   */
  need(id: number): Ask {
    const ask = this.get(id);
    if (ask === undefined) throw unknown(id);
    return ask;
  }

  /**
   * Adds a pending ask under an id that none had before.
   *
   * @throws SvcError `registry_write`
   */
  async park(request: ParkRequest): Promise<Ask> {
    const { question, context = "", options = [], origin, kind = "direction" } = request;
    const { permission = "" } = request;
    const ask: Ask = {
      id: 0,
      question,
      context,
      options,
      origin,
      kind,
      permission,
      status: "pending",
      answer: "",
      created_at: timestamp(this.#clock),
      answered_at: "",
    };
    await this.#file.update((value, text) => {
      const entries = value as unknown[] | undefined;
      ask.id = 1 + (entries === undefined ? largestIdIn(text) : largestId(entries));
      return [...entries ?? [], ask];
    });
    return ask;
  }

  /**
   * Answers a pending ask: first in the log of the session that asked, then here, both under the lock
   * of the file. A crash in between leaves the answer where the agent reads it; answering the ask again
   * then finds it there, and settles the ask with that answer instead of giving a second one.
   *
   * @throws SvcError `ask_unknown`, `no_answer` (exit 2); `ask_answered`; `session_write`,
   * `registry_write`: the ask is then still pending
   */
  async answer(id: number, text: string): Promise<Answered> {
    const answer = text.trim();
    if (answer === "") {
      throw usageError("no_answer", "The answer is empty.", "Say what the agent is to know.");
    }
    this.need(id); // nothing is locked or made for a wrong id
    let ask!: Ask;
    let given: string | undefined;
    await this.#file.update((value) => {
      const entries = value as unknown[] | undefined ?? [];
      const found = this.#asks(entries).find((entry) => entry.ask.id === id);
      if (found === undefined) throw unknown(id);
      if (found.ask.status === "answered") throw alreadyAnswered(found.ask);
      given = this.#sessions.appendUserOnce(found.ask.origin, {
        marker: `[answer to parked ask #${id}] `,
        text: answer,
        since: found.ask.created_at,
      });
      const change = {
        status: "answered" as const,
        answer: given ?? answer,
        answered_at: timestamp(this.#clock),
      };
      ask = { ...found.ask, ...change };
      return entries.with(found.place, { ...entries[found.place] as Ask, ...change });
    });
    if (given !== undefined && given !== answer) throw alreadyAnswered(ask);
    return {
      ask,
      session: ask.origin,
      resume: `svc run --session-id${sessionArgument(ask.origin)} "continue"`,
      injected: given !== undefined,
    };
  }

  /** The entries that are understood; the others stay in the file as they are. */
  #asks(entries: unknown[]): { ask: Ask; place: number }[] {
    if (entries.length === 0) return [];
    const schema = askSchema();
    const asks: { ask: Ask; place: number }[] = [];
    for (const [place, entry] of entries.entries()) {
      const { success, data } = schema.safeParse(entry);
      if (success) asks.push({ ask: data, place });
      else this.#file.warnOnce("has an entry that is not understood");
    }
    return asks;
  }
}

/** The largest id of any entry, understood or not. */
function largestId(entries: unknown[]): number {
  return largest(entries.map((entry) => (entry as { id?: unknown } | null)?.id));
}

/** The largest id that a corrupt file names: agents still wait for answers under these. */
function largestIdIn(text: string): number {
  return largest(Array.from(text.matchAll(/"id"\s*:\s*(\d+)/g), ([, id]) => Number(id)));
}

function largest(ids: unknown[]): number {
  return ids.reduce<number>(
    (most, id) => Number.isSafeInteger(id) ? Math.max(most, id as number) : most,
    0,
  );
}

/** The error for an id that no ask has: the HTTP API's sentence (specification 7.1). */
function unknown(id: number): SvcError {
  return usageError("ask_unknown", `ask not found: ${id}`, "See them with: svc asks list all");
}

function alreadyAnswered(ask: Ask): SvcError {
  return new SvcError("ask_answered", `Ask #${ask.id} is already answered: ${ask.answer}`, {
    hint: "An ask takes one answer; tell the session more with svc run --session-id.",
  });
}

/** A session's name as a word of a shell. */
function sessionArgument(name: string): string {
  const word = /^[\w.:@%+,-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`;
  return `${name.startsWith("-") ? "=" : " "}${word}`;
}
