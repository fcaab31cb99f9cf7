import assert from "node:assert/strict";
import { inProcess } from "../support/io.ts";

/** `svc health`, with a proxy that cannot be reached. */
function health(args: string[], env: Record<string, string> = {}) {
  const proxy = { HTTP_PROXY: "http://127.0.0.1:1", http_proxy: "http://127.0.0.1:1" };
  return inProcess(["health", ...args], { cwd: "/", env: { ...proxy, ...env } });
}

/** A server that gives one answer to everything, and the paths that it was asked for. */
function answering(answer: () => Response | Promise<Response>, hostname = "127.0.0.1") {
  const asked: string[] = [];
  const server = Deno.serve({ hostname, port: 0, onListen() {} }, (request) => {
    asked.push(new URL(request.url).pathname);
    return answer();
  });
  const { port } = server.addr;
  return { asked, port: `${port}`, [Symbol.asyncDispose]: () => server.shutdown() };
}

Deno.test("svc health asks the address of SVC_HOST and SVC_PORT, and an address of any interface on this machine", async () => {
  await using server = answering(() => Response.json({ status: "ok" }));
  const url = `http://127.0.0.1:${server.port}/health`;
  for (const host of [undefined, "", "127.0.0.1", "0.0.0.0"]) {
    const env = { ...host === undefined ? {} : { SVC_HOST: host }, SVC_PORT: server.port };
    assert.deepEqual(await health([], env), {
      code: 0,
      stdout: `healthy: ${url} answered 200\n`,
      stderr: "",
    });
  }
  const { code, stdout } = await health(["--output", "json"], { SVC_PORT: server.port });
  assert.deepEqual([code, JSON.parse(stdout)], [0, { healthy: true, url, status: 200 }]);
  assert.deepEqual(new Set(server.asked), new Set(["/health"]));
  await using six = answering(() => new Response(), "::1");
  for (const host of ["::1", "[::1]", "::"]) {
    const ended = await health([], { SVC_HOST: host, SVC_PORT: six.port });
    assert.equal(ended.stdout, `healthy: http://[::1]:${six.port}/health answered 200\n`);
  }
});

Deno.test("svc health asks the server of --url below its path", async () => {
  await using server = answering(() => new Response());
  const base = `http://127.0.0.1:${server.port}`;
  for (const path of ["", "/", "/health", "/a", "/a/health/"]) {
    assert.equal((await health(["--url", base + path])).code, 0);
  }
  assert.deepEqual(server.asked, ["/health", "/health", "/health", "/a/health", "/a/health"]);
  for (const url of ["localhost:80", "ftp://x", "x"]) {
    const ended = await health(["--url", url]);
    assert.deepEqual([ended.code, ended.stdout], [2, ""]);
    assert.ok(ended.stderr.startsWith(`svc: "${url}" is no address of a server.`), ended.stderr);
  }
  assert.equal((await health([], { SVC_PORT: "x" })).code, 2);
});

Deno.test("svc health ends with 1 and says in a line why a server is not healthy", async () => {
  await using failing = answering(() => Response.json({ error: "no\nway" }, { status: 503 }));
  const failed = await health([], { SVC_PORT: failing.port });
  const url = `http://127.0.0.1:${failing.port}/health`;
  assert.deepEqual([failed.code, failed.stderr], [1, ""]);
  assert.match(failed.stdout, /^not healthy: \S+ answered 503: no.+way\n$/);
  const json = JSON.parse((await health(["--output", "json"], { SVC_PORT: failing.port })).stdout);
  assert.match(json.error, /^answered 503: no/);
  assert.deepEqual([json.healthy, json.url, json.status], [false, url, 503]);
  await using other = answering(() => Response.redirect("http://127.0.0.1:1/"));
  assert.match((await health([], { SVC_PORT: other.port })).stdout, / answered 302\n$/);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const refused = await health([], { SVC_PORT: `${port}` });
  assert.deepEqual(refused, {
    code: 1,
    stdout: `not healthy: http://127.0.0.1:${port}/health refused the connection\n`,
    stderr: "",
  });
});

Deno.test("svc health ends with 1 when nothing is answered in time", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { timeout } = AbortSignal;
  AbortSignal.timeout = () => timeout(20);
  try {
    const { code, stdout } = await health([], { SVC_PORT: `${listener.addr.port}` });
    assert.equal(code, 1);
    assert.match(stdout, /^not healthy: .* did not answer within 5 s\n$/);
  } finally {
    AbortSignal.timeout = timeout;
    listener.close();
  }
});
