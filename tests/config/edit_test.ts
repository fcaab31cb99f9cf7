import assert from "node:assert/strict";
import fc from "fast-check";
import { acceptNew } from "../../src/config/check.ts";
import { setInText, unsetInText } from "../../src/config/edit.ts";
import { parseSettings } from "../../src/config/file.ts";
import { findKey, lookUp, nest } from "../../src/config/key_path.ts";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { settingValue } from "./values.ts";
import { runs } from "../support/random.ts";

const FILE = "config.json";

function set(text: string, name: string, value: unknown): string {
  return setInText(text, findKey(name)!, value, FILE);
}

function unset(text: string, name: string): string {
  return unsetInText(text, name.split("."), FILE);
}

function read(text: string): Record<string, unknown> {
  return nest(parseSettings(text, FILE), () => assert.fail("a reserved name"));
}

Deno.test("a value changes and all other bytes are kept", () => {
  const text = `// mine
{
\t"mode": "plan", // careful
\t/* sampling */ "temperature" : 0.2,
\t"tools.deny": ["web_search"],
}
`;
  assert.equal(set(text, "mode", "build"), text.replace('"plan"', '"build"'));
  assert.equal(set(text, "temperature", 1), text.replace("0.2", "1"));
  assert.equal(set(text, "mode", "plan"), text);
});

Deno.test("a new setting is formatted like its neighbours", () => {
  assert.equal(set("{}\n", "mode", "plan"), '{\n  "mode": "plan"\n}\n');
  assert.equal(set('{"a": 1}', "mode", "plan"), '{"a": 1, "mode": "plan"}');
  assert.equal(
    set('{\n    "a": 1 // one\n}\n', "mode", "plan"),
    '{\n    "a": 1, // one\n    "mode": "plan"\n}\n',
  );
  assert.equal(
    set('{\n\t"a": 1, // one\n}\n', "mode", "plan"),
    '{\n\t"a": 1, // one\n\t"mode": "plan",\n}\n',
  );
  assert.equal(
    set('{\r\n  "a": 1\r\n}\r\n', "tool_permission", { bash: "deny" }),
    '{\r\n  "a": 1,\r\n  "tool_permission": {\r\n    "bash": "deny"\r\n  }\r\n}\r\n',
  );
  assert.equal(
    set("{\n  // nothing yet\n}\n", "mode", "plan"),
    '{\n  // nothing yet\n  "mode": "plan"\n}\n',
  );
  assert.equal(set('{ "a": 1 // one\n}', "mode", "x"), '{ "a": 1, // one\n  "mode": "x"\n}');
});

Deno.test("an edit uses the spelling of the file", () => {
  const nested = '{\n  "tools": {\n    "deny": ["a"]\n  }\n}\n';
  assert.equal(set(nested, "tools.deny", ["a", "b"]), nested.replace('["a"]', '["a", "b"]'));
  assert.deepEqual(parseSettings(set(nested, "tools.allow", ["c"]), FILE), {
    tools: { deny: ["a"], allow: ["c"] },
  });
  const flat = '{"tools.deny": ["a"]}';
  assert.equal(set(flat, "tools.deny", ["b"]), '{"tools.deny": ["b"]}');
  assert.deepEqual(Object.keys(parseSettings(set(flat, "tools.allow", []), FILE)), [
    "tools.deny",
    "tools.allow",
  ]);
  assert.deepEqual(
    parseSettings(set('{"tool_permission.read": "ask"}', "tool_permission.bash", "deny"), FILE),
    { "tool_permission.read": "ask", "tool_permission.bash": "deny" },
  );
  assert.deepEqual(parseSettings(set("{}", "tool_permission.bash", "deny"), FILE), {
    tool_permission: { bash: "deny" },
  });
  assert.deepEqual(parseSettings(set('{"modes": {}}', "modes.review.color", "red"), FILE), {
    modes: { review: { color: "red" } },
  });
  assert.deepEqual(parseSettings(set('{"modes.review": {}}', "modes.review.color", "red"), FILE), {
    "modes.review": { color: "red" },
  });
});

Deno.test("of several spellings of a setting, the one that counts is kept", () => {
  const both = '{\n  "tools": {"deny": ["a"]}, // nested\n  "tools.deny": ["b"] // flat\n}\n';
  assert.equal(
    set(both, "tools.deny", ["c"]),
    '{\n  "tools": {}, // nested\n  "tools.deny": ["c"] // flat\n}\n',
  );
  assert.equal(unset(both, "tools.deny"), '{\n  "tools": {} // nested\n  // flat\n}\n');
  const parts = '{"tool_permission": {"bash": "deny"}, "tool_permission.read": "ask"}';
  assert.deepEqual(read(set(parts, "tool_permission", { web: "deny" })), {
    tool_permission: { web: "deny" },
  });
  assert.deepEqual(read(set('{"tools": 5, "mode": "plan"}', "tools.deny", ["a"])), {
    mode: "plan",
    tools: { deny: ["a"] },
  });
});

Deno.test("lists change element by element, so that their comments are kept", () => {
  const text = `{
  "plugins": [
    "svc-core-fs", // files
    "svc-core-exec", // programs
    "mine" // my own
  ]
}
`;
  assert.equal(
    set(text, "plugins", ["svc-core-fs", "mine"]),
    text.replace('    "svc-core-exec", // programs\n', "    // programs\n"),
  );
  assert.equal(
    set(text, "plugins", ["svc-core-fs", "svc-core-exec", "mine", "more"]),
    text.replace('"mine" // my own\n', '"mine", // my own\n    "more"\n'),
  );
  assert.equal(
    set(text, "plugins", ["svc-core-fs", "new", "svc-core-exec", "mine"]),
    text.replace('    "svc-core-exec"', '    "new",\n    "svc-core-exec"'),
  );
});

Deno.test("a removal includes comma and line, and leaves valid JSON", () => {
  const text = '{\n  "a": 1,\n  "mode": "plan",\n  "b": 2\n}\n';
  assert.equal(unset(text, "mode"), '{\n  "a": 1,\n  "b": 2\n}\n');
  assert.equal(unset(text, "b"), '{\n  "a": 1,\n  "mode": "plan"\n}\n');
  assert.equal(unset('{ "a": 1, "b": 2 }', "a"), '{ "b": 2 }');
  assert.equal(unset('{ "a": 1, "b": 2 }', "b"), '{ "a": 1 }');
  assert.equal(unset('{"a": 1}', "a"), "{}");
  assert.equal(unset('{"a": {"b": 1 // c\n}, "d": 2}', "a"), '{// c\n"d": 2}');
  assert.equal(unset(text, "nothing"), text);
});

Deno.test("a name that occurs twice is an error", () => {
  const twice = { name: "SvcError", code: "config_syntax", exit: 2, message: /"deny" twice/ };
  const text = '{"tools": {"deny": [], "deny": ["a"]}}';
  assert.throws(() => set(text, "tools.deny", []), twice);
  assert.throws(() => unset(text, "tools.deny"), twice);
  assert.throws(
    () => set('{"tool_permission": {"bash": "ask", "bash": "deny"}}', "tool_permission", {}),
    { message: /"bash" twice/ },
  );
});

Deno.test("property: comments are kept by any sequence of changes, and each change is read back", () => {
  fc.assert(
    fc.property(document(), fc.array(change(), { maxLength: 12 }), (start, changes) => {
      let text = start.text;
      for (const { name, value } of changes) {
        const before = read(text);
        const key = findKey(name)!;
        const path = [...key.key.split("."), ...key.rest];
        text = value === undefined ? unset(text, name) : set(text, name, value);
        const after = read(text);
        assert.deepEqual(lookUp(after, path), value, `${name} in ${text}`);
        assert.deepEqual(without(after, path), without(before, path), `next to ${name} in ${text}`);
        for (const comment of start.comments) assert.ok(text.includes(comment), comment + text);
      }
      assert.equal(text.includes("\r\n"), start.text.includes("\r\n"));
      if (start.plain) JSON.parse(text); // no comma too many in a file that was plain JSON
    }),
    runs(1000),
  );
});

Deno.test("property: each setting is read back as it was set, in a file of either spelling", () => {
  fc.assert(
    fc.property(
      fc.oneof(...CONFIG_KEYS.map((key) => fc.tuple(fc.constant(key), settingValue(key)))),
      fc.constantFrom("{}", "nested", "flat"),
      ([key, value], spelling) => {
        const [group, name] = key.split(".");
        const start = spelling === "{}" || name === undefined
          ? "{}"
          : JSON.stringify(spelling === "flat" ? { [key]: 0 } : { [group!]: { [name]: 0 } });
        const accepted = acceptNew({ key, rest: [] }, value);
        assert.deepEqual(accepted, value);
        assert.deepEqual(lookUp(read(set(start, key, accepted)), key.split(".")), value);
      },
    ),
    runs(500),
  );
});

/** The settings without one path, and without objects that are empty then. */
function without(settings: Record<string, unknown>, path: string[]): unknown {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(settings)) {
    if (name === path[0] && path.length === 1) continue;
    const inner = typeof value === "object" && value !== null && !Array.isArray(value)
      ? without(
        value as Record<string, unknown>,
        name === path[0] ? path.slice(1) : ["\0"],
      ) as Record<string, unknown>
      : value;
    if (typeof inner === "object" && inner !== null && Object.keys(inner).length === 0) {
      if (!Array.isArray(inner)) continue;
    }
    result[name] = inner;
  }
  return result;
}

function change(): fc.Arbitrary<{ name: string; value: unknown }> {
  const list = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 4 });
  const action = fc.constantFrom("allow", "ask", "deny");
  const to = (name: string, value: fc.Arbitrary<unknown>) =>
    fc.option(value, { nil: undefined }).map((value) => ({ name, value }));
  return fc.oneof(
    to("mode", fc.constantFrom("build", "plan")),
    to("tools.deny", list),
    to("tools.allow", list),
    to("tool_permission.bash", action),
    to("tool_permission.bash_allow", list),
    to(
      "tool_permission",
      fc.dictionary(fc.constantFrom("read", "bash"), action, { noNullPrototype: true }),
    ),
    to("modes.review.tools.deny", list),
    to("modes.review", fc.constant({ color: "red" })),
    to(
      "mcp.servers",
      fc.array(
        fc.constantFrom({ name: "x", command: "y" }, { name: "z", command: "y", args: ["1"] }),
      ),
    ),
    to("plugins", list),
  );
}

/** A file with arbitrary layout, spelling and comments. */
function document(): fc.Arbitrary<{ text: string; comments: string[]; plain: boolean }> {
  const values: Record<string, string[]> = {
    "mode": ['"plan"'],
    "plugins": ['["a", #"b"#, "c"]', '[\n#"a", #\n"b"#\n]', "[#]"],
    "tools": ['{#"deny": ["a"#]#}', "{#}", '{\n  "allow": ["b"], #\n  "deny": []#\n}'],
    "tools.deny": ['["x"#]'],
    "tool_permission": ['{"bash": "ask"#, "read": "deny"}', '{#\n#"bash.x": "ask"\n}'],
    "tool_permission.bash": ['"deny"'],
    "modes": [
      '{"review": {"tools.deny": [#"q"], "color": "blue"}}',
      '{"review.tools": {"allow": ["b"]}}',
    ],
    "modes.review": ['{"tools": {"deny": ["r"]}#}'],
    "other": ['{"x": [1, {"y": null}]}'],
  };
  const property = fc.constantFrom(...Object.keys(values)).chain((name) =>
    fc.record({
      name: fc.constant(name),
      value: fc.constantFrom(...values[name]!),
      before: fc.constantFrom("", " ", "\n  ", "\n  # ", " # "),
      after: fc.constantFrom("", " ", "#", " #\n", "\n"),
      end: fc.constantFrom("", " #", " "),
    })
  );
  return fc.record({
    properties: fc.uniqueArray(property, { selector: (one) => one.name, maxLength: 6 }),
    comments: fc.constantFrom("none", "line", "block"),
    trailing: fc.boolean(),
    eol: fc.constantFrom("\n", "\r\n"),
    head: fc.constantFrom("", "#\n", "\n"),
    tail: fc.constantFrom("", "\n", "\n#\n"),
  }).map(({ properties, comments: kind, trailing, eol, head, tail }) => {
    const body = properties.map(({ name, value, before, after, end }, index) => {
      const comma = index < properties.length - 1 || (trailing && kind !== "none") ? "," : "";
      return `${before}${JSON.stringify(name)}: ${value}${after}${comma}${end}`;
    }).join("");
    const comments: string[] = [];
    const text = `${head}{${body}\n}${tail}`.replaceAll("#", () => {
      if (kind === "none") return "";
      const comment = `comment ${comments.length + 1};`;
      comments.push(comment);
      return kind === "line" ? `// ${comment}\n` : `/* ${comment} */`;
    });
    return {
      text: text.replaceAll("\n", eol),
      comments,
      plain: kind === "none",
    };
  });
}
