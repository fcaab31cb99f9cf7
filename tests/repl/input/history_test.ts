import assert from "node:assert/strict";
import { History } from "../../../src/repl/input/history.ts";
import { project } from "../../support/project.ts";

Deno.test("messages of several lines come back in the next session, oldest first", async () => {
  await using home = await project();
  const path = `${home.path}/.config/svc/history`;
  const history = new History(path);
  await history.add("one");
  await history.add("two\nlines");
  assert.deepEqual(history.entries(), ["one", "two\nlines"]);
  assert.deepEqual(new History(path).entries(), ["one", "two\nlines"]);
  assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
});

Deno.test("empty messages, messages after a space and repetitions are not kept", async () => {
  await using home = await project();
  const path = `${home.path}/history`;
  await new History(path).add("one");
  const history = new History(path);
  for (const text of ["one", "", "  ", " secret", "\nalso", "two", "two", "one"]) {
    await history.add(text);
  }
  assert.equal(await home.read("history"), '"one"\n"two"\n"one"\n');
});

Deno.test("broken lines are skipped and kept; an incomplete last line damages no other", async () => {
  await using home = await project({ history: '"one"\nnonsense\n42\n"t\\u001b[2Jwo"\n"torn' });
  const history = new History(`${home.path}/history`);
  assert.deepEqual(history.entries(), ["one", "two"]);
  await history.add("three");
  assert.equal(
    await home.read("history"),
    '"one"\nnonsense\n42\n"t\\u001b[2Jwo"\n"torn\n"three"\n',
  );
});

Deno.test("two concurrent sessions lose no messages, also while the file is cut", async () => {
  await using home = await project();
  const path = `${home.path}/history`;
  const filler = JSON.stringify("x".repeat(10_000)) + "\n";
  await home.write("history", '"oldest"\n' + filler.repeat(104) + `"${"y".repeat(7800)}"\n`);
  const sessions = [new History(path), new History(path)];
  for (const session of sessions) session.entries();
  await Promise.all(sessions.map(async (session, index) => {
    for (let n = 0; n < 20; n++) await session.add(`message ${n} of ${index}`);
  }));
  const kept = new History(path).entries();
  for (const index of [0, 1]) {
    const own = kept.filter((text) => text.endsWith(` of ${index}`));
    assert.deepEqual(own, Array.from({ length: 20 }, (_, n) => `message ${n} of ${index}`));
  }
  assert.ok(!kept.includes("oldest"));
  assert.ok((await Deno.stat(path)).size < 600_000);
  assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
  const left = [...Deno.readDirSync(home.path)].map(({ name }) => name).sort();
  assert.deepEqual(left, [".history.lock", "history"]);
});

Deno.test("a cut leaves some thousands of messages", async () => {
  await using home = await project();
  const lines = Array.from({ length: 140_000 }, (_, n) => `"m${n}"\n`).join("");
  await home.write("history", lines);
  await new History(`${home.path}/history`).add("last");
  const kept = new History(`${home.path}/history`).entries();
  assert.equal(kept.length, 5000);
  assert.deepEqual([kept[0], kept.at(-1)], ["m135001", "last"]);
});

Deno.test("a very long message is remembered by this process alone", async () => {
  await using home = await project();
  const history = new History(`${home.path}/history`);
  const long = "x".repeat(40_000);
  await history.add(long);
  await history.add("short");
  assert.deepEqual(history.entries(), [long, "short"]);
  assert.equal(await home.read("history"), '"short"\n');
});

Deno.test("an unreadable history warns once and lasts as long as the process", async () => {
  await using home = await project({ "history/in-the-way": "" });
  const warnings: string[] = [];
  const history = new History(`${home.path}/history`, (message) => warnings.push(message));
  await history.add("one");
  await history.add("two");
  assert.deepEqual(history.entries(), ["one", "two"]);
  assert.equal(warnings.length, 1);
  assert.ok(warnings[0]!.startsWith(`The history ${home.path}/history cannot be read: `));
});
