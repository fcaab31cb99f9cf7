import assert from "node:assert/strict";
import { join } from "node:path";
import {
  identifyProcesses,
  launchDetached,
  ownCommand,
  ownIdentity,
  readRecord,
  rotateLog,
  signalProcesses,
} from "../../src/platform/detached.ts";
import { processEnvironment } from "../../src/platform/environment.ts";
import { isAlive } from "../support/processes.ts";
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

Deno.test("the record is written before the program starts", async () => {
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

Deno.test("a log is appended to, and a log that is a link is replaced", async () => {
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

Deno.test("an invalid record identifies no process", async () => {
  await using folder = await project({ a: "12", b: "1x y z", c: "", d: "12 boot/5 -\n" });
  const read = (name: string) => readRecord(join(folder.path, name));
  assert.deepEqual(["a", "b", "c", "none"].map(read), Array(4).fill(undefined));
  assert.deepEqual(read("d"), { pid: 12, started: "boot/5", note: "-" });
});

Deno.test("a process is identified by its number and its start", async () => {
  const own = await ownIdentity();
  assert.equal(own.pid, Deno.pid);
  assert.match(own.started, /^\S+$/);
  assert.equal(await isAlive(own), true);
  assert.equal(await isAlive({ ...own, started: `${own.started}0` }), false);
  assert.deepEqual((await identifyProcesses([Deno.pid, 0x7ffffff0])).size, 1);
});

Deno.test("an ended process is not alive, even before its parent has waited for it", async () => {
  const child = sleeper();
  const identity = {
    pid: child.pid,
    started: (await identifyProcesses([child.pid])).get(child.pid)!,
  };
  child.kill("SIGKILL");
  await child.status;
  assert.equal(await isAlive(identity), false);
});

Deno.test("a signal reaches the identified process and never another with the same number", async () => {
  const child = sleeper();
  const started = (await identifyProcesses([child.pid])).get(child.pid)!;
  const stranger = { pid: child.pid, started: "an-earlier-boot/1" };
  assert.deepEqual(await signalProcesses([stranger], "KILL"), []);
  assert.deepEqual(await signalProcesses([{ pid: child.pid, started: "" }], "KILL"), []);
  assert.equal(await isAlive({ pid: child.pid, started }), true);
  assert.deepEqual(await signalProcesses([stranger, { pid: child.pid, started }], "TERM"), [
    child.pid,
  ]);
  assert.equal((await child.status).signal, "SIGTERM");
});

Deno.test("a process group is signalled as a whole", async () => {
  const leader = new Deno.Command("sh", {
    args: ["-c", "sleep 1000 & echo $!; wait"],
    detached: true,
    stdout: "piped",
  }).spawn();
  const reader = leader.stdout.getReader();
  const member = Number(new TextDecoder().decode((await reader.read()).value));
  const started = (await identifyProcesses([leader.pid, member])).get(leader.pid)!;
  await signalProcesses([{ pid: leader.pid, started }], "KILL", { group: true });
  await leader.status;
  assert.equal((await reader.read()).done, true, "the member held the pipe");
  // The kernel closes the pipe a moment before the process counts as ended.
  while ((await identifyProcesses([member])).has(member));
});

function sleeper(): Deno.ChildProcess {
  return new Deno.Command("sleep", { args: ["1000"] }).spawn();
}

const ARCHIVE = { ...processEnvironment(), get: () => "/opt/svc" };

Deno.test("the archive is started again by its own path", () => {
  // The main module of a test run has no permissions/ next to it, as that of the archive.
  assert.deepEqual(ownCommand(ARCHIVE), ["/opt/svc"]);
});

Deno.test("the source is started under this Deno with the flags of the build profile", async () => {
  const module = new URL("../../src/platform/detached.ts", import.meta.url).href;
  await using folder = await project({
    "permissions/build.flags": "--no-prompt\n--allow-read\n",
    "main.ts": `import { ownCommand } from ${JSON.stringify(module)};
      console.log(JSON.stringify(ownCommand({ home: "", cwd: "", get: () => "/opt/other" })));`,
  });
  const main = join(folder.path, "main.ts");
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-read", main],
  }).output();
  assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), [
    Deno.execPath(),
    "run",
    "--no-prompt",
    "--allow-read",
    main,
  ]);
});

Deno.test("a large log is rotated, three old ones are kept, and its writer continues in an empty one", async () => {
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

Deno.test("a link and a missing log are not rotated", async () => {
  await using folder = await project({ "other": "x".repeat(20) });
  await Deno.symlink(join(folder.path, "other"), join(folder.path, "a.log"));
  assert.equal(rotateLog(join(folder.path, "a.log"), 10), false);
  assert.equal(rotateLog(join(folder.path, "none.log"), 10), false);
});
