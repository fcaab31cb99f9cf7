import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import { runMain, testIo } from "../support/io.ts";
import { type Project, project } from "../support/project.ts";

/** Runs `svc init` on a terminal whose operator types these lines. */
async function answered(work: Project, lines: string[]) {
  const questions: string[] = [];
  const left = [...lines];
  const io = testIo({ home: work.path, cwd: work.path }, {
    isTerminal: () => true,
    readLine(question) {
      questions.push(question);
      return Promise.resolve(left.shift());
    },
  });
  const code = await main(["init"], io);
  return { code, questions, notes: io.notes };
}

const settings = async (work: Project) => JSON.parse(await work.read(".svc/config.json"));

Deno.test("svc init writes the named settings, and keeps the others with their comments", async () => {
  await using work = await project({ ".svc/config.json": '{\n  // mine\n  "temperature": 0\n}\n' });
  const { code, notes } = await runMain(
    ...[work.path, "init", "--mode", "plan", "--model", "m", "--test", "make check"] as const,
    ...["--allow", "git status", "--allow", "git log", "--day-tokens", "5000"],
  );
  assert.equal(code, 0);
  assert.match(notes[0]!, /^Wrote model, mode, tool_permission\.bash_allow, dev\.test_cmd, budget/);
  const text = await work.read(".svc/config.json");
  assert.match(text, /\/\/ mine/);
  assert.deepEqual(JSON.parse(text.replace("// mine", "")), {
    temperature: 0,
    model: "m",
    mode: "plan",
    tool_permission: { bash_allow: ["git status", "git log"] },
    "dev.test_cmd": "make check",
    "budget.day": { tokens: 5000 },
  });
});

Deno.test("svc init approves the model that it writes", async () => {
  await using work = await project({ "README.md": "x\n" });
  const { code } = await runMain(work.path, "init", "--model", "demo/other");
  assert.equal(code, 0);
  const shown = await runMain(work.path, "run", "--provider", "demo", "-p", "hello");
  assert.equal(shown.code, 0, shown.notes.join("\n"));
  const approved = JSON.parse(await work.read(".config/svc/models.json"));
  assert.deepEqual(approved.map(({ model }: { model: string }) => model), ["other"]);
});

Deno.test("svc init refuses what would have no effect, and writes nothing then", async () => {
  await using work = await project();
  for (
    const [args, message] of [
      [[], /Nothing is named to set\.\nhint: See the options: svc init --help/],
      [["--mode", "plam", "--model", "m"], /no mode "plam"\.\nhint: Did you mean "plan"/],
      [["--allow", "a | b", "--model", "m"], /"a \| b" allows nothing/],
    ] as const
  ) {
    const { code, notes } = await runMain(work.path, "init", ...args);
    assert.equal(code, 2);
    assert.match(notes.join("\n"), message);
  }
  await assert.rejects(work.read(".svc/config.json"), Deno.errors.NotFound);
});

Deno.test("on a terminal svc init asks, proposes the project's test command, and keeps empty answers", async () => {
  await using work = await project({ "package.json": '{"scripts": {"test": "node --test"}}' });
  const { code, questions } = await answered(work, ["", "plan", "git status, ls", "", "1000"]);
  assert.equal(code, 0);
  assert.equal(questions[3], "Command that tests the project [npm test]:");
  assert.deepEqual(await settings(work), {
    mode: "plan",
    tool_permission: { bash_allow: ["git status", "ls"] },
    "dev.test_cmd": "npm test",
    "budget.day": { tokens: 1000 },
  });
  const again = await answered(work, ["", "", "", "", ""]);
  assert.equal(
    again.questions[2],
    "Commands that run unasked, separated by commas [git status, ls]:",
  );
  assert.match(again.notes[0]!, /^Nothing is written/);
  const ended = await answered(work, ["m"]);
  assert.deepEqual([ended.code, ended.notes], [130, ["Cancelled; nothing is written."]]);
});

Deno.test("the questions of svc init show settings of the worktree without control characters", async () => {
  const settings = { model: "m\u001b]2;gone\u0007\u202e", "dev.test_cmd": "make\u001b[2Jx" };
  await using work = await project({ ".svc/config.json": JSON.stringify(settings) });
  const { questions } = await answered(work, ["", "", "", "", ""]);
  assert.equal(questions.length, 5);
  assert.doesNotMatch(questions.join(""), /[\p{Cc}\p{Cf}]/u);
});
