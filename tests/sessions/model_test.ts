import assert from "node:assert/strict";
import fc from "fast-check";
import type { NewPart } from "../../src/sessions/schema.ts";
import { sessionDocument } from "../../src/sessions/schema.ts";
import type { Session, TurnLog } from "../../src/sessions/session.ts";
import { begin, inPlace, type Place } from "./support.ts";
import { runs } from "../support/random.ts";

/** The expected log, without times. */
interface Model {
  turns: { status: string; parts: unknown[] }[];
  errors: [number, string][];
  permissions: string[];
  sub_sessions: string[];
}

/** The log and up to three handles, of which one may run a turn. */
class Real {
  readonly handles: (Session | undefined)[] = [];
  running: { handle: number; turn: TurnLog; index: number } | undefined;
  readonly place: Place;

  constructor(place: Place) {
    this.place = place;
  }

  handle(i: number): Session {
    return this.handles[i] ??= this.place.another().open("x");
  }

  closeAll(): void {
    for (const handle of this.handles) handle?.close();
  }
}

type Step = (model: Model, real: Real) => void | Promise<void>;

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.integer({ min: 0, max: 40_000 }).map((length) => "ü".repeat(length)),
);
const part: fc.Arbitrary<NewPart> = fc.oneof(
  fc.record({
    type: fc.constantFrom("user" as const, "text" as const, "thinking" as const, "system" as const),
    text,
  }),
  fc.record({ type: fc.constant("command" as const), text, summary: text, compact_from: fc.nat() }),
  fc.record({
    type: fc.constant("tool" as const),
    name: text,
    input: fc.dictionary(text, fc.jsonValue()),
    output: text,
    is_error: fc.boolean(),
  }),
);
const who = fc.nat(2);
const status = fc.constantFrom("ok", "error", "truncated", "empty", "cancelled" as const);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: part.map(appendPart) },
  { weight: 2, arbitrary: who.map(beginTurn) },
  { weight: 2, arbitrary: status.map(endTurn) },
  { weight: 2, arbitrary: fc.tuple(who, text).map(appendUser) },
  { weight: 1, arbitrary: fc.tuple(who, fc.integer(), text).map(recordError) },
  { weight: 1, arbitrary: fc.tuple(who, text).map(recordPermission) },
  { weight: 1, arbitrary: fc.tuple(who, fc.constantFrom("a", "b", "ü".repeat(150))).map(link) },
  { weight: 1, arbitrary: who.map(close) },
);

Deno.test("property: any sequence of appends to a session over three handles gives what a plain list would [2.1]", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), (steps) =>
      inPlace(async (place) => {
        const model: Model = { turns: [], errors: [], permissions: [], sub_sessions: [] };
        const real = new Real(place);
        real.handle(0);
        for (const run of steps) {
          await run(model, real);
          assert.deepEqual(inFile(place), model, "in the file");
        }
        endTurn("cancelled")(model, real);
        real.closeAll();
        assert.deepEqual(inFile(place), model);
        assert.deepEqual(place.store.read("x"), place.json("x"));
        assert.equal(sessionDocument.safeParse(place.json("x")).success, true);
        assert.deepEqual(place.json("x").turns.map(({ index }) => index), [
          ...model.turns.map((_, i) => i + 1),
        ]);
        assert.deepEqual(place.names(), ["x.json"]);
      })),
    runs(300),
  );
});

/** The file as any JSON reader sees it. */
function inFile({ json }: Place): Model {
  const { turns, errors, permissions, sub_sessions } = json("x");
  return {
    turns: turns.map(({ status, parts }) => ({
      status,
      parts: parts.map(({ timestamp: _, ...rest }) => rest),
    })),
    errors: errors.map(({ code, message }) => [code, message]),
    permissions: permissions.map(({ path = "" }) => path),
    sub_sessions,
  };
}

/** A value after a round trip through JSON. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value));
}

function appendPart(part: NewPart): Step {
  return ({ turns }, { running }) => {
    if (running === undefined) return;
    running.turn.append(part);
    turns[running.index]!.parts.push(plain(part));
  };
}

function beginTurn(handle: number): Step {
  return async ({ turns }, real) => {
    if (real.running !== undefined) return;
    const turn = await begin(real.handle(handle));
    real.running = { handle, turn, index: turns.push({ status: "running", parts: [] }) - 1 };
    assert.equal(turn.index, turns.length);
  };
}

function endTurn(status: Parameters<TurnLog["end"]>[0]): (model: Model, real: Real) => void {
  return ({ turns }, real) => {
    if (real.running === undefined) return;
    real.running.turn.end(status);
    turns[real.running.index]!.status = status;
    real.running = undefined;
  };
}

function appendUser([handle, text]: [number, string]): Step {
  return ({ turns }, real) => {
    real.handle(handle).appendUser(text);
    turns.push({ status: "ok", parts: [plain({ type: "user", text })] });
  };
}

function recordError([handle, code, message]: [number, number, string]): Step {
  return ({ errors }, real) => {
    real.handle(handle).recordError(code, message);
    errors.push([code, message]);
  };
}

function recordPermission([handle, path]: [number, string]): Step {
  return ({ permissions }, real) => {
    const entry = { tool: "t", action: "allow", decision: "granted", path } as const;
    real.handle(handle).recordPermission(entry);
    permissions.push(path);
  };
}

function link([handle, name]: [number, string]): Step {
  return ({ sub_sessions }, real) => {
    real.handle(handle).addSubSession(name);
    if (!sub_sessions.includes(name)) sub_sessions.push(name);
  };
}

/** Closes a handle; a later step opens another. The one that runs a turn stays. */
function close(handle: number): Step {
  return (_, real) => {
    if (real.running?.handle === handle) return;
    real.handles[handle]?.close();
    real.handles[handle] = undefined;
  };
}
