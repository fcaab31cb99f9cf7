import assert from "node:assert/strict";
import { call, hang, say, startBackend } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { session } from "../support/repl.ts";

const BASH = { tool_permission: { bash: "allow" } };
/** A server that has started others, writes its number to a file and goes on. */
const SERVER = "sleep 1000 & sleep 1000 & echo up; wait";

async function place(replies: Parameters<typeof startBackend>[0]) {
  const backend = startBackend(replies);
  const work = await project({
    ".svc/config.json": JSON.stringify({
      base_url: backend.url,
      model: "test",
      memory_enabled: false,
      ...BASH,
    }),
  });
  return { backend, work };
}

Deno.test("svc run ends the commands in the background before it exits", async () => {
  const { backend, work } = await place([
    call("run_command", { command: SERVER, background: true }),
    call("command_output", { id: 1, wait_for: "up" }),
    say("done"),
  ]);
  await using _ = {
    [Symbol.asyncDispose]: async () => (await backend.close(), await work[Symbol.asyncDispose]()),
  };
  const { code, stdout } = await svc(["run", "-p", "go", "--output", "text"], { cwd: work.path });
  assert.equal(code, 0);
  assert.equal(stdout, "done\n");
  await noProcessesLeft(work.path);
});

Deno.test("kill -9 of svc ends the commands in the background", async () => {
  const { backend, work } = await place([
    call("run_command", { command: SERVER, background: true }),
    call("command_output", { id: 1, wait_for: "up" }),
    hang(),
  ]);
  await using _ = {
    [Symbol.asyncDispose]: async () => (await backend.close(), await work[Symbol.asyncDispose]()),
  };
  const child = startSvc(["run", "-p", "go"], { cwd: work.path });
  const output = child.output();
  await backend.arrived(3);
  child.kill("SIGKILL");
  await output;
  await noProcessesLeft(work.path);
});

Deno.test("the terminal session shows running commands in /status, keeps them from turn to turn, and ends them when it is left", async () => {
  await using open = await session([
    call("run_command", { command: SERVER, background: true }),
    say("started"),
    call("command_output", { id: 1, wait_for: "up" }),
    say("seen"),
  ], { config: BASH });
  await open.enter("go", "started");
  await open.enter("/status", /command\s+1 runs: sleep 1000 & sleep 1000 & echo up; wait/);
  await open.enter("more", "seen");
  const [saved] = open.saved();
  const outputs = saved.turns.flatMap(({ parts }: { parts: { type: string; output?: string }[] }) =>
    parts.flatMap(({ type, output }) => type === "tool" ? [output] : [])
  );
  assert.match(outputs[1], /^command 1 runs: .*\nwaited for "up": there\nup$/);
  assert.equal(await open.leave(), 0);
  await noProcessesLeft(open.place.path);
});
