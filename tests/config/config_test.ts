import assert from "node:assert/strict";
import fc from "fast-check";
import type { Config, ConfigKey } from "../../src/config/config.ts";
import type { ConfigValues } from "../../src/config/keys.ts";
import { isObject } from "../../src/platform/files.ts";
import { BUNDLED_PLUGINS, CONFIG_KEYS, settingOf, SETTINGS } from "../../src/config/keys.ts";
import type { ConfigView } from "../../src/plugins/api.ts";
import { scratch } from "./support.ts";
import { settingValue } from "./values.ts";
import { runs } from "../support/random.ts";

Deno.test("without files every setting has its default, which its schema accepts", () => {
  using temp = scratch();
  const config = temp.open();
  for (const key of CONFIG_KEYS) {
    assert.deepEqual(config.get(key), settingOf(key).default, key);
    assert.ok(settingOf(key).schema().safeParse(settingOf(key).default).success, key);
    assert.equal(config.origin(key), "default");
  }
  assert.deepEqual(config.warnings, []);
});

Deno.test("the defaults are those of the specification [2.13, 8]", () => {
  using temp = scratch();
  const config = temp.open();
  const defaults: Partial<ConfigValues> = {
    max_tokens: 8192,
    temperature: 0.7,
    reasoning: "auto",
    stream_retries: 2,
    stream_retry_delay: 0.5,
    tool_max_result_chars: 100_000,
    session_tool_max_chars: 0,
    print_max_chars: 4000,
    compact_keep: 4,
    noise_tools: ["web_fetch", "open", "fetch_page"],
    plugins: [...BUNDLED_PLUGINS],
    "mcp.servers": [],
    "mcp_server.allow_ask": true,
    ask_policy: { permission: "auto", direction: "human" },
    confirm_timeout: 0,
    connect_check: true,
    delegate_echo: true,
    focus_on_delegate: "off",
    prompt_role: false,
    "jobs.tick": 15,
    "jobs.concurrency": 1,
    "report.webhook": "",
    project_instructions: "AGENTS.md",
    project_instructions_max_chars: 20_000,
  };
  for (const [key, value] of Object.entries(defaults)) {
    assert.deepEqual(config.get(key as ConfigKey), value, key);
  }
  const actions = config.get("tool_permission");
  assert.deepEqual(actions, {
    ...{ read: "allow", list: "allow", edit: "allow", web: "allow", catalog: "allow" },
    ...{ delegate: "allow", ask: "allow", handoff: "allow", plan: "allow" },
    ...{ bash: "ask", mcp: "ask", vcs: "ask", bash_allow: [] },
  });
});

Deno.test("reasoning is off, on, auto or an effort, as a text or a boolean [2.13]", () => {
  using temp = scratch();
  const config = temp.open();
  for (const value of [false, "off", true, "on", "auto", "low", "medium", "high"] as const) {
    config.override("reasoning", value);
    assert.equal(config.get("reasoning"), value);
  }
  assert.throws(() => config.override("reasoning", "most" as "high"), /reasoning/);
});

Deno.test("settings are merged from default, global, local and override, low to high; objects merge per key [2.13]", () => {
  using temp = scratch({
    global: { mode: "plan", "tools.deny": ["a"], tool_permission: { web: "deny", bash: "allow" } },
    local: { tools: { deny: ["b"] }, "tool_permission.bash": "deny" },
  });
  const config = temp.open();
  config.override("tool_permission", { vcs: "allow" });
  assert.equal(config.get("mode"), "plan");
  assert.deepEqual(config.get("tools.deny"), ["b"]);
  assert.deepEqual(config.get("tool_permission"), {
    ...SETTINGS.tool_permission.default,
    web: "deny",
    bash: "deny",
    vcs: "allow",
  });
  assert.equal(config.origin("mode"), "global");
  assert.equal(config.origin("tools.deny"), "local");
  assert.equal(config.origin("tool_permission"), "override");
  assert.equal(config.origin("tool_permission.vcs"), "override");
  assert.equal(config.origin("tool_permission.bash"), "local");
  assert.equal(config.origin("tool_permission.web"), "global");
  assert.equal(config.origin("tool_permission.read"), "default");
  assert.equal(config.getFrom("global", "tool_permission.bash"), "allow");
  assert.equal(config.getFrom("local", "mode"), undefined);
});

Deno.test("property: each setting has the value of the highest layer that sets it [2.13]", () => {
  const layer = fc.dictionary(fc.constantFrom(...CONFIG_KEYS), fc.constant(0), {
    maxKeys: 6,
    noNullPrototype: true,
  }).chain((keys) =>
    fc.record(
      Object.fromEntries(
        Object.keys(keys).map((key) => [key, settingValue(key as ConfigKey)]),
      ),
      { noNullPrototype: true },
    )
  );
  const flat = fc.infiniteStream(fc.boolean());
  fc.assert(
    fc.property(layer, layer, layer, flat, (global, local, override, coin) => {
      using temp = scratch({ global: spell(global, coin), local: spell(local, coin) });
      const config = temp.open();
      for (const [key, value] of Object.entries(override)) config.override(key, value);
      const defaults = Object.fromEntries(CONFIG_KEYS.map((key) => [key, settingOf(key).default]));
      const layers = { default: defaults, global, local, override };
      const model = new Map<string, { value: unknown; origin: string }>();
      for (const [origin, values] of Object.entries(layers)) {
        for (const [path, value] of leaves(values)) model.set(path, { value, origin });
      }
      for (const [path, { value, origin }] of model) {
        assert.deepEqual(config.get(path), value, path);
        assert.equal(config.origin(path), origin, path);
      }
      const effective = Object.fromEntries(CONFIG_KEYS.map((key) => [key, config.get(key)]));
      assert.deepEqual(new Set(leaves(effective).keys()), new Set(model.keys()));
    }),
    runs(200),
  );
});

Deno.test("flat and nested spellings name the same setting, mixed in one file too; flat wins [2.13]", () => {
  using temp = scratch({
    local: {
      "tools.deny": ["flat"],
      tools: { deny: ["nested"], allow: ["x"] },
      dev: { test_cmd: "make test" },
      "modes.review": { "tools.deny": ["file_write"] },
      modes: { review: { color: "red", tools: { allow: ["file_read"] } } },
    },
  });
  const config = temp.open();
  assert.deepEqual(config.get("tools.deny"), ["flat"]);
  assert.deepEqual(config.get("tools.allow"), ["x"]);
  assert.equal(config.get("dev.test_cmd"), "make test");
  assert.deepEqual(config.get("modes.review"), {
    color: "red",
    tools: { allow: ["file_read"], deny: ["file_write"] },
  });
  assert.deepEqual(config.warnings, []);
});

Deno.test("an unknown key is a warning that names the file and the nearest known key [2.13]", () => {
  using temp = scratch({
    local: {
      "$schema": "./config.schema.json",
      max_token: 5,
      "tools.dney": ["x"],
      deny: ["x"],
      "max-tokens": 5,
      qqq: 1,
      api_key: "sk-secret",
      modes: { review: { tool_permision: {} } },
      tool_permission: { my_category: "deny" },
      hooks: { SessionStart: [], Stopp: [], Worktree: [] },
    },
  });
  const { warnings } = temp.open();
  const events = "The events: turn_start, tool_call, tool_result, turn_end, ask, compaction.";
  assert.deepEqual(warnings.map((warning) => warning.replace(`${temp.local}: `, "")), [
    'there is no setting "max_token"; did you mean "max_tokens"?',
    'there is no setting "deny"; did you mean "tools.deny"?',
    'there is no setting "max-tokens"; did you mean "max_tokens"?',
    'there is no setting "qqq"',
    '"api_key" is ignored. API keys are never settings. Store the key of a provider with: svc connect',
    'there is no setting "modes.review.tool_permision"; did you mean "tool_permission"?',
    `"hooks" has no event "SessionStart". Did you mean "turn_start"? ${events}`,
    `"hooks" has no event "Stopp". Did you mean "Stop"? ${events}`,
    `"hooks" has no event "Worktree". ${events}`,
    'there is no setting "tools.dney"; did you mean "tools.deny"?',
  ]);
  assert.ok(warnings.every((warning) => warning.startsWith(temp.local)));
});

Deno.test("a wrong value names the key, the file, what was expected and what was found [2.13]", () => {
  const cases: [object, string][] = [
    [{ max_tokens: "many" }, '"max_tokens" must be a number, not "many".'],
    [{ max_tokens: 1.5 }, '"max_tokens" must be a whole number, not 1.5.'],
    [{ max_tokens: -1 }, '"max_tokens" must be 0 or more, not -1.'],
    [{ idle_timeout: 0 }, '"idle_timeout" must be more than 0, not 0.'],
    [{ model: null }, '"model" must be a text, not null.'],
    [{ mode: "" }, '"mode" must be a text that is not empty, not an empty text.'],
    [{ show_thinking: "on" }, '"show_thinking" must be true or false, not "on".'],
    [{ "tools.deny": "bash" }, '"tools.deny" must be a list, not "bash".'],
    [{ tools: ["bash"] }, '"tools" must be an object, not a list.'],
    [{ tools: 5 }, '"tools" must be an object, not a single value.'],
    [
      { "tool_permission.bash": "yes" },
      '"tool_permission.bash" must be "allow", "ask" or "deny", not "yes".',
    ],
    [
      { tool_permission: { bash_allow: ["ls", 5] } },
      '"tool_permission.bash_allow[1]" must be a text, not 5.',
    ],
    [
      { modes: { r: { tool_permission: 5 } } },
      '"modes.r.tool_permission" must be an object, not 5.',
    ],
    [{ "mcp.servers": [{ command: "x" }] }, '"mcp.servers[0].name" must be a text, not missing.'],
    [
      { "mcp.servers": [{ name: "x", transport: "http", command: "y" }] },
      '"mcp.servers[0]" must have a command, or a url and the transport http.',
    ],
    [{ plugins: { other: 1 } }, '"plugins" must be a list, not an object.'],
  ];
  for (const [local, message] of cases) {
    using temp = scratch({ local });
    assert.throws(() => temp.open(), {
      name: "SvcError",
      code: "config_value",
      exit: 2,
      message: `${temp.local}: ${message}`,
    });
    using elsewhere = scratch({ global: local });
    assert.throws(() => elsewhere.open(), { message: `${elsewhere.global}: ${message}` });
  }
});

Deno.test("a misspelt field next to a wrong value is in the hint", () => {
  using temp = scratch({ local: { "mcp.servers": [{ name: "x", comand: "y" }] } });
  assert.throws(() => temp.open(), {
    message: /"mcp\.servers\[0\]" must have a command/,
    hint: 'In the same place, there is no setting "mcp.servers[0].comand"; did you mean "command"?',
  });
});

Deno.test("an error does not show possible secrets", () => {
  using temp = scratch({
    local: { "mcp.servers": [{ name: "x", command: "y", env: "TOKEN=hunter2" }] },
  });
  assert.throws(() => temp.open(), (error: Error) => {
    assert.match(error.message, /mcp\.servers\[0\]\.env/);
    assert.doesNotMatch(error.message, /hunter2/);
    return true;
  });
});

Deno.test("an unknown focus_on_delegate counts as off, with a warning [2.13]", () => {
  using temp = scratch({
    global: { focus_on_delegate: "ask" },
    local: { focus_on_delegate: "always" },
  });
  const config = temp.open();
  assert.equal(config.get("focus_on_delegate"), "off");
  assert.match(config.warnings[0]!, /"focus_on_delegate" must be .*; it counts as "off"/);
  assert.throws(() => config.override("focus_on_delegate", "always"), { code: "config_value" });
});

Deno.test("reserved names of JavaScript are ignored", async () => {
  for (const comment of ["", "// by hand\n"]) {
    using temp = scratch({
      local: `${comment}{
        "__proto__": {"polluted": 1, "mode": "plan"},
        "constructor": {"prototype": {"polluted": 1}},
        "__proto__.polluted": 1,
        "tool_permission": {"__proto__": {"bash": "allow"}, "constructor": "allow", "web": "deny"},
        "tool_permission.__proto__.bash": "allow",
        "modes": {"__proto__": {"color": "red"}, "prototype": {"color": "red"}},
        "mcp.servers": [{"name": "x", "command": "y", "env": {"__proto__": "z"}}]
      }`,
    });
    const config = temp.open();
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
    assert.equal(config.get("mode"), "build");
    assert.deepEqual(config.get("modes"), {});
    const permission = config.get("tool_permission");
    assert.deepEqual(permission, { ...SETTINGS.tool_permission.default, web: "deny" });
    assert.equal(Object.getPrototypeOf(permission), Object.prototype);
    assert.equal(Object.getPrototypeOf(config.get("mcp.servers")[0]!.env), Object.prototype);
    assert.ok(config.warnings.length >= 6);
    assert.ok(config.warnings.every((warning) => warning.includes("is ignored")));
    for (const name of ["__proto__", "constructor", "modes.__proto__.color", "toString", ""]) {
      assert.equal(config.get(name), undefined, name);
      assert.equal(config.origin(name), "default");
      assert.throws(() => config.override(name, { polluted: 1 }), { code: "config_key" });
      await assert.rejects(config.set("local", name, { polluted: 1 }), { code: "config_key" });
    }
    assert.throws(
      () => config.override("modes", JSON.parse('{"__proto__": {"color": "red"}}')),
      { code: "config_key", message: /modes\.__proto__/ },
    );
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
  }
});

Deno.test("overrides of settings are checked, never written, and kept by a reload [2.13]", () => {
  using temp = scratch({ local: { mode: "plan" } });
  const config = temp.open();
  config.override("mode", "build");
  config.override("tool_permission.bash", "allow");
  config.override("tool_permission.web", "deny");
  assert.throws(() => config.override("max_tokens", "x"), {
    code: "config_value",
    exit: 2,
    message: '"max_tokens" must be a number, not "x".',
  });
  assert.throws(() => config.override("max_token", 1), { code: "config_key", hint: /max_tokens/ });
  temp.write("local", { mode: "plan", max_tokens: 7 });
  config.reload();
  assert.equal(config.get("mode"), "build");
  assert.equal(config.get("max_tokens"), 7);
  assert.equal(config.get("tool_permission.bash"), "allow");
  assert.equal(config.get("tool_permission.web"), "deny");
  assert.equal(temp.read("local"), '{"mode":"plan","max_tokens":7}');
});

Deno.test("overrides of one configuration do not reach another, nor do changes of returned values", () => {
  using temp = scratch({ local: { "tools.deny": ["a"] } });
  const [config, run] = [temp.open(), temp.open()];
  config.override("temperature", 0);
  run.override("mode", "plan");
  run.override("tool_permission.bash", "allow");
  run.get("tools.deny").push("b");
  run.get("plugins").length = 0;
  run.get("tool_permission").read = "deny";
  assert.equal(config.get("temperature"), 0);
  assert.notEqual(run.get("temperature"), 0);
  assert.equal(run.get("mode"), "plan");
  assert.equal(config.get("mode"), "build");
  for (const one of [config, run, temp.open()]) {
    assert.deepEqual(one.get("tools.deny"), ["a"]);
    assert.deepEqual(one.get("plugins"), BUNDLED_PLUGINS);
    assert.equal(one.get("tool_permission.read"), "allow");
  }
  assert.equal(config.get("tool_permission.bash"), "ask");
});

Deno.test("a failed reload changes nothing", () => {
  using temp = scratch({ local: { mode: "plan" } });
  const config = temp.open();
  temp.write("global", { model: "m" });
  temp.write("local", { mode: 5 });
  assert.throws(() => config.reload(), { code: "config_value" });
  assert.equal(config.get("mode"), "plan");
  assert.equal(config.get("model"), "");
});

Deno.test("setting and unsetting take effect at once, in their scope [2.13]", async () => {
  using temp = scratch({ local: "{}" });
  const config = temp.open();
  await config.set("global", "model", "big");
  await config.set("local", "model", "small");
  await config.set("local", "modes.review.system_prompt", "Be brief.");
  await config.set("local", "tool_permission.bash_allow", ["git status"]);
  assert.equal(config.get("model"), "small");
  assert.equal(config.get("modes.review.system_prompt"), "Be brief.");
  assert.deepEqual(config.get("modes"), { review: { system_prompt: "Be brief." } });
  assert.deepEqual(config.get("tool_permission.bash_allow"), ["git status"]);
  assert.equal(await config.unset("local", "model"), true);
  assert.equal(await config.unset("local", "model"), false);
  assert.equal(config.get("model"), "big");
  assert.equal(await config.unset("local", "modes.review.system_prompt"), true);
  assert.equal(config.get("modes.review.system_prompt"), undefined);
});

Deno.test("the class implements the view of plugins", () => {
  using temp = scratch({ local: { plugin_of_mine: 1 } });
  const view: ConfigView = temp.open() satisfies Config;
  assert.equal(view.get("max_tokens"), 8192);
  assert.equal(view.get("plugin_of_mine"), undefined);
});

/** A layer in one of the spellings of a file. */
function spell(values: Record<string, unknown>, coin: fc.Stream<boolean>): object {
  const file: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(values)) {
    const [group, name] = key.split(".");
    const flat = coin.next().value;
    if (name !== undefined && !flat) {
      file[group!] = { ...file[group!] as object, [name]: value };
    } else if (isObject(value) && flat) {
      file[key] = {};
      for (const [field, inner] of Object.entries(value)) file[`${key}.${field}`] = inner;
    } else {
      file[key] = value;
    }
  }
  return file;
}

/** Every value that is not an object with fields, by its dotted path. */
function leaves(values: object, prefix = ""): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const [name, value] of Object.entries(values)) {
    if (!isObject(value)) found.set(prefix + name, value);
    else for (const [path, leaf] of leaves(value, `${prefix}${name}.`)) found.set(path, leaf);
  }
  return found;
}

Deno.test("a plugin cannot replace a method of the configuration", () => {
  using temp = scratch();
  const config = temp.open();
  assert.throws(() => Object.assign(config, { get: () => "mine" }), TypeError);
  assert.equal(config.get("max_tokens"), 8192);
});

Deno.test("the price of a model is set and removed, whatever dots are in its name", async () => {
  using it = scratch();
  const model = "openai/gpt-4.1";
  for (const text of ["{}", `{"prices": {"${model}": {"in": 5}}}`, `{"prices.${model}.in": 5}`]) {
    it.write("local", text);
    const config = it.open();
    await config.set("local", `prices.${model}.out`, 8);
    await config.set("local", `prices.${model}.in`, 2);
    assert.deepEqual(config.get("prices"), { [model]: { in: 2, out: 8 } });
    await config.set("local", "prices", { [model]: { in: 3, out: 8, cached: 0.5 } });
    assert.deepEqual(it.open().get("prices"), { [model]: { in: 3, out: 8, cached: 0.5 } });
    assert.equal(config.get(`prices.${model}.cached`), 0.5);
    await config.unset("local", `prices.${model}`);
    assert.deepEqual(it.open().get("prices"), {});
  }
});
