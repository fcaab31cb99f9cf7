import assert from "node:assert/strict";
import type { Appended } from "../../src/sessions/look.ts";
import { begin, inPlace } from "./support.ts";

/** Entries in short: the text or result of a part, or the end of a turn. */
function short(entries: Appended[] | undefined): string[] | undefined {
  return entries?.map((entry) =>
    "turn" in entry
      ? `${entry.turn} ${entry.status}`
      : entry.part.type === "tool"
      ? entry.part.output.slice(0, 9)
      : entry.part.text.slice(0, 9)
  );
}

Deno.test("a summary has the first prompt, the number of turns and the origin, of a short and a long log", () =>
  inPlace(async ({ store, clock, text, json }) => {
    const session = store.create("job", { role: "clerk", job: "nightly", parent_id: "lead" });
    const { name } = session;
    const first = await begin(session);
    assert.deepEqual(store.summary(name), {
      name,
      first_prompt: "",
      turns: 1,
      running: true,
      created_at: json(name).created_at,
      updated_at: store.summary(name)!.updated_at,
      bytes: store.summary(name)!.bytes,
      role: "clerk",
      job: "nightly",
      parent_id: "lead",
    });
    first.append({ type: "user", text: '  count the\n\nstars \u2028 "now" ' });
    first.append({ type: "text", text: "x".repeat(300_000) });
    assert.equal(store.summary(name)!.turns, 1, "of a long log whose turn runs");
    first.end("ok");
    const second = await begin(session);
    second.append({ type: "user", text: "again" });
    second.end("ok");
    session.close();
    const summary = store.summary(name)!;
    assert.deepEqual(
      [summary.first_prompt, summary.turns, summary.running, summary.bytes],
      ['count the stars "now"', 2, false, text(name).length + 2 /* bytes of U+2028 */],
    );
    assert.deepEqual([summary.role, summary.job, summary.parent_id], ["clerk", "nightly", "lead"]);
    assert.equal(store.summary("none"), undefined);
    assert.equal(store.summary("../x"), undefined);
    assert.ok(clock.now() > 0);
  }));

Deno.test("the first prompt of a long log is found when it is long itself, and cut at any place", () =>
  inPlace(async ({ store }) => {
    for (const [i, piece] of ['"', "\\", "\u0001", "é", "😀", "\n"].entries()) {
      for (const shift of ["", "a", "ab"]) {
        const session = store.create("ses");
        const turn = await begin(session);
        turn.append({ type: "user", text: `start${shift}${piece.repeat(200_000 / (i + 1))}` });
        turn.end("ok");
        session.close();
        const { first_prompt } = store.summary(session.name)!;
        assert.ok(first_prompt.startsWith(`start${shift}`), first_prompt);
        assert.ok(first_prompt.isWellFormed() && first_prompt.length <= 200);
      }
    }
  }));

Deno.test("a follower sees each part once, in order, also when the file grows and is replaced", () =>
  inPlace(async ({ store, another }) => {
    assert.equal(store.follow("x")!.read(), undefined, "there is none yet");
    const follower = store.follow("x")!;
    const session = another().open("x");
    assert.deepEqual(short(follower.read()), []);
    const turn = await begin(session);
    assert.deepEqual(short(follower.read()), []);
    turn.append({ type: "user", text: "one" });
    assert.deepEqual(short(follower.read()), ["one"]);
    assert.deepEqual(short(follower.read()), []);
    const tool = { type: "tool" as const, name: "t", input: {}, is_error: false };
    turn.append({ ...tool, output: "found\n,\n]" });
    turn.append({ type: "text", text: "two" });
    assert.deepEqual(short(follower.read()), ["found\n,\n]", "two"]);
    // The permissions outgrow their space, so that the file is laid out anew.
    for (let n = 0; n < 100; n++) {
      session.recordPermission({
        tool: "t",
        action: "ask",
        decision: "denied",
        path: "p".repeat(99),
      });
    }
    turn.append({ type: "text", text: "three" });
    session.recordError(500, "broken");
    assert.deepEqual(short(follower.read()), ["three"]);
    another().open("x").appendUser("from outside");
    assert.deepEqual(short(follower.read()), [], "it follows the running turn");
    turn.end("ok");
    assert.deepEqual(short(follower.read()), ["1 ok", "from outs", "2 ok"]);
    session.close();
    assert.deepEqual(short(store.follow("x")!.read()), [
      ...["one", "found\n,\n]", "two", "three", "1 ok", "from outs", "2 ok"],
    ]);
    assert.equal(store.remove("x"), true);
    assert.equal(follower.read(), undefined);
  }));

Deno.test("a follower waits for an entry that a dead process has written half", () =>
  inPlace(async ({ store, file, text }) => {
    const session = store.open("x");
    const turn = await begin(session);
    turn.append({ type: "user", text: "one" });
    const whole = text("x");
    const half = whole.slice(0, whole.indexOf("one") + 2);
    const follower = store.follow("x")!;
    Deno.writeTextFileSync(file("x"), half);
    assert.deepEqual(short(follower.read()), []);
    Deno.writeTextFileSync(file("x"), whole);
    assert.deepEqual(short(follower.read()), ["one"]);
    turn.end("ok");
    session.close();
  }));
