import assert from "node:assert/strict";
import type { Operator } from "../../src/policy/operator.ts";
import { agent } from "../support/agent.ts";
import { call, say } from "../support/backend.ts";

Deno.test("known secrets are masked in results, in what the model gets, in the log and in errors", async () => {
  const key = "sk-test-0123456789abcdef";
  const operator: Operator = {
    confirm: () => Promise.resolve({ granted: true, scope: "once", by: "operator" }),
    ask: () => Promise.resolve(undefined),
  };
  await using it = await agent([
    call("file_read", { path: "notes.txt" }),
    call("run_command", { command: "cat notes.txt; base64 notes.txt; cat " + key }),
    say("done"),
  ], { operator, headless: false, files: { "notes.txt": `the key is ${key}\n` } });
  await it.workspace.connections.save("other", { base_url: "http://other.example", api_key: key });
  const { events, result } = await it.turn("look");
  const outputs = events.flatMap((event) => event.type === "tool_result" ? [event.output] : []);
  assert.equal(outputs.length, 2);
  for (const output of outputs) {
    assert.match(output, /the key is \[masked\]/);
    assert.ok(!output.includes(key), output);
  }
  assert.ok(!outputs[1]!.includes(btoa(`the key is ${key}`).slice(20, 40)), "base64");
  const logged = it.session.document().turns[0]!.parts.filter((part) => part.type === "tool");
  assert.ok(
    logged.every((part) => !JSON.stringify(part).replace(/"input":\{.*?\}/, "").includes(key)),
  );
  assert.equal(result.status, "ok");
  assert.equal(it.workspace.mask(`refused ${encodeURIComponent(key)}`), "refused [masked]");
});
