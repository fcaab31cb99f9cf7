import { join } from "node:path";
import * as z from "zod/mini";
import { type Clock, timestamp } from "../platform/clock.ts";
import { SvcError, usageError } from "../platform/error.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import type { StoreLink } from "../store/port.ts";
import { RecordList } from "../store/record_list.ts";

const askObject = () => {
  const text = z._default(z.string(), "");
  return z.object({
    id: z.int().check(z.positive()),
    question: z.string(),
    context: text,
    options: z._default(z.array(z.string()), []),
    /** Name of the session that asked. */
    origin: text,
    /** `permission` requests a grant for the category in `permission`. */
    kind: z._default(z.enum(["direction", "permission"]), "direction"),
    permission: text,
    status: z.enum(["pending", "answered"]),
    /** Like `answered_at`, empty until answered. */
    answer: text,
    created_at: text,
    answered_at: text,
    /** Whether a call of a tool has used the answer. */
    taken: z.optional(z.boolean()),
    /** The machine of the session when it asked, where several share a store. */
    worker: z.optional(z.string()),
  });
};

/** A question for the operator: an entry of `.svc/asks.json` (specification 2.7). */
export type Ask = z.infer<ReturnType<typeof askObject>>;

/** The schema of an entry. It is built at its use, since most runs have no entries. */
export function askSchema(): z.ZodMiniType<Ask> {
  return askObject();
}

/** Access to the sessions that answers are injected into. */
export interface AskSessions {
  /**
   * Appends a user part of `marker` and `text` to a session, unless one with this marker was appended at
   * `since` or later.
   *
   * @returns the text after the marker in the log; undefined when the session is missing or unreadable
   */
  appendUserOnce(
    session: string,
    part: { marker: string; text: string; since: string },
  ): string | undefined;
  /**
   * With a shared store, in place of it: saves the part for the session, to which it is appended as soon as no other
   * process may append.
   *
   * @returns as `appendUserOnce`
   */
  deliver?: (
    session: string,
    part: { marker: string; text: string },
  ) => Promise<string | undefined>;
}

/** A question to park. */
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
  /** The command line that continues the session. */
  resume: string;
  /** Whether the answer is in the log of the origin session. */
  injected: boolean;
}

export interface AskStoreOptions {
  /** `<worktree>/.svc` */
  state: string;
  sessions: AskSessions;
  clock: Clock;
  warn: (message: string) => void;
  /** Shares the asks with other machines. */
  store?: StoreLink;
}

/**
 * The inbox of questions for the operator, `.svc/asks.json` (specification 2.7, 3.2). Entries are only
 * added and answered, never removed. Several processes may park and answer at the same time.
 */
export class AskStore {
  /** Path of the file. */
  readonly path: string;
  readonly #file: RegistryFile;
  readonly #list: RecordList;
  readonly #sessions: AskSessions;
  readonly #clock: Clock;
  readonly #worker: string | undefined;

  constructor({ state, sessions, clock, warn, store }: AskStoreOptions) {
    const path = this.path = join(state, "asks.json");
    const file = this.#file = new RegistryFile(path, clock, warn, Array.isArray);
    this.#list = new RecordList({ name: "ask", path, file, store, keyOf });
    this.#sessions = sessions;
    this.#clock = clock;
    this.#worker = store?.worker;
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
   * The ask with an id.
   *
   * @throws SvcError `ask_unknown` (exit 2)
   */
  need(id: number): Ask {
    const ask = this.get(id);
    if (ask === undefined) throw unknown(id);
    return ask;
  }

  /**
   * Adds a pending ask with a new id.
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
      ...this.#worker !== undefined && { worker: this.#worker },
    };
    await this.#list.update((entries, text) => {
      ask.id = 1 + (entries === undefined ? largestIdIn(text) : largestId(entries));
      return [...entries ?? [], ask];
    });
    return ask;
  }

  /**
   * Adds an ask that was parked elsewhere, with its id.
   *
   * @returns false when there is an ask with this id, which stays as it is
   * @throws SvcError `registry_write`
   */
  async add(ask: Ask): Promise<boolean> {
    let added = false;
    await this.#list.update((entries = []) => {
      added = !entries.some((entry) => (entry as { id?: unknown } | null)?.id === ask.id);
      return added ? [...entries, ask] : entries;
    });
    return added;
  }

  /**
   * Answers a pending ask: injects the answer into the session that asked, then marks the ask as answered,
   * both under the lock of the file. After a crash in between, the next answer finds the injected one and
   * marks the ask with that one.
   *
   * @throws SvcError `ask_unknown`, `no_answer` (exit 2); `ask_answered`; `session_unreadable`, `session_write` or
   * `registry_write`, which leave the ask pending
   */
  async answer(id: number, text: string): Promise<Answered> {
    const answer = text.trim();
    if (answer === "") {
      throw usageError("no_answer", "The answer is empty.", "Say what the agent is to know.");
    }
    await this.#list.refresh();
    const known = this.need(id); // before the lock: an unknown id creates no file
    const { deliver } = this.#sessions;
    const part = { marker: markerOf(id), text: answer };
    let ask!: Ask;
    let injected = known.status === "pending" ? await deliver?.(known.origin, part) : undefined;
    await this.#list.update((entries = []) => {
      const found = this.#asks(entries).find((entry) => entry.ask.id === id);
      if (found === undefined) throw unknown(id);
      if (found.ask.status === "answered") throw alreadyAnswered(found.ask);
      if (deliver === undefined) injected = this.#inject(found.ask, answer);
      const change = {
        status: "answered" as const,
        answer: injected ?? answer,
        answered_at: timestamp(this.#clock),
      };
      ask = { ...found.ask, ...change };
      return entries.with(found.index, { ...entries[found.index] as Ask, ...change });
    });
    if (injected !== undefined && injected !== answer) throw alreadyAnswered(ask);
    return {
      ask,
      session: ask.origin,
      resume: `svc run --session-id${sessionArgument(ask.origin)} "continue"`,
      injected: injected !== undefined,
    };
  }

  /** The newest ask of a session with this question whose answer no call has used; it may be pending. */
  open(origin: string, question: string): Ask | undefined {
    return newest(this.list(), origin, question);
  }

  /**
   * The answers to questions of a session, when all are answered. No other call gets them again.
   *
   * @throws SvcError `registry_write`
   */
  async take(origin: string, questions: string[]): Promise<string[] | undefined> {
    await this.#list.refresh();
    const answered = (asks: Ask[]) => {
      const found = questions.map((question) => newest(asks, origin, question));
      return found.every((ask) => ask?.status === "answered") ? found as Ask[] : undefined;
    };
    if (answered(this.list()) === undefined) return undefined;
    let taken: Ask[] | undefined;
    await this.#list.update((entries = []) => {
      const asks = this.#asks(entries);
      taken = answered(asks.map(({ ask }) => ask));
      return asks.filter(({ ask }) => taken?.includes(ask)).reduce(
        (all: unknown[], { index }) => all.with(index, { ...entries[index] as Ask, taken: true }),
        entries,
      );
    });
    return taken?.map(({ answer }) => answer);
  }

  /**
   * Appends an answer to the log of the session that asked, once.
   *
   * @returns the answer in the log, which may be one from before a crash; undefined without a session
   */
  #inject({ id, origin, created_at }: Ask, text: string): string | undefined {
    const marker = markerOf(id);
    return this.#sessions.appendUserOnce(origin, { marker, text, since: created_at });
  }

  /** The valid entries; the others stay unchanged in the file. */
  #asks(entries: unknown[]): { ask: Ask; index: number }[] {
    if (entries.length === 0) return [];
    const schema = askSchema();
    const asks: { ask: Ask; index: number }[] = [];
    for (const [index, entry] of entries.entries()) {
      const { success, data } = schema.safeParse(entry);
      if (success) asks.push({ ask: data, index });
      else this.#file.warnOnce("has an entry that is not understood");
    }
    return asks;
  }
}

function newest(asks: Ask[], origin: string, question: string): Ask | undefined {
  return asks.findLast((ask) => ask.origin === origin && ask.question === question && !ask.taken);
}

/** How an answer begins in the log. */
function markerOf(id: number): string {
  return `[answer to parked ask #${id}] `;
}

/** The key of an entry's record: its id. One without an id is kept as it is. */
function keyOf(entry: unknown): string {
  const { id } = entry as { id?: unknown } | null ?? {};
  return Number.isSafeInteger(id) ? String(id) : JSON.stringify(entry);
}

/** The largest id of all entries, valid or not. */
function largestId(entries: unknown[]): number {
  return largest(entries.map((entry) => (entry as { id?: unknown } | null)?.id));
}

/** The largest id in the text of a corrupt file: sessions may still wait for answers to these ids. */
function largestIdIn(text: string): number {
  return largest(Array.from(text.matchAll(/"id"\s*:\s*(\d+)/g), ([, id]) => Number(id)));
}

function largest(ids: unknown[]): number {
  return ids.reduce<number>(
    (most, id) => Number.isSafeInteger(id) ? Math.max(most, id as number) : most,
    0,
  );
}

/** The error for an unknown id, with the message of the HTTP API (specification 7.1). */
function unknown(id: number): SvcError {
  return usageError("ask_unknown", `ask not found: ${id}`, "See them with: svc asks list all");
}

function alreadyAnswered(ask: Ask): SvcError {
  return new SvcError("ask_answered", `Ask #${ask.id} is already answered: ${ask.answer}`, {
    hint: "An ask takes one answer; tell the session more with svc run --session-id.",
  });
}

/** A session's name as a shell word. */
function sessionArgument(name: string): string {
  const word = /^[\w.:@%+,-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`;
  return `${name.startsWith("-") ? "=" : " "}${word}`;
}
