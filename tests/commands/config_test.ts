import assert from "node:assert/strict";
import { dirname } from "node:path";
import { main } from "../../src/cli/main.ts";
import { configJsonSchema } from "../../src/config/json_schema.ts";
import { CONFIG_KEYS, settingOf } from "../../src/config/keys.ts";
import { testIo } from "../support/io.ts";
import { type Scratch, scratch } from "../config/support.ts";

interface Outcome {
  code: number;
  out: string;
  notes: string[];
}

async function config(place: Scratch, ...args: string[]): Promise<Outcome> {
  const io = testIo({ home: dirname(dirname(place.paths.user)), cwd: place.paths.worktree });
  const code = await main(["config", ...args], io);
  return { code, out: io.printed, notes: io.notes };
}

Deno.test("config get prints all settings, the value of one, or an object of several, as JSON [4.4]", async () => {
  using place = scratch({ global: { model: "m" }, local: { tools: { deny: ["x"] } } });
  const all = await config(place, "get");
  const defaults = CONFIG_KEYS.map((key) => [key, settingOf(key).default]);
  const effective = { ...Object.fromEntries(defaults), model: "m", "tools.deny": ["x"] };
  assert.deepEqual(JSON.parse(all.out), effective);
  assert.deepEqual([all.code, all.notes], [0, []]);
  assert.equal((await config(place, "get", "model")).out, '"m"\n');
  assert.equal((await config(place, "get", "tool_permission.bash")).out, '"ask"\n');
  assert.deepEqual(JSON.parse((await config(place, "get", "model", "mode")).out), {
    model: "m",
    mode: "build",
  });
  assert.deepEqual(JSON.parse((await config(place, "get", "tools")).out), {
    "tools.allow": [],
    "tools.deny": ["x"],
  });
});

Deno.test("--show-origin adds the file, or default, of each value and of each field of an object [4.4]", async () => {
  using place = scratch({
    global: { model: "m" },
    local: { ask_policy: { permission: "deny" }, mode: "plan" },
  });
  const read = async (...args: string[]) => JSON.parse((await config(place, "get", ...args)).out);
  assert.deepEqual(await read("model", "--show-origin"), { value: "m", origin: place.global });
  assert.deepEqual(await read("mode", "max_tokens", "ask_policy", "modes", "--show-origin"), {
    mode: { value: "plan", origin: place.local },
    max_tokens: { value: 8192, origin: "default" },
    ask_policy: {
      value: { permission: "deny", direction: "human" },
      origin: { permission: place.local, direction: "default" },
    },
    modes: { value: {}, origin: "default" },
  });
});

Deno.test("--changed leaves out what no file sets, also of an object", async () => {
  using place = scratch({
    global: { model: "m", tool_permission: { web: "ask" } },
    local: { ask_policy: { permission: "deny" } },
  });
  const { code, out } = await config(place, "get", "--changed");
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(out), {
    model: "m",
    tool_permission: { web: "ask" },
    ask_policy: { permission: "deny" },
  });
  const local = await config(place, "get", "--changed", "--local");
  assert.deepEqual(JSON.parse(local.out), { ask_policy: { permission: "deny" } });
  assert.deepEqual(await config(place, "get", "--changed", "mode"), {
    code: 1,
    out: "",
    notes: ["mode is not set"],
  });
});

Deno.test("config get with a scope prints the values of that file, and exits 1 for a key that is not set [4.4]", async () => {
  using place = scratch({ global: { model: "m" }, local: { ask_policy: { permission: "deny" } } });
  assert.deepEqual(JSON.parse((await config(place, "get", "--global")).out), { model: "m" });
  assert.deepEqual(JSON.parse((await config(place, "get", "--local", "ask_policy")).out), {
    permission: "deny",
  });
  const missing = await config(place, "get", "--local", "model");
  assert.deepEqual(missing, { code: 1, out: "", notes: [`model is not set in ${place.local}`] });
  const free = await config(place, "get", "modes.review");
  assert.deepEqual(free, { code: 1, out: "", notes: ["modes.review is not set"] });
  const origin = await config(place, "get", "--global", "model", "--show-origin");
  assert.deepEqual(JSON.parse(origin.out), { value: "m", origin: place.global });
});

Deno.test("config set takes JSON if it reads as JSON, else a text; local is the default scope [4.4]", async () => {
  using place = scratch({ global: "// mine\n{}\n" });
  assert.equal((await config(place, "set", "max_tokens", "100")).code, 0);
  assert.equal((await config(place, "set", "tools.deny", '["a", "b"]', "--local")).code, 0);
  const set = await config(place, "set", "model", "gpt-x", "--global");
  assert.deepEqual(set, { code: 0, out: "", notes: [`model is set in ${place.global}`] });
  assert.deepEqual(JSON.parse(place.read("local")), { max_tokens: 100, "tools.deny": ["a", "b"] });
  assert.equal(place.read("global"), '// mine\n{\n  "model": "gpt-x"\n}\n');
});

Deno.test("set rejects an unknown mode", async () => {
  using place = scratch({ global: {}, local: { modes: { review: {} } } });
  const wrong = await config(place, "set", "mode", "plna");
  assert.deepEqual([wrong.code, wrong.notes], [2, [
    'svc: There is no mode "plna".',
    'hint: Did you mean "plan"?',
  ]]);
  assert.equal((await config(place, "get", "mode")).out, '"build"\n');
  for (const mode of ["plan", "review"]) {
    assert.equal((await config(place, "set", "mode", mode)).code, 0);
    assert.equal((await config(place, "get", "mode")).out, `"${mode}"\n`);
  }
});

Deno.test("config unset removes from one scope, and notes when there was nothing to remove [4.4]", async () => {
  using place = scratch({ global: { mode: "plan" }, local: { mode: "plan", modle: "x" } });
  assert.deepEqual((await config(place, "unset", "modle")).notes, [
    `modle is removed from ${place.local}`,
  ]);
  assert.equal((await config(place, "unset", "mode", "--global")).code, 0);
  const again = await config(place, "unset", "mode", "--global");
  assert.deepEqual(again, { code: 0, out: "", notes: [`mode was not set in ${place.global}`] });
  assert.equal(place.read("local"), '{"mode":"plan"}');
  const unknown = await config(place, "unset", "max_token");
  assert.equal(unknown.code, 2);
  assert.match(unknown.notes.join("\n"), /no setting "max_token".*\n.*"max_tokens"/);
});

Deno.test("wrong usage of config exits 2 with one sentence and a hint, and changes nothing [4.4]", async () => {
  using place = scratch({ local: "{}" });
  const cases: [string[], RegExp][] = [
    [["set", "max_tokens", "many"], /"max_tokens" must be a number, not "many"/],
    [["set", "max_token", "1"], /"max_token".*\n.*"max_tokens"/],
    [["set", "api_key", "sk-secret"], /never settings.*\n.*svc connect/],
    [["get", "max_token"], /"max_token".*\n.*"max_tokens"/],
    [["get", "--global", "--local"], /exclude each other/],
    [["set", "mode"], /./],
    [["frobnicate"], /frobnicate/],
  ];
  for (const [args, message] of cases) {
    const { code, out, notes } = await config(place, ...args);
    assert.equal(code, 2, args.join(" "));
    assert.equal(out, "");
    assert.match(notes.join("\n"), message);
    assert.doesNotMatch(notes.join("\n"), /sk-secret/);
  }
  assert.equal(place.read("local"), "{}");
});

Deno.test("set repairs a file with several wrong values, and warns about the others", async () => {
  using place = scratch({ local: { mode: 5, max_tokens: "x" } });
  assert.equal((await config(place, "get", "mode")).code, 2);
  const { code, notes } = await config(place, "set", "mode", "plan");
  assert.equal(code, 0);
  assert.match(notes.at(-1)!, /^warning: .*"max_tokens" must be a number/);
  assert.deepEqual((await config(place, "unset", "max_tokens")).code, 0);
  assert.equal((await config(place, "get", "mode")).out, '"plan"\n');
});

Deno.test("config reload checks the files and lists them with their warnings [4.4]", async () => {
  using place = scratch({ local: { modle: "x" } });
  const { code, out } = await config(place, "reload");
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(out), {
    files: [place.local],
    warnings: [`${place.local}: there is no setting "modle"; did you mean "model"?`],
  });
  place.write("global", '{"mode": }');
  const broken = await config(place, "reload");
  assert.equal(broken.code, 2);
  assert.ok(broken.notes[0]!.includes(`${place.global} is not valid JSON`));
  assert.match(broken.notes[0]!, /line 1, column 10/);
});

Deno.test("schema prints the JSON Schema; --path names another worktree", async () => {
  using place = scratch({ local: { model: "here" } });
  using other = scratch({ local: { model: "there" } });
  assert.deepEqual(JSON.parse((await config(place, "schema")).out), configJsonSchema());
  const args = ["get", "model", "--path", other.paths.worktree];
  assert.equal((await config(place, ...args)).out, '"there"\n');
});

Deno.test("a secret setting is used and never shown", async () => {
  using place = scratch({});
  const set = await config(place, "set", "report.secret", "hush-hush", "--global");
  assert.equal(set.code, 0);
  for (
    const args of [
      ["get"],
      ["get", "report"],
      ["get", "report.secret"],
      ["get", "report.secret", "--show-origin"],
      ["get", "report.secret", "--global"],
    ]
  ) {
    const { code, out, notes } = await config(place, ...args);
    assert.equal(code, 0);
    assert.match(out, /\(hidden\)/);
    assert.doesNotMatch(JSON.stringify([out, notes]), /hush/);
  }
});
