import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { openInbox } from "./support.ts";

/** Starts workers, releases them together, and returns the output of each. */
async function together(state: string, workers: [name: string, count: number][]) {
  const children = workers.map(([name, count]) =>
    new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--no-check", "--cached-only", "--no-prompt"],
        ...[`--allow-read=${state}`, `--allow-write=${state}`],
        ...[new URL("./worker.ts", import.meta.url).pathname, state, name, String(count)],
      ],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn()
  );
  const readers = children.map(({ stdout }) =>
    stdout.pipeThrough(new TextDecoderStream()).getReader()
  );
  for (const reader of readers) assert.match((await reader.read()).value ?? "", /^ready/);
  for (const { stdin } of children) {
    const writer = stdin.getWriter();
    await writer.write(new Uint8Array([10]));
    await writer.close();
  }
  return await Promise.all(readers.map(async (reader, i) => {
    let text = "";
    for (let chunk; (chunk = await reader.read()).done === false;) text += chunk.value;
    assert.equal((await children[i]!.status).code, 0);
    return text.trim();
  }));
}

Deno.test("processes that park at the same time lose no ask and share no id [2.7]", async () => {
  const state = await Deno.makeTempDir({ prefix: "svc-asks-" });
  try {
    await together(state, [["a", 30], ["b", 30], ["c", 30]]);
    const asks = openInbox(state, systemClock).asks.list();
    assert.deepEqual(asks.map(({ id }) => id), Array.from({ length: 90 }, (_, i) => i + 1));
    assert.equal(new Set(asks.map(({ question }) => question)).size, 90);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});

Deno.test("of processes that answer an ask at the same time one succeeds, and the session gets one answer [3.2]", async () => {
  const state = await Deno.makeTempDir({ prefix: "svc-asks-" });
  try {
    const { asks, sessions } = openInbox(state, systemClock);
    const session = sessions.create("ses");
    session.close();
    await asks.park({ question: "?", origin: session.name });
    const ends = await together(state, [["a", -1], ["b", -1], ["c", -1]]);
    assert.deepEqual(ends.toSorted(), ["ask_answered", "ask_answered", "injected true"]);
    const [turn, ...more] = sessions.read(session.name)!.turns;
    const winner = "abc"[ends.indexOf("injected true")];
    assert.deepEqual(more, []);
    assert.deepEqual(turn!.parts.map((part) => part.type === "user" && part.text), [
      `[answer to parked ask #1] ${winner}`,
    ]);
    assert.equal(asks.get(1)!.answer, winner);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});

Deno.test("while some park, others answer: nothing is lost, and each answer is given once", async () => {
  const state = await Deno.makeTempDir({ prefix: "svc-asks-" });
  try {
    const { asks, sessions } = openInbox(state, systemClock);
    const session = sessions.create("ses");
    session.close();
    for (let i = 0; i < 15; i++) await asks.park({ question: `${i}`, origin: session.name });
    const ends = await together(state, [["a", 15], ["x", -15], ["b", 15], ["y", -15]]);
    const [x, y] = [ends[1]!.split("\n"), ends[3]!.split("\n")];
    assert.deepEqual(
      x.map((end, i) => [end, y[i]].toSorted()),
      Array.from({ length: 15 }, () => ["ask_answered", "injected true"]),
    );
    const all = asks.list();
    assert.deepEqual(all.map(({ id }) => id), Array.from({ length: 45 }, (_, i) => i + 1));
    const answers = x.map((end) => end === "injected true" ? "x" : "y");
    assert.deepEqual(all.slice(0, 15).map(({ answer }) => answer), answers);
    assert.ok(all.slice(15).every(({ status }) => status === "pending"));
    const told = sessions.read(session.name)!.turns.flatMap(({ parts }) =>
      parts.map((part) => part.type === "user" && part.text)
    );
    const expected = answers.map((name, i) => `[answer to parked ask #${i + 1}] ${name}`);
    assert.deepEqual(told.toSorted(), expected.toSorted());
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
