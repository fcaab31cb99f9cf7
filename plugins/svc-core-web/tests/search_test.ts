import assert from "node:assert/strict";
import type { SearchService } from "../../../src/plugins/api.ts";
import { webPlugin } from "../src/plugin.ts";
import { inside, site, web } from "./support.ts";

const FOUND = {
  results: [
    { title: "Bees\x1b[2J", url: "http://bees.example/a", content: "All\nabout  bees" },
    { title: "Evil", url: "javascript:alert(1)", content: "x" },
    { title: "", url: "https://flowers.example/", content: null },
    { title: "Third", url: "https://three.example/", content: "y".repeat(900) },
  ],
};

const json = (body: unknown) => Response.json(body);

Deno.test("web_search numbers and sanitises the results of SearXNG, and marks them as untrusted [4.8]", async () => {
  await using it = site(() => json(FOUND));
  const call = web({
    config: { "web.search_engine": "searxng", "web.search_url": `${it.url}/sx/` },
  });
  const result = await call("web_search", { query: "bees & flowers", num: 2 });
  assert.deepEqual(it.paths, ["/sx/search?q=bees+%26+flowers&format=json"]);
  assert.match(
    result,
    /^Between the two lines marked \w{8} is what SearXNG found\. It was written by/,
  );
  assert.equal(
    inside(result),
    "[1] Bees[2J\n    http://bees.example/a\n    All about bees\n" +
      "[2] https://flowers.example/\n    https://flowers.example/",
  );
});

Deno.test("web_search without num returns search_results results, and 20 at most [4.8]", async () => {
  await using it = site(() =>
    json({
      results: Array.from({ length: 50 }, (_, n) => ({ title: `t${n}`, url: `http://a/${n}` })),
    })
  );
  const config = { "web.search_engine": "searxng", "web.search_url": it.url, search_results: 3 };
  const call = web({ config });
  const count = async (args: Record<string, unknown>) =>
    inside(await call("web_search", { query: "x", ...args })).match(/^\[/gm)!.length;
  assert.equal(await count({}), 3);
  assert.equal(await count({ num: 7 }), 7);
  assert.equal(await count({ num: 1000 }), 20);
  assert.equal(await count({ num: -1 }), 1);
});

Deno.test("web_fetch takes the number of a result in the session that searched [4.8]", async () => {
  await using page = site((_, path) => new Response(`page ${path}`));
  await using engine = site(() =>
    json({ results: [{ title: "a", url: `${page.url}/a` }, { title: "b", url: `${page.url}/b` }] })
  );
  const call = web({
    config: {
      "web.search_engine": "searxng",
      "web.search_url": engine.url,
      "web.allow_private": [page.host],
    },
  });
  const one = { session: "one" };
  await call("web_search", { query: "x" }, one);
  assert.match(inside(await call("search", { query: "y" }, one)), /^\[3\] a\n[^]*\n\[4\] b\n/);
  for (const id of ["2", "#4", "[2]", 2]) {
    assert.equal(inside(await call("web_fetch", { url: id }, one)), "page /b");
  }
  assert.match(
    await call("web_fetch", { url: "5" }, one),
    /^Error: web_fetch: "5" is no web address/,
  );
  assert.match(
    await call("web_fetch", { url: "2" }, { session: "two" }),
    /^Error: .* no web address/,
  );
});

Deno.test("the key of Brave is sent only to the address it was stored for", async () => {
  await using elsewhere = site(() => json({ web: { results: [] } }));
  await using it = site((_, path) =>
    path === "/away"
      ? new Response(null, { status: 302, headers: { location: `${elsewhere.url}/` } })
      : json({
        web: {
          results: [{
            title: "<strong>Bees</strong> &amp; more",
            url: "https://b.example/",
            description: "a <strong>bee</strong>",
          }],
        },
      })
  );
  const asked: string[] = [];
  const key = (name: string, address: string) => {
    asked.push(`${name} ${address}`);
    return address === it.url ? "SECRET" : "";
  };
  const brave = (url: string) =>
    web({
      key,
      config: {
        "web.search_engine": "brave",
        "web.search_url": url,
        "web.allow_private": ["127.0.0.1"],
      },
    })("web_search", { query: "bees", num: 3 });
  assert.equal(
    inside(await brave(`${it.url}/res`)),
    "[1] Bees & more\n    https://b.example/\n    a bee",
  );
  assert.deepEqual(it.paths, ["/res?q=bees&count=3"]);
  assert.equal(it.headers[0]!.get("x-subscription-token"), "SECRET");
  const refused = await brave(`${elsewhere.url}/res`);
  assert.match(
    refused,
    /^Error: web_search: Brave Search wants a key, and none is stored for http:/,
  );
  assert.match(refused, /svc connect --key-only http:\/\/127\.0\.0\.1:\d+ brave/);
  assert.deepEqual(elsewhere.paths, []);
  assert.equal(await brave(`${it.url}/away`), "(no results)");
  assert.equal(elsewhere.headers[0]!.get("x-subscription-token"), null);
  assert.deepEqual(asked, [`brave ${it.url}`, `brave ${elsewhere.url}`, `brave ${it.url}`]);
});

const PAGE = `<html><body><div class="result results_links">
<a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fbees.example%2F%3Fa%3D1&amp;rut=x">All <b>bees</b></a>
<a class="result__snippet" href="x">They <b>fly</b></a></div>
<div class="result result--ad"><a class="result__a" href="//duckduckgo.com/y.js?ad_domain=x">Buy</a></div>
<div class="result"><a class="result__a" href="https://direct.example/">Direct</a></div></body></html>`;

Deno.test("results of DuckDuckGo are direct addresses without advertisements", async () => {
  const html = (body: string) => new Response(body, { headers: { "content-type": "text/html" } });
  await using it = site((_, path) =>
    html(
      path === "/none"
        ? '<div class="no-results">none</div>'
        : path === "/"
        ? PAGE
        : "Are you human?",
    )
  );
  const call = (path: string) =>
    web({ config: { "web.search_url": it.url + path } })("web_search", { query: "bees" });
  assert.equal(
    inside(await call("/")),
    "[1] All bees\n    https://bees.example/?a=1\n    They fly\n[2] Direct\n    https://direct.example/",
  );
  assert.equal(await call("/none"), "(no results)");
  assert.match(await call("/x"), /^Error: web_search: DuckDuckGo answers without results/);
});

Deno.test("an answer above the limit is not read to its end", async () => {
  const results = Array.from({ length: 500_000 }, () => ({}));
  await using it = site(() => json({ results: [...FOUND.results, ...results] }));
  const config = { "web.search_engine": "searxng", "web.search_url": it.url };
  assert.match(
    await web({ config })("web_search", { query: "x" }),
    /^Error: web_search: the answer of SearXNG is larger than 1 MiB/,
  );
  const small = { results: [...FOUND.results, ...results.slice(0, 100_000)] };
  await using other = site(() => json(small));
  const found = await web({ config: { ...config, "web.search_url": other.url } })(
    "web_search",
    { query: "x", num: 3 },
  );
  assert.equal(inside(found).match(/^\[/gm)!.length, 3);
});

Deno.test("a failure of an engine is an error of one sentence", async () => {
  await using it = site((_, path) =>
    path === "/html/search"
      ? new Response("<html>", { headers: { "content-type": "text/html" } })
      : path === "/odd/search"
      ? json({ results: [null] })
      : path === "/empty/search"
      ? json({})
      : new Response("no", { status: 429 })
  );
  const config = (url: string) => ({ "web.search_engine": "searxng", "web.search_url": url });
  const call = (url: string, query = "x") => web({ config: config(url) })("web_search", { query });
  assert.match(
    await call(""),
    /^Error: web_search: SearXNG has no address of its own; set web\.search_url/,
  );
  assert.match(await call(`${it.url}/html`), /does not answer with JSON; enable the format json/);
  assert.match(await call(`${it.url}/odd`), /the answer of SearXNG is not understood/);
  assert.match(await call(`${it.url}/empty`), /SearXNG answers without results/);
  assert.match(await call(it.url), /answers with status 429/);
  assert.match(await call("file:///etc/passwd"), /is no http or https address/);
  assert.match(await call("http://me:secret@host/"), /holds a user name or a password/);
  assert.match(await call(it.url, " \n"), /the query is empty/);
});

Deno.test("an engine may be configured at a private address, but not redirect to one", async () => {
  await using inner = site(() => json(FOUND));
  await using it = site(() =>
    new Response(null, { status: 302, headers: { location: inner.url } })
  );
  const call = web({ config: { "web.search_engine": "searxng", "web.search_url": it.url } });
  assert.match(await call("web_search", { query: "x" }), /private network/);
  assert.equal(it.paths.length, 1);
  assert.deepEqual(inner.paths, []);
});

Deno.test("the service search formats results for people and for models [4.9]", async () => {
  await using it = site(() => json(FOUND));
  const services: SearchService[] = [];
  webPlugin({ resolve: () => Promise.reject(new Error("no names here")) }).register_services({
    register: (name, service) => {
      assert.equal(name, "search");
      services.push(service as unknown as SearchService);
    },
  });
  const values: Record<string, unknown> = {
    "web.search_engine": "searxng",
    "web.search_url": it.url,
    "web.allow_private": [],
    "web.timeout": 10,
    "web.max_bytes": 100_000,
  };
  const [service] = services;
  const { signal } = new AbortController();
  const results = await service!.search("bees", 1, {
    config: { get: (key) => values[key] },
    signal,
    key: () => "",
  });
  assert.deepEqual(results, [
    { title: "Bees[2J", url: "http://bees.example/a", snippet: "All about bees" },
  ]);
  assert.equal(
    service!.display("bees", results),
    "[1] Bees[2J\n    http://bees.example/a\n    All about bees",
  );
  const context = service!.context("bees", results);
  assert.match(context, /^The web was searched for "bees" beforehand\. Between the two lines/);
  assert.equal(inside(context), service!.display("bees", results));
  assert.equal(service!.context("bees", []), "");
  assert.equal(service!.display("bees", []), 'Nothing found for "bees".');
});
