import assert from "node:assert/strict";
import { startWire } from "../../bench/wires.ts";
import { call, say, think } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

for (const [wire, provider] of [["messages", "anthropic"], ["responses", "openai"]] as const) {
  Deno.test(`svc run --provider ${provider} on its own protocol: the next process sends the same bytes and more [4.10]`, async () => {
    const server = startWire(wire, {
      replies: [
        think("I look.", call("file_read", { path: "a.txt" })),
        think("Clear.", say("alpha")),
        say("still alpha"),
      ],
    });
    await using place = await project({
      "a.txt": "alpha\n",
      ".svc/config.json": JSON.stringify({ wire: "native" }),
    });
    const flags = ["--provider", provider, "--base-url", server.url, "--model", "m"];
    const run = async (prompt: string) => {
      const args = ["run", ...flags, "--session-id", "s", "-p", prompt];
      const { code, stdout, stderr } = await svc(args, { cwd: place.path });
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    assert.equal((await run("what is in a.txt?")).content, "alpha");
    assert.equal((await run("and now?")).content, "still alpha");
    // The marks of the cache move on; they are no part of what is cached.
    const unmarked = server.requests.map((request) =>
      JSON.parse(JSON.stringify(request).replaceAll(',"cache_control":{"type":"ephemeral"}', ""))
    );
    const [first, second, third] = unmarked.map(({ messages, input }) => messages ?? input);
    assert.deepEqual(second.slice(0, first.length), first);
    assert.deepEqual(third.slice(0, second.length), second);
    const texts = (sent: unknown[]) => sent.map((item) => JSON.stringify(item));
    assert.deepEqual(texts(third).slice(0, second.length), texts(second));
    assert.match(JSON.stringify(third), /sealed 1.*sealed 2/);
    for (const { tools, system, instructions } of unmarked) {
      const { tools: same, ...head } = unmarked[0];
      assert.deepEqual([tools, system, instructions], [same, head.system, head.instructions]);
    }
    await server.close();
  });
}
