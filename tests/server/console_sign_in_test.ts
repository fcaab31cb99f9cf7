import assert from "node:assert/strict";
import { consoleFolder } from "../../src/server/console.ts";
import { SignIns } from "../../src/server/console/sign_in.ts";
import type { TokenRole } from "../../src/server/admission.ts";
import { Raw, server, type TestServer } from "./support.ts";
import { formToken, signIn, submit, visit } from "./console.ts";

Deno.test("a link of svc console signs in once, with a cookie that scripts and other sites cannot use", async () => {
  await using at = await server();
  const key = link(at);
  const first = await fetch(`${at.http.url}/console/sign-in?key=${key}`, { redirect: "manual" });
  assert.deepEqual([first.status, first.headers.get("location")], [303, "/console"]);
  const cookie = first.headers.get("set-cookie")!;
  assert.match(
    cookie,
    /^svc_[\da-f]{12}=[\w-]{43}; Path=\/console; Max-Age=\d+; HttpOnly; SameSite=Strict$/,
  );
  assert.equal((await visit(at, "/console", cookie.split(";")[0]!)).status, 200);
  const again = await visit(at, `/console/sign-in?key=${key}`, "");
  assert.equal(again.status, 401);
  assert.match(again.text, /not valid/);
  assert.equal(again.headers.get("set-cookie"), null);
});

Deno.test("the cookie is Secure when the request came by https", async () => {
  await using at = await server();
  const { headers } = await fetch(`${at.http.url}/console/sign-in?key=${link(at)}`, {
    redirect: "manual",
    headers: { "x-forwarded-proto": "https" },
  });
  assert.match(headers.get("set-cookie")!, /; Secure$/);
});

Deno.test("a link to the console that another site leads to, or that is looked at with HEAD, is not used up", async () => {
  await using at = await server();
  const path = `/console/sign-in?key=${link(at)}`;
  const head = await fetch(at.http.url + path, { method: "HEAD" });
  assert.equal(head.headers.get("set-cookie"), null);
  const crossed = await visit(at, path, "", { "sec-fetch-site": "cross-site" });
  assert.match(crossed.text, /<form method="post" action="\/console\/sign-in">/);
  assert.equal(crossed.headers.get("set-cookie"), null);
  assert.equal((await fetch(at.http.url + path, { redirect: "manual" })).status, 303);
});

Deno.test("an old link, an old cookie and a file that others may write do not sign in", async () => {
  await using at = await server();
  const folder = consoleFolder(at.workspace);
  const old = new SignIns(folder, { ...at.workspace.clock, now: () => Date.now() - 6 * 60_000 });
  const refused = async (key: string) => {
    const { status } = await visit(at, `/console/sign-in?key=${key}`, "");
    assert.equal(status, 401);
  };
  await refused(old.makeLink("operate"));
  const shared = link(at);
  for (const { name } of Deno.readDirSync(folder)) Deno.chmodSync(`${folder}/${name}`, 0o644);
  await refused(shared);
  const future = new SignIns(folder, { ...at.workspace.clock, now: () => Date.now() + 60_000 });
  await refused(future.makeLink("operate"));
  const { role } = { role: "operate" as const };
  const before = new SignIns(folder, {
    ...at.workspace.clock,
    now: () => Date.now() - 8 * 86_400_000,
  });
  const cookie = before.signIn(before.makeLink(role))!;
  assert.equal(before.viewer(cookie)?.role, role);
  const name = (await signIn(at)).split("=")[0];
  assert.equal((await visit(at, "/console", `${name}=${cookie}`)).status, 401);
  await refused("../asks");
});

Deno.test("a file of a sign-in is private, and has no secret in it", async () => {
  await using at = await server();
  const cookie = (await signIn(at)).split("=")[1]!;
  const key = link(at);
  const folder = consoleFolder(at.workspace);
  const files = [...Deno.readDirSync(folder)].map(({ name }) => `${folder}/${name}`);
  assert.equal(files.length, 2);
  for (const path of files) {
    assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
    const text = path + Deno.readTextFileSync(path);
    assert.ok(!text.includes(cookie) && !text.includes(key));
  }
});

Deno.test("a worktree has no sign-ins, unless the user's settings cannot be written", async () => {
  await using at = await server();
  const { paths } = at.workspace;
  const planted = new SignIns(`${paths.state}/console`, at.workspace.clock).makeLink("operate");
  assert.equal((await visit(at, `/console/sign-in?key=${planted}`, "")).status, 401);
  assert.ok(consoleFolder(at.workspace).startsWith(paths.user));
  Deno.writeTextFileSync(`${paths.user}/file`, "");
  const read_only = { ...paths, user: `${paths.user}/file` };
  assert.equal(consoleFolder({ paths: read_only }), `${paths.state}/console`);
});

Deno.test("a sign-in is valid after a restart of the server, and not after signing out", async () => {
  await using at = await server();
  const cookie = await signIn(at);
  const { startServer } = await import("../../src/server/server.ts");
  const next = startServer({
    workspace: at.workspace,
    host: "127.0.0.1",
    port: 0,
    insecure: false,
  });
  try {
    assert.equal((await visit({ http: next }, "/console", cookie)).status, 200);
    const { status } = await submit({ http: next }, "/console/sign-out", cookie, {
      form_token: await formToken(at, cookie),
    });
    assert.equal(status, 303);
  } finally {
    await next.stop();
  }
  assert.equal((await visit(at, "/console", cookie)).status, 401);
});

Deno.test("every page of the console needs a cookie, and forbids foreign content and frames", async () => {
  await using at = await server();
  for (const path of ["/console", "/console/sessions", "/console/events", "/console/nope"]) {
    const { status, headers } = await visit(at, path, "");
    assert.equal(status, 401, path);
    assert.equal(
      headers.get("content-security-policy"),
      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; " +
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("referrer-policy"), "same-origin");
    assert.equal(headers.get("cross-origin-resource-policy"), "same-origin");
    assert.equal(headers.get("cache-control"), "no-store");
  }
  const cookie = await signIn(at);
  assert.equal((await visit(at, "/console/nope", cookie)).status, 404);
});

Deno.test("the assets of the console have a digest in their address, and are kept for a year", async () => {
  await using at = await server();
  const { text } = await visit(at, "/console", await signIn(at));
  const assets = [...text.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)].map(([, path]) =>
    path!
  );
  assert.equal(assets.length, 2);
  for (const path of assets) {
    assert.match(path, /-[\da-f]{16}\.(css|js)$/);
    const { status, headers } = await visit(at, path, "");
    assert.equal(status, 200);
    assert.equal(headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.match(headers.get("content-type")!, /^text\/(css|javascript)/);
  }
  assert.equal((await visit(at, assets[0]!.replace(/-[\da-f]/, "-0x"), "")).status, 404);
  assert.doesNotMatch(text, /<style|style="|onclick|<script>/);
});

Deno.test("a form without the viewer's token, or of another site, is refused", async () => {
  await using at = await server();
  const { id } = await at.workspace.asks.park({ question: "Which one?", origin: "s" });
  const cookie = await signIn(at);
  const form_token = await formToken(at, cookie);
  const other = await formToken(at, await signIn(at));
  assert.notEqual(form_token, other);
  const answer = "mine";
  const path = `/console/asks/${id}`;
  const refused = async (fields: Record<string, string>, headers: Record<string, string> = {}) => {
    const { status } = await submit(at, path, cookie, fields, headers);
    assert.equal(status, 403, JSON.stringify([fields, headers]));
  };
  await refused({ answer });
  await refused({ answer, form_token: "" });
  await refused({ answer, form_token: other });
  const good = { answer, form_token };
  await refused(good, { "sec-fetch-site": "cross-site" });
  await refused(good, { "sec-fetch-site": "same-site" });
  await refused(good, { "sec-fetch-site": "none" });
  await refused(good, { origin: "http://evil.example" });
  await refused(good, { origin: `http://127.0.0.1:${at.http.port + 1}` });
  await refused(good, { origin: "null" });
  const json = await submit(at, path, cookie, good, { "content-type": "text/plain" });
  assert.equal(json.status, 415);
  assert.equal((await submit(at, path, "", good)).status, 401);
  assert.equal(at.workspace.asks.need(id).status, "pending");
  const origin = at.http.url;
  const { status, headers } = await submit(at, path, cookie, good, {
    origin,
    "sec-fetch-site": "same-origin",
  });
  assert.deepEqual([status, headers.get("location")], [303, "/console"]);
  assert.equal(at.workspace.asks.need(id).answer, answer);
});

Deno.test("a page of an origin that may use the API may not send forms of the console", async () => {
  const origin = "https://good.example";
  await using at = await server(undefined, { config: { "serve.cors_origins": [origin] } });
  const cookie = await signIn(at);
  const form_token = await formToken(at, cookie);
  const { status, headers } = await submit(at, "/console/sign-out", cookie, { form_token }, {
    origin,
  });
  assert.equal(status, 403);
  assert.equal(headers.get("access-control-allow-origin"), null);
});

Deno.test("a console behind a proxy that takes https accepts its own forms", async () => {
  await using at = await server(undefined, { config: { "serve.hosts": ["svc.example"] } });
  const cookie = await signIn(at);
  const form_token = await formToken(at, cookie);
  using raw = await Raw.open(at);
  const body = `form_token=${form_token}`;
  await raw.send([
    "POST /console/sign-out HTTP/1.1",
    "host: svc.example",
    "origin: https://svc.example",
    `cookie: ${cookie}`,
    "content-type: application/x-www-form-urlencoded",
    `content-length: ${body.length}`,
    "",
    body,
  ].join("\r\n"));
  assert.match(await raw.until(/\r\n\r\n/), /^HTTP\/1\.1 303 /);
});

Deno.test("the role of a link decides what its holder sees and may do in the console", async () => {
  await using at = await server();
  const { id } = await at.workspace.asks.park({ question: "Which one?", origin: "s" });
  const reader = await signIn(at, "read");
  const page = await visit(at, "/console", reader);
  assert.match(page.text, /Which one\?/);
  assert.doesNotMatch(page.text, /<textarea/);
  const fields = { answer: "a", form_token: await formToken(at, reader) };
  const refused = await submit(at, `/console/asks/${id}`, reader, fields);
  assert.equal(refused.status, 403);
  assert.match(refused.text, /This needs the role answer, and you have the role read\./);
  const answerer = await signIn(at, "answer");
  fields.form_token = await formToken(at, answerer);
  assert.equal((await submit(at, `/console/asks/${id}`, answerer, fields)).status, 303);
});

Deno.test("a token signs in to the console with its role, until it is not a token any more", async () => {
  const [reader, operator] = ["r".repeat(32), "o".repeat(32)];
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, `read ${reader}\n${operator}\n`);
  await Deno.chmod(path, 0o600);
  await using at = await server(undefined, { config: { "serve.token_file": path } });
  assert.match((await visit(at, "/console", "")).text, /sign in with a token/);
  const enter = (key: string) => submit(at, "/console/sign-in", "", { key });
  assert.equal((await enter("x".repeat(32))).status, 401);
  const cookies: string[] = [];
  for (const [token, role] of [[reader, "read"], [operator, "operate"]] as const) {
    const { status, headers } = await enter(token);
    assert.equal(status, 303);
    const cookie = headers.get("set-cookie")!.split(";")[0]!;
    assert.match((await visit(at, "/console", cookie)).text, new RegExp(`>${role}<`));
    cookies.push(cookie);
  }
  const cross = await submit(at, "/console/sign-in", "", { key: operator }, {
    "sec-fetch-site": "cross-site",
  });
  assert.equal(cross.status, 403);
  await Deno.writeTextFile(path, `${operator}\n`);
  const { startServer } = await import("../../src/server/server.ts");
  const next = startServer({
    workspace: at.workspace,
    host: "127.0.0.1",
    port: 0,
    insecure: false,
  });
  try {
    assert.equal((await visit({ http: next }, "/console", cookies[0]!)).status, 401);
    assert.equal((await visit({ http: next }, "/console", cookies[1]!)).status, 200);
  } finally {
    await next.stop();
  }
  await Deno.remove(path);
});

Deno.test("a token of a lower role is refused by the API with the role that is needed [5.1]", async () => {
  const [reader, answerer] = ["r".repeat(32), "a".repeat(32)];
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, `read ${reader}\nanswer ${answerer}\n`);
  await Deno.chmod(path, 0o600);
  await using at = await server(undefined, { config: { "serve.token_file": path } });
  const { id } = await at.workspace.asks.park({ question: "Which one?", origin: "s" });
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  assert.equal((await at.get("/asks", as(reader).headers)).status, 200);
  const chat = await at.post("/chat", { prompt: "a" }, as(answerer));
  assert.deepEqual([chat.status, chat.body], [
    403,
    { error: "this needs the role operate, and you have the role answer" },
  ]);
  const answer = { answer: "this one" };
  assert.equal((await at.post(`/asks/${id}/answer`, answer, as(reader))).status, 403);
  assert.equal((await at.post(`/asks/${id}/answer`, answer, as(answerer))).status, 200);
  assert.equal((await at.post("/mcp", {}, as(answerer))).status, 404);
  assert.equal((await at.post("/jobs/a/run", "", as(answerer))).status, 403);
  await Deno.remove(path);
});

Deno.test("serve.console decides whether there is a console; by default there is one on loopback", async () => {
  const statusOf = async (options: Parameters<typeof server>[1]) => {
    await using at = await server(undefined, options);
    return (await visit(at, "/console", "")).status;
  };
  const open = { host: "0.0.0.0", insecure: true };
  assert.equal(await statusOf({}), 401);
  assert.equal(await statusOf(open), 404);
  assert.equal(await statusOf({ ...open, config: { "serve.console": "on" } }), 401);
  assert.equal(await statusOf({ config: { "serve.console": "off" } }), 404);
});

function link(at: TestServer, role: TokenRole = "operate"): string {
  return new SignIns(consoleFolder(at.workspace), at.workspace.clock).makeLink(role);
}
