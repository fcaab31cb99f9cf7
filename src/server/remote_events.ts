import type { TurnEvent } from "../engine/events.ts";
import type { Clock } from "../platform/clock.ts";
import type { StoreLink } from "../store/port.ts";
import type { LiveEvents, PartialPart } from "./run_events.ts";

/** Kinds of events of the store: a server asks for the events of a run; some events of a run. */
const WATCH = "watch";
const LIVE = "live";
/** Milliseconds for which the events of a run are sent after a server has asked for them. */
const WATCHED = 15_000;
/** Milliseconds between two notifications. */
const TICK = 100;
/** Characters of the events of a notification, of which PostgreSQL takes 8,000 bytes. */
const MOST = 2000;
/** Characters of events that wait to be sent. With more, they are dropped: the log has them soon. */
const BACKLOG = 64 * 1024;

/** The events of a run that another process works on. */
interface Batch {
  turn: number;
  events: TurnEvent[];
}

/** Sends events of the runs of this process to the servers that ask for them, for as long as they do. */
export async function publishRuns(
  store: StoreLink,
  clock: Clock,
  live: (id: string) => LiveEvents | undefined,
): Promise<Disposable> {
  const { events } = await store.open();
  const publishers = new Map<string, Publisher>();
  return await events.on(WATCH, ({ key = "" }) => {
    const found = live(key);
    if (found === undefined) return;
    const known = publishers.get(key);
    if (known !== undefined) return known.ask();
    const notify = (data: Batch) => events.notify({ kind: LIVE, key, data });
    const publisher = new Publisher(found, clock, notify);
    publishers.set(key, publisher);
    publisher.run().catch(() => {}).finally(() => publishers.delete(key));
  });
}

/** Sends the events of one run. */
class Publisher {
  readonly #live: LiveEvents;
  readonly #clock: Clock;
  readonly #notify: (batch: Batch) => Promise<void>;
  #until = 0;
  #waiting: { turn: number; event: TurnEvent }[] = [];
  #size = 0;

  constructor(live: LiveEvents, clock: Clock, notify: (batch: Batch) => Promise<void>) {
    this.#live = live;
    this.#clock = clock;
    this.#notify = notify;
  }

  /** A server asks: it may lack what the log does not have yet. */
  ask(): void {
    this.#until = this.#clock.now() + WATCHED;
    this.#waiting = [];
    this.#size = 0;
    for (const event of pieces(this.#live.partial)) this.#add(event);
  }

  async run(): Promise<void> {
    this.ask();
    const open = this.#live.follow((event) => this.#add(event));
    let ended = false;
    open.ended.then(() => ended = true);
    try {
      while (!ended && this.#clock.now() < this.#until) {
        await this.#send();
        await this.#clock.sleep(TICK);
      }
    } finally {
      open.leave();
    }
  }

  #add(event: TurnEvent): void {
    const { length } = JSON.stringify(event);
    if (length > MOST || event.type === "turn_finished") return; // the log has it
    this.#size += length;
    this.#waiting.push({ turn: this.#live.turn, event });
    if (this.#size < BACKLOG) return;
    this.#waiting = [];
    this.#size = 0;
  }

  async #send(): Promise<void> {
    const turn = this.#waiting[0]?.turn;
    if (turn === undefined) return;
    const events: TurnEvent[] = [];
    for (let size = 0; this.#waiting[0]?.turn === turn;) {
      const { event } = this.#waiting[0];
      size += JSON.stringify(event).length;
      if (events.length > 0 && size > MOST) break;
      events.push(event);
      this.#waiting.shift();
    }
    this.#size = this.#waiting.reduce((sum, { event }) => sum + JSON.stringify(event).length, 0);
    await this.#notify({ turn, events });
  }
}

/** What a running turn has sent and the log does not have, as events of few characters. */
function* pieces(partial: PartialPart[]): Generator<TurnEvent> {
  const sent: string[] = [];
  for (const { part, type, text, event } of partial) {
    const first = part - sent.length;
    if (event !== undefined) {
      yield event;
      sent.push("c");
      continue;
    }
    let had = 0;
    while (had < text.length) {
      const content = text.slice(had, had + MOST / 4);
      had += content.length;
      const at = [first, ...sent, `${type === "thinking" ? "t" : ""}${had}`].join(".");
      yield { type: type as "token", run: 1, content, at };
    }
    sent.push(`${type === "thinking" ? "t" : ""}${had}`);
  }
}

/** Follows a run that another process works on. */
export class RemoteRun implements Disposable {
  readonly #open: Disposable[];
  readonly #ask: () => Promise<void>;

  private constructor(open: Disposable[], ask: () => Promise<void>) {
    this.#open = open;
    this.#ask = ask;
  }

  /**
   * @param on.event called with each event that arrives; some may be missing
   * @param on.appended called when more of a session is in the store
   */
  static async follow(
    store: StoreLink,
    id: string,
    on: { event(event: TurnEvent, turn: number): void; appended(session?: string): void },
  ): Promise<RemoteRun> {
    const { events } = await store.open();
    const open = [
      await events.on(LIVE, ({ key, data }) => {
        if (key !== id) return;
        const batch = data as Batch;
        for (const event of batch.events) on.event(event, batch.turn);
      }),
      await events.on("session", ({ key }) => on.appended(key)),
    ];
    return new RemoteRun(open, () => events.notify({ kind: WATCH, key: id }));
  }

  /** Asks for events from now on, and for what the log does not have yet. */
  ask(): Promise<void> {
    return this.#ask();
  }

  [Symbol.dispose](): void {
    for (const each of this.#open) each[Symbol.dispose]();
  }
}
