import assert from "node:assert/strict";
import type { Question } from "../../../src/plugins/api.ts";
import type { AskRequest, Operator } from "../../../src/policy/operator.ts";
import type { Clock } from "../../../src/platform/clock.ts";
import { agent, results } from "../../../tests/support/agent.ts";
import { call, say } from "../../../tests/support/backend.ts";
import { answering } from "../../../tests/support/operator.ts";
import { project } from "../../../tests/support/project.ts";
import { InputRequests } from "../src/elicitation.ts";
import { bad } from "./support.ts";

/** A server of revision 2026-07-28, and one of those before. */
const SERVERS = ["asks", "elicits"];
const ALLOWED = { tool_permission: { mcp: "allow" } };
const form = (properties: object, required: string[] = [], message = "Which port?") => ({
  message,
  requestedSchema: { type: "object", properties, required },
});
const PORT = form({ port: { type: "integer", minimum: 1, maximum: 65535, title: "Port" } }, [
  "port",
]);

/** An agent that calls a server that asks for input, once a prompt. */
function asking(
  server: string,
  params: object,
  { calls = 1, config = {}, ...options }: {
    calls?: number;
    config?: object;
    clock?: Clock;
    operator?: Operator;
    headless?: boolean;
  } = {},
) {
  const text = JSON.stringify(params);
  const script = Array.from(
    { length: calls },
    () => [call(`${server}.run`, { text }), say("done")],
  );
  return agent(script.flat(), {
    headless: false,
    ...options,
    config: { ...ALLOWED, "mcp.servers": [bad(server)], ...config },
  });
}

/** The response that the server got, in the last line of a result. */
function response(result = ""): unknown {
  const value = JSON.parse(result.split("\n").at(-1)!);
  return Array.isArray(value) ? value[0] : value;
}

for (const server of SERVERS) {
  Deno.test(`the operator answers what an MCP server asks (${server}) [4.3]`, async () => {
    const operator = answering("8080");
    await using at = await asking(server, PORT, { operator });
    const { events } = await at.turn("go");
    const [result] = results(events);
    assert.deepEqual(response(result), { action: "accept", content: { port: 8080 } });
    if (server === "asks") assert.equal(JSON.parse(result!)[1], "state");
    const [{ question, context, options, session }] = operator.asked as [AskRequest];
    assert.equal(question, `The MCP server ${server} asks: Which port? – Port`);
    assert.equal(context, "(a whole number from 1 to 65535)");
    assert.deepEqual(options, ["(decline)"]);
    assert.equal(session, at.session.name);
    assert.equal(at.backend.chats.length, 2, "no model was asked");
  });

  Deno.test(`what an MCP server asks is declined when no one is there (${server}) [4.3]`, async () => {
    await using at = await asking(server, PORT, { headless: true });
    const [result] = results((await at.turn("go")).events);
    assert.deepEqual(response(result), { action: "decline" });
    assert.match(result!, new RegExp(`^the MCP server ${server} asked for input, .*: no one`));
  });

  Deno.test(`what an MCP server asks is parked when unattended, and its answer is for the next call (${server}) [2.7, 4.3]`, async () => {
    await using at = await asking(server, PORT, { calls: 3, config: { unattended: true } });
    const { asks } = at.workspace;
    const [first] = results((await at.turn("go")).events);
    assert.match(first!, /^\[parked\] Ask #1 waits for a human: .*make the same call again/);
    assert.deepEqual(response(first), { action: "cancel" });
    assert.deepEqual(asks.list().map(({ origin, status }) => [origin, status]), [
      [at.session.name, "pending"],
    ]);
    await asks.answer(1, "9090");
    const [second] = results((await at.turn("go on")).events);
    assert.deepEqual(response(second), { action: "accept", content: { port: 9090 } });
    const [third] = results((await at.turn("once more")).events);
    assert.match(third!, /^\[parked\] Ask #2 waits/, "an answer is used once");
  });
}

Deno.test("a form with several fields is parked as several asks, which are used together", async () => {
  const both = form({ a: { type: "string" }, b: { type: "boolean" } }, ["a", "b"]);
  await using at = await asking("asks", both, { calls: 3, config: { unattended: true } });
  const { asks } = at.workspace;
  const [first] = results((await at.turn("go")).events);
  assert.match(first!, /^\[parked\] Asks #1, #2 wait for a human/);
  await asks.answer(2, "yes");
  const [second] = results((await at.turn("go on")).events);
  assert.match(second!, /^\[parked\] Ask #1 waits for a human/);
  await asks.answer(1, "x");
  const [third] = results((await at.turn("go on")).events);
  assert.deepEqual(response(third), { action: "accept", content: { a: "x", b: true } });
  assert.equal(asks.list().length, 2);
});

Deno.test("a question that an MCP server withdraws is withdrawn from the operator [4.3]", async () => {
  await using place = await project();
  const file = `${place.path}/log`;
  const operator: Operator = {
    ...answering(undefined),
    async ask({ signal }) {
      await place.write("log.open", "");
      await new Promise((done) => signal.addEventListener("abort", done));
      return undefined;
    },
  };
  await using at = await agent(
    [call("elicits.run", { text: JSON.stringify(PORT) }), say("done")],
    {
      operator,
      headless: false,
      config: { ...ALLOWED, "mcp.servers": [bad("elicits", {}, file)] },
    },
  );
  const [result] = results((await at.turn("go")).events);
  assert.match(result!, /withdrawn$/);
});

Deno.test("the time that the operator takes to answer is not part of a server's timeout", async () => {
  for (const server of SERVERS) {
    let now = Date.now();
    const sleeps: { until: number; wake: () => void }[] = [];
    const clock: Clock = {
      now: () => now,
      sleep: (ms, signal) =>
        new Promise((wake, fail) => {
          sleeps.push({ until: now + ms, wake });
          signal?.addEventListener("abort", () => fail(signal.reason));
        }),
    };
    const operator: Operator = {
      ...answering(undefined),
      ask() {
        now += 3_600_000;
        for (const { until, wake } of sleeps) if (until <= now) wake();
        return Promise.resolve("1");
      },
    };
    await using at = await asking(server, PORT, { operator, clock });
    const [result] = results((await at.turn("go")).events);
    assert.deepEqual(response(result), { action: "accept", content: { port: 1 } });
  }
});

Deno.test("an address that a call needs to be opened is shown, and the call is made again [4.3]", async () => {
  const operator = answering("opened");
  await using at = await agent([call("sends.run", {}), say("done")], {
    operator,
    headless: false,
    config: { ...ALLOWED, "mcp.servers": [bad("sends")] },
  });
  assert.deepEqual(results((await at.turn("go")).events), ["sent"]);
  const [{ question, context, options }] = operator.asked as [AskRequest];
  assert.equal(
    question,
    "The MCP server sends asks: Log in – It asks you to open https://a.test/x",
  );
  assert.match(context, /if you trust a\.test; svc does not/);
  assert.deepEqual(options, ["opened", "(decline)"]);
});

/** The response to a request for input, with what was asked. */
async function respond(params: unknown, ...answers: string[]) {
  const asked: Question[] = [];
  const input = new InputRequests("the MCP server x", (questions) => {
    asked.push(...questions);
    return Promise.resolve({ answers: answers.splice(0, questions.length) });
  });
  return { response: await input.answer(params), asked, notes: input.withNotes("") };
}

Deno.test("answers are converted to the types of a form's fields, in all forms of enumerations", async () => {
  const fields = {
    name: { type: "string", default: "John" },
    mail: { type: "string", format: "email" },
    share: { type: "number" },
    sure: { type: "boolean", default: true },
    color: { type: "string", enum: ["r", "g"], enumNames: ["Red", "Green"] },
    size: { type: "string", oneOf: [{ const: "s", title: "Small" }, { const: "l" }], default: "l" },
    tags: { type: "array", items: { anyOf: [{ const: "a", title: "A, b" }, { const: "c" }] } },
    left: { type: "string" },
  };
  const { response, asked } = await respond(
    form(fields, ["name", "mail", "share", "sure", "color", "size", "tags"]),
    ...["John", "a@b.c", "0.5", "no", "Green (g)", "l", "a, c", "(nothing)"],
  );
  assert.deepEqual(response, {
    action: "accept",
    content: {
      ...{ name: "John", mail: "a@b.c", share: 0.5, sure: false, color: "g", size: "l" },
      tags: ["a", "c"],
    },
  });
  assert.deepEqual(asked.map(({ options }) => options.slice(0, -1)), [
    ["John"],
    [],
    [],
    ["yes", "no"],
    ["Red (r)", "Green (g)"],
    ["l", "Small (s)"],
    ["A, b (a)", "c"],
    ["(nothing)"],
  ]);
});

Deno.test("answers that do not fit are asked for again with what is wrong, three times at most", async () => {
  for (
    const [field, wrong, right] of [
      [{ type: "integer" }, "1.5", "2"],
      [{ type: "number", maximum: 3 }, "4", "3"],
      [{ type: "string", minLength: 3 }, "ab", "abc"],
      [{ type: "string", format: "date" }, "tomorrow", "2026-01-31"],
      [{ type: "string", format: "uri" }, "nowhere", "https://a.test"],
      [{ type: "string", enum: ["a"] }, "b", "a"],
      [{ type: "boolean" }, "maybe", "yes"],
      [{ type: "array", items: { enum: ["a", "b"] }, maxItems: 1 }, "a, b", "b"],
    ] as const
  ) {
    const again = await respond(form({ x: field }, ["x"]), wrong, right);
    assert.equal(again.response.action, "accept", JSON.stringify(field));
    assert.match(again.asked[1]!.context, /^Not accepted: it is /);
    const never = await respond(form({ x: field }, ["x"]), wrong, wrong, wrong, right);
    assert.equal(never.response.action, "decline");
    assert.equal(never.asked.length, 3);
  }
});

Deno.test("what an MCP server shows in a question is sanitised, and what cannot be asked is declined", async () => {
  const ESC = "\x1b";
  const { asked } = await respond(
    form({ x: { type: "string", title: `a${ESC}[2Jb\nc`, description: "\u202ey" } }, [], "m\x07"),
    "z",
  );
  assert.deepEqual(asked[0], {
    question: "The MCP server x asks: m – ab c",
    context: "y",
    options: ["(nothing)", "(decline)"],
  });
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, n) => [n, { type: "string" }]));
  for (
    const params of [
      3,
      {},
      form({ x: { type: "object" } }),
      form({ x: 1 }),
      form(many),
      form({ x: { type: "array", items: {} } }),
      { mode: "url", message: "", url: "javascript:alert(1)" },
      { mode: "url", message: "" },
    ]
  ) {
    const { response, asked, notes } = await respond(params, "y");
    assert.deepEqual([response, asked], [{ action: "decline" }, []], JSON.stringify(params));
    assert.match(notes, /was declined: /);
  }
  const confirm = await respond(form({}), "accept");
  assert.deepEqual(confirm.response, { action: "accept", content: {} });
  const declined = await respond(PORT, "(decline)");
  assert.deepEqual(declined.response, { action: "decline" });
});
