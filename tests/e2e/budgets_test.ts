import assert from "node:assert/strict";
import { call, hang, say, startBackend, usage } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const config = (more: Record<string, unknown>) => ({
  ".svc/config.json": JSON.stringify({ memory_enabled: false, ...more }),
  "a.txt": "alpha",
});
const READ = { ...call("file_read", { path: "a.txt" }), ...usage(100, 10) };
const run = (url: string, ...args: string[]) => ["run", "--base-url", url, "--model", "m", ...args];

Deno.test("a limit of svc run ends the turn with exit code 3, names itself, and keeps what was done", async () => {
  await using place = await project(
    config({ prices: { "generic-compatible/m": { in: 1, out: 1 } } }),
  );
  await using backend = startBackend({ replies: [], default: READ });
  for (
    const [args, reason, sentence] of [
      [["--max-total-tokens", "290"], "budget", /max_total_tokens: 220 of 290 tokens/],
      [["--max-cost", "0.00029"], "budget", /max_cost: 0\.00022 of 0\.00029/],
      [["--max-tool-calls", "2"], "budget", /max_tool_calls: 2 of 2 tool calls/],
      [["--max-rounds", "2"], "rounds", /Stopped after 2 rounds/],
    ] as const
  ) {
    const { code, stdout, stderr } = await inProcess(run(backend.url, ...args, "go"), {
      cwd: place.path,
    });
    assert.equal(code, 3, stderr);
    const result = JSON.parse(stdout);
    assert.deepEqual([result.status, result.reason], ["error", reason]);
    assert.match(stderr, sentence);
    const log = JSON.parse(await place.read(`.svc/sessions/${result.session}.json`));
    assert.equal(
      log.turns[0].parts.filter(({ type }: { type: string }) => type === "tool").length > 1,
      true,
    );
  }
});

Deno.test("a cost budget without a price is wrong usage", async () => {
  await using place = await project(config({}));
  const { code, stderr } = await inProcess(run("http://127.0.0.1:9", "--max-cost", "1", "go"), {
    cwd: place.path,
  });
  assert.equal(code, 2);
  assert.match(stderr, /The budget max_cost cannot be kept: generic-compatible\/m has no price\./);
  assert.match(
    stderr,
    /svc config set prices '\{"generic-compatible\/m": \{"in": 1, "out": 2\}\}'/,
  );
});

Deno.test("two processes share the budget of a day and do not exceed it together", async () => {
  await using place = await project(config({ "budget.day": { tokens: 1500 } }));
  const replies = Array.from({ length: 20 }, (_, n) => ({
    ...call("file_read", { path: `${n}.txt` }),
    ...usage(100, 10),
    delay_ms: 10,
  }));
  await using backend = startBackend(replies);
  const runs = await Promise.all(
    [1, 2].map(() => svc(run(backend.url, "go"), { cwd: place.path })),
  );
  for (const { code, stdout } of runs) {
    assert.deepEqual([code, JSON.parse(stdout).reason], [3, "budget"]);
  }
  const tokens = 110 * backend.chats.length;
  assert.ok(tokens <= 1500 && tokens > 1200, `${tokens}`);
  const folder = `${place.path}/.svc/usage`;
  const [file] = [...Deno.readDirSync(folder)].filter(({ name }) => name.endsWith(".jsonl"));
  const lines = Deno.readTextFileSync(`${folder}/${file!.name}`).trimEnd().split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(lines.filter((line) => "for" in line).length, backend.chats.length);
  // It holds after a restart, too.
  const { code, stderr } = await svc(run(backend.url, "again"), { cwd: place.path });
  assert.equal(code, 3);
  assert.match(stderr, /the budget budget\.day\.tokens/);
});

Deno.test("a worktree that is not trusted can narrow budgets and not widen them, nor set prices", async () => {
  await using place = await project(config({
    "budget.turn": { tokens: 5000, tool_calls: 1 },
    prices: { "generic-compatible/m": { in: 0, out: 0 } },
  }));
  await using home = await project({
    ".config/svc/config.json": JSON.stringify({ "budget.turn": { tokens: 290 } }),
  });
  await using backend = startBackend({
    replies: [READ],
    default: { ...say("ok"), ...usage(1, 1) },
  });
  const env = { SVC_TRUST: "0" };
  const shown = await inProcess(["config", "get", "budget.turn"], {
    cwd: place.path,
    home: home.path,
    env,
  });
  assert.deepEqual(JSON.parse(shown.stdout), { tokens: 290, tool_calls: 1 });
  const ended = await inProcess(run(backend.url, "--max-cost", "1", "go"), {
    cwd: place.path,
    home: home.path,
    env,
  });
  assert.equal(ended.code, 2);
  assert.match(ended.stderr, /no price/);
});

Deno.test("no process waits for one that was killed: what that had reserved counts as used", async () => {
  await using place = await project(config({ "budget.day": { tokens: 12_000 } }));
  await using backend = startBackend([READ, hang(), { ...say("ok"), ...usage(100, 10) }]);
  const child = startSvc(run(backend.url, "go"), { cwd: place.path });
  await backend.arrived(2);
  child.kill("SIGKILL");
  await child.output();
  // The reservation of a process that lives would have the next request wait.
  const { code, stdout, stderr } = await svc(run(backend.url, "again"), { cwd: place.path });
  assert.deepEqual([code, JSON.parse(stdout).content, stderr], [0, "ok", ""]);
  const folder = `${place.path}/.svc/usage`;
  const [file] = [...Deno.readDirSync(folder)].filter(({ name }) => name.endsWith(".jsonl"));
  const lines = Deno.readTextFileSync(`${folder}/${file!.name}`).split("\n");
  assert.equal(lines.pop(), "");
  assert.equal(lines.filter((line) => "reserves" in JSON.parse(line)).length, 3);
  const left = [...Deno.readDirSync(folder)].filter(({ name }) => name.startsWith(".live-"));
  assert.deepEqual(left, []);
});

Deno.test("a ledger that cannot be written costs a warning, and no turn", async () => {
  await using place = await project({ ...config({}), ".svc/usage": "a file" });
  await using backend = startBackend([READ, { ...say("ok"), ...usage(1, 1) }]);
  const { code, stdout, stderr } = await inProcess(run(backend.url, "go"), { cwd: place.path });
  assert.deepEqual([code, JSON.parse(stdout).content], [0, "ok"]);
  assert.equal(stderr.match(/The usage of models is not recorded/g)?.length, 1);
});

Deno.test("svc teams run keeps to a budget, too", async () => {
  await using place = await project({
    ...config({}),
    ".svc/roles.json": JSON.stringify({ hand: { system_prompt: "YOU WORK" } }),
    ".svc/teams.json": JSON.stringify({ pair: { stages: ["hand", "hand"] } }),
  });
  await using backend = startBackend({ replies: [], default: READ });
  const { code, stdout } = await inProcess([
    ...["teams", "run", "pair", "go", "--base-url", backend.url, "--model", "m"],
    ...["--max-total-tokens", "290"],
  ], { cwd: place.path });
  assert.deepEqual([code, JSON.parse(stdout).reason], [3, "budget"]);
});
