/** The program from source, by each way that it starts; the other end-to-end tests run the executable. */
import assert from "node:assert/strict";
import { call, say, startBackend } from "../support/backend.ts";
import { startSvc, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { svcPty } from "../support/pty.ts";

async function worktree(url: string): Promise<Project> {
  const settings = { base_url: url, model: "test", memory_enabled: false };
  return await project({ ".svc/config.json": JSON.stringify(settings), "a.txt": "one\n" });
}

Deno.test("from source: a turn with a tool call", async () => {
  await using backend = startBackend([call("file_read", { path: "a.txt" }), say("one line")]);
  await using place = await worktree(backend.url);
  const { code, stdout, stderr } = await svc(["run", "read a.txt"], {
    cwd: place.path,
    source: true,
  });
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).content, "one line");
});

Deno.test("from source: a page is parsed in its thread", async () => {
  await using place = await worktree("http://127.0.0.1:1");
  const page = "<html><title>Tides</title><body><article><h1>High</h1><p>at noon</p></article>";
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () => new Response(page, { headers: { "content-type": "text/html" } }),
  );
  const url = `http://127.0.0.1:${server.addr.port}/`;
  await using backend = startBackend([call("web_fetch", { url }), say("done")]);
  const { code, stderr } = await svc(["run", "--base-url", backend.url, "--yes", "fetch"], {
    cwd: place.path,
    source: true,
  });
  assert.equal(code, 0, stderr);
  assert.match(backend.chats[1].messages.at(-1).content, /at noon|private|loopback/);
});

Deno.test("from source: a server, a job, a terminal session", async () => {
  await using backend = startBackend([say("served"), say("worked"), say("answered")]);
  await using place = await worktree(backend.url);
  const options = { cwd: place.path, source: true };
  const server = startSvc(["serve", "--port", "0"], options);
  const notes = server.stderr.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/listening on \S+\n/.test(text)) text += (await notes.read()).value;
  const [, url] = /listening on (\S+)/.exec(text)!;
  const answer = await fetch(`${url}/chat`, { method: "POST", body: '{"prompt": "hi"}' });
  assert.equal((await answer.json()).content, "served");
  server.kill("SIGTERM");
  await Promise.all([notes.cancel(), server.stdout.cancel(), server.status]);

  await svc(["jobs", "add", "j", "--interval", "3600", "--prompt", "go"], options);
  const ran = await svc(["jobs", "run", "j"], options);
  assert.match(ran.stdout, /worked[^]*ended ok/, ran.stderr);

  await using pty = svcPty([], options);
  await pty.until("›");
  await pty.type("hello\r");
  await pty.until("answered");
  await pty.type("\x04");
  assert.equal(await pty.ended, 0);
});

Deno.test("from source: --version --verbose names the build, the commit and Deno", async () => {
  await using place = await project();
  const { code, stdout } = await svc(["--version", "--verbose"], { cwd: place.path, source: true });
  const commit = "(?:[0-9a-f]{12}|unknown)";
  assert.equal(code, 0);
  assert.match(
    stdout,
    new RegExp(
      `^svc \\S+\nbuild: source\ncommit: ${commit}\nDeno: ${Deno.version.deno}, V8 .*\nplatform: `,
    ),
  );
});
