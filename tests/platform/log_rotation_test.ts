import assert from "node:assert/strict";
import { join } from "node:path";
import { rotateLog } from "../../src/platform/log_rotation.ts";
import { project } from "../support/project.ts";

Deno.test("a log that has grown is set aside, three times, and its writer goes on in an empty one", async () => {
  await using folder = await project();
  const path = join(folder.path, "a.log");
  using writer = await Deno.open(path, { append: true, create: true });
  const write = (text: string) => writer.write(new TextEncoder().encode(text));
  for (const text of ["one", "two", "three", "four"]) {
    await write(text.padEnd(11, "."));
    assert.equal(rotateLog(path, 10), true);
  }
  await write("five");
  assert.equal(rotateLog(path, 10), false);
  const names = ["a.log", "a.log.1", "a.log.2", "a.log.3"];
  const texts = await Promise.all(names.map((name) => folder.read(name)));
  assert.deepEqual(texts, ["five", "four.......", "three......", "two........"]);
  assert.deepEqual([...Deno.readDirSync(folder.path)].map(({ name }) => name).sort(), names);
});

Deno.test("what is no log is not rotated", async () => {
  await using folder = await project({ "other": "x".repeat(20) });
  await Deno.symlink(join(folder.path, "other"), join(folder.path, "a.log"));
  assert.equal(rotateLog(join(folder.path, "a.log"), 10), false);
  assert.equal(rotateLog(join(folder.path, "none.log"), 10), false);
});
