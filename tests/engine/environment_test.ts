import assert from "node:assert/strict";
import { agent, collect, systemOf, type TestAgent } from "../support/agent.ts";
import { httpError, say, usage } from "../support/backend.ts";
import { manualClock } from "../support/clock.ts";
import { repository } from "../support/git.ts";

const DAY = 24 * 3600 * 1000;

/** The block in the backend's n-th request. */
function blockOf(it: TestAgent, n = 0): string {
  const prompt = systemOf(it, n);
  const at = prompt.indexOf("## Environment");
  return at < 0 ? "" : prompt.slice(at);
}

/** A clock that a test moves; other than `manualClock`, it waits. */
const clockAt = (start: number) => {
  const clock = manualClock(start);
  return { ...clock, sleep: () => new Promise<void>(() => {}) };
};

Deno.test("a new session is told the system, the shell, the day, the branch and its state, the kind of project and how it is tested", async () => {
  const clock = clockAt(Date.UTC(2031, 4, 6, 23, 59));
  await using it = await agent([say("ok")], { clock });
  await repository(it.project, ".", {
    "deno.json": '{"tasks":{"test":"deno test -A"}}',
    "a.txt": "a\n",
  });
  await it.project.write("a.txt", "b\n");
  await it.project.write("new.txt", "c\n");
  await it.turn("go");
  const { os, arch } = Deno.build;
  const branch = blockOf(it).match(/branch (\S+),/)?.[1];
  assert.ok(branch === "main" || branch === "master", blockOf(it));
  assert.equal(
    blockOf(it),
    [
      "## Environment",
      "",
      `System: ${os} ${arch}, shell bash`,
      "Date: 2031-05-06 (UTC)",
      `Git: branch ${branch}, 2 changed files when the session began`,
      "Project: Deno, test: deno task test, lint: deno lint",
    ].join("\n"),
  );
  assert.ok(new TextEncoder().encode(blockOf(it)).length <= 600);
});

Deno.test("the block stays the same, byte for byte: the next day, after changes, a restart and a compaction", async () => {
  let now = Date.UTC(2031, 4, 6);
  const clock = { now: () => now, sleep: () => new Promise<void>(() => {}) };
  await using it = await agent({
    replies: [
      say("one"),
      say("two", usage(100, 1)),
      say("three"),
      httpError(400, { error: { message: "maximum context length is 4000 tokens" } }),
      { ...say("the summary"), when: { system: "You keep the memory" } },
      say("four"),
      say("five"),
    ],
    default: { text: "more" },
  }, { clock, files: { "Cargo.toml": "" }, config: { context_window: 100_000 } });
  await it.turn("a");
  now += 3 * DAY;
  await it.project.write("deno.json", "{}");
  await it.turn("b " + "x".repeat(20_000));
  await collect(it.another().turn("c"));
  const other = it.another();
  await collect(other.turn("d"));
  await collect(it.another().turn("e"));
  const blocks = it.backend.chats.map((_, n) => n).filter((n) =>
    !systemOf(it, n).startsWith("You keep")
  )
    .map((n) => blockOf(it, n));
  assert.ok(blocks.length >= 5);
  assert.match(blocks[0]!, /Date: 2031-05-06 \(UTC\)\nProject: Cargo, test: cargo test/);
  assert.deepEqual(new Set(blocks).size, 1, JSON.stringify([...new Set(blocks)]));
  const turns = await it.session.turns();
  assert.ok(
    turns.some(({ parts }) =>
      parts.some((part) => part.type === "command" && part.text === "/compact")
    ),
  );
  assert.equal(turns.filter(({ environment }) => environment !== undefined).length, 1);
});

Deno.test("a turn that failed without a reply keeps the block for the next ones", async () => {
  let now = Date.UTC(2031, 4, 6);
  const clock = { now: () => now, sleep: () => new Promise<void>(() => {}) };
  await using it = await agent([httpError(401), say("ok")], { clock });
  await it.turn("a");
  now += DAY;
  await collect(it.another().turn("b"));
  assert.match(blockOf(it, 1), /2031-05-06/);
  assert.equal(blockOf(it, 1), blockOf(it, 0));
});

Deno.test("the block is the last section of the system prompt, and environment: false leaves it out", async () => {
  await using it = await agent([say("ok")], { files: { "AGENTS.md": "Be kind." } });
  await it.turn("go");
  assert.match(systemOf(it), /Be kind\.[^]*## Environment\n\nSystem: .*\nDate: [-\d]+ \(UTC\)$/);
  await using off = await agent([say("ok")], { config: { environment: false } });
  await off.turn("go");
  assert.equal(blockOf(off), "");
  assert.equal((await off.session.turns())[0]!.environment, undefined);
});

Deno.test("the commands of the configuration are those that test the project; no programs of a repository are run", async () => {
  await using it = await agent([say("ok")], {
    files: { "Makefile": "test:\n\ttrue\n" },
    config: { "dev.test_cmd": "./check.sh" },
  });
  await repository(it.project, ".", { "a.txt": "a\n", ".gitattributes": "* filter=evil\n" });
  const config = await it.project.read(".git/config");
  const evil = `touch ${it.project.path}/ran; cat`;
  await it.project.write(
    ".git/config",
    `${config}[core]\n\tfsmonitor = "touch ${it.project.path}/ran"\n[filter "evil"]\n\tclean = "${evil}"\n`,
  );
  await it.project.write("a.txt", "b\n");
  await it.turn("go");
  assert.match(
    blockOf(it),
    /\nGit: branch \S+, 1 changed file when the session began\nProject: make, test: \.\/check\.sh$/,
  );
  assert.throws(() => Deno.statSync(`${it.project.path}/ran`));
});

Deno.test("without a sandbox no program is run for the block, and no one is warned of that", async () => {
  await using it = await agent([say("ok")]);
  await repository(it.project, ".", { "a.txt": "a\n" });
  it.workspace.sandbox.kind = () => Promise.resolve(undefined);
  await it.turn("go");
  assert.match(blockOf(it), /\nDate: [-\d]+ \(UTC\)$/);
  assert.deepEqual(it.warnings, []);
});

Deno.test("a service that fails or does not answer in time leaves its line out", async () => {
  await using it = await agent([say("ok")], {
    files: {
      ".svc/plugins/slow.ts": `export function register_services(services) {
        services.register("environment", { describe: () => { throw new Error("no"); } });
        services.register("environment", { describe: () => new Promise(() => {}) });
        services.register("environment", { describe: () => "Weather: fair" });
      }`,
    },
    config: { plugins: [] },
  });
  await it.turn("go");
  assert.match(blockOf(it), /\nDate: [-\d]+ \(UTC\)\nWeather: fair$/);
});
