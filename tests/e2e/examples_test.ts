import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { as, call, say, startBackend } from "../support/backend.ts";
import { repository } from "../support/git.ts";
import { commandLine, type Ended, processOptions, startSvc, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";

const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));

/** Runs a program in a worktree in which `svc` is a command. */
async function run(
  place: Project,
  [program, ...args]: string[],
  { cwd = place.path, env = {} } = {},
): Promise<Ended> {
  const words = commandLine([]).map((word) => `'${word}'`).join(" ");
  await place.write("bin/svc", `#!/bin/sh\nexec ${words} "$@"\n`);
  await Deno.chmod(join(place.path, "bin/svc"), 0o755);
  const PATH = `${join(place.path, "bin")}:/usr/local/bin:/usr/bin:/bin`;
  const { code, stdout, stderr } = await new Deno.Command(program!, {
    args,
    ...processOptions({ cwd, home: place.path, env: { PATH, ...env } }),
  }).output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

function settings(url: string): string {
  return JSON.stringify({ base_url: url, model: "test", memory_enabled: false });
}

Deno.test("examples/ci: the reviewer's verdict on a branch is the exit code", async () => {
  await using backend = startBackend([say("Fine.\nVERDICT: pass"), say("A typo.\nVERDICT: fail")]);
  await using place = await project({ ".config/svc/config.json": settings(backend.url) });
  const repo = await repository(place, "repo", { "a.txt": "one\n" });
  await repo.git("switch", "--quiet", "--create", "change");
  await repo.commit({ "a.txt": "two\n" });
  const review = () =>
    run(place, ["sh", join(EXAMPLES, "ci/review.sh"), "main"], { cwd: join(place.path, "repo") });
  const passed = await review();
  assert.equal(passed.code, 0, passed.stderr);
  assert.match(passed.stdout, /Fine\.\nVERDICT: pass\n/);
  assert.match(JSON.stringify(backend.chats[0].messages.at(-1)), /-one\\n\+two/);
  const failed = await review();
  assert.equal(failed.code, 1, failed.stderr);
  assert.match(failed.stdout, /A typo\./);
});

Deno.test("examples/job: each run is reported to the webhook, and a wrong signature is refused", async () => {
  await using backend = startBackend([say("All pass.")]);
  await using place = await project({ ".svc/config.json": settings(backend.url) });
  const env = { REPORT_SECRET: "tide" };
  const receiver = new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-net", "--allow-env", join(EXAMPLES, "job/receiver.ts"), "0"],
    env,
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const lines = receiver.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let printed = "";
  const until = async (wanted: RegExp) => {
    for (let match;;) {
      if ((match = wanted.exec(printed)) !== null) return match;
      const { value, done } = await lines.read();
      assert.ok(!done, printed);
      printed += value;
    }
  };
  const [, url] = await until(/(http:\/\/127\.0\.0\.1:\d+)/);
  const added = await run(place, ["sh", join(EXAMPLES, "job/add.sh"), url!], { env });
  assert.equal(added.code, 0, added.stderr);
  const ran = await svc(["jobs", "run", "nightly"], { cwd: place.path });
  assert.equal(ran.code, 0, ran.stderr);
  await until(/^nightly ended ok, not checked in [\d.]+ s: All pass\.$/m);
  const forged = await fetch(url!, { method: "POST", body: '{"job": "nightly"}' });
  assert.deepEqual([forged.status, await forged.text()], [403, ""]);
  receiver.kill("SIGTERM");
  await lines.cancel();
  await receiver.status;
});

Deno.test("examples/http: the answer of a server is printed as it comes", async () => {
  await using backend = startBackend([say(["high ", "at ", "noon"])]);
  await using place = await project({ ".svc/config.json": settings(backend.url) });
  const server = startSvc(["serve", "--port", "0"], { cwd: place.path });
  const notes = server.stderr.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/listening on \S+\n/.test(text)) text += (await notes.read()).value;
  const [, url] = /listening on (\S+)/.exec(text)!;
  const chat = await run(place, [
    Deno.execPath(),
    ...["run", "--allow-net", join(EXAMPLES, "http/chat.ts"), url!, "when is high water?"],
  ]);
  server.kill("SIGTERM");
  await Promise.all([notes.cancel(), server.stdout.cancel(), server.status]);
  assert.deepEqual(chat, { code: 0, stdout: "high at noon\n", stderr: "" });
});

Deno.test("examples/plugin: its tool answers a model", async () => {
  await using backend = startBackend([call("tide", { harbour: "Husum" }), say("At noon.")]);
  await using place = await project({
    ".svc/config.json": settings(backend.url),
    "tides/Husum.txt": "high at noon\nlow at six\n",
  });
  const source = join(EXAMPLES, "plugin");
  const installed = await svc(["plugins", "install", source], { cwd: place.path });
  assert.equal(installed.code, 0, installed.stderr);
  const { code, stderr } = await svc(["run", "when is high water?"], { cwd: place.path });
  assert.equal(code, 0, stderr);
  assert.equal(backend.chats[1].messages.at(-1).content, "high at noon");
});

Deno.test("examples/team: the clerk writes again until the checker passes the minutes", async () => {
  await using backend = startBackend([
    as("keep the minutes", call("file_write", { path: "docs/minutes.md", content: "draft" })),
    as("keep the minutes", say("Written.")),
    as("compare the minutes", say("A name is wrong.\nVERDICT: fail")),
    as("keep the minutes", call("file_write", { path: "docs/minutes.md", content: "final" })),
    as("keep the minutes", say("Corrected.")),
    as("compare the minutes", say("Right.\nVERDICT: pass")),
  ]);
  await using place = await project({
    ".svc/config.json": settings(backend.url),
    ".svc/roles.json": await Deno.readTextFile(join(EXAMPLES, "team/roles.json")),
    ".svc/teams.json": await Deno.readTextFile(join(EXAMPLES, "team/teams.json")),
  });
  const args = ["teams", "run", "minutes", "the meeting of 12 May", "--output", "text"];
  const { code, stdout, stderr } = await svc(args, { cwd: place.path });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /VERDICT: pass/);
  assert.equal(await place.read("docs/minutes.md"), "final");
});
