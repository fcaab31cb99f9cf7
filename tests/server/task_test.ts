import assert from "node:assert/strict";
import { server } from "./support.ts";

const TOKEN = "a-token-of-some-length";
const bearer = { headers: { authorization: `Bearer ${TOKEN}` } };
const VERIFY = { prompt: "go", verify: "touch ran" };

Deno.test("POST /chat: a command of verify runs where the policy allows it to a headless agent", async () => {
  for (
    const config of [
      { tool_permission: { bash: "allow" } },
      { tool_permission: { bash: "ask", bash_allow: ["touch"] } },
    ]
  ) {
    await using at = await server(undefined, { config });
    const { status, body } = await at.post("/chat", VERIFY);
    assert.deepEqual([status, body.status, body.verified], [200, "ok", true]);
    assert.equal(await at.project.read("ran"), "");
  }
});

Deno.test("POST /chat: without a token, a command that the policy asks about is refused", async () => {
  await using at = await server(undefined, { token: TOKEN });
  const { status, body } = await at.post("/chat", VERIFY);
  assert.equal(status, 403);
  assert.match(body.error, /^"verify" is refused: the category bash is set to ask/);
  assert.deepEqual(at.backend.requests, []);
  const streamed = await at.post("/chat", { ...VERIFY, stream: true });
  assert.equal(streamed.status, 403);
});

Deno.test("POST /chat: a client with a token confirms the command, unless mcp_server.allow_ask is false", async () => {
  await using at = await server(undefined, { token: TOKEN });
  const { status, body } = await at.post("/chat", VERIFY, bearer);
  assert.deepEqual([status, body.verified], [200, true]);
  await using strict = await server(undefined, {
    token: TOKEN,
    config: { "mcp_server.allow_ask": false },
  });
  assert.equal((await strict.post("/chat", VERIFY, bearer)).status, 403);
});

Deno.test("POST /chat: a token runs no command that is denied, or that names svc's own files", async () => {
  await using at = await server(undefined, {
    token: TOKEN,
    config: { tool_permission: { bash: "deny" } },
  });
  assert.equal((await at.post("/chat", VERIFY, bearer)).status, 403);
  await using open = await server(undefined, {
    token: TOKEN,
    config: { tool_permission: { bash: "allow" } },
  });
  const own = { prompt: "go", verify: "rm -r .svc" };
  assert.equal((await open.post("/chat", own, bearer)).status, 403);
});

Deno.test("POST /chat: data satisfies the schema; an invalid schema is 400 before anything is sent", async () => {
  await using at = await server({ replies: [], default: { text: '{"n": 3}' } });
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  const { status, body } = await at.post("/chat", { prompt: "count", schema });
  assert.deepEqual([status, body.status, body.data], [200, "ok", { n: 3 }]);
  const sent = at.backend.requests.length;
  const wrong = await at.post("/chat", { prompt: "count", schema: { type: "intger" } });
  assert.equal(wrong.status, 400);
  assert.match(wrong.body.error, /#\/type must be one of/);
  assert.equal(at.backend.requests.length, sent);
});
