import assert from "node:assert/strict";
import { buildFlags } from "../../../tests/support/flags.ts";
import { project } from "../../../tests/support/project.ts";
import { AUTHORITY, CERTIFICATE, KEY } from "./certificate.ts";
import { inside, rawSite, site, web } from "./support.ts";

const html = (text: string) =>
  new Response(`<title>T</title><p>${text}</p>`, { headers: { "content-type": "text/html" } });

/** No name has an address. */
const resolve = () => Promise.resolve([]);

Deno.test("five redirects are followed, relative ones too, to http and https only", async () => {
  await using it = site((_, path) => {
    if (path === "/end") return html("arrived");
    if (path === "/file") return redirect("file:///etc/passwd");
    if (path === "/login") return redirect("http://user:secret@127.0.0.1/");
    if (path === "/umlaut") return redirect("/ende?é".replace("é", "\xc3\xa9"));
    if (path === "/ende") return html("angekommen");
    const n = Number(path.slice(1));
    return redirect(n === 1 ? "end" : `./${n - 1}`);
  });
  const call = web({ config: { "web.allow_private": ["127.0.0.1"] } });
  const page = await call("web_fetch", { url: `${it.url}/5` });
  assert.match(page, new RegExp(`^# ${it.url}/end\n`));
  assert.match(inside(page), /arrived/);
  assert.match(await call("web_fetch", { url: `${it.url}/6` }), /redirects more than 5 times/);
  assert.match(await call("web_fetch", { url: `${it.url}/file` }), /no http or https address/);
  assert.match(await call("web_fetch", { url: `${it.url}/umlaut` }), /ende\?%C3%A9\n/);
  const login = await call("web_fetch", { url: `${it.url}/login` });
  assert.match(login, /user name or a password/);
  assert.doesNotMatch(login, /secret/);
});

Deno.test("a redirect address with control characters is parsed as in browsers, or refused", async () => {
  await using inner = site(() => html("secret"));
  const call = web({ resolve, config: { "web.allow_private": [] } });
  for (
    const location of [
      `http://127.0.0.1:${inner.port}\t/`,
      `\x01http://127.0.0.1:${inner.port}/`,
      `ht\ttp://127.0.0.1:${inner.port}/`,
      `http://127.0.0.1:${inner.port}/\x00`,
      `\x1b[31mhttp://public.test/`,
    ]
  ) {
    await using outer = rawSite(
      `HTTP/1.1 302 x\r\ncontent-length: 0\r\nlocation: ${location}\r\n\r\n`,
    );
    const open = web({ resolve, config: { "web.allow_private": [outer.host] } });
    const result = await open("web_fetch", { url: outer.url });
    assert.match(result, /^Error: web_fetch: /, JSON.stringify(location));
    // deno-lint-ignore no-control-regex
    assert.doesNotMatch(result, /[\x00-\x09\x0b-\x1f]/);
    assert.match(await call("web_fetch", { url: location }), /^Error: web_fetch: /);
  }
  assert.deepEqual(inner.paths, []);
});

Deno.test("the connection goes to the checked address: the name is not resolved again", async () => {
  await using first = site(() => html("the checked one"), { hostname: "127.0.0.2" });
  await using second = site(() => html("another"), { port: first.port });
  const asked: string[] = [];
  const call = web({
    config: { "web.allow_private": ["rebind.test"] },
    resolve: (host) => {
      asked.push(host);
      return Promise.resolve([asked.length === 1 ? "127.0.0.2" : "127.0.0.1"]);
    },
  });
  const page = await call("web_fetch", { url: `http://rebind.test:${first.port}/` });
  assert.match(inside(page), /the checked one/);
  assert.equal(first.headers[0]!.get("host"), `rebind.test:${first.port}`);
  assert.deepEqual(asked, ["rebind.test"]);
  assert.deepEqual(second.paths, []);
});

Deno.test("a name that becomes private before a redirect to itself is refused", async () => {
  await using it = site(() => redirect("/again"), { hostname: "127.0.0.2" });
  const answers = [["127.0.0.2"], ["127.0.0.1"]];
  const allowed = ["other.test"];
  const call = web({
    config: { "web.allow_private": allowed },
    resolve: () => {
      if (answers.length === 1) allowed.length = 0; // the first answer stands for a public one
      return Promise.resolve(answers.shift()!);
    },
  });
  const result = await call("web_fetch", { url: `http://other.test:${it.port}/` });
  assert.match(result, /private network/);
  assert.deepEqual(it.paths, ["/"]);
});

Deno.test("an exception applies to its host, and with a port to that port only", async () => {
  await using it = site(() => html("open"));
  const url = `${it.url}/`;
  const open = async (...hosts: string[]) =>
    !(await web({ config: { "web.allow_private": hosts } })("web_fetch", { url })).startsWith(
      "Error",
    );
  assert.equal(await open("127.0.0.1"), true);
  assert.equal(await open(it.host), true);
  assert.equal(await open(`127.0.0.1:${it.port + 1}`), false);
  assert.equal(await open("127.0.0.2", "localhost", "0.0.1", ""), false);
});

Deno.test("the certificate is checked against the name of the URL", async () => {
  await using it = site(() => html("over TLS"), { cert: CERTIFICATE, key: KEY });
  const config = { "web.allow_private": ["pinned.test", "other.test"] };
  const trusting = web({ config, caCerts: [AUTHORITY] });
  const page = await trusting("web_fetch", { url: `https://pinned.test:${it.port}/a?b=c#d` });
  assert.match(page, new RegExp(`^# https://pinned\\.test:${it.port}/a\\?b=c\n`));
  assert.match(inside(page), /over TLS/);
  const other = await trusting("web_fetch", { url: `https://other.test:${it.port}/` });
  assert.match(other, /^Error: web_fetch: other\.test:\d+ cannot be read: .*certificate/);
  const distrusting = web({ config });
  assert.match(
    await distrusting("web_fetch", { url: `https://pinned.test:${it.port}/` }),
    /^Error: web_fetch: pinned\.test:\d+ cannot be read: .*certificate/,
  );
  assert.deepEqual(it.paths, ["/a?b=c"]);
});

Deno.test("a certificate for a name is not valid for an IP address", async () => {
  await using it = site(() => html("over TLS"), { cert: CERTIFICATE, key: KEY });
  const call = web({ config: { "web.allow_private": ["127.0.0.1"] }, caCerts: [AUTHORITY] });
  assert.match(await call("web_fetch", { url: it.url }), /cannot be read: .*certificate/);
  assert.deepEqual(it.paths, []);
});

Deno.test("the default authorities are trusted, with the permissions of the executable", async () => {
  await using it = site(() => html("over TLS"), { cert: CERTIFICATE, key: KEY });
  await using work = await project({
    "ca.pem": AUTHORITY,
    "get.ts": `import { get } from "${new URL("../src/http.ts", import.meta.url)}";
const url = new URL("https://pinned.test:${it.port}/");
const options = { headers: {}, max_bytes: 100, signal: new AbortController().signal };
const { status } = await get({ url, addresses: ["127.0.0.1"] }, options);
console.log(status);`,
  });
  const flags = buildFlags();
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...flags, "--no-check", "get.ts"],
    cwd: work.path,
    env: { DENO_CERT: `${work.path}/ca.pem`, NODE_EXTRA_CA_CERTS: `${work.path}/ca.pem` },
  }).output();
  const decoder = new TextDecoder();
  assert.equal(decoder.decode(stdout), "200\n", decoder.decode(stderr));
});

Deno.test("the addresses of a name are tried in turn", async () => {
  await using it = site(() => html("arrived"), { hostname: "127.0.0.2" });
  const call = web({
    config: { "web.allow_private": ["several.test"] },
    resolve: () => Promise.resolve(["127.0.0.3", "127.0.0.2"]),
  });
  const url = `http://several.test:${it.port}/`;
  assert.match(inside(await call("web_fetch", { url })), /arrived/);
});

Deno.test("a redirect cannot inject a header, and no cookies are sent", async () => {
  await using it = site((_, path) =>
    path === "/" ? redirect("/a%0d%0aX-Evil:%201?q=\r\n".trim()) : html("there")
  );
  const call = web({ config: { "web.allow_private": ["127.0.0.1"] } });
  await call("web_fetch", { url: `${it.url}/?a=\r\nX-Evil: 1` });
  assert.deepEqual(it.headers.map((headers) => headers.has("x-evil")), [false, false]);
  assert.deepEqual(
    [...it.headers[0]!.keys()].sort(),
    ["accept", "accept-encoding", "accept-language", "connection", "host", "user-agent"],
  );
});

Deno.test("a host without a valid answer is an error of one sentence", async () => {
  const call = web({ config: { "web.allow_private": ["127.0.0.1"] }, resolve });
  await using ssh = rawSite("SSH-2.0-OpenSSH_9\r\n");
  assert.equal(
    await call("web_fetch", { url: ssh.url }),
    "Error: web_fetch: the answer is no HTTP.",
  );
  await using none = rawSite("");
  assert.equal(
    await call("web_fetch", { url: none.url }),
    "Error: web_fetch: the answer was cut off.",
  );
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = closed.addr;
  closed.close();
  assert.match(
    await call("web_fetch", { url: `http://127.0.0.1:${port}/` }),
    /^Error: web_fetch: 127\.0\.0\.1:\d+ cannot be reached: /,
  );
  assert.equal(
    await call("web_fetch", { url: "http://unknown.test/" }),
    "Error: web_fetch: the host unknown.test has no address.",
  );
});

function redirect(location: string): Response {
  return new Response(null, { status: 302, headers: { location } });
}
