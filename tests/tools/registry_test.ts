import assert from "node:assert/strict";
import { ToolRegistry } from "../../src/tools/registry.ts";
import { tool } from "../support/tool.ts";

Deno.test("a tool is found by its name and its aliases, and listed once [7.3]", () => {
  const registry = new ToolRegistry();
  const read = tool({ name: "file_read", aliases: ["read", "view"] });
  registry.register(read, "fs");
  assert.equal(registry.find("file_read"), read);
  assert.equal(registry.find("view"), read);
  assert.equal(registry.find("nothing"), undefined);
  assert.equal(registry.owner("read"), "fs");
  assert.equal(registry.owner("nothing"), "");
  assert.deepEqual(registry.list(), [read]);
});

Deno.test("tools are listed in the order they were registered", () => {
  const registry = new ToolRegistry();
  for (const name of ["c", "a", "b"]) registry.register(tool({ name }), "x");
  assert.deepEqual(registry.list().map((each) => each.name), ["c", "a", "b"]);
});

Deno.test("a name or an alias of another tool cannot be taken, and the error names both owners", () => {
  const registry = new ToolRegistry();
  const first = tool({ name: "read", aliases: ["view"] });
  registry.register(first, "one");
  for (
    const rival of [
      tool({ name: "read" }),
      tool({ name: "view" }),
      tool({ name: "other", aliases: ["read"] }),
      tool({ name: "other", aliases: ["view"] }),
    ]
  ) {
    assert.throws(() => registry.register(rival, "two"), { code: "tool_clash", message: /one.*/ });
    assert.throws(() => registry.register(rival, "two"), { message: /two/ });
  }
  assert.throws(() => registry.register(tool({ name: "other", aliases: ["view"] }), "one"));
  assert.deepEqual(registry.list(), [first]);
  assert.equal(registry.find("other"), undefined);
});

Deno.test("an owner replaces its own tool, whose former aliases are gone", () => {
  const registry = new ToolRegistry();
  registry.register(tool({ name: "read", aliases: ["view"] }), "one");
  const next = tool({ name: "read", aliases: ["open"] });
  registry.register(next, "one");
  assert.equal(registry.find("open"), next);
  assert.equal(registry.find("view"), undefined);
  assert.deepEqual(registry.list(), [next]);
});

Deno.test("all tools of an owner leave together, and their names are free again", () => {
  const registry = new ToolRegistry();
  registry.register(tool({ name: "mine", aliases: ["m"] }), "one");
  registry.register(tool({ name: "a.x" }), "mcp:a");
  registry.register(tool({ name: "a.y", aliases: ["y"] }), "mcp:a");
  registry.unregister("mcp:a");
  assert.deepEqual(registry.list().map((each) => each.name), ["mine"]);
  assert.equal(registry.find("y"), undefined);
  assert.equal(registry.find("m")?.name, "mine");
  registry.register(tool({ name: "y" }), "two");
});

Deno.test("the model's schema holds canonical names of offered tools, without _config [4.8]", () => {
  const registry = new ToolRegistry();
  const parameters = {
    type: "object" as const,
    properties: { path: { type: "string" }, _config: { type: "object" } },
    required: ["path", "_config"],
  };
  registry.register(
    tool({ name: "read", aliases: ["view"], description: "Reads.", parameters }),
    "x",
  );
  registry.register(tool({ name: "write" }), "x");
  assert.deepEqual(registry.schema((each) => each.name === "read"), [{
    type: "function",
    function: {
      name: "read",
      description: "Reads.",
      parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    },
  }]);
});

Deno.test("a definition that cannot work is refused with the reason", () => {
  const registry = new ToolRegistry();
  const flawed: [Record<string, unknown>, RegExp][] = [
    [{ name: "" }, /name ""/],
    [{ name: "has space" }, /name "has space"/],
    [{ name: "x".repeat(129) }, /name/],
    [{ aliases: ["a/b"] }, /name "a\/b"/],
    [{ handler: undefined }, /handler/],
    [{ description: undefined }, /description/],
    [{ permission: "" }, /permission/],
    [{ parameters: undefined }, /parameters/],
    [{ parameters: { type: "object" } }, /parameters/],
    [{ parameters: { type: "array", properties: {} } }, /parameters/],
    [{ parameters: { type: "object", properties: {}, required: ["x"] } }, /"x" without declaring/],
    [{ path_arg: "x" }, /"x" without declaring/],
    [{ path_arg: ["x"] }, /"x" without declaring/],
    [{ key_arg: "x" }, /"x" without declaring/],
    [{ param_aliases: { y: "x" } }, /"x" without declaring/],
  ];
  for (const [change, message] of flawed) {
    const definition = { ...tool({ name: "fine" }), ...change } as ReturnType<typeof tool>;
    assert.throws(() => registry.register(definition, "one"), { code: "bad_tool", message });
  }
  const parameters = { type: "object" as const, properties: { a: {}, b: {} } };
  assert.throws(
    () => registry.register(tool({ name: "fine", parameters, param_aliases: { a: "b" } }), "one"),
    { message: /"a" is both/ },
  );
  assert.deepEqual(registry.list(), []);
});
