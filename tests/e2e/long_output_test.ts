import assert from "node:assert/strict";
import { Workspace } from "../../src/engine/workspace.ts";
import { startServer } from "../../src/server/server.ts";
import { call, calls, say, startBackend } from "../support/backend.ts";
import { type Ended, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { trusting } from "../support/trust.ts";

interface Places {
  place: Project;
  home: Project;
}

const LINES = Array.from({ length: 30_000 }, (_, i) => `line ${i}\n`).join("");
const WHOLE = `$ cat long.txt\nexit 0\n${LINES.trimEnd()}`;
const digest = new Uint8Array(
  await crypto.subtle.digest("SHA-256", new TextEncoder().encode(WHOLE)),
).toHex();
const path = `.svc/sessions/.own.kept/${digest.slice(0, 16)}.txt`;

const program = (...args: string[]) => ({ place, home }: Places) =>
  svc(args, { cwd: place.path, home: home.path });

const FRONT_ENDS: { name: string; tell(places: Places): Promise<Ended> }[] = [
  { name: "svc run", tell: program("run", "--session-id", "own", "go") },
  { name: "svc serve", tell: served },
  {
    name: "a job",
    async tell(places) {
      const schedule = ["--interval", "3600", "--retries", "0", "--approval", "auto"];
      await program("jobs", "add", "own", "--prompt", "go", "--session", "own", ...schedule)(
        places,
      );
      return await program("jobs", "run", "own")(places);
    },
  },
];

async function served({ place, home }: Places): Promise<Ended> {
  const environment = { home: home.path, cwd: place.path, get: trusting };
  const workspace = Workspace.open({
    path: place.path,
    environment,
    overrides: { unattended: true },
  });
  await workspace.load({ tools: "all", providers: "all", roles: "all", skills: "all" });
  const server = startServer({ workspace, host: "127.0.0.1", port: 0, insecure: false });
  const response = await fetch(`http://127.0.0.1:${server.port}/chat`, {
    method: "POST",
    body: JSON.stringify({ prompt: "go", session: "own" }),
  });
  const stdout = await response.text();
  await server.stop();
  await workspace.close();
  return { code: response.status === 200 ? 0 : 1, stdout, stderr: "" };
}

for (const { name, tell } of FRONT_ENDS) {
  Deno.test(`${name}: the model reads and searches the whole of a long result, which ends with its session [8]`, async () => {
    await using backend = startBackend([
      call("run_command", { command: "cat long.txt" }),
      calls([
        ["file_read", { path, offset: 15_003, limit: 1 }],
        ["grep", { pattern: "line 2999[89]", path }],
      ]),
      say("read"),
    ]);
    await using home = await project({
      ".config/svc/config.json": JSON.stringify({
        base_url: backend.url,
        model: "test",
        approve_models: true,
        memory_enabled: false,
        sandbox: { mode: "off" },
        tool_permission: { bash: "allow" },
      }),
    });
    await using place = await project({ "long.txt": LINES });
    const { code, stdout, stderr } = await tell({ place, home });
    assert.equal(code, 0, stdout + stderr);
    const results = backend.chats.at(-1).messages
      .filter(({ role }: { role: string }) => role === "tool")
      .map(({ content }: { content: string }) => content);
    assert.ok(results[0].length <= 100_000);
    assert.match(results[0], /exit 0\nline 0\n[^]*\nline 29999$/);
    assert.ok(results[0].includes(`the whole is in ${path}, for file_read and grep`));
    assert.match(results[1], /\n15003\|line 15000$/);
    assert.match(results[2], /:30001: line 29998\n.*:30002: line 29999$/);
    assert.equal(await place.read(path), WHOLE);
    const removed = await program("sessions", "delete", "own")({ place, home });
    assert.equal(removed.code, 0, removed.stderr);
    await assert.rejects(place.read(path), Deno.errors.NotFound);
  });
}
