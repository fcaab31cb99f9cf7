import assert from "node:assert/strict";
import type { Clock } from "../../src/platform/clock.ts";
import { type ProcessRequest, runProcess } from "../../src/platform/process.ts";
import { type Project, project } from "../support/project.ts";

const never = new AbortController().signal;

function shell(script: string, more: Partial<ProcessRequest> = {}): ProcessRequest {
  return { command: ["bash", "-c", script], cwd: "/", timeout: 60, ...more };
}

/** A clock on which only the sleeps of a given length end, and only once the test says so. */
function clockOf(sleeps: Record<number, Promise<unknown>>): Clock {
  return {
    now: () => 0,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        sleeps[ms]?.then(() => resolve());
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      }),
  };
}

/** A scratch folder with a pipe through which a script says that it has come so far. */
async function withPipe(): Promise<{ folder: Project; told: Promise<string> }> {
  const folder = await project();
  await new Deno.Command("mkfifo", { args: ["pipe"], cwd: folder.path }).output();
  const told = Deno.readTextFile(`${folder.path}/pipe`).then((text) => text.trim());
  return { folder, told };
}

async function state(pid: string): Promise<string> {
  const ps = await new Deno.Command("ps", { args: ["-o", "stat=", "-p", pid] }).output();
  return new TextDecoder().decode(ps.stdout).trim();
}

/** Resolves once a process is dead; a zombie that nobody has reaped yet is. */
async function dead(pid: string): Promise<void> {
  assert.match(pid, /^\d+$/);
  for (;;) if (/^(Z|$)/.test(await state(pid))) return;
}

Deno.test("a program's output and exit code come back", async () => {
  const result = await runProcess(shell("echo out; echo err >&2; exit 3"), never);
  assert.equal(result.code, 3);
  assert.deepEqual(result.output.trim().split("\n").sort(), ["err", "out"]);
  assert.equal(result.timed_out, false);
  assert.equal(result.cancelled, false);
});

Deno.test("standard error is left out where only the output was asked for", async () => {
  const script = "echo out; echo err >&2; echo out";
  const { output } = await runProcess(shell(script, { errors: false }), never);
  assert.equal(output, "out\nout\n");
});

Deno.test("a program ended by a signal has the code 128 + signal number", async () => {
  assert.equal((await runProcess(shell("kill -9 $$"), never)).code, 137);
});

Deno.test("a program runs in its folder, with our environment and the extra variables", async () => {
  await using folder = await project();
  const request = shell('pwd; echo "$EXTRA"; [ -n "$PATH" ]', {
    cwd: folder.path,
    env: { EXTRA: "more" },
  });
  const result = await runProcess(request, never);
  assert.equal(result.output, `${folder.path}\nmore\n`);
  assert.equal(result.code, 0);
});

Deno.test("standard input is empty, or the given text", async () => {
  assert.equal((await runProcess(shell("cat"), never)).output, "");
  assert.equal((await runProcess(shell("cat", { stdin: "grüße" }), never)).output, "grüße");
});

Deno.test("a program that leaves its input unread ends like any other", async () => {
  const result = await runProcess(shell("exit 4", { stdin: "x".repeat(1_000_000) }), never);
  assert.equal(result.code, 4);
});

Deno.test("a program gets a session of its own", async () => {
  const { output } = await runProcess(shell("ps -o sid= -p $$; echo $$"), never);
  const [session, pid] = output.trim().split(/\s+/);
  assert.equal(session, pid);
});

Deno.test("a timeout ends the program and its grandchildren", async () => {
  const { folder, told } = await withPipe();
  await using _ = folder;
  const request = shell("(sleep 300 & echo $! > pipe; wait) & wait", {
    cwd: folder.path,
    timeout: 7,
  });
  const result = await runProcess(request, never, clockOf({ 7000: told }));
  assert.equal(result.timed_out, true);
  assert.equal(result.code, 143);
  await dead(await told);
});

Deno.test("a program that ignores SIGTERM gets SIGKILL after the grace", async () => {
  const { folder, told } = await withPipe();
  await using _ = folder;
  const request = shell("trap '' TERM; echo $$ > pipe; sleep 300", {
    cwd: folder.path,
    timeout: 7,
  });
  const result = await runProcess(request, never, clockOf({ 7000: told, 2000: told }));
  assert.equal(result.timed_out, true);
  assert.equal(result.code, 137);
  await dead(await told);
});

Deno.test("a program may tidy up on SIGTERM", async () => {
  const { folder, told } = await withPipe();
  await using _ = folder;
  const request = shell("trap 'echo tidied; exit 5' TERM; echo $$ > pipe; sleep 300 & wait", {
    cwd: folder.path,
    timeout: 7,
  });
  const result = await runProcess(request, never, clockOf({ 7000: told }));
  assert.equal(result.code, 5);
  assert.equal(result.output, "tidied\n");
});

Deno.test("cancelling ends the program and keeps its output so far", async () => {
  const { folder, told } = await withPipe();
  await using _ = folder;
  const controller = new AbortController();
  told.then(() => controller.abort());
  const request = shell("echo half; sleep 300 & echo $! > pipe; wait", { cwd: folder.path });
  const result = await runProcess(request, controller.signal);
  assert.equal(result.cancelled, true);
  assert.equal(result.timed_out, false);
  assert.equal(result.output, "half\n");
  await dead(await told);
});

Deno.test("a call that is cancelled before it starts runs nothing", async () => {
  await using folder = await project();
  const request = shell("touch ran", { cwd: folder.path });
  const result = await runProcess(request, AbortSignal.abort());
  assert.equal(result.cancelled, true);
  await assert.rejects(Deno.stat(`${folder.path}/ran`), Deno.errors.NotFound);
});

Deno.test("a background child neither outlives the call nor keeps it waiting", async () => {
  const result = await runProcess(shell("sleep 300 & echo $!"), never, clockOf({}));
  assert.equal(result.code, 0);
  await dead(result.output.trim());
});

Deno.test("a process that left the group does not keep the call waiting", async () => {
  await using folder = await project();
  const script = "mkfifo own; setsid sh -c 'echo $$ > own; exec sleep 300' & " +
    "read pid < own; echo $pid > pid";
  const request = shell(script, { cwd: folder.path });
  const result = await runProcess(request, never, clockOf({ 500: Promise.resolve() }));
  assert.equal(result.code, 0);
  const pid = (await folder.read("pid")).trim();
  assert.match(await state(pid), /^S/);
  Deno.kill(Number(pid), "SIGKILL");
});

Deno.test("huge output is kept at both ends, with the number of characters between", async () => {
  const script = "echo START; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo END";
  const { output } = await runProcess(shell(script, { max_output: 1000 }), never);
  assert.ok(output.startsWith("START\nxxx"));
  assert.ok(output.endsWith("xxx\nEND\n"));
  const [, dropped] = output.match(/\.\.\. \((\d+) characters dropped\) \.\.\./)!;
  assert.equal(Number(dropped), "START\n".length + 20_000_000 + "\nEND\n".length - 1000);
  assert.ok(output.length < 1100);
});

Deno.test("output within the limit is whole", async () => {
  const { output } = await runProcess(shell("printf 0123456789", { max_output: 10 }), never);
  assert.equal(output, "0123456789");
});

Deno.test("characters split over chunks are whole", async () => {
  const script = "for i in {1..40}; do printf '€%.0s' {1..5000}; done";
  const { output } = await runProcess(shell(script), never);
  assert.equal(output, "€".repeat(200_000));
});

Deno.test("binary output is decoded leniently", async () => {
  const { output } = await runProcess(shell("printf 'a\\xff\\xfeb'"), never);
  assert.equal(output, "a\ufffd\ufffdb");
});

Deno.test("a program that cannot start is a clear error", async () => {
  await using folder = await project({ "plain.txt": "" });
  const start = (command: string[], cwd = folder.path) =>
    runProcess({ command, cwd, timeout: 1 }, never);
  await assert.rejects(start(["svc-no-such-program"]), {
    code: "program_not_found",
    message: "The program svc-no-such-program was not found.",
  });
  await assert.rejects(start(["true"], `${folder.path}/gone`), { code: "no_directory" });
  await assert.rejects(start(["true"], `${folder.path}/plain.txt`), { code: "no_directory" });
  await assert.rejects(start([`${folder.path}/plain.txt`]), { code: "program_refused" });
});
