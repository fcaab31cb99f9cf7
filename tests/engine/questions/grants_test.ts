import assert from "node:assert/strict";
import type { TurnEvent } from "../../../src/engine/events.ts";
import {
  type ConfirmAnswer,
  type ConfirmRequest,
  headlessOperator,
  type Operator,
} from "../../../src/policy/operator.ts";
import { agent, results, subs, type TestAgent } from "../../support/agent.ts";
import { as, call, say } from "../../support/backend.ts";

const ROLES = {
  boss: { system_prompt: "YOU LEAD", tool_permission: { edit: "deny" } },
  clerk: { system_prompt: "YOU FILE", tool_permission: { edit: "deny", bash: "deny" } },
  aide: { system_prompt: "YOU AID", tool_permission: { edit: "deny" } },
  ward: {
    system_prompt: "YOU WAIT",
    tool_permission: { edit: "deny" },
    ask_policy: { permission: "human" },
  },
  mute: {
    system_prompt: "YOU HUSH",
    tool_permission: { edit: "deny" },
    ask_policy: { permission: "deny" },
  },
};
const files = { ".svc/roles.json": JSON.stringify(ROLES) };
const to = (role: string, task: string) => call("delegate", { role, task });
const request = (permission: string) =>
  call("ask", { question: "May I?", context: "to fix it", kind: "permission", permission });
const write = (path: string) => call("file_write", { path, content: "x" });
const decisions = (events: TurnEvent[], run: number) =>
  events.flatMap((event) =>
    event.type === "permission" && event.run === run ? [`${event.tool} ${event.decision}`] : []
  );
const audit = (it: TestAgent, session: string) =>
  it.workspace.sessions.read(session)!.permissions.map((
    { timestamp: _, path: _1, sandbox: _2, ...rest },
  ) => rest);
const written = (it: TestAgent) =>
  [...Deno.readDirSync(it.project.path)].map(({ name }) => name)
    .filter((name) => !name.startsWith(".")).sort();

function human(answer: Partial<ConfirmAnswer>): Operator & { asked: ConfirmRequest[] } {
  const asked: ConfirmRequest[] = [];
  return {
    asked,
    confirm(request) {
      asked.push(request);
      return Promise.resolve({ granted: true, scope: "once", by: "operator", ...answer });
    },
    ask: () => Promise.reject(new Error("no direction is asked for")),
  };
}

Deno.test("ask_policy.permission auto grants what the caller's ceiling allows, for one call [2.4, 2.12, 4.8]", async () => {
  await using it = await agent([
    to("clerk", "file"),
    as("YOU FILE", request("edit")),
    as("YOU FILE", write("one.txt")),
    as("YOU FILE", write("two.txt")),
    as("YOU FILE", say("filed")),
    say("done"),
  ], { files });
  const { events } = await it.turn("go");
  const [granted, one, two] = results(events, 2);
  assert.equal(granted, "Granted: your next call of the category edit, and that one only.");
  assert.match(one!, /^Created/);
  assert.match(two!, /^Error: permission denied: file_write/);
  assert.deepEqual(written(it), ["one.txt"]);
  const [session] = subs(events);
  assert.deepEqual(audit(it, session!), [
    { tool: "ask", action: "allow", decision: "granted" },
    {
      tool: "ask",
      action: "ask",
      decision: "granted",
      permission: "edit",
      scope: "once",
      granted_by: "ceiling",
    },
    {
      tool: "file_write",
      action: "ask",
      decision: "granted",
      scope: "once",
      granted_by: "ceiling",
    },
    { tool: "file_write", action: "deny", decision: "denied" },
  ]);
  // The tool is offered while the category is granted, and the prompt lists what can be requested.
  const offered = it.backend.chats.slice(1, 5).map(({ tools }: { tools: unknown }) =>
    JSON.stringify(tools).includes('"file_write"')
  );
  assert.deepEqual(offered, [false, true, false, false]);
  assert.match(it.backend.chats[1].messages[0].content, /you can request permission.*: edit\.$/m);
});

Deno.test("a permission grant applies to no sub-agent, and not to the next turn of the same agent [5.3]", async () => {
  await using it = await agent([
    to("clerk", "file"),
    as("YOU FILE", request("edit")),
    as("YOU FILE", to("aide", "write")),
    as("YOU AID", write("below.txt")),
    as("YOU AID", request("edit")),
    as("YOU AID", write("below.txt")),
    as("YOU AID", say("no")),
    as("YOU FILE", say("filed")),
    call("delegate", { role: "clerk", task: "again", resume: "#2" }),
    as("YOU FILE", write("later.txt")),
    as("YOU FILE", say("no")),
    say("done"),
  ], { files });
  const { events } = await it.turn("go");
  const [first, asked, second] = results(events, 3);
  assert.match(first!, /^Error: permission denied: file_write/);
  assert.match(asked!, /^Error: permission denied: no grant for edit: no agent in this run can/);
  assert.match(second!, /^Error: permission denied: file_write/);
  assert.match(results(events, 2).at(-1)!, /^Error: permission denied: file_write/);
  assert.deepEqual(written(it), []);
});

Deno.test("ask_policy.permission auto asks the human for what the ceiling does not allow; always holds for the rest of the run [4.8]", async () => {
  const operator = human({ scope: "always" });
  const run = as("YOU FILE", call("run_command", { command: "true" }));
  await using it = await agent([
    to("clerk", "run"),
    as("YOU FILE", request("bash")),
    run,
    run,
    as("YOU FILE", say("ran")),
    call("delegate", { role: "clerk", task: "again", resume: "#2" }),
    run,
    as("YOU FILE", say("no")),
    say("done"),
  ], { files, operator, headless: false });
  const { events } = await it.turn("go");
  const outputs = results(events, 2);
  assert.equal(outputs[0], "Granted: calls of the category bash, for the rest of this run.");
  assert.match(outputs[1]!, /exit 0/);
  assert.match(outputs[2]!, /exit 0/);
  assert.match(outputs[3]!, /^Error: permission denied: run_command/);
  const session = subs(events)[0]!;
  const [{ signal: _, ...asked }, ...more] = operator.asked as [ConfirmRequest];
  assert.deepEqual(more, []);
  assert.deepEqual(asked, {
    tool: "ask",
    input: {
      question: "May I?",
      context: "to fix it",
      options: [],
      kind: "permission",
      permission: "bash",
    },
    category: "bash",
    reason: "permission for bash is requested: May I?",
    preview: "to fix it",
    run: 2,
    session,
  });
  assert.deepEqual(audit(it, session).slice(1, 4), [
    {
      tool: "ask",
      action: "ask",
      decision: "granted",
      permission: "bash",
      scope: "always",
      granted_by: "operator",
    },
    ...Array.from({ length: 2 }, () => ({
      tool: "run_command",
      action: "ask",
      decision: "granted",
      scope: "always",
      granted_by: "operator",
    })),
  ]);
});

Deno.test("ask_policy.permission human asks the human although the ceiling allows it, and a no is a denial [4.8]", async () => {
  for (const granted of [true, false]) {
    const operator = human({ granted });
    await using it = await agent([
      to("ward", "write"),
      as("YOU WAIT", request("edit")),
      as("YOU WAIT", write("w.txt")),
      as("YOU WAIT", say("ok")),
      say("done"),
    ], { files, operator, headless: false });
    const { events } = await it.turn("go");
    assert.equal(operator.asked.length, 1);
    assert.deepEqual(written(it), granted ? ["w.txt"] : []);
    assert.deepEqual(
      decisions(events, 2),
      granted
        ? ["ask granted", "ask granted", "file_write granted"]
        : ["ask granted", "ask declined", "file_write denied"],
    );
    if (!granted) {
      assert.match(
        results(events, 2)[0]!,
        /^Error: permission denied: no grant for edit: the operator said no/,
      );
      assert.equal(audit(it, subs(events)[0]!)[1]!.decision, "declined");
    }
  }
});

Deno.test("an unattended run parks permission requests for the human with their kind and category [4.8]", async () => {
  const operator = human({});
  await using it = await agent([
    to("ward", "write"),
    as("YOU WAIT", request("edit")),
    as("YOU WAIT", write("w.txt")),
    as("YOU WAIT", say("waiting")),
    say("done"),
  ], { files, operator, config: { unattended: true } });
  const { events } = await it.turn("go");
  assert.match(results(events, 2)[0]!, /^\[parked\] Ask #1 /);
  const { origin, kind, permission, question } = it.workspace.asks.get(1)!;
  assert.deepEqual([origin, kind, permission, question], [
    subs(events)[0],
    "permission",
    "edit",
    "May I?",
  ]);
  assert.deepEqual([operator.asked, written(it)], [[], []]);
});

Deno.test("ask_policy.permission deny grants nothing, and no one is asked [4.8]", async () => {
  const operator = human({});
  await using it = await agent([
    to("mute", "write"),
    as("YOU HUSH", request("edit")),
    as("YOU HUSH", say("so be it")),
    say("done"),
  ], { files, operator, headless: false });
  const { events } = await it.turn("go");
  assert.match(results(events, 2)[0]!, /^Error: permission denied: .*ask_policy/);
  assert.deepEqual(operator.asked, []);
  assert.deepEqual(audit(it, subs(events)[0]!)[1], {
    tool: "ask",
    action: "deny",
    decision: "denied",
    permission: "edit",
  });
  assert.doesNotMatch(it.backend.chats[1].messages[0].content, /request permission/);
});

Deno.test("a permission grant never exceeds the ceiling or lifts the deny list [5.3]", async () => {
  const operator = human({ scope: "always" });
  await using it = await agent([
    to("boss", "lead"),
    as("YOU LEAD", to("ward", "write")),
    as("YOU WAIT", request("edit")),
    as("YOU WAIT", write("w.txt")),
    as("YOU WAIT", say("no")),
    as("YOU LEAD", say("no")),
    say("done"),
  ], { files, operator, headless: false });
  const { events } = await it.turn("go");
  assert.match(results(events, 3)[0]!, /^Error: permission denied: .*denied to all of them/);
  assert.deepEqual([operator.asked, written(it)], [[], []]);

  await using denied = await agent([
    to("clerk", "file"),
    as("YOU FILE", request("edit")),
    as("YOU FILE", write("one.txt")),
    as("YOU FILE", say("no")),
    say("done"),
  ], { files, config: { "tools.deny": ["file_write"] } });
  const again = await denied.turn("go");
  assert.match(results(again.events, 2)[0]!, /^Granted/);
  assert.match(results(again.events, 2)[1]!, /^Error: permission denied: .*tools.deny names/);
  assert.deepEqual(written(denied), []);
});

Deno.test("in plan mode no grant opens what the mode denies", async () => {
  await using it = await agent([request("edit"), write("p.txt"), say("no")], {
    operator: human({}),
    headless: false,
    config: { mode: "plan" },
  });
  const { events } = await it.turn("go");
  assert.match(results(events, 1)[0]!, /^Error: permission denied/);
  assert.deepEqual(written(it), []);
});

Deno.test("a root run's permission request asks the operator; without one, or with a flag alone, it is denied [4.8]", async () => {
  const operator = human({});
  const script = () => [request("edit"), write("r.txt"), say("ok")];
  await using it = await agent(script(), { files, operator, headless: false, role: "clerk" });
  const { events } = await it.turn("go");
  assert.equal(operator.asked.length, 1);
  assert.match(results(events, 1)[1]!, /^Created/);

  for (const yes of [false, true]) {
    await using none = await agent(script(), {
      files,
      operator: headlessOperator(yes),
      headless: !yes,
      role: "clerk",
    });
    const { events } = await none.turn("go");
    assert.match(results(events, 1)[0]!, /^Error: ask has no one to answer: permission denied/);
    assert.deepEqual(written(none), []);
  }
});

Deno.test("a permission request for an open or unknown category is answered without asking [4.8]", async () => {
  const operator = human({});
  await using it = await agent([
    request("read"),
    request("run_command"),
    call("ask", { question: "May I?", kind: "permission" }),
    say("ok"),
  ], { files, operator, headless: false });
  const { events } = await it.turn("go");
  const [open, odd, none] = results(events, 1);
  assert.match(open!, /^You may already make calls of the category read/);
  assert.match(odd!, /^Error: there is no category "run_command" .*, edit, bash/);
  assert.match(none!, /^Error: there is no category ""/);
  assert.deepEqual(operator.asked, []);
});

Deno.test("an agent whose calls and requests are refused in turn is stopped, and its caller gets status and session", async () => {
  await using it = await agent([
    to("mute", "write"),
    as("YOU HUSH", write("a.txt")),
    as("YOU HUSH", request("edit")),
    as("YOU HUSH", write("a.txt")),
    say("done"),
  ], { files });
  const { events, result } = await it.turn("go");
  const session = subs(events)[0]!;
  const [output] = results(events, 1);
  assert.ok(
    output!.startsWith(
      `Error: the agent mute (#2, session ${session}) ended with status error: Stopped: every tool call ` +
        "of 3 rounds in a row was refused.",
    ),
    output,
  );
  assert.equal(result.content, "done");
  for (const refused of results(events, 2)) assert.match(refused, /^Error: permission denied/);
});
