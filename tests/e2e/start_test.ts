import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Workspace } from "../../src/engine/workspace.ts";
import { startServer } from "../../src/server/server.ts";
import { startEditor } from "../acp/support.ts";
import { serverParameters, textOf } from "../mcp/support.ts";
import { calls, say, startBackend, type TestBackend } from "../support/backend.ts";
import { type Ended, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { frozen, mounts } from "../support/tiny_disk.ts";
import { trusting } from "../support/trust.ts";

const CONFIG = JSON.stringify({ provider: "near", model: "plain", memory_enabled: false });
const FILES = {
  ".svc/config.json": CONFIG,
  ".svc/roles.json": JSON.stringify({
    keeper: { system_prompt: "YOU KEEP", tool_permission: { edit: "deny" }, model: "near/kept" },
    maker: { system_prompt: "YOU MAKE" },
  }),
  ".svc/teams.json": JSON.stringify({ solo: { stages: ["maker"] } }),
  ".svc/eval/own.json": JSON.stringify({ id: "own", task: "write", expected: ["file_write"] }),
};

interface Story {
  place: Project;
  home: Project;
  backend: TestBackend;
}

interface FrontEnd {
  name: string;
  /** Continues the session `own`, whose role may not edit; the prompt has the agent write `made.txt`. */
  tell(story: Story): Promise<Ended>;
  /** The agent that is told to write works in a session of its own. Default: in `own`. */
  child?: true;
  /** Every task has a fresh session, without an owner. */
  fresh?: true;
}

const program = (...args: string[]) => ({ place, home }: Story, stdin?: string) =>
  svc(args, { cwd: place.path, home: home.path, stdin });

const FRONT_ENDS: FrontEnd[] = [
  { name: "run", tell: program("run", "--session-id", "own", "go") },
  { name: "serve", tell: served },
  { name: "acp", tell: edited },
  { name: "run_agent of MCP", tell: called },
  {
    name: "the REPL",
    tell: (story) => program("--session-id", "own")(story, "go\n"),
  },
  {
    name: "a job",
    async tell(story) {
      const schedule = ["--interval", "3600", "--retries", "0", "--approval", "auto"];
      await program("jobs", "add", "own", "--prompt", "go", "--session", "own", ...schedule)(story);
      return await program("jobs", "run", "own")(story);
    },
  },
  {
    name: "teams run",
    tell: program("teams", "run", "solo", "go", "--session-id", "own"),
    child: true,
  },
  {
    name: "teams run in the REPL",
    tell: (story) => program("--session-id", "own")(story, "/teams run solo go\n"),
    child: true,
  },
  { name: "eval", tell: program("eval", "own", "--output", "json"), fresh: true },
];

async function served({ place, home }: Story): Promise<Ended> {
  const warnings: string[] = [];
  const workspace = Workspace.open({
    path: place.path,
    environment: { home: home.path, cwd: place.path, get: trusting },
    overrides: { unattended: true },
    warn: (message) => warnings.push(message),
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
  return { code: response.status === 200 ? 0 : 1, stdout, stderr: warnings.join("\n") };
}

async function edited({ place, home }: Story): Promise<Ended> {
  const editor = await startEditor(place.path, { home: home.path });
  await editor.agent.request("session/load", { sessionId: "own", cwd: place.path, mcpServers: [] });
  const stdout = await editor.prompt("own", "go");
  await editor.leave();
  return { code: stdout === "end_turn" ? 0 : 1, stdout, stderr: await editor.stderr };
}

async function called({ place, home }: Story): Promise<Ended> {
  const { args, ...parameters } = serverParameters(place.path);
  const env = { ...parameters.env, HOME: home.path };
  const transport = new StdioClientTransport({ ...parameters, args, env });
  const client = new Client({ name: "test", version: "1" });
  let stderr = "";
  transport.stderr!.on("data", (text: Uint8Array) => stderr += new TextDecoder().decode(text));
  await client.connect(transport);
  // The stamps of a use have to wait for it, and the end of the server for the stamps.
  const file = `${home.path}/.config/svc/.providers.json.lock`;
  using lock = await Deno.open(file, { write: true, create: true })
    .catch(() => undefined); // it is read-only, and gets no stamps
  await lock?.lock(true);
  const call = { name: "run_agent", arguments: { prompt: "go", session: "own" } };
  const result = await client.callTool(call);
  // The SDK's client kills a server that takes seconds to end, as one on a busy machine may.
  const { _process } = transport as unknown as { _process: ChildProcess };
  const closed = once(_process, "close");
  _process.stdin!.end();
  await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 500))]);
  await lock?.unlock();
  await closed;
  await client.close();
  return { code: result.isError ? 1 : 0, stdout: textOf(result), stderr };
}

async function story(
  tell: (story: Story) => Promise<void>,
  files: Record<string, string> = FILES,
  owner = "keeper",
): Promise<void> {
  const write = ["file_write", { path: "made.txt", content: "x" }] as const;
  await using backend = startBackend({
    replies: [calls([["list_dir", { path: "." }], [...write]]), say("tried")],
    default: say("done"),
  });
  await using home = await project({
    ".config/svc/providers.json": JSON.stringify({ near: { base_url: backend.url, api_key: "" } }),
    ".config/svc/models.json": JSON.stringify(
      ["kept", "plain"].map((model) => ({ provider: "near", model })),
    ),
  });
  await using place = await project(files);
  const { sessions } = open({ place, home });
  sessions.open("own", { role: owner }).close();
  await tell({ place, home, backend });
}

function open({ place, home }: Pick<Story, "place" | "home">): Workspace {
  const environment = { home: home.path, cwd: place.path, get: trusting };
  return Workspace.open({ path: place.path, environment });
}

for (const { name, tell, child, fresh } of FRONT_ENDS) {
  Deno.test(`${name} continues a session as its owner: rights, model, log and stamps [1]`, () =>
    story(async (told) => {
      const { place, home, backend } = told;
      const { code, stdout, stderr } = await tell(told);
      assert.equal(code, 0, stdout + stderr);
      assert.doesNotMatch(stderr, /warning/);

      const model = fresh ? "plain" : "kept";
      assert.deepEqual(backend.chats.map((chat) => chat.model), [model, model]);
      const [first, second] = backend.chats;
      const prompt = child ? /YOU MAKE/ : fresh ? /careful agent/ : /YOU KEEP/;
      assert.match(first.messages[0].content, prompt);
      const { content } = second.messages.at(-1);
      assert.match(content, /^Error: permission denied: file_write \(category edit\)/);
      await assert.rejects(place.read("made.txt"), Deno.errors.NotFound);
      assert.equal(await place.read(".svc/config.json"), CONFIG);

      if (!fresh) {
        const { sessions } = open(told);
        const own = sessions.read("own")!;
        assert.equal(own.role, "keeper");
        const turns = own.turns.map((turn) => [turn.status, turn.provider, turn.model]);
        assert.deepEqual(turns, [["ok", "near", "kept"]]);
        const { permissions } = child ? sessions.read(own.sub_sessions[0]!)! : own;
        const audit = permissions.map(({ tool, action, decision }) => [tool, action, decision]);
        assert.deepEqual(audit, [["list_dir", "allow", "granted"], [
          "file_write",
          "deny",
          "denied",
        ]]);
      }

      const [providers, models] = await Promise.all(
        ["providers", "models"].map(async (file) =>
          JSON.parse(await home.read(`.config/svc/${file}.json`))
        ),
      );
      assert.match(providers.near.last_used, /^\d{4}-/);
      for (const each of models) assert.equal(Boolean(each.last_used), each.model === model);
    }));

  Deno.test(
    `${name} works, without a word, where the user's configuration is read-only`,
    mounts,
    () =>
      story(async (told) => {
        await using _ = await frozen(`${told.home.path}/.config/svc`);
        const { code, stderr } = await tell(told);
        assert.equal(code, 0, stderr);
        assert.doesNotMatch(stderr, /warning|cannot be written/);
        assert.equal(told.backend.chats.length, 2);
      }),
  );
}

for (const { name, tell } of FRONT_ENDS.filter(({ child, fresh }) => !child && !fresh)) {
  Deno.test(`${name} tells the model what the project's checker found, though it may run no command itself`, () => {
    const tool_permission = { edit: "allow", bash: "deny", dev: "deny", vcs: "deny", mcp: "deny" };
    const dev = { check_cmd: "! test -e made.txt || { echo made.txt:1: no such x; exit 1; }" };
    const config = JSON.stringify({ ...JSON.parse(CONFIG), tool_permission, dev });
    return story(
      async (told) => {
        const { code, stdout, stderr } = await tell(told);
        assert.equal(code, 0, stdout + stderr);
        assert.doesNotMatch(stderr, /warning/);
        const last = told.backend.chats.map(({ messages }) => messages.at(-1));
        assert.deepEqual(last.map(({ role }) => role), ["user", "tool", "user"]);
        assert.match(last[2].content, /made\.txt:1: no such x/);
      },
      { ...FILES, ".svc/config.json": config },
      "maker",
    );
  });
}

Deno.test("a stamp that cannot be written for another reason is warned of, and fails no turn", () =>
  story(async (told) => {
    const { home } = told;
    await home.write(".config/svc/.providers.json.lock/file", ""); // a folder, where a lock file would be
    const { code, stderr } = await program("run", "--session-id", "own", "go")(told);
    assert.equal(code, 0, stderr);
    assert.equal(stderr.match(/^warning: /gm)?.length, 1, stderr);
    assert.match(stderr, /^warning: .*providers\.json cannot be written/m);
  }));
