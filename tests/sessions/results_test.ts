import assert from "node:assert/strict";
import { LeftOutResults } from "../../src/sessions/results.ts";
import { project } from "../support/project.ts";

Deno.test("the newest results that a log leaves out are kept, in a bounded file", async () => {
  await using place = await project();
  const path = `${place.path}/.s.results`;
  const results = new LeftOutResults(path);
  const sent = "x".repeat(3_000_000);
  for (let turn = 1; turn <= 4; turn++) results.append({ turn, part: 0, output: "marker", sent });
  assert.ok(Deno.statSync(path).size < 9_000_000);
  const part = {
    type: "tool" as const,
    ...{ name: "t", input: {}, is_error: false, timestamp: "" },
  };
  const found = (turn: number, output = "marker") =>
    results.read()(turn, 0, { ...part, output }) === sent;
  assert.deepEqual([1, 2, 3, 4].map((turn) => found(turn)), [false, false, true, true]);
  assert.equal(found(4, "another part"), false);
});

Deno.test("results that cannot be written are left out", async () => {
  await using place = await project({ "target.txt": "" });
  const path = `${place.path}/.s.results`;
  Deno.symlinkSync(`${place.path}/target.txt`, path);
  new LeftOutResults(path).append({ turn: 1, part: 0, output: "marker", sent: "text" });
  assert.equal(await place.read("target.txt"), "");
  new LeftOutResults(`${place.path}/none/x`).append({ turn: 1, part: 0, output: "", sent: "" });
});

Deno.test("results are not read through a link, which a worktree may come with", async () => {
  const result = { turn: 1, part: 0, output: "marker", sent: "text" };
  await using place = await project({ "target.txt": JSON.stringify(result) });
  const path = `${place.path}/.s.results`;
  Deno.symlinkSync(`${place.path}/target.txt`, path);
  const part = { type: "tool" as const, name: "t", input: {}, is_error: false, timestamp: "" };
  assert.equal(
    new LeftOutResults(path).read()(1, 0, { ...part, output: "marker" }),
    undefined,
  );
});
