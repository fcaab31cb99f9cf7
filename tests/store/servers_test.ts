import assert from "node:assert/strict";
import { AGENT_NEEDS } from "../../src/engine/workspace.ts";
import { startServer } from "../../src/server/server.ts";
import { scripted } from "../jobs/support.ts";
import { say, startBackend } from "../support/backend.ts";
import { filePostgres } from "../support/postgres.ts";
import { type Machine, machine, withTables } from "./support.ts";

const { needed, server } = await filePostgres();

function serve({ workspace }: Machine) {
  const http = startServer({ workspace, host: "127.0.0.1", port: 0, insecure: false });
  const send = (path: string, body?: unknown) =>
    fetch(`${http.url}${path}`, {
      ...body !== undefined && { method: "POST", body: JSON.stringify(body) },
    });
  return { send, [Symbol.asyncDispose]: () => http.stop() };
}

Deno.test({
  ...needed,
  name: "any server takes the next turn of a session, and all give the same document [2.1, 4.1]",
  async fn() {
    const store = await server.database(withTables);
    const replies = Array.from({ length: 8 }, (_, i) => say(`reply ${i}`));
    await using backend = startBackend({ replies });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    for (const { workspace } of [one, two]) await workspace.load(AGENT_NEEDS);
    await using first = serve(one);
    await using second = serve(two);
    const servers = [first, second];
    const chat = async (at: typeof first, prompt: string) => {
      const response = await at.send("/chat", { session: "x", prompt });
      assert.equal(response.status, 200, await response.clone().text());
      return (await response.json()).content;
    };
    // Twice on each, since a server keeps the files of a session open.
    for (const [i, at] of [0, 0, 1, 1, 0, 1].entries()) {
      assert.equal(await chat(servers[at]!, `prompt ${i}`), `reply ${i}`);
    }
    const together = servers.map((at, i) => chat(at, `together ${i}`));
    await Promise.all(together);
    const texts = await Promise.all(servers.map(async (at) => {
      const response = await at.send("/sessions/x");
      return await response.text();
    }));
    assert.equal(texts[0], texts[1]);
    const { turns } = JSON.parse(texts[0]!);
    assert.equal(turns.length, 8);
    assert.ok(turns.every(({ status }: { status: string }) => status === "ok"));
    const last = backend.chats.at(-1).messages.filter(({ role }: { role: string }) =>
      role !== "system"
    );
    assert.equal(last.length, 15, "the whole conversation is sent, whichever server sends it");
    const listed = await (await second.send("/sessions?details=true")).json();
    assert.deepEqual([listed.total, listed.details[0].turns], [1, 8]);
    assert.equal(listed.details[0].first_prompt, "prompt 0");
    assert.deepEqual([...one.warnings, ...two.warnings], []);
  },
});
