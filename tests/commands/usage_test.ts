import assert from "node:assert/strict";
import { runMain } from "../support/io.ts";
import { project } from "../support/project.ts";

const line = (time: string, given: Record<string, unknown> = {}) =>
  JSON.stringify({
    time,
    ...{ for: "turn", provider: "p", model: "m", in: 100, out: 10, cached: 40, reasoning: 4 },
    ...{ cost: 0.5, calls: 0, chars: 1, ...given },
  });

/** A worktree with requests of today and of some days ago. */
async function used() {
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString();
  const [today, before, long] = [day(0), day(2), day(20)];
  const file = (time: string) => `.svc/usage/${time.slice(0, 10)}.jsonl`;
  const work = await project({
    [file(today)]: [
      line(today, { session: "one", role: "tester" }),
      line(today, { session: "two", job: "nightly", cost: null }),
      JSON.stringify({ time: today, reserves: "x", by: "y", tokens: 9, cost: 0 }),
    ].join("\n") + "\n",
    [file(before)]: line(before, { session: "one", model: "n", cost: 2 }) + "\nbroken\n",
    [file(long)]: line(long) + "\n",
  });
  return { work, today: today.slice(0, 10), before: before.slice(0, 10) };
}

Deno.test("svc usage is a table of the last seven days", async () => {
  const { work, today, before } = await used();
  await using _ = work;
  const { code, out, notes } = await runMain(work.path, "usage");
  assert.equal(code, 0);
  assert.deepEqual(out.split("\n").map((row) => row.trim().split(/ {2,}/)), [
    ["DAY", "REQUESTS", "IN", "CACHED", "OUT", "REASONING", "COST"],
    [before, "1", "100", "40", "10", "4", "2.00"],
    [today, "2", "200", "80", "20", "8", "0.5"],
    ["total", "3", "300", "120", "30", "12", "2.50"],
    [""],
  ]);
  assert.match(notes.join("\n"), /1 broken line is skipped[^]*1 request has no price/);
});

Deno.test("svc usage groups by job, session, model and role", async () => {
  const { work } = await used();
  await using _ = work;
  const names = async (...args: string[]) => {
    const { out } = await runMain(work.path, "usage", "--output", "json", ...args);
    return JSON.parse(out).groups.map(({ name, in: tokens }: { name: string; in: number }) => [
      name,
      tokens,
    ]);
  };
  assert.deepEqual(await names("--by", "job"), [["", 200], ["nightly", 100]]);
  assert.deepEqual(await names("--by", "session"), [["one", 200], ["two", 100]]);
  assert.deepEqual(await names("--by", "model"), [["p/m", 200], ["p/n", 100]]);
  assert.deepEqual(await names("--by", "role"), [["", 200], ["tester", 100]]);
  assert.deepEqual(await names("--by", "model", "--since", "30d"), [["p/m", 300], ["p/n", 100]]);
  assert.deepEqual(await names("--by", "session", "--since", "1d"), [["one", 100], ["two", 100]]);
});

Deno.test("svc usage without prices shows tokens, and without requests says so", async () => {
  const now = new Date().toISOString();
  await using work = await project({
    [`.svc/usage/${now.slice(0, 10)}.jsonl`]: line(now, { cost: null }) + "\n",
  });
  const { out, notes } = await runMain(work.path, "usage", "--by", "job");
  assert.doesNotMatch(out, /COST/);
  assert.match(out, /^\(no job\) +1 +100/m);
  assert.deepEqual(notes, []);
  await using empty = await project();
  const none = await runMain(empty.path, "usage");
  assert.deepEqual([none.code, none.out, none.notes], [
    0,
    "",
    ["No requests to models are recorded in this time."],
  ]);
});
