import assert from "node:assert/strict";
import { project } from "../support/project.ts";
import { runMain } from "../support/io.ts";

Deno.test("every group of commands lists its entries without a subcommand", async () => {
  await using work = await project();
  const groups = ["asks", "config", "fleet", "jobs", "memory", "models", "plugins", "roles"];
  for (const group of [...groups, "skills", "teams", "permissions"]) {
    assert.equal((await runMain(work.path, group)).code, 0, group);
  }
  assert.deepEqual(await runMain(work.path, "config"), await runMain(work.path, "config", "get"));
  assert.deepEqual(await runMain(work.path, "config", "--local"), {
    code: 0,
    out: "{}\n",
    notes: [],
  });
});

Deno.test("flags may stand before the subcommand", async () => {
  await using work = await project();
  assert.equal((await runMain(work.path, "config", "--local", "set", "model", "m")).code, 0);
  assert.equal((await runMain(work.path, "config", "--local", "get", "model")).out, '"m"\n');
  const wrong = await runMain(work.path, "config", "--zork", "set", "model", "m");
  assert.deepEqual([wrong.code, wrong.notes.at(-1)], [2, "hint: Try: svc config set --help"]);
});

Deno.test("a negative number is a value, and is rejected with a reason", async () => {
  await using work = await project();
  for (const given of ["-5", "-0.5", "-1e3"]) {
    const { code, notes } = await runMain(work.path, "config", "set", "max_tokens", given);
    assert.equal(code, 2);
    assert.match(notes[0]!, /^svc: "max_tokens" must be .*, not -/);
  }
  const behind = await runMain(work.path, "config", "set", "max_tokens", "-5", "--zork");
  assert.match(behind.notes[0]!, /`--zork`/);
  const interval = await runMain(
    work.path,
    "jobs",
    "add",
    "n",
    "--interval",
    "-5",
    "--prompt",
    "x",
  );
  assert.equal(interval.code, 2);
  assert.match(interval.notes[0]!, /"-5" is no duration/);
});

Deno.test("words after -- are not options", async () => {
  await using work = await project();
  const cases = [
    [["roles", "show", "--", "--help"], /There is no role "--help"/],
    [["jobs", "show", "--", "-x"], /There is no job "-x"/],
    [["export", "--out", "-", "--", "--x"], /There is no session "--x"/],
    [["asks", "answer", "--", "7", "-no"], /ask not found: 7/],
    [["plugins", "show", "--", "-x"], /There is no plugin "-x"/],
    [["config", "set", "--", "max_tokens", "-5"], /"max_tokens" must be/],
  ] as const;
  for (const [args, said] of cases) {
    const { code, notes } = await runMain(work.path, ...args);
    assert.equal(code, 2);
    assert.match(notes[0]!, said);
  }
});

Deno.test("a misspelt word suggests the nearest one, in subcommands too", async () => {
  await using work = await project();
  const cases = [
    ["jobs list --outptu json", "`--output`", "svc jobs list --help"],
    ["fleet status --wacth", "`--watch`", "svc fleet status --help"],
    ["run --max-session-id=3 --sesion-id=x hi", undefined, "svc run --help"],
    ["run --sesion-id=x hi", "`--session-id`", "svc run --help"],
    ["jobs lst", "`list`", "svc jobs --help"],
    ["models lits", undefined, "svc models --help"],
  ] as const;
  for (const [line, guess, page] of cases) {
    const { code, out, notes } = await runMain(work.path, ...line.split(" "));
    assert.deepEqual([code, out, notes[1]], [2, "", `hint: Try: ${page}`]);
    if (guess !== undefined) assert.ok(notes[0]!.endsWith(`. Did you mean ${guess}?`), notes[0]);
  }
});

Deno.test("an unknown option leads to the one that is meant, to the subcommand that has it, or to the setting of its name", async () => {
  await using work = await project();
  const cases = [
    [
      "run --max-tokens 5 hi",
      " Did you mean `--max-total-tokens`?",
      "`max_tokens` is a setting: svc config set max_tokens VALUE",
    ],
    ["run --temperature 1 hi", "", "`temperature` is a setting: svc config set temperature VALUE"],
    ["fleet config a --port 99", " `fleet add` has it.", "Try: svc fleet config --help"],
    ["jobs run a --timeout 5", " `jobs add` has it.", "Try: svc jobs run --help"],
    ["jobs add a --every 5m", " Did you mean `--interval`?", "Try: svc jobs add --help"],
    ["run --resume x hi", " Did you mean `--session-id`?", "Try: svc run --help"],
    ["run --json hi", " Did you mean `--output`?", "Try: svc run --help"],
    ["connect groq --key abc", " Did you mean `--key-only`?", "Try: svc connect --help"],
    ["serve --prot 3", " Did you mean `--port`?", "Try: svc serve --help"],
    ["run --file a", "", "Try: svc run --help"],
    ["run -c hi", "", "Try: svc run --help"],
  ] as const;
  for (const [line, guess, hint] of cases) {
    const { code, notes } = await runMain(work.path, ...line.split(" "));
    assert.deepEqual([code, notes[1]], [2, `hint: ${hint}`], line);
    assert.match(notes[0]!, /^svc: Unexpected option or \w+: ["`]--?\S+["`]\./);
    assert.equal(notes[0]!.replace(/^.*?["`]\./, ""), guess, line);
  }
});

Deno.test("a missing argument is named", async () => {
  await using work = await project();
  const missing = { "export": "SESSION", "asks show": "ID", "memory show role": "NAME" };
  for (const [line, what] of Object.entries(missing)) {
    assert.equal(
      (await runMain(work.path, ...line.split(" "))).notes[0],
      `svc: ${what} is missing.`,
    );
  }
});

Deno.test("two prompts are wrong usage", async () => {
  await using work = await project();
  const { code, notes } = await runMain(
    work.path,
    "run",
    "--provider",
    "demo",
    "-p",
    "list",
    "files",
  );
  assert.deepEqual([code, notes[0]], [
    2,
    "svc: There are two prompts: --prompt and an argument.",
  ]);
});

Deno.test("a wrong value or option is named with what it takes", async () => {
  const cases = {
    "jobs list --output": "`--output` requires `TYPE`.",
    "jobs list --output=xml": '`--output`: Expected one of "text" and "json", but got "xml".',
    "jobs list --path a --path=b": "`--path` cannot be used multiple times.",
    "jobs run x --verbose=1": 'Option `--verbose` is a Boolean flag, but got a value: "1".',
    "jobs list x": "Unexpected option or argument: `x`.",
    "jobs add-supervisor x": "Missing option `--task`.",
    "sessions tail x -n many": '`-n`/`--lines`: Expected a valid integer, but got "many".',
    "sessions tail x -n -1":
      '`-n`/`--lines`: Expected a value greater than or equal to 0, but got "-1".',
    "run --max-cost 1e x": '`--max-cost`: Expected a valid number, but got "1e".',
  };
  for (const [line, problem] of Object.entries(cases)) {
    const { code, notes } = await runMain("/", ...line.split(" "));
    assert.deepEqual([code, notes[0]], [2, `svc: ${problem}`]);
  }
});
