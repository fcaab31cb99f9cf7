import assert from "node:assert/strict";
import { call, say, usage } from "../support/backend.ts";
import { FORBIDDEN, HOSTILE } from "../support/hostile.ts";
import { inProcess } from "../support/io.ts";
import { project } from "../support/project.ts";
import { session } from "../support/repl.ts";
import { startBackend } from "../support/backend.ts";

const BASH = { tool_permission: { bash: "allow", edit: "allow" } };

for (const columns of [40, 80, 200]) {
  for (const NO_COLOR of [undefined, "1"]) {
    const how = `at ${columns} columns ${NO_COLOR === undefined ? "in colour" : "without colour"}`;
    const env: Record<string, string> = NO_COLOR === undefined ? {} : { NO_COLOR };

    Deno.test(`what a command prints is shown as it comes, then folded and whole with Ctrl-O, ${how}`, async () => {
      const command = "seq 1 30; until [ -e seen ]; do sleep 0.05; done; exit 3";
      await using open = await session([call("run_command", { command }), say("I see.")], {
        config: BASH,
        columns,
        env,
      });
      const { pty, place } = open;
      await pty.type("go\r");
      await pty.until(/^ {2}26\n {2}27\n {2}28\n {2}29\n {2}30\n\S+ \d+ s · \$ seq 1 30/m);
      await place.write("seen", "");
      await pty.until("I see.");
      await open.ready();
      assert.match(
        pty.screen.text(),
        /^✗ \$ seq 1 30.* · exit 3 · \d+\.\d s\n {2}… 25 more lines \(Ctrl-O\)\n {2}26\n {2}27\n {2}28\n {2}29\n {2}30\n\nI see\./m,
      );
      await pty.type("\x0f");
      await pty.until(/\n1\n2\n3\n[^]*\n30\n[^]*›$/);
      // deno-lint-ignore no-control-regex
      const paint = /\x1b\[[\d;]*m✗/.test(pty.written);
      assert.equal(paint, NO_COLOR === undefined);
      assert.ok(pty.screen.lines().every((line) => line.length <= columns));
    });

    Deno.test(`an edit is a diff with its line numbers, and an answer has no marks of headings and code, ${how}`, async () => {
      const before = Array.from({ length: 20 }, (_, n) => `const x${n} = ${n};\n`).join("");
      const answer = "# Done\n\n```ts\nconst x12 = 13;\n```";
      await using open = await session([
        call("file_edit", { path: "a.ts", old: "const x12 = 12;\n", new: "const x12 = 13;\n" }),
        say(answer, usage(4000, 20)),
      ], {
        config: { ...BASH, context_window: 8000 },
        files: { "a.ts": before },
        columns,
        env,
      });
      await open.pty.type("go\r");
      await open.pty.until("50 %");
      await open.ready();
      const text = open.pty.screen.text();
      assert.match(
        text,
        /✓ edit a\.ts\n.*x10.*\n.*x11.*\n {2}13 - const x12 = 12;\n {2}13 \+ const x12 = 13;\n {2}14 {3}const x13/,
      );
      if (NO_COLOR !== undefined) assert.ok(text.includes(answer));
      else {
        assert.match(text, /\nDone\n\nconst x12 = 13;\n\n/);
        assert.ok(open.pty.written.includes("38;5;133mconst\x1b[39m x12"));
      }
      assert.ok(open.pty.screen.lines().every((line) => line.length <= columns));
    });
  }
}

Deno.test("the banner says model, mode, role and folder, and what is not trusted", async () => {
  await using open = await session([say("fine")], {
    args: ["--mode", "plan", "--role", "tester"],
    files: { ".svc/roles.json": JSON.stringify({ tester: { system_prompt: "You test." } }) },
    columns: 40,
    env: { SVC_TRUST: "" },
    prompt: false,
  });
  const { pty } = open;
  await pty.until("[y/n]");
  const text = pty.screen.text().replaceAll("\n", " ");
  assert.match(
    text,
    /^svc \d\S+ · .* · mode plan role tester \S+ \/help lists commands · Ctrl-D leaves /,
  );
  await pty.type("n");
  await pty.until(/not trusted: setting:base_url,\nrole:tester \(\/trust\)/);
  await pty.until("or Enter:");
  assert.ok(pty.screen.lines().every((line) => line.length <= 40));
});

Deno.test("--verbose shows exit code and last lines of a command, and the diff of an edit", async () => {
  await using place = await project({
    "a.txt": "one\ntwo\n",
    ".svc/config.json": JSON.stringify({ ...BASH, memory_enabled: false }),
  });
  await using backend = startBackend([
    call("run_command", { command: "seq 1 30; exit 3" }),
    call("file_edit", { path: "a.txt", old: "two", new: "2" }),
    say("done"),
  ]);
  const { stderr, code } = await inProcess(
    ["run", "--trust", "--base-url", backend.url, "--model", "m", "--verbose", "-p", "go"],
    { cwd: place.path },
  );
  assert.equal(code, 0, stderr);
  assert.match(
    stderr,
    / {2}! exit 3 \(\d.\d\d s\)\n {4}… 25 more lines\n {4}26\n {4}27\n {4}28\n {4}29\n {4}30\n/,
  );
  assert.match(stderr, / {2}edit a\.txt\n {2}1 line \(\S+ s\)\n {4}2 - two\n {4}2 \+ 2\n/);
});

Deno.test("the footer of a turn names the jobs that run in the background", async () => {
  const job = { name: "nightly", schedule: { interval: 3600 }, prompt: "x", status: "executing" };
  await using open = await session([call("list_dir", {}), say("fine")], {
    files: { ".svc/jobs.json": JSON.stringify({ jobs: [job] }) },
  });
  await open.enter("go", / · job nightly$/m);
});

Deno.test("a confirmation shows the diff of an edit with its line numbers, and the turn does not show it again", async () => {
  await using open = await session([
    call("file_edit", { path: "a.txt", old: "two", new: "2" }),
    say("done"),
  ], { config: { tool_permission: { edit: "ask" } }, files: { "a.txt": "one\ntwo\n" } });
  await open.pty.type("go\r");
  await open.pty.until("[n] no");
  assert.match(open.pty.screen.text(), / {2}a\.txt\n {2}1 {3}one\n {2}2 - two\n {2}2 \+ 2\n\[y\]/);
  await open.pty.type("y");
  await open.pty.until("done");
  await open.ready();
  assert.match(open.pty.screen.text(), /✓ edit a\.txt\n\ndone/);
});

Deno.test("hostile text in running commands, diffs and folded output arrives as harmless text", async () => {
  const command = `cat a; until [ -e seen ]; do sleep 0.05; done; cat a a a a a a a a`;
  const replies = [
    call("run_command", { command }),
    call("file_write", { path: "a", content: `${HOSTILE}\nnew\n` }),
    call("file_edit", { path: "a", old: "new", new: HOSTILE }),
    say("done"),
  ];
  await using open = await session(replies, {
    config: { tool_permission: { bash: "allow", edit: "allow" } },
    files: { a: `${HOSTILE}\nline\n` },
    rows: 60,
  });
  const { pty, place } = open;
  await pty.type("go\r");
  await pty.until(/MARK[^]*\n {2}line\n/);
  await place.write("seen", "");
  await pty.until("done");
  await open.ready();
  await pty.type("\x0f");
  await pty.until(/MARK[^]*›$/);
  // Ours: colours, the cursor and clearing of the edited line, bracketed paste.
  // deno-lint-ignore no-control-regex
  const rest = pty.written.replace(/\x1b\[(?:\??[\d;]*[mABCDGHJKhl])|\r/g, "");
  assert.equal(FORBIDDEN.exec(rest)?.[0], undefined, JSON.stringify(rest));
  for (const piece of ["\x1b[2J", "\x1b]", "\x1bP", "\x1bc"]) {
    assert.ok(!pty.written.includes(piece), JSON.stringify(piece));
  }
});
