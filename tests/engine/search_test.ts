import assert from "node:assert/strict";
import type { TurnEvent } from "../../src/engine/events.ts";
import { agent } from "../support/agent.ts";
import { call, httpError, say } from "../support/backend.ts";

/** A search engine that finds one page for everything. */
function engine() {
  const queries: (string | null)[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    queries.push(new URL(request.url).searchParams.get("q"));
    return Response.json({
      results: [{ title: "Bees", url: "http://bees.example/", content: "Buzz" }],
    });
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  return {
    queries,
    config: { web_search: true, "web.search_engine": "searxng", "web.search_url": url },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

const notices = (events: TurnEvent[]) =>
  events.filter((event) => event.type === "notice").map(({ message }) => message);

Deno.test("search-then-answer searches for the prompt, and the model is given what was found [2.2]", async () => {
  await using web = engine();
  await using it = await agent([say("ok"), say("again")], { config: web.config });
  const { result, events } = await it.turn("what do\n bees  do?");
  assert.equal(result.content, "ok");
  assert.deepEqual(web.queries, ["what do bees do?"]);
  assert.deepEqual(notices(events), []);
  const parts = it.session.document().turns[0]!.parts;
  assert.deepEqual(parts.map(({ type }) => type), ["user", "system", "text"]);
  const found = parts[1] as { text: string };
  assert.match(found.text, /\[1\] Bees\n {4}http:\/\/bees\.example\/\n {4}Buzz/);
  const [, user, system] = it.backend.chats[0].messages;
  assert.deepEqual(user, { role: "user", content: "what do\n bees  do?" });
  assert.deepEqual(system, { role: "system", content: found.text });
  // The next turn's request begins as this one was: what was found stays in its place.
  await it.turn("more");
  assert.deepEqual(it.backend.chats[1].messages.slice(1, 3), [user, system]);
});

Deno.test("without web_search nothing is searched", async () => {
  await using web = engine();
  await using it = await agent([say("ok")], { config: { ...web.config, web_search: false } });
  await it.turn("bees");
  assert.deepEqual(web.queries, []);
});

Deno.test("query_refine lets the model write the query; one that it cannot write stays as it is [4.10]", async () => {
  await using web = engine();
  const config = { ...web.config, query_refine: true };
  await using it = await agent(
    [say('"bee work"\nbecause'), say("ok"), httpError(400), say("ok")],
    { config },
  );
  await it.turn("tell me what bees do all day");
  assert.match(it.backend.chats[0].messages[0].content, /tell me what bees do all day$/);
  assert.deepEqual(web.queries, ["bee work"]);
  const { result } = await it.turn("and at night?");
  assert.equal(result.status, "ok");
  assert.deepEqual(web.queries, ["bee work", "and at night?"]);
});

Deno.test("query_refine goes for the queries of web_search too, before they are run and logged", async () => {
  await using web = engine();
  const config = { ...web.config, web_search: false, query_refine: true };
  await using it = await agent(
    [call("web_search", { query: "bees please" }), say("bees"), say("ok")],
    { config },
  );
  const { result } = await it.turn("search");
  assert.deepEqual(web.queries, ["bees"]);
  assert.deepEqual(result.tool_calls.map((each) => each.arguments), [{ query: "bees" }]);
});

Deno.test("without a search service the mode says that it is unavailable, and the turn goes on [4.9]", async () => {
  await using it = await agent([say("ok")], {
    config: { web_search: true, plugins: ["svc-core-fs"] },
  });
  const { result, events } = await it.turn("bees");
  assert.equal(result.status, "ok");
  assert.deepEqual(result.errors, []);
  assert.deepEqual(notices(events), [
    "Search-then-answer (setting web_search) is unavailable: no plugin offers a search service.",
  ]);
});

Deno.test("a search that fails does not fail the turn", async () => {
  await using it = await agent([say("ok")], {
    config: { web_search: true, "web.search_engine": "searxng" },
  });
  const { result, events } = await it.turn("bees");
  assert.equal(result.status, "ok");
  assert.match(
    notices(events).join(),
    /^The web could not be searched, and the turn goes on without it: SearXNG has no address/,
  );
});

Deno.test("a policy that shuts the web, or web_search, shuts search-then-answer", async () => {
  await using web = engine();
  for (
    const config of [
      { tool_permission: { web: "deny" } },
      { tool_permission: { web: "ask" } },
      { "tools.deny": ["web_search"] },
      { "tools.allow": ["file_read"] },
    ]
  ) {
    await using it = await agent([say("ok")], { config: { ...web.config, ...config } });
    const { result, events } = await it.turn("bees");
    assert.equal(result.status, "ok");
    assert.match(
      notices(events).join(),
      /^Search-then-answer \(setting web_search\) is unavailable: /,
    );
  }
  assert.deepEqual(web.queries, []);
});

Deno.test("a plugin's own search service takes the place of the bundled one [4.9]", async () => {
  await using it = await agent([say("ok")], {
    config: { web_search: true, plugins: [] },
    files: {
      ".svc/plugins/finder.js": `export function register_services(services) {
        services.register("search", {
          search: (query, num) => [{ title: query, url: "x", snippet: String(num) }],
          display: () => "",
          context: (query, [{ title, snippet }]) => query + "|" + title + "|" + snippet,
        });
      }`,
    },
  });
  await it.turn("bees");
  const [, system] = it.session.document().turns[0]!.parts;
  assert.equal((system as { text: string }).text, "bees|bees|5");
});
