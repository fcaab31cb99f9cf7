import {
  type ResultToolCall,
  ROOT_RUN,
  type TurnEvent,
  type TurnResult,
  unfinishedResult,
} from "../engine/events.ts";
import { isEnded, type Run } from "../engine/run_store.ts";
import { MESSAGE } from "../engine/turn.ts";
import type { Workspace } from "../engine/workspace.ts";
import { TextBuffer } from "../providers/deltas.ts";
import type { Part, Turn } from "../sessions/schema.ts";
import { activityLine } from "../tools/registry.ts";
import type { StoreLink } from "../store/port.ts";
import { EventStream } from "./event_stream.ts";
import { HttpError } from "./http.ts";
import type { RemoteRun } from "./remote_events.ts";
import type { Runs } from "./runs.ts";

/** Milliseconds between two looks at a run of another server, or one that waits. */
const LOOK = 500;
/** Milliseconds between two requests for the events of a run of another process. */
const ASK = 5000;
/** Characters of a text that one replayed event has. */
const PIECE = 64 * 1024;
/** Characters kept of what a running call prints. */
const PRINTED = 2000;
/** Characters of the events that arrive while a client is sent what the log has. */
const HELD = 8 * 1024 * 1024;

/**
 * What a client has of a run: all before the part `part` of a turn, and of the parts from there on what `sent` says, as
 * in the field `at` of events. As an event's id: `<turn>.<at>`, or `<turn>.end` after the end of the turn. `OVER` is the
 * id of the last event.
 */
interface Place {
  turn: number;
  part: number;
  sent: string[];
}

/** What `Last-Event-ID` may be; empty: no event. */
export const EVENT_ID = /^(?:over|(\d{1,9})\.(?:end|(\d{1,9})((?:\.(?:t?\d{1,12}|c)){0,200})))?$/;

/** The place that an id names; undefined for none. */
function placeOf(id: string): Place | undefined {
  const [, turn, part, sent = ""] = EVENT_ID.exec(id) ?? [];
  if (turn === undefined) return undefined;
  return { turn: Number(turn), part: Number(part ?? Infinity), sent: sent.split(".").slice(1) };
}

const OVER = "over";

/** The end of a turn. */
const END = { part: Infinity, sent: [] };

/**
 * The events of a run as server-sent events: those of `POST /chat` with `stream`. What has happened is read from the
 * log of its session; then the client follows the run until its end. A client that names the last event that it has
 * gets those after it.
 *
 * @param last the id of that event; after the last one, the answer is a 204, with which browsers ask no more
 * @throws HttpError 400 for an id that is none
 */
export function streamRun(
  workspace: Workspace,
  runs: Runs,
  { id }: Run,
  last: string | undefined,
): Response {
  if (last === OVER) return new Response(null, { status: 204 });
  const place = last === undefined ? { turn: 0, ...END } : placeOf(last);
  if (place === undefined) throw new HttpError(400, "Last-Event-ID is no id of an event");
  const stream = new EventStream(workspace.clock);
  new RunReader(workspace, runs, id, stream, place).read().catch(() => {}).finally(() =>
    stream.close()
  );
  return stream.response;
}

/** Sends one client the events of a run. */
class RunReader {
  readonly #workspace: Workspace;
  readonly #runs: Runs;
  readonly #id: string;
  readonly #stream: EventStream;
  #place: Place;
  /** The run in another process, while this one follows it there. */
  #remote: RemoteRun | undefined;
  /** Whether the client may be sent what happens there. */
  #direct = false;
  /** Whether events from there are missing. */
  #gap = false;
  #wake = () => {};
  /** When the events of that process were last asked for, in milliseconds. */
  #asked = -Infinity;

  constructor(workspace: Workspace, runs: Runs, id: string, stream: EventStream, place: Place) {
    this.#workspace = workspace;
    this.#runs = runs;
    this.#id = id;
    this.#stream = stream;
    this.#place = place;
  }

  /** Resolves when the run has ended, the client has gone, or the server stops. */
  async read(): Promise<void> {
    try {
      await this.#read();
    } finally {
      this.#remote?.[Symbol.dispose]();
    }
  }

  async #read(): Promise<void> {
    const { clock } = this.#workspace;
    const stop = AbortSignal.any([this.#stream.gone, this.#runs.closing]);
    while (true) {
      const live = this.#runs.live(this.#id);
      if (live !== undefined) {
        await this.#follow(live);
        continue;
      }
      const run = this.#runs.need(this.#id);
      await this.#replay(run);
      if (isEnded(run)) return await this.#finish(run);
      if (this.#workspace.store === undefined) await clock.sleep(LOOK, stop);
      else await this.#watch(this.#workspace.store, stop);
    }
  }

  /** Sends what another process sends of the run, until more is in the log, or for a moment. */
  async #watch(store: StoreLink, stop: AbortSignal): Promise<void> {
    const { clock } = this.#workspace;
    if (this.#remote === undefined) {
      const { RemoteRun } = await import("./remote_events.ts");
      this.#remote = await RemoteRun.follow(store, this.#id, {
        event: (event, turn) => this.#fromRemote(event, turn),
        appended: (session) => {
          if (session === undefined || session === this.#runs.need(this.#id).session) this.#wake();
        },
      });
    }
    if (this.#gap || clock.now() - this.#asked > ASK) {
      this.#gap = false;
      this.#asked = clock.now();
      await this.#remote.ask();
    }
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    this.#direct = true;
    await clock.sleep(LOOK, AbortSignal.any([stop, woken.signal])).catch(() => {});
    this.#direct = false;
    stop.throwIfAborted();
  }

  /** Sends an event of another process when it continues what the client has. */
  #fromRemote(event: TurnEvent, turn: number): void {
    if (!this.#direct) return void (this.#gap = true);
    if (event.run !== ROOT_RUN) return this.#stream.send(event.type, event);
    if (event.type === "turn_started") {
      if (this.#place.part === Infinity) this.#begin(event);
      return;
    }
    const at = "at" in event ? placeOf(`${turn}.${event.at}`) : undefined;
    if (at === undefined) return this.#stream.send(event.type, event);
    if (!this.#isBefore(at)) return;
    const { sent } = this.#place;
    const last = at.sent.length - 1;
    const follows = this.#place.turn === turn && this.#place.part === at.part;
    const own = at.sent.findIndex((each, i) => each !== sent[i]);
    if (event.type === "tool_call" && follows && own === last) return this.#send(event, at);
    if (event.type === "token" || event.type === "thinking") {
      const had = follows && own >= 0 && own === at.sent.findLastIndex((each, i) =>
            each !== sent[i]
          )
        ? sentOf(this.#place, at.part + own, event.type)
        : -1;
      const from = Number(at.sent[own]?.replace("t", "")) - event.content.length;
      if (had >= from) {
        return this.#send({ ...event, content: event.content.slice(had - from) }, at);
      }
    }
    if (event.type !== "tool_result" && event.type !== "message") this.#gap = true; // the log has these
  }

  /** Sends what the log has, then what happens, until the run is no longer live. */
  async #follow(live: LiveEvents): Promise<void> {
    const held: TurnEvent[] = [];
    let size = 0;
    let direct = false;
    const open = live.follow((event) => {
      if (direct) return this.#live(event, live.turn);
      held.push(event);
      if ("content" in event) size += event.content.length;
      if (size > HELD) this.#stream.fail();
    });
    const { turn } = live;
    try {
      await this.#replay(this.#runs.need(this.#id));
      if (turn > 0) this.#catchUp(turn, open.partial);
      let now = turn;
      for (const event of held) {
        if (event.type === "turn_started" && event.run === ROOT_RUN) now = event.index;
        this.#live(event, now);
      }
      held.length = 0;
      direct = true;
      await Promise.race([open.ended, aborted(this.#stream.gone)]);
      this.#stream.gone.throwIfAborted();
    } finally {
      open.leave();
    }
  }

  /** Sends one event of the running turn, unless the client has it. */
  #live(event: TurnEvent, turn: number): void {
    if (event.run !== ROOT_RUN) return this.#stream.send(event.type, event);
    if (event.type === "turn_started") return this.#begin(event);
    if (event.type === "turn_finished") {
      if (this.#isAt(turn)) this.#send(event, { turn, ...END });
      return;
    }
    const at = "at" in event ? placeOf(`${turn}.${event.at}`) : undefined;
    if (at === undefined) this.#stream.send(event.type, event);
    else if (this.#isBefore(at)) this.#send(event, at);
  }

  /** Sends what a running turn has sent to other clients, and has not written to the log yet. */
  #catchUp(turn: number, partial: readonly PartialPart[]): void {
    for (const { part, type, text, event } of partial) {
      if (!this.#isAt(turn) || part < this.#place.part) continue;
      const had = sentOf(this.#place, part, type);
      const now = event !== undefined ? "c" : `${type === "thinking" ? "t" : ""}${text.length}`;
      const sent = [...this.#place.sent];
      sent[part - this.#place.part] = now;
      const place = { ...this.#place, sent };
      if (event !== undefined) {
        if (had === 0) this.#send(event, place);
      } else if (had < text.length) {
        const content = text.slice(had);
        this.#send({ type: type as "token", run: ROOT_RUN, content, at: atOf(place) }, place);
      }
    }
  }

  /** Sends what the log has of the run's turns. */
  async #replay({ session, turns, result, state }: Run): Promise<void> {
    const left = turns.filter((turn) => turn > this.#place.turn || this.#isAt(turn));
    if (left.length === 0 || session === "") return;
    const { sessions } = this.#workspace;
    await sessions.current(session);
    const logged = await sessions.turns(session, left[0]) ?? [];
    for (const turn of logged.filter(({ index }) => left.includes(index))) {
      const { index, provider, model, mode, parts } = turn;
      if (this.#place.turn !== index) {
        this.#begin({ type: "turn_started", run: ROOT_RUN, session, index, model, provider, mode });
      }
      for (const [part, value] of parts.entries()) {
        if (part < this.#place.part) continue;
        await this.#part(index, part, value);
      }
      if (turn.status === "running" || !this.#isAt(index)) continue;
      const last = index === turns.at(-1) && state !== "running";
      const ended = resultOf(turn, session, last ? result : undefined);
      this.#send({ type: "turn_finished", run: ROOT_RUN, result: ended }, { turn: index, ...END });
    }
  }

  async #part(turn: number, part: number, value: Part): Promise<void> {
    const after = { turn, part: part + 1, sent: this.#sentAfter(part) };
    switch (value.type) {
      case "thinking":
      case "text": {
        const type = value.type === "text" ? "token" : value.type;
        for (let had = sentOf(this.#place, part, type); had < value.text.length;) {
          const content = value.text.slice(had, had + PIECE);
          had += content.length;
          const whole = had === value.text.length;
          const sent = `${type === "thinking" ? "t" : ""}${had}`;
          const place = whole ? after : { turn, part, sent: [sent, ...after.sent] };
          this.#send({ type, run: ROOT_RUN, content, at: atOf(place) }, place);
          await this.#stream.ready();
        }
        break;
      }
      case "tool": {
        const { name, input, output, is_error } = value;
        const shown = { run: ROOT_RUN, id: value.call?.id ?? "", name };
        if (sentOf(this.#place, part, "tool_call") === 0) {
          const tool = this.#workspace.tools.find(name);
          const place = { turn, part, sent: ["c", ...after.sent] };
          this.#send({
            type: "tool_call",
            ...shown,
            arguments: input,
            category: tool?.permission ?? "",
            status: tool === undefined ? "" : activityLine(tool, input),
            at: atOf(place),
          }, place);
        }
        const untold = { note: "", echo: false, duration: 0 };
        const told = { output, is_error, ...untold, at: atOf(after) };
        this.#send({ type: "tool_result", ...shown, ...told }, after);
        await this.#stream.ready();
        break;
      }
      case "user":
        if (value.text.startsWith(MESSAGE)) {
          const content = value.text.slice(MESSAGE.length);
          this.#send({ type: "message", run: ROOT_RUN, content, at: atOf(after) }, after);
        }
    }
    this.#place = after;
  }

  /** Sends the end of a run. */
  async #finish(run: Run): Promise<void> {
    const { state, reason, error, result } = run;
    const whole = await runResult(this.#workspace, run);
    const cut = result === undefined || reason === "timeout" || reason === "interrupted";
    if (cut && state !== "done" || whole === undefined) {
      const message = error ||
        (state === "cancelled" ? "the run was cancelled" : "its session is gone");
      this.#stream.send("error", { error: message }, whole === undefined ? OVER : undefined);
    }
    if (whole !== undefined) this.#stream.send("result", whole, OVER);
  }

  #begin(event: TurnEvent & { type: "turn_started" }): void {
    if (event.index <= this.#place.turn) return;
    this.#send(event, { turn: event.index, part: 0, sent: [] });
  }

  #send(event: TurnEvent, place: Place): void {
    this.#place = place;
    this.#stream.send(event.type, event, `${place.turn}.${atOf(place)}`);
  }

  /** Whether the client is in the middle of a turn. */
  #isAt(turn: number): boolean {
    return this.#place.turn === turn && this.#place.part !== Infinity;
  }

  /** What the client has of the parts after one. */
  #sentAfter(part: number): string[] {
    return this.#place.sent.slice(Math.max(0, part + 1 - this.#place.part));
  }

  /** Whether the client does not have what is before a place. */
  #isBefore({ turn, part, sent }: Place): boolean {
    const place = this.#place;
    if (place.turn !== turn || place.part !== part) {
      return place.turn < turn || place.turn === turn && place.part < part;
    }
    if (sent.length !== place.sent.length) return sent.length > place.sent.length;
    return sent.some((each, i) => each !== place.sent[i]);
  }
}

/** The `at` of a place. */
function atOf({ part, sent }: Place): string {
  return part === Infinity ? "end" : [part, ...sent].join(".");
}

/** The characters that a client has of a part; 1 for a call. */
function sentOf(place: Place, part: number, type: TurnEvent["type"]): number {
  const sent = place.sent[part - place.part] ?? "";
  const kind = sent === "c" ? "tool_call" : sent.startsWith("t") ? "thinking" : "token";
  if (sent === "" || kind !== type) return 0;
  return sent === "c" ? 1 : Number(sent.replace("t", ""));
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true })
  );
}

/** What has been sent of a part that is not in the log yet. */
export interface PartialPart {
  part: number;
  type: "thinking" | "token" | "tool_call";
  /** Empty for a call. */
  text: string;
  event?: TurnEvent;
  /** The end of what a call has printed. */
  printed?: string;
}

interface Following {
  /** What was sent before. */
  partial: PartialPart[];
  /** Resolves when nothing follows. */
  ended: Promise<void>;
  leave(): void;
}

/** The events of a run that this server works on. */
export class LiveEvents {
  /** Index of the running turn; 0: none has begun. */
  turn = 0;
  /** The number of parts that the log has. */
  #logged = 0;
  #partial: (Omit<PartialPart, "text" | "part"> & { text: TextBuffer })[] = [];
  /** Characters that calls of the turn have printed. */
  #printed = 0;
  readonly #followers = new Set<(event: TurnEvent) => void>();
  readonly #ended = Promise.withResolvers<void>();

  /** What the running turn has sent, and the log does not have yet. */
  get partial(): PartialPart[] {
    return this.#partial.map((each, i) => ({
      ...each,
      part: this.#logged + i,
      text: each.text.toString(),
    }));
  }

  /** Differs when `partial` does. */
  get stamp(): string {
    const sizes = this.#partial.map(({ text }) => text.size);
    return [this.turn, this.#logged, this.#printed, ...sizes].join(" ");
  }

  /** Takes an event of the running turn. */
  add(event: TurnEvent): void {
    if (event.run === ROOT_RUN) this.#keep(event);
    for (const follower of [...this.#followers]) follower(event);
  }

  /** The run is no longer live. */
  end(): void {
    this.#ended.resolve();
  }

  /** Calls `follower` with each further event. */
  follow(follower: (event: TurnEvent) => void): Following {
    this.#followers.add(follower);
    return {
      partial: this.partial,
      ended: this.#ended.promise,
      leave: () => void this.#followers.delete(follower),
    };
  }

  #keep(event: TurnEvent): void {
    if (event.type === "turn_started") {
      this.turn = event.index;
      this.#logged = 0;
      this.#partial = [];
      return;
    }
    if (event.type === "tool_output") {
      const call = this.#partial.find((each) =>
        each.event?.type === "tool_call" && each.event.id === event.id
      );
      if (call === undefined) return;
      call.printed = `${call.printed ?? ""}${event.content}`.slice(-PRINTED).toWellFormed();
      this.#printed += event.content.length;
      return;
    }
    const place = "at" in event ? placeOf(`${this.turn}.${event.at}`) : undefined;
    if (place === undefined) return;
    this.#partial.splice(0, place.part - this.#logged);
    this.#logged = place.part;
    this.#partial.length = Math.min(this.#partial.length, place.sent.length);
    if (event.type === "tool_call") {
      this.#partial.push({ type: event.type, text: new TextBuffer(), event });
    } else if (event.type === "thinking" || event.type === "token") {
      const i = place.sent.findIndex((sent) =>
        sent.startsWith("t") === (event.type === "thinking")
      );
      const from = Number(place.sent[i]!.replace("t", "")) - event.content.length;
      let known = this.#partial[i];
      if (known?.type !== event.type || known.text.size !== from) {
        const text = new TextBuffer();
        if (known?.type === event.type) text.add(known.text.toString().slice(0, from));
        known = this.#partial[i] = { type: event.type, text };
      }
      known.text.add(event.content);
    }
  }
}

/** The result of a run, as of `POST /chat`; undefined when it has none, or its session is gone. */
export async function runResult(
  { sessions }: Workspace,
  { session, turns, result }: Run,
): Promise<TurnResult | undefined> {
  const index = turns.at(-1);
  if (index !== undefined) await sessions.current(session);
  const logged = index === undefined ? undefined : await sessions.turns(session, index);
  const turn = logged?.find((each) => each.index === index);
  return turn && resultOf(turn, session, result);
}

/** A turn result from the log, with what the record of the run has of it. */
function resultOf(turn: Turn, session: string, kept: Run["result"]): TurnResult {
  const { model, provider, status, parts, usage = {}, cost = null } = turn;
  const { tool_calls: outcomes = [], ...known } = kept as Partial<TurnResult> ?? {};
  const tools = parts.filter((part) => part.type === "tool");
  const refused = (i: number) => (outcomes[i] as Partial<ResultToolCall>)?.refused ?? false;
  const given = known.data !== undefined && tools.at(-1)?.name === "answer";
  return {
    ...unfinishedResult({ model, provider, session }),
    status: status === "running" ? "error" : status,
    usage,
    total_usage: usage,
    cost,
    ...known,
    content: given ? JSON.stringify(known.data, null, 2) : answerOf(parts),
    thinking: parts.filter((part) => part.type === "thinking").map(({ text }) => text).join("\n\n"),
    tool_calls: tools.map(({ name, input, is_error }, i) => (
      { name, arguments: input, is_error, refused: refused(i) }
    )),
  };
}

/** The text of the last reply. */
function answerOf(parts: Part[]): string {
  const replies = parts.filter((part) =>
    "round" in part && part.round !== undefined
  ) as (Part & { type: "text" })[];
  const last = replies.at(-1)?.round;
  return replies.filter(({ type, round }) => type === "text" && round === last)
    .map(({ text }) => text).join("");
}
