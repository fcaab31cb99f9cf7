import assert from "node:assert/strict";
import { Raw, server, type TestServer } from "../server/support.ts";

/** Raw requests against the HTTP API, each with the statuses that answer it. */

const TOKEN = "t".repeat(32);
const OTHER = "u".repeat(32);
/** A turn that no request of this file may run. */
const EVIL = "EVIL";

/** The statuses of the answers; empty where the connection is closed without one. */
type Row = [request: string, ...statuses: number[]];

interface Target {
  at: TestServer;
  port: number;
}

let count = 0;

/** Sends each request on a connection of its own and reads until the server closes it. */
async function check({ at }: Target, rows: Row[], options: { half?: boolean } = {}): Promise<void> {
  const wrong: unknown[] = [];
  for (const [request, ...expected] of rows) {
    using raw = await Raw.open(at);
    await raw.send(request).catch(() => {}); // closed before everything was sent
    if (options.half) await raw.closeWrite().catch(() => {});
    const answer = await raw.until(/(?!)/);
    count++;
    const statuses = Array.from(
      answer.matchAll(/HTTP\/1\.[01] (\d{3}) /g),
      ([, status]) => Number(status),
    );
    // A client that closes its side may not get the answer.
    const right = options.half
      ? statuses.every((status) => status === 400)
      : statuses.join() === expected.join();
    if (!right) wrong.push([request.slice(0, 200), statuses, expected]);
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(at.workspace.sessions.list(), []);
  assert.ok(!Array.from(Deno.readDirSync(at.project.path)).some(({ name }) => name === EVIL));
  assert.doesNotMatch(JSON.stringify(at.backend.chats), new RegExp(EVIL));
}

/** A request that asks the server to close the connection. */
function request(line: string, headers: string[], body = ""): string {
  const framing =
    body === "" || headers.some((header) => /^(content-length|transfer-)/i.test(header))
      ? []
      : [`content-length: ${new TextEncoder().encode(body).length}`];
  return [line, "connection: close", ...headers, ...framing, "", body].join("\r\n");
}
const get = (path: string, ...headers: string[]) => request(`GET ${path} HTTP/1.1`, headers);
const post = (path: string, body: string, ...headers: string[]) =>
  request(`POST ${path} HTTP/1.1`, headers, body);
const prompt = JSON.stringify({ prompt: EVIL });
const tool = JSON.stringify({
  ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
  params: { name: "run_command", arguments: { command: `touch ${EVIL}` } },
});

async function target(config: Record<string, unknown> = {}): Promise<Target & AsyncDisposable> {
  const at = await server(undefined, { config, mcp: true });
  return { at, port: at.http.port, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() };
}

Deno.test("http: a host that is not the server's is refused", async () => {
  await using here = await target();
  const { port } = here;
  const good = [
    "localhost",
    `localhost:${port}`,
    "LOCALHOST",
    "localhost.",
    "127.0.0.1",
    "[::1]",
    "[::1]:80",
  ];
  const bad = [
    "evil.example",
    `evil.example:${port}`,
    "localhost.evil.example",
    "evil.localhost",
    "127.0.0.1.evil.example",
    "127.0.0.1.nip.io",
    "10.0.0.1",
    "0.0.0.0",
    "127.0.0.2",
    "2130706433",
    "0x7f000001",
    "127.1",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::1%25lo]",
    "user@localhost",
    "localhost@evil.example",
    "localhost,evil.example",
    "localhost evil.example",
    "localhost/",
    "localhost#evil",
    "localhost?",
    "localhost\\evil",
    "localhost:80:80",
    "localhost:",
    "localhost:x",
    "::1",
    "[::1",
    "..",
    ".",
    "*",
    "-",
    "localhost..",
    "xn--localhost-",
  ];
  await check(here, [
    ...good.map((host): Row => [get("/version", `host: ${host}`), 200]),
    ...bad.map((host): Row => [get("/version", `host: ${host}`), 403]),
    ...["evil.example", `evil.example:${port}`].flatMap((host): Row[] => [
      [post("/chat", prompt, `host: ${host}`, `origin: http://${host}`), 403],
      [
        post("/mcp", tool, `host: ${host}`, `origin: http://${host}`, "content-type: text/plain"),
        403,
      ],
    ]),
    [get("/version"), 403],
    [get("/version", "host:"), 403],
    [get("/version", "host: localhost", "host: evil.example"), 400],
    [get("/version", "host: evil.example", "host: localhost"), 400],
    [get("/version", "x-forwarded-host: localhost", "host: evil.example"), 403],
    [get("/version", "forwarded: host=localhost", "host: evil.example"), 403],
  ]);
});

Deno.test("http: a page of another origin is refused, whatever kind of request it sends", async () => {
  await using here = await target({ "serve.cors_origins": ["https://good.example"] });
  const { port } = here;
  const host = `host: localhost:${port}`;
  const bad = [
    "http://evil.example",
    "null",
    "",
    "file://",
    "chrome-extension://abc",
    `https://localhost:${port}`,
    `http://localhost:${port + 1}`,
    "http://localhost",
    `http://127.0.0.1:${port}`,
    `http://localhost:${port}/`,
    `http://localhost:${port}.evil.example`,
    `http://localhost:${port}@evil.example`,
    "http://good.example",
    "https://good.example.evil.example",
    "https://good.example:444",
    "https://www.good.example",
    "https://good.example/",
    "https://good.example, http://evil.example",
    "*",
  ];
  await check(here, [
    ...bad.flatMap((origin): Row[] => [
      [get("/version", host, `origin: ${origin}`), 403],
      [post("/chat", prompt, host, `origin: ${origin}`, "content-type: text/plain"), 403],
      [post("/mcp", tool, host, `origin: ${origin}`, "content-type: text/plain"), 403],
      [
        request("OPTIONS /mcp HTTP/1.1", [
          host,
          `origin: ${origin}`,
          "access-control-request-method: POST",
        ]),
        403,
      ],
    ]),
    [get("/version", host, `origin: http://localhost:${port}`), 200],
    [get("/version", host, `ORIGIN: HTTP://LOCALHOST:${port}`), 200],
    [get("/version", host, "origin: https://good.example"), 200],
    [request("OPTIONS /chat HTTP/1.1", [host, "origin: https://good.example"]), 204],
    [get("/version", host, "origin: https://good.example", "origin: http://evil.example"), 403],
  ]);
});

Deno.test("http: forms of the request target do not change what is checked", async () => {
  await using here = await target();
  const ok = "host: localhost";
  const rows: [string, string, ...number[]][] = [
    ["GET", "http://localhost/version", 200],
    ["GET", "http://evil.example/version", 403],
    ["GET", "//evil.example/version", 404],
    ["GET", "/../version", 404],
    ["GET", "/%2e%2e/version", 404],
    ["GET", "/%76ersion", 200],
    ["GET", "/VERSION", 404],
    ["GET", "/version/", 404],
    ["GET", "/version;x", 404],
    ["GET", "/version?x=1", 200],
    ["GET", "/version%00", 404],
    ["GET", "/version#x", 200],
    ["GET", "version", 400],
    ["GET", "*", 400],
    ["GET", "", 400],
    ["OPTIONS", "*", 404],
    ["CONNECT", "localhost:80", 404],
    ["CONNECT", "/version", 400],
    ["GET", "/\\evil.example/version", 404],
    ["GET", "/sessions/..%2f..%2fconfig", 400],
    ["GET", "/sessions/%2e%2e%2f%2e%2e%2fconfig", 400],
    ["GET", "/sessions/..%5cconfig", 400],
    ...["PUT", "DELETE", "PATCH", "PROPFIND", "get", "FOO", "TRACE"].flatMap((method) =>
      ["/chat", "/version"].map((path): [string, string, number] => [method, path, 405])
    ),
    ["HEAD", "/version", 200],
    ["HEAD", "/chat", 405],
    ["GET\t", "/version", 400],
    ["G ET", "/version", 400],
    ["", "/version", 400],
  ];
  await check(here, [
    ...rows.map((
      [method, path, ...statuses],
    ): Row => [request(`${method} ${path} HTTP/1.1`, [ok]), ...statuses]),
    [get("http://localhost/version", "host: evil.example"), 403],
    ["GET /version\r\n\r\n", 400],
    ["GET /version HTTP/0.9\r\n\r\n", 400],
    ["GET /version HTTP/1.0\r\n\r\n", 403],
    ["GET /version HTTP/1.0\r\nhost: localhost\r\n\r\n", 200],
    ["GET /version HTTP/1.2\r\nhost: localhost\r\n\r\n", 400],
    ["GET /version HTTP/3\r\nhost: localhost\r\n\r\n", 400],
    ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
    ["EHLO evil\r\n\r\n", 400],
  ]);
});

Deno.test("http: with tokens, nothing but a probe is answered without one", async () => {
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, `${TOKEN}\n${OTHER}\n`);
  await using here = await target({ "serve.token_file": file });
  const host = "host: localhost";
  const wrong = [
    "",
    "Bearer",
    "Bearer ",
    `Bearer ${TOKEN.slice(1)}`,
    `Bearer ${TOKEN}t`,
    `Bearer ${TOKEN},${OTHER}`,
    `Bearer ${TOKEN} ${OTHER}`,
    `Bearer\t${TOKEN}`,
    `Bearer "${TOKEN}"`,
    `Basic ${TOKEN}`,
    `Token ${TOKEN}`,
    TOKEN,
    `Bearer${TOKEN}`,
    `Bearer ${TOKEN.toUpperCase()}`,
    "Bearer # mine",
    `x Bearer ${TOKEN}`,
  ];
  const right = [`Bearer ${TOKEN}`, `bearer ${OTHER}`, `Bearer  ${TOKEN} `];
  const others = [
    `cookie: token=${TOKEN}`,
    `x-api-key: ${TOKEN}`,
    `proxy-authorization: Bearer ${TOKEN}`,
    "x-forwarded-for: 127.0.0.1",
    `sec-websocket-protocol: ${TOKEN}`,
  ];
  await check(here, [
    ...wrong.flatMap((value): Row[] => [
      [get("/sessions", host, `authorization: ${value}`), 401],
      [post("/chat", prompt, host, `authorization: ${value}`), 401],
      [post("/mcp", tool, host, `authorization: ${value}`), 401],
    ]),
    ...right.map((value): Row => [get("/sessions", host, `authorization: ${value}`), 200]),
    ...others.map((header): Row => [post("/chat", prompt, host, header), 401]),
    [get("/sessions", host, `authorization: Bearer ${TOKEN}`, "authorization: Bearer x"), 401],
    [get(`/sessions?token=${TOKEN}&access_token=${TOKEN}`, host), 401],
    [get("/health", host), 200],
    [get("/health"), 200],
    [get("/sessions/../health", host), 401],
    ...[
      "/health/../sessions",
      "/sessions?/health",
      "/sessions?x=/health",
      "/sessions;/health",
      "/sessions/%2fhealth",
      "/health/",
      "/health?x",
      "//health",
      "/sessions/health",
      "/HEALTH",
      "/health%2f..%2fsessions",
      "/nope",
      "/openapi.json",
      "/metrics",
    ]
      .map((path): Row => [get(path, host), 401]),
    [post("/health", prompt, host), 401],
    [request("HEAD /health HTTP/1.1", [host]), 401],
    [get("http://localhost/sessions?http://localhost/health", host), 401],
  ]);
  await Deno.remove(file);
});

Deno.test("http: a request in the body of another is never run", async () => {
  await using here = await target();
  const inner =
    `POST /chat HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${prompt.length}\r\n\r\n${prompt}`;
  const size = `content-length: ${inner.length}`;
  const chunked = "transfer-encoding: chunked";
  const chunk = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
  const probe = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
  /** A request whose body is no JSON, on a connection that is kept for a probe. */
  const outer = (headers: string[], body = inner, version = "HTTP/1.1") =>
    [`POST /chat ${version}`, "host: localhost", ...headers, "", body].join("\r\n") + probe;
  await check(here, [
    [outer([size]), 400, 200],
    [outer([chunked], chunk), 400, 200],
    [outer([size, size]), 400, 200],
    [outer([`${size}, ${inner.length}`]), 400],
    [outer([size, chunked], chunk), 400],
    [outer([chunked, size], chunk), 400],
    [outer([chunked, "content-length: 0"], chunk), 400],
    [outer([size, "content-length: 0"]), 400],
    [outer(["content-length: 0", size]), 400],
    [outer(["content-length: 0, 5"]), 400],
    ...["+5", "-5", "0x5", "5e0", "5.0", "5 5", "५", "99999999999999999999999", "5;", '"5"'].map((
      value,
    ): Row => [outer([`content-length: ${value}`]), 400]),
    ...[
      "identity",
      "xchunked",
      "chunked, identity",
      "chunked;x",
      '"chunked"',
      "chunked\x0b",
      "gzip",
      "chunked, xchunked",
      "chunked, chunked",
      "identity, chunked",
      "",
    ]
      .map((value): Row => [outer([`transfer-encoding: ${value}`], chunk), 400]),
    ...["gzip, chunked", "CHUNKED", " chunked"].map((
      value,
    ): Row => [outer([`transfer-encoding: ${value}`], chunk), 400, 200]),
    [outer(["transfer-encoding : chunked"], chunk), 400],
    [outer(["transfer-encoding\t: chunked"], chunk), 400],
    [outer([" transfer-encoding: chunked"], chunk), 400],
    [outer(["x: y", " transfer-encoding: chunked"], chunk), 400],
    [outer(["transfer-encoding:", " chunked"], chunk), 400],
    [outer(["transfer_encoding: chunked", size]), 400, 200],
    [outer([chunked, chunked], chunk), 400],
    [outer([chunked], chunk, "HTTP/1.0"), 400],
    [outer([size], inner, "HTTP/1.0"), 400],
    [outer(["upgrade: h2c", "connection: upgrade", size]), 400],
    [outer(["expect: 100-continue", size]), 100, 400, 200],
    [outer(["expect: evil", size]), 400, 200],
    [outer([size], "~").replaceAll("\r\n", "\n").replace("~", inner), 400, 200],
    [outer([size], inner).replace("\r\n", "\r"), 400],
    [outer([`x: y\r${size}`]), 400],
    [outer(["x: y\0z"]), 400],
    [outer(["x\0: y"]), 400],
    [outer(["no colon"]), 400],
    [outer([": no name"]), 400],
    [outer(["x y: z"]), 400],
    [outer(["x: \x7f"]), 400],
    [outer(["x: \u00e9", size]), 400, 200],
  ]);
  const chunks = (body: string) =>
    `POST /chat HTTP/1.1\r\nhost: localhost\r\n${chunked}\r\n\r\n${body}`;
  await check(here, [
    ...[
      "0x5\r\nhello",
      "-1\r\nhello",
      "+5\r\nhello",
      "g\r\nhello",
      "\r\nhello",
      "fffffffffffffffff\r\nhello",
      "5 5\r\nhello",
      "5\rhello",
      "5\r\nhelloX\r\n",
    ]
      .map((body): Row => [chunks(`${body}\r\n0\r\n\r\n`)]),
  ], { half: true });
});

Deno.test("http: a request that is unfinished or too large runs nothing", async () => {
  await using here = await target();
  const whole = post("/chat", prompt, "host: localhost");
  const cuts = [1, 8, 22, 60, whole.indexOf("\r\n\r\n") + 2, whole.length - 9, whole.length - 1];
  await check(here, [
    ...cuts.map((end): Row => [whole.slice(0, end)]),
    ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["\r\n\r\n\r\n"],
    [get(`/${"a".repeat(100_000)}`, "host: localhost")],
    [get("/version", "host: localhost", `x: ${"y".repeat(1_000_000)}`)],
    [get("/version", "host: localhost", ...Array.from({ length: 5000 }, (_, n) => `x${n}: y`))],
    [""],
    [`POST /chat HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n11\r\n${prompt}`],
    [`POST /chat HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n${prompt}`],
  ], { half: true });
});

Deno.test("the corpus of requests is complete", () => {
  // deno-lint-ignore no-console
  console.log(`${count} requests`);
  assert.ok(count >= 166);
});
