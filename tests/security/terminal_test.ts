import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import { oneLine } from "../../src/platform/terminal.ts";
import { call, httpError, type Reply, say, startBackend, think } from "../support/backend.ts";
import { testIo } from "../support/io.ts";
import { project } from "../support/project.ts";
import { FORBIDDEN, HOSTILE } from "../support/hostile.ts";

/** Hostile texts in every place that a command or a terminal session prints. */

interface Surface {
  args: string[];
  /** Files of the worktree and of the home. */
  work?: Record<string, unknown>;
  home?: Record<string, unknown>;
  replies?: Reply[];
}

const now = "2026-01-01T00:00:00.000Z";
const config = (values: Record<string, unknown>) => ({
  home: { ".config/svc/config.json": values },
});
const role = { description: HOSTILE, system_prompt: HOSTILE, tags: [HOSTILE], model: HOSTILE };
const roles = (value: unknown) => ({ home: { ".config/svc/roles.json": value } });
const ask = {
  id: 1,
  question: HOSTILE,
  context: HOSTILE,
  options: [HOSTILE],
  origin: HOSTILE,
  status: "pending",
  created_at: HOSTILE,
};
const asks = (change: object = {}) => ({ work: { ".svc/asks.json": [{ ...ask, ...change }] } });
const attempt = {
  started_at: now,
  finished_at: now,
  status: "failed",
  reason: HOSTILE,
  session: HOSTILE,
  content: HOSTILE,
};
const job = {
  name: "j",
  schedule: { interval: 3600 },
  prompt: HOSTILE,
  status: "failed",
  session: HOSTILE,
  history: [attempt],
};
const jobs = (change: object = {}) => ({
  work: { ".svc/jobs.json": { jobs: [{ ...job, ...change }] } },
});
const fleet = (change: object = {}) => ({
  work: {
    ".svc/fleet.json": { agents: [{ name: "a", dir: HOSTILE, command: [HOSTILE], ...change }] },
    ".svc/logs/a.log": HOSTILE,
  },
});
const plugin = (manifest: object, code = "") => ({
  home: {
    ".config/svc/config.json": { plugins: ["p"] },
    ".config/svc/plugins/p/manifest.json": { name: "p", ...manifest },
    ".config/svc/plugins/p/plugin.ts": code,
  },
});
const quoted = JSON.stringify(HOSTILE);
const stamped = (part: object) => ({ ...part, timestamp: now });
const saved = {
  ...{
    session_name: HOSTILE,
    session_id: HOSTILE,
    created_at: now,
    updated_at: now,
    role: HOSTILE,
  },
  errors: [stamped({ code: 1, message: HOSTILE })],
  permissions: [stamped({ tool: HOSTILE, action: "ask", decision: "declined", path: HOSTILE })],
  turns: [{
    ...{
      index: 1,
      started_at: now,
      ended_at: now,
      status: "ok",
      model: HOSTILE,
      provider: HOSTILE,
      mode: HOSTILE,
      reasoning: HOSTILE,
    },
    parts: [
      ...["user", "thinking", "text", "command", "system"].map((type) =>
        stamped({ type, text: HOSTILE, summary: HOSTILE })
      ),
      stamped({
        type: "tool",
        name: HOSTILE,
        input: { [HOSTILE]: HOSTILE },
        output: HOSTILE,
        is_error: true,
        analysis: HOSTILE,
      }),
    ],
  }],
};
const mcp = (change: object = {}) =>
  config({
    "mcp.servers": [{ name: "m", transport: "stdio", command: `/nowhere/${HOSTILE}`, ...change }],
  });
const run = (...replies: Reply[]) => ({
  args: ["run", "--output", "text", "--verbose", "go"],
  replies,
});

const SURFACES: Record<string, Surface> = {
  "an unknown command": { args: [HOSTILE] },
  "an unknown option": { args: ["config", `--${HOSTILE}`] },
  "an unknown role": { args: ["run", "--role", HOSTILE, "x"] },
  "an unknown mode": { args: ["run", "--mode", HOSTILE, "x"] },
  "a session's name": { args: ["run", "--session-id", HOSTILE, "x"] },
  "a missing session": { args: ["export", HOSTILE] },
  "a missing worktree": { args: ["permissions", "--path", `/nowhere/${HOSTILE}`] },
  "an unknown key": { args: ["config", "get", HOSTILE] },
  "an unknown provider": { args: ["run", "--provider", HOSTILE, "x"] },
  "an unknown job": { args: ["jobs", "show", HOSTILE] },
  "an unknown agent": { args: ["fleet", "logs", HOSTILE] },
  "an unknown skill": { args: ["skills", "show", HOSTILE] },
  "a plugin's source": { args: ["plugins", "install", `/nowhere/${HOSTILE}`] },
  "a backend's address": {
    args: ["connect", `http://127.0.0.1:9/${HOSTILE}`, HOSTILE, "--no-key"],
  },
  "a model's answer": run(say(HOSTILE)),
  "a model's answer in pieces": run(say([...HOSTILE])),
  "a model's answer as JSON": { args: ["run", "x"], replies: [say(HOSTILE)] },
  "a model's answer as events": {
    args: ["run", "--output", "stream-json", "x"],
    replies: [say(HOSTILE)],
  },
  "a model's reasoning": run(think(HOSTILE, say("MARK"))),
  "the name of a tool call": run(call(HOSTILE, {}), say("MARK")),
  "the arguments of a tool call": run(call("file_read", { path: HOSTILE }), say("MARK")),
  "arguments that are no JSON": run(call("file_read", HOSTILE), say("MARK")),
  "a refused command": run(call("run_command", { command: HOSTILE }), say("MARK")),
  "a question that is parked": run(
    call("ask", { question: HOSTILE, options: [HOSTILE] }),
    say("MARK"),
  ),
  "a task of a role": run(
    call("delegate", { role: "tester", task: HOSTILE }),
    say("MARK"),
    say("MARK"),
  ),
  "a backend's error": run(httpError(400, { error: { message: HOSTILE, code: HOSTILE } })),
  "a backend's page": run(httpError(400, HOSTILE)),
  "a saved session": {
    args: ["export", "s", "--out", "-"],
    work: { ".svc/sessions/s.json": saved },
  },
  "an unknown setting": { args: ["config", "reload"], ...config({ [HOSTILE]: 1 }) },
  "a setting's value": {
    args: ["config", "get", "model", "--show-origin"],
    ...config({ model: HOSTILE }),
  },
  "a category": { args: ["permissions"], ...config({ tool_permission: { [HOSTILE]: "deny" } }) },
  "a mode": { args: ["permissions"], ...config({ mode: HOSTILE }) },
  "an entry of bash_allow": {
    args: ["permissions"],
    ...config({ tool_permission: { bash_allow: ["npm test", `npm test ${HOSTILE}`] } }),
  },
  "the model in use": { args: ["model"], ...config({ model: HOSTILE, provider: "openai" }) },
  "the models in use": { args: ["models"], ...config({ model: HOSTILE, provider: "openai" }) },
  "the provider's model": { args: ["provider"], ...config({ model: HOSTILE, provider: "openai" }) },
  "the provider in use": { args: ["provider"], ...config({ provider: HOSTILE }) },
  "the list of roles": { args: ["roles", "list"], ...roles({ r: role, [HOSTILE]: role }) },
  "a role": { args: ["roles", "show", "r"], ...roles({ r: role }) },
  "a broken role": {
    args: ["roles", "show", "r"],
    ...roles({ r: { ...role, tool_permission: { [HOSTILE]: HOSTILE } } }),
  },
  "a team": {
    args: ["teams", "show", "t"],
    home: {
      ".config/svc/teams.json": {
        t: { description: HOSTILE, stages: [{ role: "tester", task_hint: HOSTILE }] },
      },
    },
  },
  "a skill": { args: ["skills", "show", "s"], home: { ".config/svc/skills/s.md": HOSTILE } },
  "the list of skills": { args: ["skills"], home: { ".config/svc/skills/s.md": HOSTILE } },
  "the list of asks": { args: ["asks"], ...asks() },
  "an ask": { args: ["asks", "show", "1"], ...asks({ status: "answered", answer: HOSTILE }) },
  "an answered ask": { args: ["asks", "answer", "1", HOSTILE], ...asks() },
  "the state of jobs": { args: ["jobs", "status"], ...jobs() },
  "a job": { args: ["jobs", "show", "j"], ...jobs() },
  "a broken job": { args: ["jobs"], ...jobs({ name: HOSTILE }) },
  "a job that is run": {
    args: ["jobs", "run", "j", "--verbose"],
    ...jobs(),
    replies: [say(HOSTILE)],
  },
  "a memory": {
    args: ["memory", "show", "role", "r"],
    work: { ".svc/memory/roles/r.md": HOSTILE },
  },
  "the list of memories": { args: ["memory"], work: { ".svc/memory/roles/r.md": HOSTILE } },
  "a fleet's log": { args: ["fleet", "logs", "a"], ...fleet() },
  "a fleet's broken agent": { args: ["fleet", "status"], ...fleet({ name: HOSTILE }) },
  "a fleet for compose": { args: ["fleet", "export", "compose"], ...fleet() },
  "a plugin's manifest": { args: ["plugins", "list"], ...plugin({ version: HOSTILE }) },
  "a plugin": {
    args: ["plugins", "show", "p"],
    ...plugin({ description: HOSTILE, source: HOSTILE, requires: [HOSTILE] }),
  },
  "a broken manifest": { args: ["plugins", "list"], ...plugin({ deno: HOSTILE }) },
  "a plugin that throws": {
    args: ["plugins", "test", "p"],
    ...plugin({}, `throw new Error(${quoted})`),
  },
  "a plugin's tool": {
    args: ["plugins", "show", "p"],
    ...plugin({}, `export const register_tools = (it) => it.register({ name: ${quoted} });`),
  },
  "a plugin's warning at a run": {
    args: ["run", "--output", "text", "x"],
    replies: [say("ok")],
    ...plugin({}, `throw new Error(${quoted})`),
  },
  "a fixture": {
    args: ["eval", "--list"],
    home: { ".config/svc/eval/f.json": { id: "f", description: HOSTILE, task: "x" } },
  },
  "an MCP server": { args: ["mcp", "list"], ...mcp({ name: HOSTILE }) },
  "an MCP server that fails": { args: ["mcp", "connect", "m"], ...mcp() },
  "a name that is completed": {
    args: ["completion", "bash", "run", "--mode", ""],
    ...config({ modes: { [HOSTILE]: {}, "$(evil)": {}, MARK: {} } }),
  },
  "a name that is completed in fish": {
    args: ["completion", "fish", "run", "--mode", ""],
    ...config({ modes: { [HOSTILE]: {}, "$(evil)": {}, MARK: {} } }),
  },
};

for (const [name, { args, work = {}, home = {}, replies = [] }] of Object.entries(SURFACES)) {
  Deno.test(`terminal: ${name} arrives as visible text`, async () => {
    await using backend = startBackend(replies);
    const settings = { base_url: backend.url, model: "test", memory_enabled: false };
    const text = (files: Record<string, unknown>) =>
      Object.fromEntries(
        Object.entries(files).map(([path, value]) => {
          const whole = path === ".config/svc/config.json"
            ? { ...settings, ...value as object }
            : value;
          return [path, typeof whole === "string" ? whole : JSON.stringify(whole)];
        }),
      );
    await using place = await project(text(work));
    await using house = await project(text({ ".config/svc/config.json": {}, ...home }));
    const io = testIo({ home: house.path, cwd: place.path });
    await main(args, io);
    // As the program prints a note.
    const arrived = io.printed + io.notes.map((note) => `${oneLine(note)}\n`).join("");
    assert.equal(FORBIDDEN.exec(arrived)?.[0], undefined, JSON.stringify(arrived));
    assert.ok(arrived.includes("MARK"), `not shown at all: ${arrived}`);
    assert.ok(!arrived.includes("$(evil)"), "a shell would complete it");
  });
}

Deno.test("the corpus of terminal surfaces is complete", () => {
  const count = Object.keys(SURFACES).length;
  // deno-lint-ignore no-console
  console.log(`${count} surfaces`);
  assert.ok(count >= 45);
});
