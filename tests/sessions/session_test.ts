import assert from "node:assert/strict";
import type { NewPart } from "../../src/sessions/schema.ts";
import { sessionDocument } from "../../src/sessions/schema.ts";
import { SvcError } from "../../src/platform/error.ts";
import { begin, HEAD, inPlace, texts } from "./support.ts";

const PARTS: NewPart[] = [
  { type: "user", text: 'say "hi"\n\u2028\0 \ud83d\ude00 \ud800' },
  { type: "thinking", text: "hm" },
  {
    type: "tool",
    name: "file_read",
    input: { path: "a", nested: { "__proto__": 1, 2: [null] } },
    output: "x".repeat(70_000),
    is_error: true,
    analysis: "nothing",
  },
  { type: "system", text: "note" },
  { type: "command", text: "/compact", summary: "short", compact_from: 1 },
  { type: "text", text: "" },
];

Deno.test("every kind of part of a turn is in the file, whole and in order, when its append returns [2.1, 2.2, 3.3]", () =>
  inPlace(async ({ store, json, names, clock }) => {
    const session = store.create("ses");
    const turn = await begin(session);
    assert.equal(turn.index, 1);
    for (const [i, part] of PARTS.entries()) {
      turn.append(part);
      const document = json(session.name);
      assert.equal(document.turns[0]?.parts.length, i + 1);
      assert.equal(document.turns[0]?.status, "running");
      assert.equal(document.turns[0]?.ended_at, "");
      const { timestamp, ...rest } = document.turns[0]!.parts.at(-1)!;
      assert.deepEqual(rest, JSON.parse(JSON.stringify(part)));
      assert.equal(document.updated_at, timestamp, "updated_at is bumped on every part");
    }
    const before = clock.now();
    turn.end("truncated", { model: "m2", provider: "other" });
    const document = json(session.name);
    const { parts: _, started_at, ended_at, ...ended } = document.turns[0]!;
    assert.deepEqual(ended, {
      index: 1,
      status: "truncated",
      model: "m2",
      provider: "other",
      mode: "build",
      reasoning: "medium",
    });
    assert.ok(started_at < ended_at && Date.parse(ended_at) > before);
    assert.deepEqual(session.document(), document);
    assert.equal(sessionDocument.safeParse(document).success, true);
    session.close();
    assert.deepEqual(json(session.name), document);
    assert.deepEqual(names(), [`${session.name}.json`], "an idle session is one file");
  }));

Deno.test("turns are numbered from 1, also across handles, and an empty turn is only its status [2.1, 2.2, 3.3]", () =>
  inPlace(async ({ store, another, json }) => {
    const statuses = ["ok", "error", "truncated", "empty", "cancelled"] as const;
    for (const [i, status] of statuses.entries()) {
      const session = (i % 2 === 0 ? store : another()).open("x");
      const turn = await begin(session);
      turn.end(status);
      session.close();
    }
    const { turns } = json("x");
    assert.deepEqual(turns.map(({ index }) => index), [1, 2, 3, 4, 5]);
    assert.deepEqual(turns.map(({ status }) => status), statuses);
    assert.deepEqual(turns.flatMap(({ parts }) => parts), []);
  }));

Deno.test("errors, permissions and sub-sessions of a session are appended in order, beyond their capacity [2.1, 2.3, 2.4]", () =>
  inPlace(async ({ store, json, names }) => {
    const session = store.open("x");
    const other = store.open("x");
    const turn = await begin(session);
    for (let i = 0; i < 300; i++) {
      const who = i % 3 === 0 ? other : session;
      who.recordError(i, `message ${i} ü`);
      who.recordPermission({
        tool: "run_command",
        action: "ask",
        decision: "granted",
        path: `p${i}`,
        scope: "always",
        granted_by: "human",
      });
      who.addSubSession(`sub_${i}`);
      if (i % 10 === 0) turn.append({ type: "text", text: `part ${i}` });
    }
    other.addSubSession("sub_7");
    const check = () => {
      const { errors, permissions, sub_sessions, turns } = json("x");
      const all = Array.from({ length: 300 }, (_, i) => i);
      assert.deepEqual(errors.map(({ code, message }) => [code, message]), [
        ...all.map((i) => [i, `message ${i} ü`]),
      ]);
      assert.deepEqual(permissions.map(({ path }) => path), all.map((i) => `p${i}`));
      assert.deepEqual(sub_sessions, all.map((i) => `sub_${i}`), "each link once");
      assert.equal(turns[0]?.parts.length, 30);
      assert.deepEqual(Object.keys(permissions[0]!), [
        ...["tool", "action", "decision", "path", "scope", "granted_by", "timestamp"],
      ]);
    };
    check();
    turn.end("ok");
    session.close();
    other.close();
    check();
    assert.equal(sessionDocument.safeParse(json("x")).success, true);
    assert.deepEqual(names(), ["x.json"]);
  }));

Deno.test("a compaction record is a finished turn of its own, also while another turn runs [2.2]", () =>
  inPlace(async ({ store, another, json }) => {
    const session = store.open("x");
    const other = another().open("x");
    other.appendCompaction({ text: "/compact", summary: "we spoke", compact_from: 1 });
    const turn = await begin(session);
    other.appendCompaction({ text: "/compact", summary: "again", compact_from: 2 });
    other.close();
    turn.end("ok");
    session.close();
    const { turns } = sessionDocument.parse(json("x"));
    assert.deepEqual(turns.map(({ index, status }) => [index, status]), [[1, "ok"], [2, "ok"], [
      3,
      "ok",
    ]]);
    const { timestamp: _, ...record } = turns[2]!.parts[0]!;
    const expected = { type: "command", text: "/compact", summary: "again", compact_from: 2 };
    assert.deepEqual(record, expected);
    assert.deepEqual(turns.map(({ parts }) => parts.length), [1, 0, 1]);
  }));

Deno.test("a user part is appended as a finished turn while another handle's turn runs", () =>
  inPlace(async ({ store, another, json }) => {
    const session = store.open("x");
    const asks = another().open("x");
    const turn = await begin(session);
    turn.append({ type: "text", text: "before" });
    asks.appendUser("[answer] 1");
    turn.append({ type: "text", text: "between" });
    asks.appendUser("[answer] 2");
    asks.close();
    turn.append({ type: "text", text: "after" });
    const running = json("x");
    turn.end("ok");
    const next = await begin(session);
    assert.equal(next.index, 4);
    next.end("ok");
    session.close();
    const { turns } = json("x");
    assert.deepEqual(texts(turns[0]), ["before", "between", "after"]);
    assert.deepEqual(turns.slice(1, 3).map(texts), [["[answer] 1"], ["[answer] 2"]]);
    assert.deepEqual(turns.map(({ index }) => index), [1, 2, 3, 4]);
    assert.deepEqual(turns.map(({ status }) => status), ["ok", "ok", "ok", "ok"]);
    assert.deepEqual(running.turns.map(({ status }) => status), ["running", "ok", "ok"]);
  }));

Deno.test("a turn waits for the running one of another handle, and says so once", () =>
  inPlace(async ({ store, another, clock }) => {
    const first = store.open("x");
    const second = another().open("x");
    const turn = await begin(first);
    let waits = 0;
    let polls = 0;
    clock.onSleep = () => {
      if (++polls === 3) turn.end("ok");
      clock.wake();
    };
    await second.acquireTurn(undefined, () => waits++);
    assert.deepEqual([waits, polls], [1, 3]);
    assert.equal(second.beginTurn(HEAD).index, 2);
    first.close();
    second.close();
  }));

Deno.test("waiting for a turn ends when the signal aborts", () =>
  inPlace(async ({ store, another, clock }) => {
    const first = store.open("x");
    const second = another().open("x");
    const turn = await begin(first);
    const controller = new AbortController();
    clock.onSleep = () => controller.abort(new Error("enough"));
    await assert.rejects(second.acquireTurn(controller.signal), /enough/);
    await assert.rejects(second.acquireTurn(AbortSignal.abort(new Error("at once"))), /at once/);
    turn.end("ok");
    await second.acquireTurn();
    second.close();
    await first.acquireTurn();
    first.close();
  }));

Deno.test("a turn without acquireTurn does not begin, and an ended one accepts no part", () =>
  inPlace(async ({ store, json }) => {
    const session = store.open("x");
    assert.throws(() => session.beginTurn(HEAD), TypeError);
    const turn = await begin(session);
    assert.throws(() => session.beginTurn(HEAD), TypeError);
    turn.end("ok");
    turn.end("error");
    const closed = (error: unknown) => error instanceof SvcError && error.code === "turn_closed";
    assert.throws(() => turn.append({ type: "text", text: "late" }), closed);
    const next = await begin(session);
    assert.throws(() => turn.append({ type: "text", text: "late" }), closed);
    next.end("ok");
    session.close();
    assert.throws(() => session.appendUser("late"), /closed/);
    assert.deepEqual(json("x").turns.map(({ status, parts }) => [status, parts.length]), [
      ["ok", 0],
      ["ok", 0],
    ]);
  }));

Deno.test("an open does not close a turn whose handle is alive", () =>
  inPlace(async ({ store, another, json, names }) => {
    const session = store.open("x");
    const turn = await begin(session);
    another().open("x").close();
    turn.append({ type: "text", text: "still here" });
    assert.equal(json("x").turns[0]?.status, "running");
    assert.deepEqual(json("x").errors, []);
    turn.end("ok");
    session.close();
    assert.deepEqual(names(), ["x.json"]);
  }));

Deno.test("the next open closes an abandoned turn as failed", () =>
  inPlace(async ({ store, another, json, names }) => {
    const session = store.open("x");
    const turn = await begin(session);
    turn.append({ type: "text", text: "half" });
    session.appendUser("answer");
    session.close(); // releases the turn without ending it, like the end of a process
    assert.equal(store.read("x")?.turns[0]?.status, "running", "reading changes nothing");
    another().open("x").close();
    const { turns, errors } = json("x");
    assert.deepEqual(turns.map(({ status }) => status), ["error", "ok"]);
    assert.notEqual(turns[0]?.ended_at, "");
    assert.deepEqual(texts(turns[0]), ["half"]);
    assert.equal(errors.length, 1);
    assert.equal(errors[0]?.code, 0);
    assert.match(errors[0]!.message, /process ended before turn 1 did/);
    assert.deepEqual(names(), ["x.json"]);
  }));

Deno.test("a handle that stays open closes another's dead turn before it begins its own", () =>
  inPlace(async ({ store, another, json }) => {
    const session = store.open("x");
    session.appendUser("hello");
    const other = another().open("x");
    const turn = await begin(other);
    turn.append({ type: "text", text: "half" });
    other.close();
    const mine = await begin(session);
    assert.equal(mine.index, 3);
    mine.end("ok");
    session.close();
    assert.deepEqual(json("x").turns.map(({ status }) => status), ["ok", "error", "ok"]);
    assert.equal(json("x").errors.length, 1);
  }));

Deno.test("handles continue when others close, rewrite the file, or leave a long journal", () =>
  inPlace(async ({ store, another, json, names }) => {
    const steady = store.open("x");
    const expected: string[] = [];
    for (let i = 0; i < 12; i++) {
      const passing = another().open("x");
      const turn = await begin(passing);
      const long = `${i} `.repeat(40_000);
      turn.append({ type: "text", text: long });
      expected.push(long);
      for (let k = 0; k < 10 * i; k++) passing.recordError(k, "e".repeat(50));
      turn.end("ok");
      if (i % 2 === 0) passing.close();
      steady.appendUser(`user ${i}`);
      expected.push(`user ${i}`);
      if (i % 2 === 1) passing.close();
    }
    steady.close();
    assert.deepEqual(json("x").turns.flatMap(texts), expected);
    assert.equal(json("x").errors.length, 660);
    assert.deepEqual(names(), ["x.json"]);
  }));

Deno.test("another handle appends after the document was replaced during a sync", () =>
  inPlace(async ({ store, another }) => {
    const [one, other] = [store.open("x"), another().open("x")];
    one.appendUser("a".repeat(4_000_000));
    other.appendUser("b");
    const synced = one.flush();
    for (let i = 0; i < 10; i++) one.recordError(0, "ü".repeat(1000)); // more than its array has space for
    other.appendUser("c");
    await synced;
    one.close();
    other.close();
    const { turns, errors } = store.read("x")!;
    assert.deepEqual([turns.length, errors.length], [3, 10]);
  }));

Deno.test("the journal does not grow with the log", () =>
  inPlace(({ store, directory }) => {
    const session = store.open("x");
    let longest = 0;
    for (let i = 0; i < 200; i++) {
      session.appendUser("x".repeat(10_000));
      longest = Math.max(longest, Deno.statSync(`${directory}/.x.journal`).size);
    }
    session.close();
    assert.ok(longest < 300_000, `${longest} bytes`);
    assert.equal(store.read("x")?.turns.length, 200);
  }));

Deno.test("an append writes no more than its own size and a fixed amount, however long the log", () =>
  inPlace(async ({ store }) => {
    const session = store.open("x");
    const turn = await begin(session);
    const write = Deno.FsFile.prototype.writeSync;
    const read = Deno.FsFile.prototype.readSync;
    const moved: number[] = [];
    let bytes = 0;
    Deno.FsFile.prototype.writeSync = function (data) {
      bytes += data.length;
      return write.call(this, data);
    };
    Deno.FsFile.prototype.readSync = function (data) {
      bytes += data.length;
      return read.call(this, data);
    };
    try {
      for (let i = 0; i < 3000; i++) {
        bytes = 0;
        turn.append({ type: "text", text: "x".repeat(1000) });
        moved.push(bytes);
      }
    } finally {
      Deno.FsFile.prototype.writeSync = write;
      Deno.FsFile.prototype.readSync = read;
    }
    session.close();
    assert.ok(Math.max(...moved) < 30_000, `${Math.max(...moved)} bytes for one part`);
  }));

Deno.test("a reader of a session without a lock sees valid JSON between any two writes [2.1]", () =>
  inPlace(async ({ store, json }) => {
    const session = store.open("x");
    const write = Deno.FsFile.prototype.writeSync;
    let seen = 0;
    Deno.FsFile.prototype.writeSync = function (data) {
      const count = write.call(this, data);
      seen += json("x").turns.length + 1;
      return count;
    };
    try {
      for (let i = 0; i < 3; i++) {
        const turn = await begin(session);
        for (let k = 0; k < 20; k++) {
          turn.append({ type: "text", text: "y".repeat(200 * k) });
          session.recordError(0, "e".repeat(100));
          if (k % 5 === 0) session.appendUser("in between");
        }
        turn.end("ok");
      }
    } finally {
      Deno.FsFile.prototype.writeSync = write;
    }
    session.close();
    assert.ok(seen > 100);
  }));

Deno.test("a turn waits for the disk without holding the event loop, and closing its session waits no more [2.1]", () =>
  inPlace(async ({ store, another, directory }) => {
    const first = store.open("s");
    (await begin(first)).end("ok");
    first.close();
    const { syncDataSync, syncData } = Deno.FsFile.prototype;
    const syncs = { blocking: 0, other: 0 };
    Deno.FsFile.prototype.syncDataSync = function () {
      syncs.blocking++;
      syncDataSync.call(this);
    };
    Deno.FsFile.prototype.syncData = function () {
      syncs.other++;
      return syncData.call(this);
    };
    const turn = async (flush: boolean) => {
      const session = store.open("s");
      const log = await begin(session);
      log.append({ type: "user", text: "x" });
      log.end("ok");
      if (flush) await session.flush();
      return session;
    };
    try {
      const flushed = await turn(true);
      // As after a power failure, the journal is still there.
      const copies = ["s.json", ".s.journal"].map((file) =>
        [`${directory}/${file}`, Deno.readFileSync(`${directory}/${file}`)] as const
      );
      flushed.close();
      assert.deepEqual(syncs, { blocking: 0, other: 3 }, "the new journal, then both files");
      for (const [path, bytes] of copies) Deno.writeFileSync(path, bytes);
      assert.equal(another().read("s")?.turns.length, 2);
      another().open("s").close();
      const { blocking } = syncs;
      const unflushed = await turn(false);
      unflushed.close();
      assert.equal(syncs.blocking - blocking, 2, "the journal and the document");
      assert.equal(another().read("s")?.turns.length, 3);
    } finally {
      Object.assign(Deno.FsFile.prototype, { syncDataSync, syncData });
    }
  }));
