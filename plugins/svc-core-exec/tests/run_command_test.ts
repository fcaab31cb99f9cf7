import assert from "node:assert/strict";
import type { ProcessRequest, ToolContext } from "../../../src/plugins/api.ts";
import { SvcError } from "../../../src/platform/error.ts";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import * as plugin from "../src/plugin.ts";

const tools = pluginTools(plugin);

/** A context whose runner records its requests and returns `ended`. */
function recording(context: ToolContext, ended: Record<string, unknown> = {}) {
  const requests: ProcessRequest[] = [];
  const run = (request: ProcessRequest) => {
    requests.push(request);
    const result = { code: 0, output: "", timed_out: false, cancelled: false, ...ended };
    return Promise.resolve(result);
  };
  return { context: { ...context, run }, requests };
}

Deno.test("run_command returns the command, the exit code and the output [4.8]", async () => {
  await using work = await project({ "a.txt": "hello\n" });
  const context = toolContext({ worktree: work.path });
  const outcome = await tools.call("run_command", { command: "cat a.txt; exit 3" }, context);
  assert.equal(outcome.output, "$ cat a.txt; exit 3\nexit 3\nhello");
  assert.equal(outcome.is_error, false);
  const quiet = await tools.call("bash", { cmd: "true" }, context);
  assert.equal(quiet.output, "$ true\nexit 0\n(no output)");
  assert.equal(tools.registry.find("exec")?.permission, "bash");
});

Deno.test("a command is read by bash", async () => {
  await using work = await project();
  const context = toolContext({ worktree: work.path });
  const command = 'a=(one two); [[ ${a[1]} == t* ]] && echo "yes"';
  const outcome = await tools.call("run_command", { command }, context);
  assert.equal(outcome.output, `$ ${command}\nexit 0\nyes`);
});

Deno.test("sh reads the command where there is no bash", async () => {
  await using work = await project();
  const { context } = recording(toolContext({ worktree: work.path }));
  const programs: string[] = [];
  const run = (request: ProcessRequest) => {
    programs.push(request.command[0]!);
    if (request.command[0] === "bash") throw new SvcError("program_not_found", "no bash");
    return context.run(request);
  };
  const outcome = await tools.call("run_command", { command: "true" }, { ...context, run });
  assert.equal(outcome.is_error, false);
  assert.deepEqual(programs, ["bash", "sh"]);
});

Deno.test("run_command runs in cwd, which is a path of the worktree [4.8]", async () => {
  await using work = await project({ "sub/a.txt": "" });
  const context = toolContext({ worktree: work.path });
  const inside = await tools.call("run_command", { command: "pwd", cwd: "sub" }, context);
  assert.equal(inside.output, `$ pwd\nexit 0\n${work.path}/sub`);
  const outside = await tools.call("run_command", { command: "pwd", cwd: "/" }, context);
  assert.match(outside.output, /^Error: .*outside the worktree/);
  const missing = await tools.call("run_command", { command: "pwd", cwd: "gone" }, context);
  assert.match(missing.output, /^Error: There is no directory/);
  assert.equal(tools.registry.find("run_command")?.path_arg, "cwd");
});

Deno.test("the timeout of run_command is 30 seconds, and clamped to 1 to 600 [4.8, 8]", async () => {
  await using work = await project();
  const { context, requests } = recording(toolContext({ worktree: work.path }));
  for (const timeout of [undefined, 0, -5, 12.5, 601, 1e9]) {
    await tools.call("run_command", { command: "true", timeout }, context);
  }
  assert.deepEqual(requests.map((request) => request.timeout), [30, 1, 1, 12.5, 600, 600]);
});

Deno.test("a timeout is an error that keeps the output so far", async () => {
  await using work = await project();
  const ended = { code: 143, output: "half\n", timed_out: true };
  const { context } = recording(toolContext({ worktree: work.path }), ended);
  const outcome = await tools.call("run_command", { command: "make", timeout: 5 }, context);
  assert.equal(
    outcome.output,
    "Error: timed out after 5 seconds and was ended\n$ make\nexit 143\nhalf",
  );
  assert.equal(outcome.is_error, true);
});

Deno.test("a cancelled command says so and keeps the output so far", async () => {
  await using work = await project();
  const ended = { code: 143, output: "half\n", cancelled: true };
  const { context } = recording(toolContext({ worktree: work.path }), ended);
  const outcome = await tools.call("run_command", { command: "make" }, context);
  assert.equal(outcome.output, "Error: cancelled\n$ make\nexit 143\nhalf");
});

Deno.test("the end of a long output survives the cap on results", async () => {
  await using work = await project();
  const config = { tool_max_result_chars: 2000 };
  const context = toolContext({ worktree: work.path, config });
  const command = "echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last";
  const { output } = await tools.call("run_command", { command }, context);
  assert.ok(output.length <= 2000);
  assert.match(output, /first\nx+\n\.\.\. \(\d+ of 100\d+ characters left out\) \.\.\.\nx+\nlast$/);
});

Deno.test("background processes of a command end with it", async () => {
  await using work = await project();
  const context = toolContext({ worktree: work.path });
  const { output } = await tools.call("run_command", { command: "sleep 300 & echo $!" }, context);
  const pid = output.split("\n")[2]!;
  const ps = ["-o", "stat=", "-p", pid];
  for (;;) {
    const { stdout } = await new Deno.Command("ps", { args: ps }).output();
    if (/^(Z|$)/.test(new TextDecoder().decode(stdout).trim())) break;
  }
});

Deno.test("an empty command is refused", async () => {
  await using work = await project();
  const outcome = await tools.call(
    "run_command",
    { command: " " },
    toolContext({ worktree: work.path }),
  );
  assert.equal(outcome.output, "Error: the command is empty");
});

Deno.test("a confirmation shows the folder and the whole command", async () => {
  await using work = await project({ "sub/a.txt": "" });
  const context = toolContext({ worktree: work.path });
  const command = "echo one &&\n  rm -rf two";
  const preview = await tools.preview("run_command", { command, cwd: "sub" }, context);
  assert.equal(preview, `in ${work.path}/sub\n$ ${command}`);
});
