import assert from "node:assert/strict";
import type { TurnEvent } from "../../../src/engine/events.ts";
import type { Operator } from "../../../src/policy/operator.ts";
import { agent, results, subs, systemOf } from "../../support/agent.ts";
import { as, call, calls, hang, httpError, say } from "../../support/backend.ts";

const ROLES = {
  digger: { system_prompt: "YOU DIG", tool_permission: { delegate: "allow" } },
  miner: { system_prompt: "YOU MINE", tool_permission: { bash: "allow", edit: "deny" } },
  leader: {
    system_prompt: "YOU LEAD",
    tool_permission: { edit: "deny" },
    grant_permission: { edit: "allow" },
  },
  scribe: { system_prompt: "YOU WRITE", tool_permission: { edit: "allow" } },
  remote: { system_prompt: "YOU ARE FAR", model: "far/big" },
  pinned: { system_prompt: "YOU ARE PINNED", model: "tiny" },
};
const files = {
  ".svc/roles.json": JSON.stringify(ROLES),
  ".svc/skills/knots.md": "How to tie knots\n\nOver, then under.",
  "a.txt": "alpha",
};
const to = (role: string, task: string, more: Record<string, unknown> = {}) =>
  call("delegate", { role, task, ...more });

Deno.test("delegate has a role do the task in a sub_ session of its own, and its answer is the result [1, 2.1, 4.8, 9]", async () => {
  await using it = await agent([
    call("delegate", { type: "digger", task: "dig here", skills: ["knots"] }),
    as("YOU DIG", call("file_read", { path: "a.txt" })),
    as("YOU DIG", say("found alpha")),
    say("all done"),
  ], { files });
  const { events, result } = await it.turn("go");
  assert.equal(result.content, "all done");
  const [sub] = subs(events);
  assert.match(sub!, /^sub_/);
  assert.deepEqual(results(events), [`found alpha\n\n[digger #2, session ${sub}]`]);
  assert.match(systemOf(it, 1), /YOU DIG[^]*## Skills[^]*Over, then under/);
  assert.deepEqual(it.backend.chats[1].messages.slice(1), [{ role: "user", content: "dig here" }]);

  const document = it.workspace.sessions.read(sub!)!;
  assert.deepEqual([document.parent_id, document.role], [it.session.name, "digger"]);
  assert.deepEqual(it.session.document().sub_sessions, [sub]);
  assert.deepEqual(document.turns.map(({ status, mode }) => [status, mode]), [["ok", "build"]]);
  const [granted] = it.session.document().permissions;
  assert.deepEqual([granted!.tool, granted!.decision], ["delegate", "granted"]);

  const own = events.filter(({ run }) => run === 2).map(({ type }) => type);
  assert.deepEqual([own[0], own[1], own.at(-2), own.at(-1)], [
    "run_started",
    "turn_started",
    "turn_finished",
    "run_finished",
  ]);
  const started = events.find(({ type }) => type === "run_started");
  assert.deepEqual(started, {
    type: "run_started",
    run: 2,
    parent: 1,
    role: "digger",
    session: sub,
    task: "dig here",
  });
  const last = events.findIndex(({ type }) => type === "run_finished");
  assert.deepEqual(events[last], { type: "run_finished", run: 2, status: "ok" });
  assert.ok(last < events.findIndex(({ type, run }) => type === "tool_result" && run === 1));
});

Deno.test("each agent's requests name its own session to the backend [4.10]", async () => {
  const replies = [to("digger", "dig"), as("YOU DIG", say("coal")), say("done")];
  await using it = await agent(replies, { files, config: { provider: "opencode" } });
  const { events } = await it.turn("go");
  const id = it.workspace.sessions.read(subs(events)[0]!)!.session_id;
  const sent = it.backend.requests.filter(({ method }) => method === "POST")
    .map(({ headers }) => headers["x-opencode-session"]);
  assert.deepEqual(sent, [it.session.id, id, it.session.id]);
});

Deno.test("delegate to a role that the catalog lacks is denied, on record, and the model is told the known ones [5.3]", async () => {
  await using it = await agent([to("poet", "sing"), say("so be it")], { files });
  const { events } = await it.turn("go");
  assert.match(results(events)[0]!, /permission denied: .*no role "poet".*code-reviewer, .*digger/);
  assert.deepEqual(subs(events), []);
  const [denied] = it.session.document().permissions;
  assert.deepEqual([denied!.tool, denied!.action, denied!.decision], [
    "delegate",
    "deny",
    "denied",
  ]);
});

Deno.test("delegate resumes a run by its number or its session, under the same number; with context new it ignores resume [3.6, 4.8]", async () => {
  await using it = await agent([
    to("digger", "first"),
    as("YOU DIG", say("one")),
    to("digger", "second", { resume: "#2" }),
    as("YOU DIG", say("two")),
    say("ready"),
  ], { files });
  const { events } = await it.turn("go");
  const [first, second] = subs(events);
  assert.equal(first, second);
  const runs = events.flatMap((event) => event.type === "run_started" ? [event.run] : []);
  assert.deepEqual(runs, [2, 2]);
  const said = it.backend.chats[3].messages.slice(1).map(({ content }: { content: string }) =>
    content
  );
  assert.deepEqual(said, ["first", "one", "second"]);
  assert.deepEqual(it.session.document().sub_sessions, [first]);

  // Another process knows the saved session only.
  await using other = await agent([
    to("digger", "third", { resume: "kept" }),
    as("YOU DIG", say("three")),
    to("digger", "fresh", { resume: "kept", context: "new" }),
    as("YOU DIG", say("four")),
    say("ready"),
  ], { files });
  const kept = other.workspace.sessions.open("kept");
  kept.appendUser("what was before");
  kept.close();
  const again = await other.turn("go");
  const [resumed, fresh] = subs(again.events);
  assert.equal(resumed, "kept");
  assert.match(fresh!, /^sub_/);
  assert.equal(other.backend.chats[1].messages[1].content, "what was before");
  assert.deepEqual(other.backend.chats[3].messages.slice(1), [{ role: "user", content: "fresh" }]);
});

Deno.test("delegate with context compact has the resumed conversation summarised first [3.6, 4.8]", async () => {
  await using it = await agent([
    to("digger", "first"),
    as("YOU DIG", say("one")),
    to("digger", "second", { resume: "#2", context: "compact" }),
    say("they dug"),
    as("YOU DIG", say("two")),
    say("ready"),
  ], { files, config: { compact_keep: 0 } });
  const { events } = await it.turn("go");
  assert.match(results(events)[1]!, /^two\n/);
  assert.deepEqual(
    it.backend.chats[4].messages.slice(1).map(({ content }: { content: string }) => content),
    ["Summary of the conversation so far:\n\nthey dug", "second"],
  );
});

Deno.test("a resumed run must exist, and must not be the agent itself or one of its ancestors [3.6, 5.3, 7.4]", async () => {
  await using it = await agent([
    to("digger", "a", { resume: "#9" }),
    to("digger", "b", { resume: "root" }),
    to("digger", "c"),
    as("YOU DIG", to("miner", "d", { resume: "#1" })),
    as("YOU DIG", to("miner", "e", { resume: "#2" })),
    as("YOU DIG", say("no way")),
    say("ready"),
  ], { files });
  const { events, result } = await it.turn("go");
  assert.equal(result.status, "ok");
  const [missing, root, done] = results(events);
  assert.equal(missing, 'Error: There is no run or session "#9".');
  assert.match(root!, /^Error: .* cannot be resumed/);
  assert.match(done!, /^no way/);
  for (const output of results(events, 2)) assert.match(output, /^Error: .* cannot be resumed/);
  assert.equal(results(events, 2).length, 2);
  assert.equal(it.session.document().sub_sessions.length, 1);
});

Deno.test("agents start agents to a depth, each under the one that called [2.5, 5.3]", async () => {
  const deep = as("YOU DIG", to("digger", "deeper"));
  await using it = await agent([
    to("digger", "deep"),
    deep,
    deep,
    deep,
    as("YOU DIG", { ...say("up"), repeat: 3 }),
    say("back"),
  ], { files });
  const { events } = await it.turn("go");
  const started = events.flatMap((event) =>
    event.type === "run_started" ? [[event.run, event.parent]] : []
  );
  assert.deepEqual(started, [[2, 1], [3, 2], [4, 3]]);
  assert.match(results(events, 4)[0]!, /^Error: Agents start agents 3 levels deep at most/);
  assert.match(results(events)[0]!, /^up/);
});

Deno.test("a failed sub-agent is an error that names its status and session, and the caller goes on [7.4]", async () => {
  await using it = await agent([
    to("digger", "dig"),
    as("YOU DIG", httpError(401)),
    say("never mind"),
  ], { files });
  const { events, result } = await it.turn("go");
  const [sub] = subs(events);
  const [output] = results(events);
  assert.ok(
    output!.startsWith(`Error: the agent digger (#2, session ${sub}) ended with status error:`),
  );
  assert.match(output!, /401/);
  assert.deepEqual([result.status, result.content, result.errors], ["ok", "never mind", []]);
  assert.deepEqual(events.filter(({ type }) => type === "run_finished"), [
    { type: "run_finished", run: 2, status: "error" },
  ]);
});

Deno.test("cancelling the caller cancels the agent, whose log keeps what it said", async () => {
  await using it = await agent([to("digger", "dig"), as("YOU DIG", hang("half an"))], { files });
  const stop = new AbortController();
  const events: TurnEvent[] = [];
  for await (const event of it.engine.turn("go", { signal: stop.signal })) {
    events.push(event);
    if (event.type === "token" && event.run === 2) stop.abort();
  }
  const last = events.at(-1);
  assert.ok(last?.type === "turn_finished" && last.run === 1);
  assert.equal(last.result.status, "cancelled");
  const [turn] = it.workspace.sessions.read(subs(events)[0]!)!.turns;
  assert.equal(turn!.status, "cancelled");
  assert.ok(turn!.parts.some((part) => part.type === "text" && part.text.startsWith("half")));
});

Deno.test("a sub-agent is refused what its caller is refused, unless the caller's role grants it [5.3]", async () => {
  const write = (name: string) => call("file_write", { path: name, content: "x" });
  await using it = await agent([
    to("miner", "try"),
    as("YOU MINE", to("scribe", "write m.txt")),
    as("YOU WRITE", { ...write("m.txt"), when: { system: "YOU WRITE", user: "m.txt" } }),
    as("YOU WRITE", say("refused")),
    as("YOU MINE", say("mined")),
    to("leader", "try"),
    as(
      "YOU LEAD",
      calls([
        ["file_write", { path: "l.txt", content: "x" }],
        ["delegate", { role: "scribe", task: "write s.txt" }],
      ]),
    ),
    as("YOU WRITE", write("s.txt")),
    as("YOU WRITE", say("written")),
    as("YOU LEAD", say("led")),
    say("done"),
  ], { files, config: { tool_permission: { bash: "deny" } } });
  const { events } = await it.turn("go");
  const [mined, led] = results(events);
  assert.match(mined!, /; had less than its role asks for: bash \(deny\)\]$/);
  assert.match(led!, /^led/);
  const [answer] = results(events, 2);
  assert.match(answer!, /had less than its role asks for: edit \(deny\)/);
  const names = [...Deno.readDirSync(it.project.path)].map(({ name }) => name).sort();
  assert.deepEqual(names, [".svc", "a.txt", "s.txt"]);
});

Deno.test("plan mode holds for the agents of a plan, and a denied tool is denied to all [5.3]", async () => {
  const write = as("YOU WRITE", call("file_write", { path: "p.txt", content: "x" }));
  for (const config of [{ mode: "plan" }, { "tools.deny": ["file_write"] }]) {
    await using it = await agent([
      to("scribe", "write"),
      write,
      as("YOU WRITE", say("no")),
      say("done"),
    ], { files, config });
    const { events } = await it.turn("go");
    assert.match(results(events, 2)[0]!, /^Error: /);
    await assert.rejects(it.project.read("p.txt"));
  }
});

Deno.test("a grant of the operator for the rest of a session reaches no other agent", async () => {
  const asked: number[] = [];
  const operator: Operator = {
    confirm({ run }) {
      asked.push(run);
      return Promise.resolve({ granted: true, scope: "always", by: "operator" });
    },
    ask: () => Promise.resolve(undefined),
  };
  const run = call("run_command", { command: "true" });
  await using it = await agent([
    run,
    run,
    to("digger", "run it"),
    as("YOU DIG", run),
    as("YOU DIG", run),
    as("YOU DIG", say("ran")),
    say("done"),
  ], { files, operator, headless: false });
  await it.turn("go");
  assert.deepEqual(asked, [1, 2]);
});

Deno.test("a sub-agent is told what is refused, and one that is refused again and again is stopped [5.3, 8]", async () => {
  const run = as("YOU DIG", call("run_command", { command: "true" }));
  await using it = await agent([to("digger", "run"), run, run, run, say("done")], { files });
  const { events } = await it.turn("go");
  assert.match(systemOf(it, 1), /are refused: bash/);
  for (const output of results(events, 2)) assert.match(output, /^Error: permission denied/);
  assert.match(results(events)[0]!, /status error: Stopped: every tool call of 3 rounds/);
});

Deno.test("a role's model is asked for, and a ref that is not approved stops the call [5.2]", async () => {
  await using it = await agent([
    to("pinned", "x"),
    as("YOU ARE PINNED", say("small")),
    to("remote", "x"),
    say("done"),
  ], { files });
  const { connections } = it.workspace;
  await connections.save("far", { base_url: `${it.backend.url}/far`, api_key: "" });
  const { events } = await it.turn("go");
  assert.match(results(events)[0]!, /^small/);
  assert.equal(it.backend.chats[1].model, "tiny");
  assert.match(results(events)[1]!, /^Error: model not approved: far\/big/);
  assert.equal(subs(events).length, 1);
});

const pair = calls([
  ["delegate", { role: "digger", task: "dig" }],
  ["delegate", { role: "miner", task: "mine" }],
]);
const order = (events: TurnEvent[]) =>
  events.flatMap(({ type, run }) => /^run_/.test(type) ? [`${type} ${run}`] : []);

Deno.test("sub-agents of one reply run side by side; cancelling reaches those that still run [8]", async () => {
  await using it = await agent([pair, as("YOU DIG", hang("well")), as("YOU MINE", say("gold"))], {
    files,
  });
  const stop = new AbortController();
  const events: TurnEvent[] = [];
  for await (const event of it.engine.turn("go", { signal: stop.signal })) {
    events.push(event);
    const halves = [2, 3].map((run) => events.some((e) => e.type === "token" && e.run === run));
    if (halves.every(Boolean) && order(events).includes("run_finished 3")) stop.abort();
  }
  assert.deepEqual(order(events), [
    "run_started 2",
    "run_started 3",
    "run_finished 3",
    "run_finished 2",
  ]);
  const ends = subs(events).map((name) => it.workspace.sessions.read(name)!.turns[0]!.status);
  assert.deepEqual(ends, ["cancelled", "ok"]);
});

Deno.test("delegate.max_parallel bounds how many agents run side by side [4.8, 8]", async () => {
  await using it = await agent([
    pair,
    as("YOU DIG", say("coal")),
    as("YOU MINE", say("gold")),
    say("done"),
  ], { files, config: { "delegate.max_parallel": 1 } });
  const { events } = await it.turn("go");
  assert.deepEqual(order(events), [
    "run_started 2",
    "run_finished 2",
    "run_started 3",
    "run_finished 3",
  ]);
  const outputs = results(events).map((output) => output.split("\n")[0]);
  assert.deepEqual(outputs, ["coal", "gold"]);
});

Deno.test("two calls of one reply cannot resume the same agent [3.6]", async () => {
  const more = { role: "digger", task: "on", resume: "#2" };
  await using it = await agent([
    to("digger", "dig"),
    as("YOU DIG", say("one")),
    calls([["delegate", more], ["delegate", more]]),
    as("YOU DIG", say("two")),
    say("done"),
  ], { files });
  const { events } = await it.turn("go");
  const [, second, third] = results(events);
  assert.match(second!, /^two\n/);
  assert.match(third!, /^Error: The run in session sub_\S+ has not finished yet/);
});
