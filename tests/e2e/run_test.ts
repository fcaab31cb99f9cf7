import assert from "node:assert/strict";
import { join } from "node:path";
import { call, httpError, say, startBackend } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { commandLine, processOptions, startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const MODEL = ["--model", "test"];

/** The one session log of a worktree. */
async function onlyLog(worktree: string) {
  const sessions = join(worktree, ".svc", "sessions");
  const names = [...Deno.readDirSync(sessions)].map((entry) => entry.name)
    .filter((name) => name !== ".ids");
  assert.equal(names.length, 1, `one session file and nothing beside it: ${names}`);
  return JSON.parse(await Deno.readTextFile(join(sessions, names[0]!)));
}

Deno.test("svc run makes one turn: the demo model counts the lines of a file through file_read [4.4]", async () => {
  await using place = await project({ "README.md": "a\nb\nc\n" });
  const prompt = "how many lines does README.md have?";
  const { code, stdout, stderr } = await svc(["run", "--provider", "demo", "-p", prompt], {
    cwd: place.path,
  });
  assert.equal(stderr, "");
  assert.equal(code, 0);
  const result = JSON.parse(stdout);
  assert.match(result.content, /\b3\b/);
  assert.equal(result.status, "ok");
  assert.equal(result.provider, "demo");
  const log = await onlyLog(place.path);
  assert.equal(log.session_name, result.session);
  const tool = log.turns[0].parts.find((part: { type: string }) => part.type === "tool");
  assert.equal(tool.name, "file_read");
  assert.match(log.version, /^\d+\.\d+\.\d+$/);
});

Deno.test("each process of a session sends the requests of the one before it again, byte for byte", async () => {
  await using place = await project({ "a.txt": "alpha\n", "b.txt": "beta\n" });
  const config = { noise_tools: ["glob"] };
  await place.write(".svc/config.json", JSON.stringify(config));
  await using backend = startBackend([
    call("file_read", '{ "path" : "a.txt" }'),
    call("glob", { pattern: "*.txt" }),
    say("one"),
    say("two"),
    call("file_read", { path: "b.txt" }),
    say("three"),
  ]);
  const args = ["run", "--base-url", backend.url, ...MODEL, "--session-id", "s"];
  for (const prompt of ["first", "second", "third"]) {
    const { code, stderr } = await svc([...args, "-p", prompt], { cwd: place.path });
    assert.equal(code, 0, stderr);
  }
  const { chats } = backend;
  assert.equal(chats.length, 6);
  const bodies = chats.map(({ model, tools, messages }) =>
    JSON.stringify([model, tools, ...messages]).slice(0, -1)
  );
  for (const [i, body] of bodies.entries()) {
    if (i > 0) assert.ok(body.startsWith(bodies[i - 1]!), `request ${i + 1}`);
  }
});

Deno.test("without a provider a run exits 2 with one sentence and a hint, and creates nothing [7.4]", async () => {
  await using place = await project();
  const { code, stdout, stderr } = await inProcess(["run", "-p", "hello"], { cwd: place.path });
  assert.equal(code, 2);
  assert.equal(stdout, "");
  assert.match(stderr, /^svc: .*provider.*\nhint: .*--provider demo/);
  assert.deepEqual([...Deno.readDirSync(place.path)], []);
});

Deno.test("the JSON result has the keys that scripts rely on, and nothing else is on stdout [4.4]", async () => {
  await using place = await project();
  await using backend = startBackend([say("hi", { usage: { total_tokens: 3 } })]);
  const { code, stdout } = await inProcess(
    ["run", "--base-url", backend.url, ...MODEL, "--verbose", "-p", "hello"],
    { cwd: place.path },
  );
  assert.equal(code, 0);
  const result = JSON.parse(stdout);
  assert.deepEqual(Object.keys(result), [
    "content",
    "thinking",
    "tool_calls",
    "refused",
    "denied",
    "errors",
    "duration",
    "usage",
    "total_usage",
    "cost",
    "model",
    "provider",
    "session",
    "status",
    "reason",
  ]);
  assert.equal(result.model, "test");
  assert.deepEqual(result.usage, { total_tokens: 3 });
});

Deno.test("--output text streams the answer alone, without a model's control characters [4.4]", async () => {
  await using place = await project();
  await using backend = startBackend([say(["one ", "\u001b[31mtwo\u001b[0m", "\u0007"])]);
  const { code, stdout, stderr } = await inProcess(
    ["run", "--base-url", backend.url, ...MODEL, "--output", "text", "hello"],
    { cwd: place.path },
  );
  assert.equal(code, 0);
  assert.equal(stdout, "one two\n");
  assert.equal(stderr, "");
});

Deno.test("--output stream-json is one TurnEvent per line and ends with the result", async () => {
  await using place = await project({ "a.txt": "x" });
  await using backend = startBackend([call("file_read", { path: "a.txt" }), say("done")]);
  const { stdout } = await inProcess(
    ["run", "--base-url", backend.url, ...MODEL, "--output", "stream-json", "hello"],
    { cwd: place.path },
  );
  const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(events.map((event) => event.type), [
    "turn_started",
    "tool_call",
    "permission",
    "tool_result",
    "token",
    "turn_finished",
  ]);
  assert.ok(events.every((event) => event.run === 1));
  assert.equal(events.at(-1).result.content, "done");
});

Deno.test("--output markdown is the answer with a table, refused calls and changed files", async () => {
  await using place = await project({ "a.txt": "x" });
  const answer = "**fine**\n\n```\nopen \u001b[31mred";
  await using backend = startBackend([
    call("file_write", { path: "b.txt", content: "y" }),
    call("file_write", { path: "a.txt" }),
    call("run_command", { command: "ls | wc" }),
    say(answer),
  ]);
  const { code, stdout } = await inProcess(
    ["run", "--base-url", backend.url, ...MODEL, "--output", "markdown", "hello"],
    { cwd: place.path },
  );
  assert.equal(code, 0);
  const pages = stdout.replace(/^(\| time \| )[\d.]+ s/m, "$1T s").split("\n\n");
  assert.equal(pages[0], "## svc: ok");
  assert.equal(pages[1], "> **fine**\n>\n> ```\n> open red");
  assert.match(pages[2]!, /^\| \| \|\n\| --- \| --- \|\n/);
  assert.match(pages[2]!, /^\| tool calls \| 3 \(\d failed\) \|$/m);
  assert.match(pages[2]!, /^\| time \| T s \|$/m);
  assert.match(pages[2]!, /\| session \| `ses_\w+` \|$/);
  assert.equal(pages[3], "### Refused calls");
  assert.match(pages[4]!, /^- `run_command`: `.+`$/);
  assert.equal(pages.slice(5).join("\n\n"), "### Changed files\n\n- `b.txt`\n");
});

Deno.test("--result writes the result to a file in addition to any output", async () => {
  await using place = await project();
  for (const output of ["json", "text", "markdown"]) {
    await using backend = startBackend([say("hello")]);
    const run = ["run", "--base-url", backend.url, ...MODEL, "--output", output, "hello"];
    const { code, stdout } = await inProcess([...run, "--result", "result.json"], {
      cwd: place.path,
    });
    assert.equal(code, 0);
    assert.match(stdout, /hello/);
    const result = JSON.parse(await place.read("result.json"));
    assert.deepEqual([result.content, result.status], ["hello", "ok"]);
    if (output === "json") assert.deepEqual(result, JSON.parse(stdout));
    const lost = await inProcess([...run, "--result", "result.json/x"], { cwd: place.path });
    assert.equal(lost.code, 1);
    assert.match(lost.stderr, /^svc: The result cannot be written: /m);
  }
});

Deno.test("--result replaces a link that the agent may have made, and does not write to its target", async () => {
  await using outside = await project({ "profile": "mine" });
  await using place = await project();
  await Deno.symlink(`${outside.path}/profile`, `${place.path}/result.json`);
  await using backend = startBackend([say("hello")]);
  const run = ["run", "--base-url", backend.url, ...MODEL, "--result", "result.json", "hello"];
  const { code } = await inProcess(run, { cwd: place.path });
  assert.equal(code, 0);
  assert.equal(await outside.read("profile"), "mine");
  assert.equal(JSON.parse(await place.read("result.json")).content, "hello");
});

Deno.test("the prompt comes from the argument, the flag or standard input [4.4]", async () => {
  await using place = await project();
  await using backend = startBackend([say("1"), say("2"), say("3"), say("4")]);
  const base = ["run", "--base-url", backend.url, ...MODEL];
  await inProcess([...base, "from argument"], { cwd: place.path });
  await inProcess([...base, "--prompt", "from flag"], { cwd: place.path });
  await inProcess(base, { cwd: place.path, stdin: "from stdin\n" });
  await inProcess([...base, "-"], { cwd: place.path, stdin: "from dash" });
  assert.deepEqual(backend.chats.map((chat) => chat.messages.at(-1).content), [
    "from argument",
    "from flag",
    "from stdin",
    "from dash",
  ]);
});

Deno.test("a pipe that stays open does not hold up a run that has its prompt", async () => {
  await using place = await project();
  await using backend = startBackend([say("hi")]);
  const child = startSvc(["run", "--base-url", backend.url, ...MODEL, "-p", "hello"], {
    cwd: place.path,
    stdin: "",
  });
  const { code } = await child.status; // stdin stays open until after the process has ended
  assert.equal(code, 0);
  assert.equal(backend.chats[0].messages.at(-1).content, "hello");
  await child.stdin.close();
  await child.stdout.cancel();
  assert.match(await new Response(child.stderr).text(), /nothing came for 3 s/);
});

Deno.test("what is piped in or redirected is added to the prompt of -p and of an argument [4.4]", async () => {
  await using place = await project({ "in.txt": "of a file\n" });
  await using backend = startBackend([say("1"), say("2"), say("3")]);
  const base = ["run", "--base-url", backend.url, ...MODEL];
  await svc([...base, "-p", "go"], { cwd: place.path, stdin: "of a pipe\n" });
  await svc([...base, "go"], { cwd: place.path, stdin: "of a pipe\n" });
  const redirected = commandLine([...base, "-p", "go"]).map((word) => `'${word}'`).join(" ");
  const shell = new Deno.Command("sh", {
    args: ["-c", `${redirected} <in.txt`],
    ...processOptions({ cwd: place.path }),
  });
  assert.equal((await shell.output()).code, 0);
  const block = (text: string) =>
    `go\n\nThis was piped in with the prompt:\n\n<stdin>\n${text}\n</stdin>`;
  assert.deepEqual(
    backend.chats.map((chat) => chat.messages.at(-1).content),
    [block("of a pipe"), block("of a pipe"), block("of a file")],
  );
});

Deno.test("binary input is refused before anything is sent, also next to a prompt", async () => {
  await using place = await project();
  await using backend = startBackend([]);
  const base = ["run", "--base-url", backend.url, ...MODEL];
  const { code, stderr } = await inProcess([...base, "-p", "go"], {
    cwd: place.path,
    stdin: "a\0b",
  });
  assert.equal(code, 2);
  assert.match(stderr, /Standard input is no text/);
  assert.deepEqual(backend.requests, []);
});

Deno.test("svc run without a prompt, with both --yes and --no, or with unknown flags is exit 2 with a hint [4.4]", async () => {
  await using place = await project();
  const cases: [args: string[], expected: RegExp][] = [
    [["run"], /no prompt.*\nhint: /],
    [["run", "--yes", "--no", "x"], /exclude each other/],
    [["run", "--promt", "x"], /--promt.*--prompt/s],
    [["rnu"], /"rnu".*\nhint: .*svc run/],
    [["fix the tests"], /"fix the tests".*\nhint: .*svc run -p "\.\.\."/],
    [["-p", "hello"], /`-p`.*\nhint: .*svc run -p "\.\.\."/],
    [["run", "--output", "xml", "x"], /json.*xml/s],
    [["run", "--path", "no/such/dir", "x"], /not a directory/],
    [["run", "--provider", "dmeo", "x"], /dmeo.*demo/s],
  ];
  for (const [args, expected] of cases) {
    const { code, stdout, stderr } = await svc(args, { cwd: place.path });
    assert.equal(code, 2, args.join(" "));
    assert.equal(stdout, "", args.join(" "));
    assert.match(stderr, expected, args.join(" "));
    assert.doesNotMatch(stderr, /\bat .*\.ts/, "no stack trace");
  }
});

Deno.test("--version and --help answer; help of a command shows its options, defaults and examples [4.1, 8]", async () => {
  await using place = await project();
  const { stdout: version } = await inProcess(["--version"], { cwd: place.path });
  assert.match(version, /^\d+\.\d+\.\d+\n$/);
  const { stdout: help, code } = await inProcess(["--help"], { cwd: place.path });
  assert.equal(code, 0);
  for (const name of ["run", "config", "export", "permissions", "demo-model"]) {
    assert.match(help, new RegExp(`^  ${name} `, "m"));
    const { stdout } = await inProcess([name, "--help"], { cwd: place.path });
    assert.match(stdout, /Examples:\n {2}\S/, name);
  }
  const { stdout: run } = await inProcess(["run", "--help"], { cwd: place.path });
  assert.match(run, /--session-id/);
  const page = async (...args: string[]) =>
    (await inProcess([...args, "--help"], { cwd: place.path })).stdout.replaceAll(/\s+/g, " ");
  assert.match(await page("serve"), /--host .*127\.0\.0\.1.*--port .*8787/);
  assert.match(await page("fleet", "up"), /--sweep .*2.*--unhealthy-threshold .*2/);
});

Deno.test("an error of the backend is exit code 1 and status error with its code, and the result still says everything [4.4, 7.4]", async () => {
  await using place = await project();
  await using backend = startBackend([httpError(401, { error: { message: "no such key" } })]);
  const { code, stdout, stderr } = await inProcess(
    ["run", "--base-url", backend.url, ...MODEL, "-p", "hello"],
    { cwd: place.path },
  );
  assert.equal(code, 1);
  const result = JSON.parse(stdout);
  assert.equal(result.status, "error");
  assert.equal(result.errors[0].code, 401);
  assert.match(stderr, /^error: .*no such key/);
});

Deno.test("run --session-id creates a session of that name, and continues it [4.4]", async () => {
  await using place = await project();
  await using backend = startBackend([say("one"), say("two")]);
  const base = ["run", "--base-url", backend.url, ...MODEL, "--session-id", "my notes"];
  await inProcess([...base, "first"], { cwd: place.path });
  const { stdout } = await inProcess([...base, "second"], { cwd: place.path });
  assert.equal(JSON.parse(stdout).session, "my notes");
  const log = await onlyLog(place.path);
  assert.equal(log.session_name, "my notes");
  assert.equal(log.session_id, "");
  assert.deepEqual(log.turns.map((turn: { index: number }) => turn.index), [1, 2]);
  assert.deepEqual(
    backend.chats[1].messages.slice(1).map((m: { content: string }) => m.content),
    ["first", "one", "second"],
  );
});

Deno.test("the flags of a run hold for that run, and no setting is written [4.4]", async () => {
  const settings = '{"provider": "demo", "mode": "build"}\n';
  await using place = await project({ ".svc/config.json": settings });
  await using backend = startBackend([say("one")]);
  const flags = ["--base-url", backend.url, ...MODEL, "--provider", "openai", "--mode", "plan"];
  const { stdout, stderr } = await inProcess(["run", ...flags, "-p", "hello"], { cwd: place.path });
  assert.equal(JSON.parse(stdout).provider, "openai", stderr);
  assert.equal((await onlyLog(place.path)).turns[0].mode, "plan");
  assert.equal(await place.read(".svc/config.json"), settings);
});

Deno.test("a session name cannot leave the sessions directory", async () => {
  await using place = await project();
  await using backend = startBackend([say("one")]);
  const { code, stderr } = await inProcess(
    ["run", "--base-url", backend.url, ...MODEL, "--session-id", "../../evil", "x"],
    { cwd: place.path },
  );
  assert.equal(code, 2);
  assert.match(stderr, /hint: /);
  assert.equal(backend.chats.length, 0);
});

Deno.test("a call that the policy asks about is refused without --yes and runs with it [4.4, 5.3]", async () => {
  await using place = await project();
  await using backend = startBackend({
    replies: [call("run_command", { command: "echo ran > out" }), say("done")],
    loop: true,
  });
  const base = ["run", "--base-url", backend.url, ...MODEL];
  const refused = JSON.parse((await inProcess([...base, "go"], { cwd: place.path })).stdout);
  assert.equal(refused.tool_calls[0].is_error, true);
  await assert.rejects(place.read("out"));
  const granted = JSON.parse(
    (await inProcess([...base, "--yes", "go"], { cwd: place.path })).stdout,
  );
  assert.equal(granted.tool_calls[0].is_error, false);
  assert.equal(await place.read("out"), "ran\n");
});

Deno.test("without --yes the process cannot run programs even where the policy would err, unless roles may", async () => {
  await using place = await project();
  await place.write(
    ".svc/plugins/probe.ts",
    `export function register_tools(registry) {
      registry.register({
        name: "probe", description: "Probe.", permission: "read",
        parameters: { type: "object", properties: {} },
        handler() {
          try {
            new Deno.Command("true").outputSync();
            return "ran";
          } catch (error) {
            return error.name;
          }
        },
      });
    }`,
  );
  await place.write(
    ".svc/config.json",
    '{ "plugins": ["svc-core-fs", "svc-core-edit", "svc-core-exec", "probe"], "sandbox.mode": "off" }',
  );
  const states = [];
  for (const flags of [[], ["--yes"]]) {
    await using backend = startBackend([call("probe"), say("done")]);
    await svc(["run", "--base-url", backend.url, ...MODEL, ...flags, "go"], { cwd: place.path });
    states.push(backend.chats[1].messages.at(-1).content);
  }
  assert.deepEqual(states, ["NotCapable", "ran"]);
});

Deno.test("a turn that runs no command starts no program to try out the sandbox", async () => {
  await using bin = await project({ bwrap: "#!/bin/sh\necho tried >>$0.log\nexit 1\n" });
  await Deno.chmod(join(bin.path, "bwrap"), 0o755);
  await using place = await project({ "README.md": "a\n" });
  await using backend = startBackend([call("file_read", { path: "README.md" }), say("done")]);
  const { code } = await svc(["run", "--base-url", backend.url, ...MODEL, "go"], {
    cwd: place.path,
    env: { PATH: `${bin.path}:/usr/bin:/bin` },
  });
  assert.equal(code, 0);
  await assert.rejects(bin.read("bwrap.log"), Deno.errors.NotFound);
});

Deno.test("Ctrl-C in the middle of an answer: exit 130, status cancelled, and what had arrived is kept [3.3, 7.3]", async () => {
  await using place = await project();
  await using backend = startBackend([{ text: ["half an answer"], hang: true }]);
  const child = startSvc(
    ["run", "--base-url", backend.url, ...MODEL, "--output", "stream-json", "hello"],
    { cwd: place.path },
  );
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let stdout = "";
  while (!stdout.includes('"token"')) {
    const { value, done } = await reader.read();
    assert.ok(!done, stdout);
    stdout += value;
  }
  child.kill("SIGINT");
  for (let read = await reader.read(); !read.done; read = await reader.read()) stdout += read.value;
  await child.stderr.cancel();
  assert.equal((await child.status).code, 130);
  assert.match(stdout, /"status":"cancelled"/);
  const log = await onlyLog(place.path);
  assert.equal(log.turns[0].status, "cancelled");
  assert.equal(log.turns[0].parts[1].text, "half an answer");
});

Deno.test("--path works in another worktree than the current directory", async () => {
  await using elsewhere = await project();
  await using place = await project({ "a.txt": "found" });
  await using backend = startBackend([call("file_read", { path: "a.txt" }), say("done")]);
  await inProcess(["run", "--base-url", backend.url, ...MODEL, "--path", place.path, "read"], {
    cwd: elsewhere.path,
  });
  assert.match(backend.chats[1].messages.at(-1).content, /found/);
  assert.equal((await onlyLog(place.path)).turns.length, 1);
  assert.deepEqual([...Deno.readDirSync(elsewhere.path)], []);
});

Deno.test("svc export writes every part of a session as Markdown [4.4]", async () => {
  await using place = await project({ "a.txt": "inside" });
  await using backend = startBackend([call("file_read", { path: "a.txt" }), say("the answer")]);
  const base = ["run", "--base-url", backend.url, ...MODEL, "--session-id", "story"];
  await inProcess([...base, "the question"], { cwd: place.path });
  const printed = await inProcess(["export", "story", "--out", "-"], { cwd: place.path });
  assert.equal(printed.code, 0);
  for (const text of ["the question", "file_read", "inside", "the answer"]) {
    assert.ok(printed.stdout.includes(text), text);
  }
  const written = await inProcess(["export", "story"], { cwd: place.path });
  assert.equal(written.code, 0);
  assert.equal(await place.read(".svc/exports/story.md"), printed.stdout);
  const missing = await inProcess(["export", "stroy"], { cwd: place.path });
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /Did you mean "story"/);
});

Deno.test("a wait for a busy backend is told in every output", async () => {
  const said = /429\)\. Retrying in (0\.\d|1\.0) s \(attempt 2, waiting 60 s in all at most\)\./;
  for (const output of ["json", "text", "stream-json"]) {
    await using place = await project();
    const busy = httpError(429, {}, { "retry-after": "0.01" });
    await using backend = startBackend([busy, say("hi")]);
    const { code, stdout, stderr } = await inProcess(
      ["run", "--base-url", backend.url, ...MODEL, "--output", output, "go"],
      { cwd: place.path },
    );
    assert.equal(code, 0);
    assert.match(stderr, said);
    if (output !== "stream-json") continue;
    const events = stdout.trim().split("\n").map((line) => JSON.parse(line));
    const notice = events.find(({ type }) => type === "notice");
    assert.match(notice.message, said);
    assert.ok(notice.retry_in >= 0.5 && notice.retry_in <= 1);
  }
});

Deno.test("svc permissions shows categories, actions and Deno's state", async () => {
  await using place = await project();
  const { stdout } = await svc(["permissions", "--output", "json"], { cwd: place.path });
  const rows = JSON.parse(stdout);
  const row = (category: string) =>
    rows.find((each: { category: string }) => each.category === category);
  assert.deepEqual(row("bash"), {
    category: "bash",
    action: "ask",
    permission: "run",
    state: "granted",
  });
  assert.equal(row("edit").action, "allow");
  assert.equal(row("(sandbox)").action, "auto");
  assert.match(row("(sandbox)").state, /^(bubblewrap|landlock|sandbox-exec|none)$/);
  await place.write(".svc/config.json", '{ "sandbox": "off" }');
  const off = await svc(["permissions"], { cwd: place.path });
  assert.match(off.stdout, /^\(sandbox\) +off +none$/m);
  const plan = await svc(["permissions", "--mode", "plan"], { cwd: place.path });
  assert.match(plan.stdout, /^edit +deny +write/m);
});

Deno.test("--mode of a mode that does not exist is refused, a configured one is build with a warning", async () => {
  await using place = await project();
  await using backend = startBackend([say("done")]);
  const base = ["run", "--base-url", backend.url, ...MODEL];
  const refused = await inProcess([...base, "--mode", "pln", "go"], { cwd: place.path });
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /There is no mode "pln"\.\nhint: Did you mean "plan"/);
  await place.write(".svc/config.json", '{ "mode": "pln" }');
  const run = await inProcess([...base, "go"], { cwd: place.path });
  assert.equal(run.code, 0);
  assert.match(run.stderr, /^warning: There is no mode "pln"; build is used in its place\./);
});

Deno.test("refused calls are summed up in one line, and a hint in the next says how to allow them", async () => {
  await using place = await project();
  await using backend = startBackend([call("run_command", { command: "ls" }), say("done")]);
  const args = ["run", "--base-url", backend.url, "--model", "test", "--output", "text", "go"];
  const { stderr } = await inProcess(args, { cwd: place.path });
  assert.match(
    stderr,
    /^1 call was refused: run_command \(bash\): .*\nhint: Allow them in .*--yes.*\n$/m,
  );
});
