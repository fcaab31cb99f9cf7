import assert from "node:assert/strict";
import { SvcError } from "../../src/platform/error.ts";
import type { SessionDocument } from "../../src/sessions/schema.ts";
import type { Session, TurnLog } from "../../src/sessions/session.ts";
import type { SessionStore } from "../../src/sessions/store.ts";
import { length, Random } from "../support/random.ts";
import { type Fault, withFault } from "./faults.ts";
import { HEAD, inPlace, type Place, texts } from "./support.ts";

/** Faults meet every write in full, and each third one in a sample. */
const STEP = length(1, 3);
const random = new Random();

/** The steps of a session that use every operation of the storage; each is one append, or none. */
class Life {
  readonly #store: SessionStore;
  #session!: Session;
  #other!: Session;
  #turn!: TurnLog;

  constructor(store: SessionStore) {
    this.#store = store;
  }

  steps(): (() => void | Promise<void>)[] {
    const text = (text: string) => () => this.#turn.append({ type: "text", text });
    const error = (i: number) => () => this.#session.recordError(i, `error ${i} `.repeat(5));
    const begin = async () => {
      await this.#session.acquireTurn();
      this.#turn = this.#session.beginTurn(HEAD);
    };
    const open = () => {
      this.#session = this.#store.open("x");
    };
    return [
      open,
      begin,
      text("one ü"),
      () => {
        this.#other = this.#store.open("x");
      },
      () => this.#other.appendUser("aside"),
      text("two ".repeat(3000)),
      ...[1, 2, 3, 4, 5, 6, 7].map(error), // exceeds the capacity for errors while a turn runs
      text("three"),
      () => this.#other.appendUser("aside again"),
      () => this.#turn.end("ok", { model: "", provider: "" }),
      () => this.#other.close(),
      () => this.#session.close(),
      open,
      () => this.#session.addSubSession("sub ".repeat(70)),
      begin,
      text("y".repeat(270_000)), // starts a new journal
      text("four"),
      () => this.#turn.end("cancelled"),
      begin,
      text("z".repeat(270_000)),
      () => this.#turn.end("ok"),
      () => this.#session.flush(), // starts a new journal, too
      error(8),
      () => this.#session.close(),
    ];
  }
}

/** The log after each step without faults. */
async function chronicle(): Promise<{ states: string[]; calls: number }> {
  const states: string[] = [];
  let calls = 0;
  await inPlace(async ({ store }) => {
    calls = await withFault(0, { kind: "death", share: 0 }, async () => {
      for (const step of new Life(store).steps()) {
        await step();
        states.push(content(store.read("x")));
      }
    });
  });
  return { states, calls };
}

/** A log without its times, which depend on the number of clock reads, and with sorted keys. */
function content(document: SessionDocument | undefined): string {
  const sorted = document && Object.fromEntries(Object.entries(document).sort());
  return JSON.stringify(
    sorted ?? null,
    (key, value) => /_at$|^timestamp$/.test(key) ? "" : value,
  );
}

/** Asserts equality without printing 300,000 characters. */
function same(actual: string, expected: string | undefined, where: string): void {
  assert.ok(actual === expected, where);
}

function onlyDocument({ names, json, store }: Place): void {
  assert.deepEqual(names(), ["x.json"]);
  same(content(json("x")), content(store.read("x")), "the file is the log");
}

for (const share of [0, 0.5, 0.99, 1]) {
  Deno.test(`no append is lost when the process dies in any write, ${100 * share}% done`, async () => {
    const { states, calls } = await chronicle();
    for (let call = 1 + random.below(STEP); call <= calls; call += STEP) {
      await inPlace(async (place) => {
        let done = 0;
        await withFault(call, { kind: "death", share }, async () => {
          try {
            for (const step of new Life(place.store).steps()) {
              await step();
              done++;
            }
          } catch {
            // dead
          }
        });
        const where = `call ${call}, after step ${done}`;
        const before = done === 0 ? "null" : states[done - 1];
        const found = content(place.store.read("x"));
        assert.ok(found === before || found === states[done], where);
        const names = place.names();
        same(content(place.store.read("x")), found, "reading changes nothing");
        assert.deepEqual(place.names(), names);

        const session = place.another().open("x");
        const turns = session.document().turns;
        assert.ok(turns.every(({ status, ended_at }) => status !== "running" && ended_at !== ""));
        assert.deepEqual(
          turns.map(texts),
          ((JSON.parse(found) as SessionDocument | null)?.turns ?? []).map(texts),
          where,
        );
        same(content(place.json("x")), content(session.document()), where);
        session.appendUser("afterwards");
        session.close();
        assert.deepEqual(texts(place.json("x").turns.at(-1)), ["afterwards"], where);
        assert.equal(place.json("x").turns.length, turns.length + 1);
        place.store.open("x").close();
        onlyDocument(place);
      });
    }
    assert.ok(calls > 60, `${calls} calls`);
  });
}

for (const [share, writes] of [[0, 1], [0.5, 1], [0.5, 4]] as const) {
  Deno.test(`no append is lost when the disk is full for ${writes} writes from any write on, ${100 * share}% done`, async () => {
    const { states, calls } = await chronicle();
    let refused = 0;
    for (let call = 1 + random.below(STEP); call <= calls; call += STEP) {
      await inPlace(async (place) => {
        const fault: Fault = { kind: "full", share, writes };
        await withFault(call, fault, async () => {
          for (const [i, step] of new Life(place.store).steps().entries()) {
            for (let attempt = 0;; attempt++) {
              try {
                await step();
                break;
              } catch (error) {
                assert.ok(attempt < writes && error instanceof SvcError, String(error));
                assert.equal(error.code, "session_write");
                assert.match(error.message, /No space left/);
                refused++;
                const before = i === 0 ? "null" : states[i - 1];
                same(content(place.store.read("x")), before, `call ${call}, step ${i}`);
              }
            }
            same(content(place.store.read("x")), states[i], `call ${call}, step ${i}`);
          }
        });
        onlyDocument(place);
      });
    }
    assert.ok(refused > 10, `${refused} refused`);
  });
}
