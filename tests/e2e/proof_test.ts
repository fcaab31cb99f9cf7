import assert from "node:assert/strict";
import { Workspace } from "../../src/engine/workspace.ts";
import { startServer } from "../../src/server/server.ts";
import { call, calls, type Reply, say, startBackend } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { trusting } from "../support/trust.ts";

const SCHEMA = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
const FILES = {
  "schema.json": JSON.stringify(SCHEMA),
  ".svc/teams.json": JSON.stringify({ solo: { stages: ["maker"] } }),
  ".svc/roles.json": JSON.stringify({ maker: { system_prompt: "YOU MAKE" } }),
};

/** What a front end says of a turn. */
interface Told {
  /** Of the program, or of the HTTP answer. */
  code: number;
  ok: boolean;
  verified?: boolean;
  data?: unknown;
  /** The reason, or a sentence with it. */
  why: string;
  denied: { tool: string; reason: string }[];
  stderr: string;
}
interface Place {
  path: string;
  url: string;
}
type Task = { verify?: string; schema?: true };

const options = ({ verify, schema }: Task) => [
  ...verify === undefined ? [] : ["--verify", verify, "--verify-rounds", "1"],
  ...schema === undefined ? [] : ["--schema", "schema.json"],
];

/** The turn result as JSON of a program. */
async function turn(place: Place, args: string[]): Promise<Told> {
  const { code, stdout, stderr } = await inProcess(args, { cwd: place.path });
  const { status, reason, verified, data, denied } = JSON.parse(stdout);
  return { code, ok: status === "ok", verified, data, why: reason, denied, stderr };
}

const FRONT_ENDS: [string, (place: Place, task: Task) => Promise<Told>][] = [
  ["run", (place, task) => turn(place, ["run", "-p", "go", ...options(task)])],
  ["teams run", (place, task) => turn(place, ["teams", "run", "solo", "go", ...options(task)])],
  ["POST /chat", served],
  ["a job", job],
];

async function served(place: Place, { verify, schema }: Task): Promise<Told> {
  const workspace = Workspace.open({
    path: place.path,
    environment: { home: place.path, cwd: place.path, get: trusting },
    overrides: { unattended: true, "tool_permission.bash_allow": ["test", "false"] },
  });
  await workspace.load({ tools: "all" });
  const server = startServer({ workspace, host: "127.0.0.1", port: 0, insecure: false });
  const response = await fetch(`http://127.0.0.1:${server.port}/chat`, {
    method: "POST",
    body: JSON.stringify({ prompt: "go", verify, verify_rounds: 1, schema: schema && SCHEMA }),
  });
  const { status, reason, verified, data, denied } = await response.json();
  await server.stop();
  await workspace.close();
  const told = { verified, data, why: reason, denied, stderr: "" };
  return { code: response.status === 200 ? 0 : 1, ok: status === "ok", ...told };
}

async function job(place: Place, task: Task): Promise<Told> {
  const schedule = ["--interval", "3600", "--retries", "0", "--approval", "auto"];
  const added = await inProcess(
    ["jobs", "add", "own", "--prompt", "go", ...schedule, ...options(task)],
    { cwd: place.path },
  );
  assert.equal(added.code, 0, added.stderr);
  const { code, stdout, stderr } = await inProcess(["jobs", "run", "own", "--output", "json"], {
    cwd: place.path,
  });
  const { status, reason, checked, data, denied } = JSON.parse(stdout);
  return { code, ok: status === "verified", verified: checked, data, why: reason, denied, stderr };
}

async function story(
  replies: Reply[],
  tell: (place: Place & { chats: unknown[] }) => Promise<void>,
): Promise<void> {
  await using backend = startBackend({ replies, default: replies.at(-1)! });
  await using place = await project({
    ...FILES,
    ".svc/config.json": JSON.stringify({
      ...{ base_url: backend.url, model: "test", memory_enabled: false, stream_retry_delay: 0 },
      tool_permission: { edit: "allow" },
    }),
  });
  await tell({ path: place.path, url: backend.url, chats: backend.chats });
}

const CALL = '<tool_call>\n{"name": "file_read", "arguments": {"path": "a"}}\n</tool_call>';

for (const [name, front] of FRONT_ENDS) {
  Deno.test(`${name}: the work is verified, the answer is data, and refused calls are named`, () =>
    story([
      calls([["list_dir", { path: "." }], ["run_command", { command: "make all" }]]),
      say('{"n": 1}'),
      call("file_write", { path: "ok", content: "" }), // after a verification that failed
      say('{"n": 2}'),
    ], async (place) => {
      const told = await front(place, { verify: "test -f ok", schema: true });
      assert.deepEqual([told.code, told.ok, told.why], [0, true, ""], JSON.stringify(told));
      assert.deepEqual([told.verified, told.data], [true, { n: 2 }]);
      assert.deepEqual(told.denied.map(({ tool }) => tool), ["run_command"]);
      if (name.endsWith("run")) {
        assert.match(
          told.stderr,
          /^1 call was refused: run_command.*bash is set to ask.*\nhint: .*svc permissions.*--yes/m,
        );
      }
    }));

  Deno.test(`${name}: work that stays unverified is an error`, () =>
    story([say("All tests pass.")], async (place) => {
      const told = await front(place, { verify: "false" });
      assert.deepEqual([told.ok, told.verified], [false, false]);
      assert.match(told.why, /^verify$|^Not verified: false ended with exit code 1 after 1 corr/);
      if (name !== "POST /chat") assert.equal(told.code, 1);
    }));

  Deno.test(`${name}: an answer that never satisfies the schema is an error`, () =>
    story([say('{"n": "many"}')], async (place) => {
      const told = await front(place, { schema: true });
      assert.deepEqual([told.ok, told.data], [false, undefined]);
      assert.match(told.why, /^schema$|does not satisfy its schema: \/n: /);
      if (name !== "POST /chat") assert.equal(told.code, 1);
    }));

  Deno.test(`${name}: a call that stays text is an error`, () =>
    story([say(CALL)], async (place) => {
      const told = await front(place, {});
      assert.equal(told.ok, false);
      assert.match(told.why, /^text_call$|as text again.*--tool-call-parser/);
      if (name !== "POST /chat") assert.equal(told.code, 1);
    }));
}

Deno.test("an invalid schema is exit 2, before a session is made or anything is sent", () =>
  story([say("{}")], async ({ path, chats }) => {
    await Deno.writeTextFile(`${path}/bad.json`, '{"type": "objekt"}');
    await Deno.writeTextFile(`${path}/list.json`, "[]");
    for (const file of ["bad.json", "list.json", "none.json"]) {
      const { code, stderr } = await inProcess(["run", "-p", "go", "--schema", file], {
        cwd: path,
      });
      assert.equal(code, 2);
      assert.match(stderr, RegExp(`${file}.*(#/type must be one of|JSON object|--schema names)`));
    }
    assert.deepEqual(chats, []);
    await assert.rejects(Deno.stat(`${path}/.svc/sessions`), Deno.errors.NotFound);
  }));

Deno.test("--verify runs in a process that may otherwise start no program, and text output says why", () =>
  story([say("done")], async ({ path }) => {
    const { code, stdout, stderr } = await svc(
      [
        "run",
        "-p",
        "go",
        "--mode",
        "plan",
        "--output",
        "text",
        "--verify",
        "echo no; exit 9",
        "--verify-rounds",
        "0",
      ],
      { cwd: path },
    );
    assert.deepEqual([code, stdout], [1, "done\n"]);
    assert.match(stderr, /^error: Not verified: echo no; exit 9 ended with exit code 9: no$/m);
  }));
