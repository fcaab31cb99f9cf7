import assert from "node:assert/strict";
import { serverLogin } from "../../../src/commands/mcp.ts";
import { testIo } from "../../../tests/support/io.ts";
import { type OAuthServer, oauthServer } from "./oauth_server.ts";
import { type Entry, type Imported, imported } from "./support.ts";

const far = ({ url }: { url: string }, more: Entry = {}) => ({
  name: "far",
  transport: "http",
  url,
  ...more,
});

/** Logs in as a person with a browser on this machine does. */
function login(
  { workspace: { tools } }: Imported,
  { browse = open, pasted = nothing(), remarks = [] }: {
    browse?: (address: string) => unknown;
    pasted?: AsyncIterable<string>;
    remarks?: string[];
  } = {},
): Promise<boolean> {
  return tools.sourceOf("svc-core-mcp")!.login!("far", {
    show: (address) => void browse(address),
    pasted,
    remark: (text) => void remarks.push(text),
    signal: new AbortController().signal,
  });
}

async function open(address: string): Promise<void> {
  const response = await fetch(address);
  assert.match(await response.text(), /Close this page/);
}

/** Where a browser is sent to that cannot reach this machine. */
async function redirected(address: string): Promise<string> {
  const response = await fetch(address, { redirect: "manual" });
  await response.body?.cancel();
  return response.headers.get("location")!;
}

async function* nothing(): AsyncGenerator<string> {}

/** The tokens that the MCP server was sent. */
function sent({ seen }: OAuthServer): string[] {
  return seen.filter((line) => line.startsWith("POST /mcp")).map((line) => line.slice(10));
}

Deno.test("svc mcp login registers svc, and the server gets its token [4.4, 5.1]", async () => {
  using server = oauthServer();
  await using at = await imported([far(server)]);
  assert.deepEqual(await at.tools(), []);
  assert.match(
    await at.call("mcp_list"),
    /^far {2}failed \(http\): it requires a login \(HTTP 401\); log in with: svc mcp login far$/,
  );
  assert.ok(!server.seen.includes("POST /register"), "only a person starts a login");
  const path = at.project.path;
  await at.project.write(
    ".config/svc/config.json",
    JSON.stringify({ "mcp.servers": [far(server)] }),
  );
  const opened: Promise<void>[] = [];
  const io = testIo({ home: path, cwd: path }, { out: (text) => void opened.push(open(text)) });
  const run = (action: "login" | "logout") =>
    serverLogin({ action, name: "far", path }, io, nothing());
  assert.equal(await run("login"), 0);
  await Promise.all(opened);
  assert.deepEqual(io.notes.slice(1), [
    "If the browser runs on another machine, paste the address here that it ends at.",
    "Logged in to far.",
  ]);
  assert.ok(server.grants[0]!.get("code_verifier")!.length >= 43);
  assert.equal(server.grants[0]!.get("resource"), server.url);
  await at.call("mcp_connect", { name: "far" });
  assert.deepEqual(await at.tools(), ["far.run"]);
  assert.equal(await at.call("far.run"), "Bearer (hidden) came");
  const file = `${path}/.config/svc/mcp-logins.json`;
  assert.equal(Deno.statSync(file).mode! & 0o777, 0o600);
  const [token] = server.valid;
  assert.match(Deno.readTextFileSync(file), new RegExp(token!));
  assert.equal(at.workspace.mask(`${token} ${server.refresh}`), "[masked] [masked]");
  assert.ok(!at.workspace.guard.callPaths([file]).contains(file), "no approval opens the file");
  assert.equal(await run("logout"), 0);
  assert.equal(await run("logout"), 0);
  assert.deepEqual(io.notes.slice(-2), ["Logged out of far.", "There is no login to far."]);
  assert.ok(!Deno.readTextFileSync(file).includes(token!));
  assert.match(await at.call("mcp_connect", { name: "far" }), /log in with: svc mcp login far/);
});

Deno.test("svc mcp logout revokes the tokens, and says when that fails; they are removed all the same", async () => {
  for (
    const [revokes, secret] of [[0, ""], [200, ""], [200, "the-secret-of-svc"], [503, ""]] as const
  ) {
    using server = oauthServer(secret === "" ? {} : { client: "known" });
    server.revokes = revokes;
    const oauth = { client_id: "known", client_secret: secret };
    await using at = await imported([far(server, secret === "" ? {} : { oauth })]);
    await login(at);
    const [access] = server.valid;
    const { refresh } = server;
    const remarks: string[] = [];
    const dialog = {
      remark: (text: string) => void remarks.push(text),
      signal: new AbortController().signal,
    };
    const source = at.workspace.tools.sourceOf("svc-core-mcp")!;
    assert.equal(await source.logout!("far", dialog), true);
    assert.equal(at.workspace.logins.read(server.url), undefined);
    assert.equal(await source.logout!("far", dialog), false);
    const client_id = server.grants[0]!.get("client_id")!;
    const own = { client_id, ...secret !== "" && { client_secret: secret } };
    const both = [
      { token: refresh, token_type_hint: "refresh_token", ...own },
      { token: access, token_type_hint: "access_token", ...own },
    ];
    assert.deepEqual(
      server.revoked.map((each) => Object.fromEntries(each)),
      revokes === 0 ? [] : revokes === 200 ? both : both.slice(0, 1),
    );
    assert.deepEqual(
      remarks,
      revokes < 500 ? [] : [
        "The tokens could not be revoked, and may be valid until they expire: " +
        "its authorization server answered with HTTP 503.",
      ],
    );
  }
});

Deno.test("the address that a browser on another machine ends at can be pasted", async () => {
  using server = oauthServer();
  await using at = await imported([far(server)]);
  const shown = Promise.withResolvers<string>();
  const remarks: string[] = [];
  async function* pasted(): AsyncGenerator<string> {
    const back = await redirected(await shown.promise);
    yield "what?";
    yield back.replace(/state=[^&]*/, "state=forged");
    yield ` ${back}\r`;
  }
  assert.ok(await login(at, { browse: shown.resolve, pasted: pasted(), remarks }));
  assert.deepEqual(remarks, Array(2).fill("That is not the address of this login."));
  assert.deepEqual(await at.tools(), ["far.run"]);
});

Deno.test("tokens are refreshed when they have expired, also those that another process has refreshed", async () => {
  using server = oauthServer();
  await using at = await imported([far(server)]);
  await login(at);
  await at.tools();
  for (let times = 0; times < 2; times++) {
    server.valid.clear();
    assert.equal(await at.call("far.run"), "Bearer (hidden) came");
  }
  assert.deepEqual(server.grants.map((grant) => grant.get("grant_type")), [
    "authorization_code",
    "refresh_token",
    "refresh_token",
  ]);
  assert.equal(server.seen.filter((line) => line === "POST /register").length, 1);
  const { tokens, ...others } = at.workspace.logins.read(server.url) as { tokens: object };
  server.valid.add("token-of-another-process");
  const access_token = "token-of-another-process";
  await at.workspace.logins.write(server.url, { ...others, tokens: { ...tokens, access_token } });
  assert.equal(await at.call("far.run"), "Bearer (hidden) came");
  assert.equal(sent(server).at(-1), "Bearer token-of-another-process");
});

Deno.test("a server whose login has expired fails with one sentence, and the others go on [4.3]", async () => {
  using server = oauthServer();
  using other = oauthServer();
  other.valid.add("configured");
  const headers = { Authorization: "Bearer configured" };
  await using at = await imported([far(server), { ...far(other, { headers }), name: "other" }]);
  await login(at);
  assert.deepEqual(await at.tools(), ["far.run", "other.run"]);
  server.valid.clear();
  server.refresh = "";
  const why = "its login has expired; log in with: svc mcp login far";
  assert.match(await at.call("far.run"), new RegExp(`^Error: the MCP server far .*${why}`));
  await at.call("mcp_connect", { name: "far" });
  assert.deepEqual(await at.tools(), ["other.run"]);
  assert.deepEqual(
    at.warnings.map((line) =>
      line.replace(/: it(s login has expired| requires a login \(HTTP 401\));/, ": …")
    ),
    [
      "The MCP server far is not connected: … log in with: svc mcp login far.",
    ],
  );
  assert.equal(server.seen.filter((line) => line === "POST /register").length, 1);
});

Deno.test("tokens are sent to no other address than that of the login, and headers to no authorization server", async () => {
  using server = oauthServer();
  using thief = oauthServer();
  const headers = { "x-own": "tenant" };
  await using at = await imported([far(server, { headers })]);
  await login(at);
  await at.tools();
  assert.match(sent(server).at(-1)!, /^Bearer access-token-\d+ tenant$/);
  const elsewhere = server.seen.filter((line) => !line.includes(" /mcp"));
  assert.ok(elsewhere.length >= 4 && elsewhere.every((line) => !/tenant|Bearer/.test(line)));
  for (const url of [thief.url, `${server.url}/../mcp?x=1`, `${server.origin}/`]) {
    at.workspace.config.override("mcp.servers", [far({ url })]);
    assert.deepEqual(await at.tools(), []);
  }
  assert.ok(thief.seen.length > 0 && thief.seen.every((line) => !line.includes("Bearer")));
  const there = server.seen.filter((line) => line.startsWith("POST / "));
  assert.ok(there.every((line) => !line.includes("Bearer")));
});

Deno.test("a client that is registered already is used with its secret and port [2.10]", async () => {
  using server = oauthServer({ client: "known" });
  const free = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const { port } = free.addr;
  free.close();
  const oauth = { client_id: "known", client_secret: "the-secret-of-svc", port };
  await using at = await imported([far(server, { oauth })]);
  let redirect: string | null = "";
  await login(at, {
    browse(address) {
      redirect = new URL(address).searchParams.get("redirect_uri");
      return open(address);
    },
  });
  assert.equal(redirect, `http://127.0.0.1:${port}/callback`);
  assert.equal(server.grants[0]!.get("client_secret"), "the-secret-of-svc");
  assert.ok(!server.seen.includes("POST /register"));
  assert.deepEqual(await at.tools(), ["far.run"]);
  assert.equal(at.workspace.mask("the-secret-of-svc"), "[masked]");
});

Deno.test("a login that is refused, or forged, keeps nothing", async () => {
  using server = oauthServer();
  await using at = await imported([far(server)]);
  await login(at);
  const before = at.workspace.logins.read(server.url);
  server.error = "access_denied";
  server.valid.clear();
  const forged = async (address: string) => {
    const back = new URL(new URL(address).searchParams.get("redirect_uri")!);
    back.search = "?code=x&state=y";
    const response = await fetch(back);
    assert.equal(response.status, 404);
    await response.body?.cancel();
    await open(address);
  };
  await assert.rejects(login(at, { browse: forged }), /access_denied/);
  assert.deepEqual(at.workspace.logins.read(server.url), before);
  at.workspace.config.override("mcp.servers", [far({ url: "http://a.test/mcp" })]);
  await assert.rejects(login(at), /not https/);
  at.workspace.config.override("mcp.servers", [{ name: "far", command: "x" }]);
  await assert.rejects(login(at), /no server over HTTP/);
});
