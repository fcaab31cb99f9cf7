import assert from "node:assert/strict";
import fc from "fast-check";
import type { WireTool } from "../../src/plugins/api.ts";
import { PlainNames } from "../../src/providers/plain_names.ts";

const tool = (name: string): WireTool => ({
  type: "function",
  function: { name, description: "", parameters: { type: "object", properties: {} } },
});
const call = (name: string) => ({
  id: "1",
  type: "function" as const,
  function: { name, arguments: "{}" },
});

Deno.test("a name with a dot is sent as a plain name and restored in the call [4.10]", () => {
  const names = new PlainNames([tool("file_read"), tool("docs.search"), tool("docs_search")]);
  const sent = names.tools([tool("file_read"), tool("docs.search"), tool("docs_search")]);
  assert.deepEqual(sent?.map((each) => each.function.name), [
    "file_read",
    "docs_search_2",
    "docs_search",
  ]);
  const event = { type: "tool_calls" as const, tool_calls: [call("docs_search_2"), call("x.y")] };
  assert.deepEqual(names.event(event), {
    type: "tool_calls",
    tool_calls: [call("docs.search"), call("x.y")],
  });
  const history = names.messages([
    { role: "user", content: "hi" },
    { role: "assistant", content: null, tool_calls: [call("docs.search"), call("gone.tool")] },
  ]);
  assert.deepEqual(
    history[1]!.tool_calls?.map((each) => each.function.name),
    ["docs_search_2", "gone_tool"],
  );
  assert.equal(names.tools(undefined), undefined);
});

Deno.test("property: every sent name is plain and identifies one tool", () => {
  const name = fc.stringMatching(/^[a-b_.]{1,3}$|^[a.]{60,70}$/);
  fc.assert(fc.property(fc.uniqueArray(name, { maxLength: 12 }), (own) => {
    const names = new PlainNames(own.map(tool));
    const sent = names.tools(own.map(tool))!.map((each) => each.function.name);
    assert.equal(new Set(sent).size, own.length);
    for (const [at, plain] of sent.entries()) {
      assert.match(plain, /^[A-Za-z0-9_-]{1,64}$/);
      const back = names.event({ type: "tool_calls", tool_calls: [call(plain)] });
      assert.deepEqual(back, { type: "tool_calls", tool_calls: [call(own[at]!)] });
    }
  }));
});
