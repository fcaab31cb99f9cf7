import assert from "node:assert/strict";
import { VERSION } from "../../src/platform/environment.ts";
import { taskFields } from "../../src/engine/task.ts";
import { call, say } from "../support/backend.ts";
import { Raw, server } from "./support.ts";

Deno.test("every route answers with the body of the specification, and other paths with not found [3.2, 4.1, 7.1, 9]", async () => {
  await using at = await server([
    call("ask", { question: "Which port?", options: ["1", "2"] }),
    say("waiting"),
  ]);
  assert.deepEqual((await at.get("/health")).body, { status: "ok" });
  assert.deepEqual((await at.get("/version")).body, { version: VERSION });
  assert.deepEqual((await at.get("/sessions")).body, { sessions: [] });
  assert.deepEqual((await at.get("/asks")).body, { asks: [] });

  const chat = await at.post("/chat", { prompt: "go", session: "mine" });
  assert.equal(chat.status, 200);
  assert.equal(chat.headers.get("content-type"), "application/json");
  assert.deepEqual(Object.keys(chat.body), [
    "content",
    "thinking",
    "tool_calls",
    "refused",
    "denied",
    "errors",
    "duration",
    "usage",
    "total_usage",
    "cost",
    "model",
    "provider",
    "session",
    "status",
    "reason",
  ]);
  assert.deepEqual([chat.body.content, chat.body.session, chat.body.status], [
    "waiting",
    "mine",
    "ok",
  ]);
  assert.deepEqual((await at.get("/sessions")).body, { sessions: ["mine"] });

  const { asks } = (await at.get("/asks")).body;
  assert.deepEqual([asks[0].id, asks[0].status, asks[0].origin], [1, "pending", "mine"]);
  const answered = await at.post("/asks/1/answer", { answer: "1" });
  assert.equal(answered.status, 200);
  assert.deepEqual(Object.keys(answered.body), ["ask", "session", "resume", "injected"]);
  assert.deepEqual(
    [answered.body.ask.status, answered.body.session, answered.body.resume, answered.body.injected],
    ["answered", "mine", 'svc run --session-id mine "continue"', true],
  );
  assert.equal((await at.post("/asks/1/answer", { answer: "2" })).status, 409);

  for (const path of ["/", "/nope", "/chat/x", "/mcp", "/asks/1"]) {
    const { status, body, headers } = await at.get(path);
    assert.deepEqual([status, body], [404, { error: "not found" }], path);
    assert.equal(headers.get("content-type"), "application/json");
  }
});

Deno.test("invalid requests to /chat and /asks get 400 or 404 with the error bodies of the reference [4.1, 7.1]", async () => {
  await using at = await server();
  const cases: [path: string, body: unknown, status: number, error: string][] = [
    ["/chat", "{", 400, "invalid JSON body"],
    ["/chat", "", 400, "invalid JSON body"],
    ["/chat", "[]", 400, "invalid JSON body"],
    ["/chat", "null", 400, "invalid JSON body"],
    ["/chat", "\xff", 400, "invalid JSON body"],
    ["/chat", {}, 400, 'missing "prompt"'],
    ["/chat", { prompt: "" }, 400, 'missing "prompt"'],
    ["/chat", { prompt: " \n" }, 400, 'missing "prompt"'],
    ["/chat", { prompt: 1 }, 400, 'missing "prompt"'],
    ["/chat", { prompt: "a", session: 1 }, 400, 'wrong "session"'],
    ["/chat", { prompt: "a", stream: "yes" }, 400, 'wrong "stream"'],
    ["/chat", { promt: "a" }, 400, 'unknown "promt"; did you mean "prompt"?'],
    ["/chat", { prompt: "a", sesion: "x" }, 400, 'unknown "sesion"; did you mean "session"?'],
    ["/asks/1/answer", "{", 400, "invalid JSON body"],
    ["/asks/1/answer", {}, 400, 'missing "answer"'],
    ["/asks/1/answer", { answer: " " }, 400, 'missing "answer"'],
    ["/asks/7/answer", { answer: "a" }, 404, "ask not found: 7"],
    ["/asks/x/answer", { answer: "a" }, 404, "ask not found: x"],
  ];
  for (const [path, sent, status, error] of cases) {
    const answer = await at.post(path, sent);
    assert.deepEqual([answer.status, answer.body], [status, { error }], JSON.stringify(sent));
  }
  const wrong = await at.get("/chat");
  assert.deepEqual([wrong.status, wrong.headers.get("allow")], [405, "POST"]);
  assert.deepEqual(wrong.body, { error: "method not allowed" });
  assert.deepEqual(at.workspace.sessions.list(), [], "no session was made");
});

Deno.test("POST /chat without a session begins a new one; with one, it creates or continues it [4.1]", async () => {
  await using at = await server();
  const names = [];
  for (let i = 0; i < 2; i++) names.push((await at.post("/chat", { prompt: "a" })).body.session);
  for (const name of names) assert.match(name, /^ses_\d{8}_\d{6}_[0-9a-z]{6}$/);
  assert.notEqual(names[0], names[1]);
  await at.post("/chat", { prompt: "again", session: names[0] });
  assert.equal(at.workspace.sessions.read(names[0]!)?.turns.length, 2);
});

Deno.test("a session's name cannot leave the folder of sessions", async () => {
  await using at = await server();
  const names = [
    ".",
    "..",
    "../evil",
    "a/../../evil",
    "/etc/passwd",
    `${at.project.path}/evil`,
    "a\\b",
    "a\0b",
    ".hidden",
    "x".repeat(201),
    "\ud800",
    "a\nb",
  ];
  for (const session of names) {
    const { status, body } = await at.post("/chat", { prompt: "a", session });
    assert.equal(status, 400, JSON.stringify([session, body]));
    assert.match(body.error, /cannot be the name of a session/);
  }
  const unknown = await at.post("/chat", { prompt: "a", session: "#abcdef" });
  assert.deepEqual([unknown.status, unknown.body], [404, {
    error: 'There is no session "#abcdef".',
  }]);
  const paths = ["..%2fevil", "%2e%2e%2fevil", "%2Fetc%2Fpasswd", "a%00b", ".hidden", "%2e%2e%5cx"];
  for (const path of paths) {
    using raw = await Raw.open(at);
    await raw.send(`GET /sessions/${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    assert.match(await raw.until(/\}$/), /^HTTP\/1\.1 40[04] /, path);
  }
  for (const session of ["a.json", "ünï 漢字", "x".repeat(200), "CON", "%2e%2e"]) {
    assert.equal((await at.post("/chat", { prompt: "a", session })).body.session, session);
    const { body } = await at.get(`/sessions/${encodeURIComponent(session)}`);
    assert.equal(body.session_name, session);
  }
  const files = [...Deno.readDirSync(at.project.path)].map(({ name }) => name);
  assert.deepEqual(files, [".svc"]);
});

Deno.test("a session log is sent completely and not changed", async () => {
  await using at = await server();
  for (let i = 0; i < 3; i++) await at.post("/chat", { prompt: `p${i}`, session: "s" });
  const path = `${at.project.path}/.svc/sessions/s.json`;
  const before = await Deno.readTextFile(path);
  const { body } = await at.get("/sessions/s");
  assert.deepEqual(body, JSON.parse(JSON.stringify(at.workspace.sessions.read("s"))));
  assert.equal(await Deno.readTextFile(path), before);
  assert.deepEqual((await at.get("/sessions/none")).body, { error: "session not found: none" });
  assert.equal((await at.get("/sessions/none")).status, 404);
  assert.deepEqual((await at.get("/sessions")).body.sessions, ["s"]);
});

Deno.test("runs, metrics and the OpenAPI document describe the server [4.1]", async () => {
  await using at = await server([
    say("one", { usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 } }),
    { status: 401, body: { error: { message: "no" } } },
  ]);
  await at.post("/chat", { prompt: "a", session: "one" });
  await at.post("/chat", { prompt: "a", session: "two" });
  const { runs } = (await at.get("/runs")).body;
  // deno-lint-ignore no-explicit-any
  const seen = runs.map((run: any) => [run.id, run.session, run.status, run.agents[0].session]);
  assert.deepEqual(seen, [[2, "two", "error", "two"], [1, "one", "ok", "one"]]);

  const { body, headers } = await at.get("/metrics");
  assert.match(headers.get("content-type")!, /^text\/plain; version=0\.0\.4/);
  for (
    const line of [
      'svc_turns_total{status="ok"} 1',
      'svc_turns_total{status="error"} 1',
      'svc_tokens_total{kind="prompt"} 7',
      'svc_tokens_total{kind="completion"} 5',
      'svc_http_responses_total{status="200"} 3',
      "svc_turns_running 0",
      "svc_turns_queued 0",
      "svc_sessions 2",
      'svc_turn_duration_seconds_bucket{le="+Inf"} 2',
      "svc_turn_duration_seconds_count 2",
    ]
  ) assert.ok(body.split("\n").includes(line), line);
  assert.match(body, /^process_resident_memory_bytes \d{7,}$/m);

  const document = (await at.get("/openapi.json")).body;
  assert.deepEqual(Object.keys(document.paths).sort(), [
    "/asks",
    "/asks/{id}/answer",
    "/chat",
    "/health",
    "/hooks/{job}",
    "/jobs",
    "/jobs/{name}",
    "/jobs/{name}/approve",
    "/jobs/{name}/disable",
    "/jobs/{name}/enable",
    "/jobs/{name}/reject",
    "/jobs/{name}/run",
    "/metrics",
    "/openapi.json",
    "/ready",
    "/runs",
    "/runs/{id}",
    "/runs/{id}/cancel",
    "/runs/{id}/events",
    "/runs/{id}/messages",
    "/sessions",
    "/sessions/{name}",
    "/sessions/{name}/changes",
    "/sessions/{name}/undo",
    "/usage",
    "/version",
  ]);
  const asked = document.paths["/chat"].post.requestBody.content["application/json"].schema;
  assert.deepEqual(asked.required, ["prompt"]);
  const fields = ["prompt", "session", "attachments", "stream", ...Object.keys(taskFields())];
  assert.deepEqual(Object.keys(asked.properties), fields);
});

Deno.test("GET /sessions pages through the newest, by prefix and time, and reads the logs of the page only [4.1]", async () => {
  await using at = await server();
  const directory = `${at.project.path}/.svc/sessions`;
  await at.post("/chat", { prompt: "look around", session: "mine" });
  const minute = (count: number) => new Date(Date.now() - count * 60_000);
  for (let i = 1; i <= 300; i++) {
    const path = `${directory}/${i % 2 ? "ses" : "job"}_${i}.json`;
    await Deno.writeTextFile(path, "damaged");
    await Deno.utime(path, minute(i), minute(i));
  }
  assert.equal((await at.get("/sessions")).body.sessions.length, 301);
  assert.deepEqual(Object.keys((await at.get("/sessions")).body), ["sessions"]);
  const page = async (query: string) => (await at.get(`/sessions?${query}`)).body;
  assert.deepEqual(await page("limit=3"), { sessions: ["mine", "ses_1", "job_2"], total: 301 });
  assert.deepEqual((await page("limit=2&offset=300")).sessions, ["job_300"]);
  assert.equal((await page("offset=0")).sessions.length, 100);
  assert.deepEqual(await page("prefix=job_&since=5m"), { sessions: ["job_2", "job_4"], total: 2 });
  const { details } = await page("limit=2&details=true");
  assert.deepEqual(
    details.map((each: Record<string, unknown>) => [each.name, each.first_prompt, each.turns]),
    [["mine", "look around", 1], ["ses_1", "", 0]],
  );
  assert.deepEqual(at.warnings, [], "the other logs were not read");
  for (
    const query of ["limit=0", "limit=1001", "limit=x", "offset=-1", "since=soon", "details=1"]
  ) {
    const { status, body } = await at.get(`/sessions?${query}`);
    assert.equal(status, 400, query);
    assert.match(body.error, /^wrong "\w+"/);
  }
});

Deno.test("the OpenAPI document has every status, media type and name of each route [4.1, 7.1]", async () => {
  await using at = await server(undefined, { mcp: true, token: "a-token-of-some-length" });
  const { paths } = (await at.get("/openapi.json")).body;
  const statuses = (path: string, method: string) => Object.keys(paths[path][method].responses);
  for (const [path, methods] of Object.entries<Record<string, unknown>>(paths)) {
    for (const method of Object.keys(methods)) {
      const guarded = ["401", "403", "405", "429"].every((status) =>
        statuses(path, method).includes(status)
      );
      assert.equal(guarded, path !== "/health" && path !== "/ready", path);
    }
  }
  const chat = paths["/chat"].post;
  const media = ["application/json", "text/event-stream"];
  assert.deepEqual(Object.keys(chat.responses[200].content), media);
  assert.deepEqual(
    statuses("/chat", "post").map(Number),
    [200, 400, 401, 403, 405, 408, 409, 413, 429, 503, 504],
  );

  const mcp = paths["/mcp"].post;
  assert.deepEqual(Object.keys(mcp.responses[200].content), media);
  assert.deepEqual(mcp.requestBody.content["application/json"].schema.required, [
    "jsonrpc",
    "method",
  ]);
  const unknown = mcp.responses[404].content["application/json"].schema;
  assert.deepEqual(Object.keys(unknown.properties), ["jsonrpc", "id", "error"]);
  assert.deepEqual(
    statuses("/mcp", "post").map(Number),
    [200, 202, 400, 401, 403, 404, 405, 406, 408, 413, 415, 429],
  );

  const pattern = (path: string) => {
    const { parameters } = paths[path].get ?? paths[path].post;
    return new RegExp(parameters[0].schema.pattern, "u");
  };
  for (const path of ["/sessions/{name}", "/jobs/{name}", "/asks/{id}/answer"]) {
    for (const wrong of ["", ".", "..", "a/b", "a\\b", "a\nb", "\x7f"]) {
      assert.ok(!pattern(path).test(wrong), `${path}: ${JSON.stringify(wrong)}`);
    }
  }
  for (const name of ["a.json", "ünï 漢字", "#abc"]) {
    assert.match(name, pattern("/sessions/{name}"));
  }
  for (const name of ["nightly", "été-2"]) assert.match(name, pattern("/jobs/{name}"));
  assert.match("12", pattern("/asks/{id}/answer"));
  assert.doesNotMatch("x", pattern("/asks/{id}/answer"));

  assert.deepEqual(paths["/usage"].get.parameters.map(({ name }: { name: string }) => name), [
    "since",
    "by",
  ]);
  assert.deepEqual(paths["/health"].get.security, []);
  assert.deepEqual(paths["/jobs/{name}/run"].post.security, [{ token: ["operate"] }]);
  assert.deepEqual(paths["/jobs"].get.security, [{ token: ["read"] }, {}]);
});

Deno.test("a long log is sent from its file, and a client may disconnect", async () => {
  await using at = await server();
  await at.post("/chat", { prompt: "word ".repeat(100_000), session: "long" });
  assert.deepEqual((await at.get("/sessions/long")).body, at.workspace.sessions.read("long"));
  const response = await fetch(`${at.http.url}/sessions/long`);
  await response.body!.cancel();
  const head = await fetch(`${at.http.url}/sessions/long`, { method: "HEAD" });
  assert.deepEqual([head.status, await head.text()], [200, ""]);
  assert.equal((await at.get("/health")).status, 200);
});

Deno.test("POST /chat with a session that is null or empty begins a new one [4.1]", async () => {
  await using at = await server([say("a"), say("b"), say("c")]);
  const names = [];
  for (const session of [null, "", undefined]) {
    const { status, body } = await at.post("/chat", { prompt: "a", session });
    assert.equal(status, 200, JSON.stringify(body));
    names.push(body.session);
  }
  assert.equal(new Set(names).size, 3);
  assert.ok(names.every((name) => /^ses_\d{8}_\d{6}_[0-9a-z]{6}$/.test(name)), names.join());
});

Deno.test("GET /usage sums up the requests to models", async () => {
  await using at = await server([
    say("one", { usage: { prompt_tokens: 7, completion_tokens: 5 } }),
  ], { config: { prices: { "generic-compatible/*": { in: 1_000_000, out: 0 } } } });
  await at.post("/chat", { prompt: "a", session: "one" });
  const { status, body } = await at.get("/usage?by=session&since=12h");
  assert.equal(status, 200);
  const sum = { requests: 1, in: 7, cached: 0, out: 5, reasoning: 0, cost: 7, unpriced: 0 };
  assert.deepEqual([body.groups, body.total], [[{ name: "one", ...sum }], sum]);
  assert.equal((await at.get("/usage")).body.by, "day");
  for (const query of ["by=week", "since=soon"]) {
    assert.equal((await at.get(`/usage?${query}`)).status, 400);
  }
});

Deno.test("a cost budget without a price is a conflict, and a budget that is reached a result", async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 10 };
  await using at = await server({
    replies: [],
    default: { tool_calls: [{ name: "list_dir", arguments: {} }], usage },
  });
  const refused = await at.post("/chat", { prompt: "a", max_cost: 1 });
  assert.equal(refused.status, 409, JSON.stringify(refused.body));
  assert.match(refused.body.error, /no price/);
  const { status, body } = await at.post("/chat", { prompt: "a", max_total_tokens: 250 });
  assert.deepEqual([status, body.status, body.reason], [200, "error", "budget"]);
});
