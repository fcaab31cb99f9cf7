import assert from "node:assert/strict";
import { isLoopback, RateLimit } from "../../src/server/admission.ts";
import { hang } from "../support/backend.ts";
import { Raw, server } from "./support.ts";

const TOKENS = ["a".repeat(32), "b".repeat(32)];

function tokenFile(text: string): string {
  const path = Deno.makeTempFileSync();
  Deno.chmodSync(path, 0o600);
  Deno.writeTextFileSync(path, text);
  return path;
}

async function status(at: Awaited<ReturnType<typeof server>>, ...headers: string[]) {
  using raw = await Raw.open(at);
  await raw.send(["GET /version HTTP/1.1", ...headers, "", ""].join("\r\n"));
  return Number((await raw.until(/\}$/)).split(" ")[1]);
}

Deno.test("a request for an unknown host is rejected, with any origin", async () => {
  await using at = await server(undefined, { config: { "serve.hosts": ["svc.example"] } });
  const { port } = at.http;
  for (
    const host of [
      "localhost",
      `localhost:${port}`,
      "LOCALHOST",
      "127.0.0.1",
      "[::1]:80",
      "svc.example",
      "svc.example.",
    ]
  ) assert.equal(await status(at, `host: ${host}`), 200, host);
  for (
    const host of [
      "evil.example",
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "10.0.0.1",
      "svc.example@evil",
      "a b",
    ]
  ) assert.notEqual(await status(at, `host: ${host}`), 200, host);
  assert.equal(await status(at, "host: evil.example", "origin: http://localhost"), 403);
});

Deno.test("the host of an absolute request target is checked like the Host header [4.1]", async () => {
  await using at = await server();
  const status = async (target: string) => {
    using raw = await Raw.open(at);
    await raw.send(`GET ${target} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    return Number((await raw.until(/\}$/)).split(" ")[1]);
  };
  assert.equal(await status(`http://localhost:${at.http.port}/version`), 200);
  assert.equal(await status("http://127.0.0.1/version"), 200);
  for (
    const host of ["evil.example", "evil.example:80", "localhost@evil.example", "localhost.evil"]
  ) {
    assert.equal(await status(`http://${host}/version`), 403, host);
    assert.equal(await status(`https://${host}?/version`), 403, host);
  }
});

Deno.test("a page of another origin is rejected and gets no CORS headers", async () => {
  await using at = await server(undefined, {
    config: { "serve.cors_origins": ["https://good.example"] },
  });
  const { port } = at.http;
  assert.equal(
    await status(at, `host: localhost:${port}`, `origin: http://localhost:${port}`),
    200,
  );
  for (
    const origin of [
      "http://evil.example",
      "null",
      `http://localhost:${port + 1}`,
      "http://good.example",
    ]
  ) {
    assert.equal(await status(at, `host: localhost:${port}`, `origin: ${origin}`), 403, origin);
  }
  const good = await at.get("/version", { origin: "https://good.example" });
  assert.equal(good.headers.get("access-control-allow-origin"), "https://good.example");
  assert.equal((await at.get("/version")).headers.get("access-control-allow-origin"), null);
  const preflight = await fetch(`${at.http.url}/chat`, {
    method: "OPTIONS",
    headers: { origin: "https://good.example", "access-control-request-method": "POST" },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-methods"), "GET, POST");
});

Deno.test("with a token file, every HTTP request except a probe needs a token, on loopback too [5.1]", async () => {
  const path = tokenFile(`# mine\n${TOKENS[0]}\n\n${TOKENS[1]}\n`);
  await using at = await server(undefined, { config: { "serve.token_file": path } });
  for (const token of TOKENS) {
    const { status } = await at.get("/version", { authorization: `Bearer ${token}` });
    assert.equal(status, 200);
  }
  const wrong = [
    "",
    "Bearer",
    `Bearer ${TOKENS[0]}x`,
    `Basic ${TOKENS[0]}`,
    "Bearer # mine",
    TOKENS[0]!,
  ];
  for (const authorization of wrong) {
    const { status, headers, body } = await at.get("/version", { authorization });
    assert.deepEqual([status, body], [401, { error: "a valid token is required" }]);
    assert.equal(headers.get("www-authenticate"), "Bearer");
  }
  assert.equal((await at.post("/chat", { prompt: "a" })).status, 401);
  assert.equal((await at.get("/nope")).status, 401);
  assert.equal((await at.get("/health")).status, 200);
  assert.deepEqual(at.workspace.sessions.list(), []);
  await Deno.remove(path);
});

Deno.test("svc serve beyond loopback requires a token file or --insecure [5.1]", async () => {
  await assert.rejects(server(undefined, { host: "0.0.0.0" }), { code: "no_token_file", exit: 2 });
  await using at = await server(undefined, { host: "0.0.0.0", insecure: true });
  assert.equal(await status(at, "host: 10.1.2.3:99"), 200);
  assert.equal(await status(at, "host: evil.example"), 403);
  for (const host of ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"]) {
    assert.equal(isLoopback(host), true, host);
  }
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "localhost.evil", "127.0.0.1.evil"]) {
    assert.equal(isLoopback(host), false, host);
  }
});

Deno.test("an unusable token file prevents the start of svc serve [5.1]", async () => {
  for (const text of ["", "# nothing\n", "short\n"]) {
    const path = tokenFile(text);
    const config = { "serve.token_file": path };
    await assert.rejects(server(undefined, { config }), { code: "token_file", exit: 2 });
    await Deno.remove(path);
  }
  const config = { "serve.token_file": "/nowhere/at/all" };
  await assert.rejects(server(undefined, { config }), { code: "token_file" });
});

Deno.test("HTTP requests beyond the rate of a caller are rejected [8]", async () => {
  const path = tokenFile(TOKENS.join("\n"));
  const config = { "serve.token_file": path, "serve.rate_limit": 2 };
  await using at = await server(undefined, { config });
  const ask = (token: string) => at.get("/version", { authorization: `Bearer ${token}` });
  for (let i = 0; i < 2; i++) assert.equal((await ask(TOKENS[0]!)).status, 200);
  const { status, body, headers } = await ask(TOKENS[0]!);
  assert.deepEqual([status, body], [429, { error: "too many requests" }]);
  assert.ok(Number(headers.get("retry-after")) > 0);
  assert.equal((await ask(TOKENS[1]!)).status, 200);
  await Deno.remove(path);
});

Deno.test("the rate limit recovers over time, and old callers are forgotten", () => {
  let now = 0;
  const clock = { now: () => now, sleep: () => Promise.resolve() };
  const limit = new RateLimit(6, clock);
  for (let i = 0; i < 6; i++) assert.equal(limit.take("a"), 0);
  assert.equal(limit.take("a"), 10);
  now = 4_000;
  assert.equal(limit.take("a"), 6);
  now = 10_000;
  assert.equal(limit.take("a"), 0);
  for (let i = 0; i < 10_000; i++) limit.take(`other ${i}`);
  assert.equal(limit.take("a"), 0, "forgotten");
  assert.equal(new RateLimit(0, clock).take("a"), 0);
});

Deno.test("an HTTP body that is too large is rejected, with and without content-length [8]", async () => {
  await using at = await server(undefined, { config: { "serve.max_body": 100 } });
  const error = "the body is larger than 100 bytes";
  for (const framing of ["content-length: 101", "transfer-encoding: chunked"]) {
    using raw = await Raw.open(at);
    await raw.send(`POST /chat HTTP/1.1\r\nhost: localhost\r\n${framing}\r\n\r\n`);
    if (framing.startsWith("t")) await raw.send(`65\r\n${"x".repeat(101)}\r\n`);
    const answer = await raw.until(/\}$/);
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.ok(answer.endsWith(JSON.stringify({ error })), answer);
  }
  const fits = { prompt: "x".repeat(100 - '{"prompt":""}'.length) };
  assert.equal((await at.post("/chat", fits)).status, 200);
});

Deno.test("a body with broken chunking is answered with 400, and its connection is closed [4.1]", async () => {
  await using at = await server();
  const head = "POST /chat HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
  const next = "GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n";
  for (const broken of ["zz\r\n{}\r\n0\r\n\r\n", "1\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n0\r\n\r\n"]) {
    using raw = await Raw.open(at);
    await raw.send(head.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n"));
    await raw.until(/100 Continue\r\n\r\n$/); // the server has read the head
    await raw.send(`1\r\n{\r\n${broken}${next}`);
    const answer = await raw.until(/never/); // until the connection ends
    assert.match(
      answer,
      /^HTTP\/1\.1 100 .*HTTP\/1\.1 400 [^{]*\{"error":"the body broke off"\}$/s,
    );
  }
  // Deno.serve closes the connection without an answer where the fault arrives together with the head.
  using raw = await Raw.open(at);
  await raw.send(`${head}zz\r\n{}\r\n0\r\n\r\n${next}`);
  assert.equal(await raw.until(/never/), "");
  assert.deepEqual(at.workspace.sessions.list(), []);
});

Deno.test("slow, half-open and non-reading clients are cut off, and others are served", async () => {
  await using at = await server({ replies: [], default: { text: "done" } }, {
    config: { "serve.body_timeout": 0.05, "serve.max_concurrent": 2 },
  });
  const head = "POST /chat HTTP/1.1\r\nhost: localhost\r\n";
  using slow = await Raw.open(at);
  await slow.send(`${head}content-length: 1000\r\n\r\n{"pro`);
  using halfHead = await Raw.open(at);
  await halfHead.send(head);
  using silent = await Raw.open(at);
  using half = await Raw.open(at);
  await half.send(`${head}content-length: 1000\r\n\r\n{`);
  await half.closeWrite();
  const deaf = await Promise.all(Array.from({ length: 20 }, () => Raw.open(at)));
  const body = '{"prompt":"a"}';
  for (const raw of deaf) await raw.send(`${head}content-length: ${body.length}\r\n\r\n${body}`);

  assert.match(await slow.until(/\}$/), /^HTTP\/1\.1 408 .*"the body took too long to arrive"/s);
  assert.equal((await at.post("/chat", { prompt: "b" })).body.content, "done");
  assert.deepEqual((await at.get("/health")).body, { status: "ok" });
  for (const raw of deaf) raw[Symbol.dispose]();
  assert.ok(silent);
});

Deno.test("pipelined requests are answered in order", async () => {
  await using at = await server();
  using raw = await Raw.open(at);
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
  await raw.send(get("/health") + get("/version") + get("/nope") + get("/sessions"));
  const text = await raw.until(/"sessions":\[\]\}$/);
  assert.match(text, /"status":"ok".*"version":.*"not found".*"sessions":\[\]/s);
});

Deno.test("a stream whose client stops reading is closed, and its turn is cancelled", async () => {
  const piece = "x".repeat(1 << 20);
  await using at = await server([{ text: Array.from({ length: 30 }, () => piece) }, hang()]);
  using raw = await Raw.open(at);
  const body = JSON.stringify({ prompt: "a", session: "s", stream: true });
  await raw.send(
    `POST /chat HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await at.backend.arrived(1);
  await at.workspace.clock.sleep(0);
  while (at.workspace.sessions.read("s")?.turns[0]?.status !== "cancelled") {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
});
