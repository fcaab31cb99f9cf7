import assert from "node:assert/strict";
import { call, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const PAGE = "<title>Bees</title><h1>Bees</h1><p>They <b>fly</b>.</p>";

Deno.test("a page of this machine is refused unless the settings allow it; its text is not logged", async () => {
  await using place = await project();
  const asked: string[] = [];
  const site = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    asked.push(new URL(request.url).pathname);
    return new Response(PAGE, { headers: { "content-type": "text/html" } });
  });
  const url = `http://localhost:${site.addr.port}/bees`;
  try {
    const replies = [
      call("web_fetch", { url }),
      say("refused"),
      call("open", { url }),
      say("read"),
    ];
    await using backend = startBackend(replies);
    const run = () =>
      svc(
        ["run", "--base-url", backend.url, "--model", "m", "--session-id", "s", "read it"],
        { cwd: place.path },
      );
    const refused = await run();
    assert.equal(refused.code, 0, refused.stderr);
    assert.match(
      backend.chats[1].messages.at(-1).content,
      /^Error: web_fetch: localhost is a place in/,
    );
    assert.deepEqual(asked, []);

    await place.write(".config/svc/config.json", '{"web.allow_private": ["localhost"]}');
    const read = await run();
    assert.equal(JSON.parse(read.stdout).content, "read", read.stderr);
    assert.match(
      backend.chats[3].messages.at(-1).content,
      /\nTitle: Bees\n\n# Bees\n\nThey \*\*fly\*\*\.\n----- end \w{8} -----$/,
    );
    assert.deepEqual(asked, ["/bees"]);
    const log = await place.read(".svc/sessions/s.json");
    assert.match(log, /\[web_fetch result excluded from log, see tool call above for parameters\]/);
    assert.doesNotMatch(log, /They/);
  } finally {
    await site.shutdown();
  }
});

Deno.test("search-then-answer with a stored key, which is sent to the engine and never shown", async () => {
  await using place = await project();
  const tokens: (string | null)[] = [];
  const engine = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    tokens.push(request.headers.get("x-subscription-token"));
    return Response.json({ web: { results: [{ title: "Bees", url: "http://b.example/" }] } });
  });
  try {
    await using backend = startBackend([say("ok")]);
    const url = `http://127.0.0.1:${engine.addr.port}`;
    const options = { cwd: place.path };
    const key = await svc(["connect", "--key-only", url, "brave"], {
      ...options,
      stdin: "s3cret\n",
    });
    assert.equal(key.code, 0, key.stderr);
    const settings = {
      web_search: true,
      web: { search_engine: "brave", search_url: `${url}/search` },
    };
    await place.write(".config/svc/config.json", JSON.stringify(settings));
    const run = await svc(
      ["run", "--base-url", backend.url, "--model", "m", "--session-id", "s", "--verbose", "bees?"],
      options,
    );
    assert.equal(run.code, 0, run.stderr);
    assert.deepEqual(tokens, ["s3cret"]);
    assert.match(backend.chats[0].messages.at(-1).content, /\[1\] Bees\n {4}http:\/\/b\.example\//);
    const log = await place.read(".svc/sessions/s.json");
    assert.match(log, /"type": ?"system"/);
    for (const text of [log, run.stdout, run.stderr]) assert.doesNotMatch(text, /s3cret/);
  } finally {
    await engine.shutdown();
  }
});
