import assert from "node:assert/strict";
import {
  identifyProcesses,
  isAlive,
  ownIdentity,
  signalProcesses,
} from "../../src/platform/process_identity.ts";

Deno.test("a process is known by its number and its start", async () => {
  const own = await ownIdentity();
  assert.equal(own.pid, Deno.pid);
  assert.match(own.started, /^\S+$/);
  assert.equal(await isAlive(own), true);
  assert.equal(await isAlive({ ...own, started: `${own.started}0` }), false);
  assert.deepEqual((await identifyProcesses([Deno.pid, 0x7ffffff0])).size, 1);
});

Deno.test("a process that ended is nobody, even while nobody has asked how it ended", async () => {
  const child = sleeper();
  const identity = {
    pid: child.pid,
    started: (await identifyProcesses([child.pid])).get(child.pid)!,
  };
  child.kill("SIGKILL");
  await child.status;
  assert.equal(await isAlive(identity), false);
});

Deno.test("a signal reaches the process that is meant, and never one that has its number", async () => {
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
  assert.equal((await identifyProcesses([member])).has(member), false);
});

function sleeper(): Deno.ChildProcess {
  return new Deno.Command("sleep", { args: ["1000"] }).spawn();
}
