import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { runProcess, startChild, Watchdogs } from "../../src/platform/process.ts";
import type { ProcessRequest } from "../../src/plugins/api.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { type Project, project } from "../support/project.ts";

const never = new AbortController().signal;

function shell(script: string, more: Partial<ProcessRequest> = {}): ProcessRequest {
  return { command: ["bash", "-c", script], cwd: "/", timeout: 60, ...more };
}

/** A clock on which only sleeps of the given lengths end, when their promises resolve. */
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

/** A scratch folder with a pipe through which a script reports its progress. */
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

/** Resolves once a process is dead or a zombie. */
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

Deno.test("errors: false discards standard error", async () => {
  const script = "echo out; echo err >&2; echo out";
  const { output } = await runProcess(shell(script, { errors: false }), never);
  assert.equal(output, "out\nout\n");
});

Deno.test("a program ended by a signal has the code 128 + signal number", async () => {
  assert.equal((await runProcess(shell("kill -9 $$"), never)).code, 137);
});

Deno.test("a program runs in its folder, with the environment of svc and the extra variables", async () => {
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

Deno.test("a program that does not read its input ends like any other", async () => {
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

Deno.test("a program may clean up on SIGTERM", async () => {
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
  assert.match(await state(pid), /^[SRD]/);
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

Deno.test("characters that are split over chunks are decoded whole", async () => {
  const script = "for i in {1..40}; do printf '€%.0s' {1..5000}; done";
  const { output } = await runProcess(shell(script), never);
  assert.equal(output, "€".repeat(200_000));
});

Deno.test("binary output is decoded leniently", async () => {
  const { output } = await runProcess(shell("printf 'a\\xff\\xfeb'"), never);
  assert.equal(output, "a\ufffd\ufffdb");
});

Deno.test("a program that cannot start is an error with its reason", async () => {
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

const PATH = "/usr/local/bin:/usr/bin:/bin";

function startShell(script: string, cwd: string, env: Record<string, string> = {}) {
  const request = { command: ["sh", "-c", script], cwd, env: { PATH, ...env }, clear_env: true };
  return startChild(request, systemClock);
}

Deno.test("a child has the given environment alone, and three pipes", async () => {
  await using scratch = await project();
  const child = startShell("read line; echo $line; env; echo oops >&2", scratch.path, { ONE: "1" });
  const writer = child.input.getWriter();
  await writer.write(new TextEncoder().encode("hello\n"));
  const [out, errors] = await Promise.all([
    new Response(child.output).text(),
    new Response(child.errors).text(),
  ]);
  const [line, ...variables] = out.trim().split("\n");
  assert.equal(line, "hello");
  const names = variables.map((each) => each.split("=")[0]!);
  assert.deepEqual(names.filter((name) => !["_", "PWD", "OLDPWD", "SHLVL"].includes(name)).sort(), [
    "ONE",
    "PATH",
  ]);
  assert.equal(errors, "oops\n");
  assert.equal(await child.ended, 0);
});

Deno.test("processes that a child leaves in its group end with it", async () => {
  await using scratch = await project();
  const child = startShell("sleep 600 & sleep 600 & exit 3", scratch.path);
  assert.equal(await child.ended, 3);
  await child.output.cancel();
  await child.errors.cancel();
  await noProcessesLeft(scratch.path);
});

Deno.test("a child that ignores the end of its input and SIGTERM is stopped with its children", async () => {
  await using scratch = await project();
  const child = startShell("trap '' TERM; echo up; sleep 600 & sleep 600; sleep 600", scratch.path);
  const reader = child.output.getReader();
  await reader.read();
  await child.stop();
  assert.equal(await child.ended, 137);
  await reader.cancel();
  await child.errors.cancel();
  await noProcessesLeft(scratch.path);
});

Deno.test("a missing program is named", () => {
  assert.throws(() => startChild({ command: ["/no/such"], cwd: "/", env: {} }, systemClock), {
    code: "program_not_found",
  });
});

const WATCHED = fileURLToPath(new URL("../support/watched.ts", import.meta.url));

/** Runs `watched.ts`, which starts a command and is killed. Returns the command's number once the watchdog has ended. */
async function killed(
  cwd: string,
  mode: "fresh" | "kept" | "late" | "early",
  output: string,
  ...command: string[]
): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-lock", "--no-check", "--allow-run", WATCHED, mode, output, ...command],
    cwd,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const [own, number] = ((await reader.read()).value ?? "").trim().split(" ");
  assert.equal((await child.status).signal, "SIGKILL");
  for (const watchdog = `svc-watchdog ${own} `;;) {
    const { success } = await new Deno.Command("pgrep", { args: ["-f", watchdog] }).output();
    if (!success) break;
  }
  await Promise.all([reader.cancel(), child.stderr.cancel()]);
  return Number(number);
}

for (const mode of ["fresh", "kept", "late"] as const) {
  Deno.test(`a command that the watchdog (${mode}) was not told of when svc was killed ends with its children`, async () => {
    await using scratch = await project();
    await killed(scratch.path, mode, "piped", "sh", "-c", "sleep 300 & sleep 300");
    await noProcessesLeft(scratch.path);
  });
}

Deno.test("a process that started before the watchdog was told of a command keeps running", async () => {
  await using scratch = await project();
  const number = await killed(scratch.path, "early", "piped", "sleep", "300");
  Deno.kill(number, "SIGKILL"); // throws NotFound if it has ended
  await noProcessesLeft(scratch.path);
});

Deno.test("the watchdog sends SIGKILL to a command that ignores SIGTERM", async () => {
  await using scratch = await project();
  await killed(scratch.path, "fresh", "piped", "sh", "-c", "trap '' TERM; sleep 300 & wait; wait");
  await noProcessesLeft(scratch.path);
});

for (const output of ["null", "inherit"]) {
  Deno.test(`a process that svc did not start (its output: ${output}) keeps running`, async () => {
    await using scratch = await project();
    const number = await killed(scratch.path, "fresh", output, "sleep", "300");
    Deno.kill(number, "SIGKILL"); // throws NotFound if it has ended
    await noProcessesLeft(scratch.path);
  });
}

Deno.test("a command that is cancelled while its watchdog is taken is ended", async () => {
  const stop = new AbortController();
  class Slow extends Watchdogs {
    override take() {
      stop.abort();
      return super.take();
    }
  }
  const request = { command: ["sleep", "5"], cwd: "/", timeout: 4, watchdogs: new Slow(0) };
  const { cancelled, timed_out } = await runProcess(request, stop.signal);
  assert.deepEqual([cancelled, timed_out], [true, false]);
});
