import assert from "node:assert/strict";
import type { TurnTask } from "../../../src/engine/task.ts";
import { planTeam } from "../../../src/engine/teams.ts";
import { teamTurn } from "../../../src/engine/team_turn.ts";
import { agent, collect, type TestAgent } from "../../support/agent.ts";
import { as, call, type Reply, say } from "../../support/backend.ts";

const files = {
  ".svc/roles.json": JSON.stringify({
    scout: { system_prompt: "YOU SCOUT" },
    maker: { system_prompt: "YOU MAKE" },
    judge: { system_prompt: "YOU JUDGE", tool_permission: { edit: "deny" } },
  }),
  ".svc/teams.json": JSON.stringify({
    chain: { stages: ["scout", "maker", "judge"] },
    looped: {
      stages: ["scout", "maker", "judge"],
      loop: { from: "maker", until: "judge", max_iterations: 2 },
    },
    planner: { stages: [{ role: "scout", mode: "plan" }] },
  }),
};
const config = { tool_permission: { edit: "allow" } };

async function run(replies: Reply[], name: string, task: TurnTask) {
  const it = await agent(replies, { files, config });
  const prepared = await it.prepare();
  const plan = await planTeam(prepared, name);
  const command = `/teams run ${name} build`;
  const { signal } = new AbortController();
  const turn = teamTurn(prepared.open(), { plan, task: "build", command }, { signal, task });
  return { it, ...await collect(turn) };
}

/** The prompts of the requests that a stage began with. */
const prompts = (it: TestAgent) =>
  it.backend.chats.filter(({ messages }) => messages.at(-1).role === "user")
    .map(({ messages }) =>
      [
        /YOU \w+/.exec(messages[0].content)![0],
        messages.length > 2,
        messages.at(-1).content as string,
      ] as const
    );

Deno.test("a team is verified after its end; a failure goes to the last stage that may edit, and on", async () => {
  const { it, result } = await run(
    [
      as("YOU SCOUT", say("looked")),
      as("YOU MAKE", say("made")),
      as("YOU JUDGE", say("fine")),
      as("YOU MAKE", call("file_write", { path: "ok", content: "" })),
      as("YOU MAKE", say("mended")),
      as("YOU JUDGE", say("better")),
    ],
    "chain",
    { verify: "test -f ok || { echo leaks; exit 4; }" },
  );
  await using _ = it;
  assert.deepEqual([result.status, result.verified, result.content], ["ok", true, "better"]);
  assert.deepEqual(it.backend.chats.length, 6);
  const [, , , [stage, continued, prompt]] = prompts(it) as [
    never,
    never,
    never,
    [string, boolean, string],
  ];
  assert.deepEqual([stage, continued], ["YOU MAKE", true]); // in its session
  assert.match(prompt, /exit code 4[^]*leaks[^]*## The task of the team\n\nbuild$/);
  assert.match(prompts(it)[4]![2], /Stage 2 result .*\n\nmended/);
  const { turns: [turn] } = it.session.document();
  assert.deepEqual(turn!.parts.map(({ type }) => type), [
    ...["command", "text", "command", "text", "command"],
  ]);
});

Deno.test("a failure goes to the beginning of the loop, and the review judges again", async () => {
  const { it, result } = await run(
    [
      as("YOU SCOUT", say("looked")),
      as("YOU MAKE", say("made")),
      as("YOU JUDGE", say("VERDICT: pass")),
      as("YOU MAKE", call("file_write", { path: "ok", content: "" })),
      as("YOU MAKE", say("mended")),
      as("YOU JUDGE", say("VERDICT: fail")),
      as("YOU MAKE", say("mended again")),
      as("YOU JUDGE", say("VERDICT: pass")),
    ],
    "looped",
    { verify: "test -f ok" },
  );
  await using _ = it;
  assert.deepEqual([result.status, result.verified], ["ok", true]);
  assert.deepEqual(result.verdict, { passed: true, rounds: 2 });
});

Deno.test("a team whose review does not pass is not verified", async () => {
  const fail = [as("YOU MAKE", say("made")), as("YOU JUDGE", say("VERDICT: fail"))];
  const { it, result } = await run(
    [as("YOU SCOUT", say("looked")), ...fail, ...fail],
    "looped",
    { verify: "true" },
  );
  await using _ = it;
  assert.deepEqual([result.status, result.reason, result.verified], ["error", "verify", false]);
  assert.deepEqual(result.verdict, { passed: false, rounds: 2 });
});

Deno.test("a team that stays unverified is an error, even when none of its stages may edit", async () => {
  const { it, result } = await run(
    [say("planned"), say("planned again")],
    "planner",
    { verify: "false", verify_rounds: 1 },
  );
  await using _ = it;
  assert.deepEqual([result.status, result.reason, result.verified], ["error", "verify", false]);
  assert.match(result.errors[0]!.message, /exit code 1 after 1 correction/);
  assert.equal(it.session.document().turns[0]!.status, "error");
});

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

Deno.test("the last stage of a team gives the data, after its work", async () => {
  const { it, result } = await run(
    [say("planned"), call("answer", { data: { n: 3 } })],
    "planner",
    { schema },
  );
  await using _ = it;
  assert.deepEqual([result.status, result.data], ["ok", { n: 3 }]);
  assert.deepEqual(JSON.parse(result.content), { n: 3 });
});

Deno.test("an answer of a team that is data already is not asked for again", async () => {
  const { it, result } = await run([say('{"n": 4}')], "planner", { schema });
  await using _ = it;
  assert.deepEqual([result.data, it.backend.chats.length], [{ n: 4 }, 1]);
});

Deno.test("a team without data is an error with the reason schema", async () => {
  const { it, result } = await run(
    [say("1"), say("2"), say("3"), say("4"), say("5")],
    "planner",
    { schema: { type: "string", pattern: "^x" } },
  );
  await using _ = it;
  assert.deepEqual([result.status, result.reason, "data" in result], ["error", "schema", false]);
});

Deno.test("a stage whose calls are refused is in denied, once", async () => {
  const { it, result } = await run(
    [
      as("YOU SCOUT", call("run_command", { command: "ls" })),
      as("YOU SCOUT", call("file_read", { path: ".svc/roles.json" })),
      as("YOU SCOUT", say("looked")),
    ],
    "planner",
    {},
  );
  await using _ = it;
  assert.deepEqual(result.denied.map(({ tool }) => tool), ["run_command"]);
});
