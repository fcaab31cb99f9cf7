import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import { optionsOf, parseCommand, runCommand, subcommands } from "../../src/commands/command.ts";
import { SHARED } from "../../src/commands/table.ts";
import { openWorkspace } from "../../src/commands/workspace.ts";
import { errorMessage } from "../../src/platform/error.ts";
import { isOwnCommand } from "../../src/plugins/command_names.ts";
import { complete } from "../../src/repl/commands/complete.ts";
import { argumentsOf, readLine } from "../../src/commands/slash_line.ts";
import { runSlash } from "../../src/repl/commands/slash.ts";
import { aliasesOf, COMMANDS } from "../../src/repl/commands/table.ts";
import type { Shell } from "../../src/repl/shell.ts";
import { testIo } from "../support/io.ts";
import { project } from "../support/project.ts";

/** The parts of a terminal session that help, parsing and completion use. */
function shellIn(path: string): { shell: Shell; io: ReturnType<typeof testIo> } {
  const io = testIo({ home: path, cwd: path }, { program: "/" });
  const shell = {
    workspace: openWorkspace("", io),
    conversation: { runs: { list: () => [] } },
    io,
  };
  return { shell: shell as unknown as Shell, io };
}

/** A shared command with each of its subcommands, as words. */
const FORMS: string[][] = [];
for (const [name, { load }] of Object.entries(SHARED)) {
  const names = subcommands(await load());
  const only = name === "mcp" ? names.filter((each) => each !== "disconnect") : names;
  FORMS.push(...(names.length === 0 ? [[name]] : only.map((each) => [name, each])));
}

Deno.test("every option of a shared command is in the help, the completion and the grammar of both front ends", async () => {
  await using work = await project();
  const { shell, io } = shellIn(work.path);
  let options = 0;
  for (const form of FORMS) {
    const [name, ...rest] = form as [string, ...string[]];
    const cli = await (name === "mcp" ? (await import("../../src/cli/mcp.ts")).mcp : SHARED[
      name as keyof typeof SHARED
    ].load());
    const slash = await COMMANDS[name]!.load();
    const offered = optionsOf(cli, form);
    assert.deepEqual(optionsOf(slash, form), offered, form.join(" "));

    const page = testIo({ home: work.path, cwd: work.path });
    assert.equal(await main([...form, "--help"], page), 0);
    io.printed = "";
    await runSlash(name, [...rest, "--help"].join(" "), shell);
    const slashPage = io.printed;
    for (const [option, valued] of offered) {
      options++;
      assert.match(page.printed, new RegExp(`${option}\\b`), `svc ${form.join(" ")} --help`);
      assert.match(slashPage, new RegExp(`${option}\\b`), `/${form.join(" ")} --help`);

      const shown = testIo({ home: work.path, cwd: work.path });
      await main(["completion", "bash", ...form, option], shown);
      assert.ok(shown.printed.split("\n").includes(option), `svc ${form.join(" ")} ${option}`);
      const line = `/${form.join(" ")} ${option}`;
      const { candidates } = await complete(line, line.length, shell);
      assert.ok(candidates.some(({ text }) => text === option), line);

      const words = [...rest, option, ...(valued ? ["1"] : [])];
      const args = argumentsOf(slash, name, readLine(words.join(" ")));
      assert.deepEqual(await parsed(slash, args), await parsed(cli, [name, ...words]), line);
    }
  }
  assert.ok(options > 150, `${options} options were compared`);
  await shell.workspace.close();
});

/** The values that a command parses, or its error. */
async function parsed(
  command: Parameters<typeof parseCommand>[0],
  args: string[],
): Promise<unknown> {
  try {
    return await parseCommand(command, args, testIo({ home: "/", cwd: "/" }));
  } catch (error) {
    return errorMessage(error);
  }
}

Deno.test("every subcommand of a shared command is completed by both front ends", async () => {
  await using work = await project();
  const { shell } = shellIn(work.path);
  for (const [name, subcommand] of FORMS) {
    if (subcommand === undefined) continue;
    const shown = testIo({ home: work.path, cwd: work.path });
    await main(["completion", "bash", name!, subcommand], shown);
    const line = `/${name} ${subcommand}`;
    const { candidates } = await complete(line, line.length, shell);
    assert.ok(shown.printed.split("\n").includes(subcommand), line);
    assert.ok(candidates.some(({ text }) => text === subcommand), line);
  }
  await shell.workspace.close();
});

Deno.test("both front ends complete names of the worktree", async () => {
  await using work = await project({ ".svc/sessions/nightly.json": "{}" });
  const { shell } = shellIn(work.path);
  const cases: [words: string[], name: string][] = [
    [["roles", "show", "code"], "code-reviewer"],
    [["teams", "run", "writ"], "writing"],
    [["teams", "run", "writing", "--session-id", "night"], "nightly"],
    [["jobs", "add", "x", "--role", "code-"], "code-reviewer"],
    [["config", "set", "print_m"], "print_max_chars"],
    [["config", "print_m"], "print_max_chars"],
    [["permissions", "--mode", "pl"], "plan"],
    [["plugins", "show", "svc-core-ex"], "svc-core-exec"],
    [["compact", "night"], "nightly"],
    [["changes", "night"], "nightly"],
    [["undo", "--turn", "1", "night"], "nightly"],
  ];
  for (const [words, name] of cases) {
    const shown = testIo({ home: work.path, cwd: work.path });
    await main(["completion", "bash", ...words], shown);
    assert.deepEqual(shown.printed.trim().split("\n"), [name], words.join(" "));
    const line = `/${words.join(" ")}`;
    const { candidates } = await complete(line, line.length, shell);
    assert.deepEqual(candidates.map(({ text }) => text), [name], line);
  }
  const joined = "/jobs add x --role=code-";
  const { from, candidates } = await complete(joined, joined.length, shell);
  assert.deepEqual([joined.slice(from), candidates[0]!.text], ["code-", "code-reviewer"]);
  const shown = testIo({ home: work.path, cwd: work.path });
  await main(["completion", "fish", "jobs", "add", "x", "--role=code-"], shown);
  assert.match(shown.printed, /^--role=code-reviewer\b/);
  await shell.workspace.close();
});

Deno.test("the last argument of a slash command is a text that needs no quotes", async () => {
  const cases: [line: string, args: string[]][] = [
    ["asks answer 3 use the 'staging' one", ["answer", "3", "--", "use the 'staging' one"]],
    ['asks answer 3 "use staging"', ["answer", "3", "--", "use staging"]],
    ["asks answer 3 -no", ["answer", "3", "--", "-no"]],
    ["asks answer 3 yes --output json", ["answer", "3", "--output", "json", "--", "yes"]],
    ["asks answer --output json 3 yes, do", ["answer", "--output", "json", "3", "--", "yes, do"]],
    ["asks answer 3", ["answer", "3"]],
    ["asks answer -- 3 no", ["answer", "--", "3", "no"]],
    ["asks list all", ["list", "all"]],
    ["config set mode plan --global", ["set", "mode", "--global", "--", "plan"]],
    ["config --local set tools.deny [1, 2]", ["--local", "set", "tools.deny", "--", "[1, 2]"]],
    ["config set max_tokens --help", ["set", "max_tokens", "--help"]],
    ["teams run --skills a,b docs write it up", [
      "run",
      "--skills",
      "a,b",
      "docs",
      "--",
      "write it up",
    ]],
    ['tool file_read {"path": "a b"}', ["file_read", "--", '{"path": "a b"}']],
    ["jobs show nightly", ["show", "nightly"]],
  ];
  for (const [line, args] of cases) {
    const [, name, rest] = /^(\S+) (.*)$/.exec(line)!;
    const command = await COMMANDS[name!]!.load();
    assert.deepEqual(argumentsOf(command, name!, readLine(rest!)), [name, ...args], line);
  }
});

Deno.test("every slash command has a help page, a summary that fits, and a name that plugins cannot take", async () => {
  await using work = await project();
  const { shell, io } = shellIn(work.path);
  for (const [name, { summary, load }] of Object.entries(COMMANDS)) {
    assert.ok(summary.length <= 48, `${name}: ${summary.length}`);
    for (const each of [name, ...aliasesOf(name)]) assert.ok(isOwnCommand(each), each);
    io.printed = "";
    await runSlash(name, "--help", shell);
    assert.match(io.printed, new RegExp(`^Usage: /${name}( |\n)`), name);
    const { examples } = await load();
    for (const example of examples) {
      const [word] = example.replace(/^svc |^\//, "").replace(/^export.*/, name).split(/[ <]/);
      assert.equal(word, name, example);
    }
  }
  await shell.workspace.close();
});

Deno.test("teams run in a terminal session stays in it unless an option says otherwise", async () => {
  await using work = await project();
  const { shell, io } = shellIn(work.path);
  const { runTeamHere } = await import("../../src/repl/commands/agents.ts");
  const command = await COMMANDS.teams!.load();
  for (const option of ["--yes", "--session-id s", "--output json", "--mode plan", "--path ."]) {
    const line = readLine(`run writing "do it" ${option}`);
    const parsed = await parseCommand(command, argumentsOf(command, "teams", line), io);
    const { values } = parsed!;
    assert.equal(await runTeamHere(values, shell), false, option);
  }
  const { values } = (await parseCommand(command, ["teams", "run", "writing"], io))!;
  await assert.rejects(runTeamHere(values, shell), /TASK is missing/);
  await shell.workspace.close();
});

Deno.test("a setting is read without naming the subcommand", async () => {
  await using work = await project({ ".svc/config.json": '{"mode": "plan"}' });
  const io = testIo({ home: work.path, cwd: work.path });
  assert.equal(await runCommand(await SHARED.config.load(), ["config", "mode"], io), 0);
  assert.equal(io.printed, '"plan"\n');
});
