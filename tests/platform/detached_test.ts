import assert from "node:assert/strict";
import { join } from "node:path";
import { launchDetached, readRecord } from "../../src/platform/detached.ts";
import { isAlive } from "../../src/platform/process_identity.ts";
import { project } from "../support/project.ts";

Deno.test("a detached program leads a session of its own, has no input, and writes into its log", async () => {
  await using folder = await project();
  const [log, record] = [join(folder.path, "logs/a.log"), join(folder.path, "run/a.pid")];
  const { pid, ended } = launchDetached({
    command: [
      "sh",
      "-c",
      'cat; echo "$0 $GREETING $(pwd)"; ps -o sid= -p $$; echo bad >&2; exit 3',
      "a'b",
    ],
    cwd: folder.path,
    env: { GREETING: "hello" },
    log,
    record,
    note: "8780",
  });
  assert.equal(await ended, 3);
  const lines = (await folder.read("logs/a.log")).split("\n");
  assert.deepEqual(lines.map((line) => line.trim()), [
    `a'b hello ${folder.path}`,
    String(pid),
    "bad",
    "",
  ]);
  assert.equal(readRecord(record)?.pid, pid);
  assert.equal(readRecord(record)?.note, "8780");
});

Deno.test("the record says who the program is before it is that program", async () => {
  await using folder = await project();
  const [log, record] = [join(folder.path, "a.log"), join(folder.path, "a.pid")];
  const command = ["sh", "-c", 'cat "$0"; exec sleep 1000', record];
  const { pid, ended } = launchDetached({ command, cwd: folder.path, log, record });
  while (await Deno.readTextFile(log).catch(() => "") === "");
  assert.equal(await folder.read("a.log"), await folder.read("a.pid"));
  const found = readRecord(record)!;
  assert.equal(await isAlive(found), true);
  Deno.kill(pid, "SIGKILL");
  await ended;
  assert.equal(await isAlive(found), false);
});

Deno.test("a log is appended to, and one that leads elsewhere is replaced", async () => {
  await using folder = await project({ "a.log": "before\n", "precious": "kept" });
  const launch = (log: string) =>
    launchDetached({
      command: ["echo", "after"],
      cwd: folder.path,
      log: join(folder.path, log),
      record: join(folder.path, "a.pid"),
    }).ended;
  await launch("a.log");
  assert.equal(await folder.read("a.log"), "before\nafter\n");
  await Deno.symlink(join(folder.path, "precious"), join(folder.path, "b.log"));
  await launch("b.log");
  assert.equal(await folder.read("precious"), "kept");
  assert.equal(await folder.read("b.log"), "after\n");
});

Deno.test("what a record does not say is not guessed", async () => {
  await using folder = await project({ a: "12", b: "1x y z", c: "", d: "12 boot/5 -\n" });
  const read = (name: string) => readRecord(join(folder.path, name));
  assert.deepEqual(["a", "b", "c", "none"].map(read), Array(4).fill(undefined));
  assert.deepEqual(read("d"), { pid: 12, started: "boot/5", note: "-" });
});
