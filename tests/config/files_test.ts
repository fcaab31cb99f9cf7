import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { setInFile, unsetInFile } from "../../src/config/edit.ts";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { scratch } from "./support.ts";

Deno.test("comments and trailing commas are read, and so is a byte order mark", () => {
  using temp = scratch({
    global: '\uFEFF{"model": "m"}',
    local: '\uFEFF// mine\n{\n  /* careful */ "mode": "plan", // really\n}\n',
  });
  assert.equal(temp.open().get("mode"), "plan");
  assert.equal(temp.open().get("model"), "m");
});

Deno.test("the error for an invalid file names file, line and column; the file is not changed", async () => {
  const cases: [string, string][] = [
    ['{\n  "mode": "plan"\n  "model": "m"\n}\n', "a comma is missing at line 3, column 3"],
    ['{"mode": plan}', "a word that needs double quotes at line 1, column 10"],
    ['{\r\n"mode": "plan"', "a closing } is missing at line 2, column 15"],
    ['{"mode": "plan', "a text that does not end at line 1, column 10"],
    ['{"mode": "plan"} {}', "there is text after the closing } at line 1, column 18"],
    ["{mode: 1}", "a word that needs double quotes at line 1, column 2"],
    ['{"mode": "plan",, }', "a name in double quotes is missing at line 1, column 17"],
    ["{ /* open", "a comment that does not end at line 1, column 3"],
    ["", "the file is empty at line 1, column 1"],
    [" \n", "the file is empty at line 2, column 1"],
  ];
  for (const [text, problem] of cases) {
    using temp = scratch({ local: text });
    const error = {
      name: "SvcError",
      code: "config_syntax",
      exit: 2,
      message: `${temp.local} is not valid JSON: ${problem}.`,
    };
    assert.throws(() => temp.open(), error);
    await assert.rejects(setInFile(temp.local, "mode", "build"), error);
    await assert.rejects(unsetInFile(temp.local, "mode"), error);
    assert.equal(temp.read("local"), text);
  }
  for (const text of ["[]", "null", '// a\n"x"']) {
    using temp = scratch({ global: text });
    const error = {
      code: "config_syntax",
      exit: 2,
      message: /must hold an object of settings: line/,
    };
    assert.throws(() => temp.open(), error);
    await assert.rejects(setInFile(temp.global, "mode", "build"), error);
    assert.equal(temp.read("global"), text);
  }
});

Deno.test("a file that cannot be read is an error, not an empty file", async () => {
  const cases: [(file: string) => void, RegExp][] = [
    [(file) => Deno.mkdirSync(file), /is not a regular file/],
    [(file) => Deno.symlinkSync("/dev/zero", file), /is not a regular file/],
    [(file) => Deno.symlinkSync("nowhere.json", file), /is a link to a file that does not exist/],
    [(file) => Deno.symlinkSync("config.json", file), /cannot be read|does not exist/],
    [(file) => Deno.writeFileSync(file, new Uint8Array([123, 255, 125])), /is not UTF-8 text/],
  ];
  for (const [make, message] of cases) {
    using temp = scratch();
    make(temp.local);
    const error = { name: "SvcError", code: "config_file", exit: 2, message };
    assert.throws(() => temp.open(), error);
    await assert.rejects(setInFile(temp.local, "mode", "plan"), error);
  }
});

Deno.test("a missing file is created, with its folder, and has only the setting", async () => {
  using temp = scratch();
  await setInFile(temp.global, "provider", "openai");
  assert.equal(temp.read("global"), '{\n  "provider": "openai"\n}\n');
  using other = scratch();
  assert.equal(await unsetInFile(other.global, "provider"), false);
  assert.throws(() => Deno.statSync(other.paths.user), Deno.errors.NotFound);
});

Deno.test("the target of a link is written; mode and byte order mark are kept", async () => {
  using temp = scratch({ local: "{}" });
  const target = join(dirname(temp.paths.user), "dotfiles.json");
  Deno.mkdirSync(temp.paths.user, { recursive: true });
  Deno.writeTextFileSync(target, '\uFEFF{ "model": "m" } // mine\n');
  Deno.symlinkSync("../dotfiles.json", temp.global);
  for (const mode of [0o600, 0o666]) {
    Deno.chmodSync(target, mode);
    await setInFile(temp.global, "mode", mode === 0o600 ? "plan" : "build");
    assert.equal(Deno.statSync(target).mode! & 0o777, mode);
  }
  assert.ok(Deno.lstatSync(temp.global).isSymlink);
  assert.equal(
    Deno.readTextFileSync(target),
    '\uFEFF{ "model": "m", "mode": "build" } // mine\n',
  );
});

Deno.test("a rejected change writes nothing", async () => {
  using temp = scratch({ local: '{"mode": "plan"}' });
  const before = Deno.statSync(temp.local).ino;
  const refused: [string, unknown, RegExp, RegExp][] = [
    ["max_tokens", "many", /"max_tokens" must be a number, not "many"/, /^$/],
    [
      "tool_permission.bash",
      "maybe",
      /"tool_permission.bash" must be "allow", "ask" or "deny"/,
      /^$/,
    ],
    ["tool_permission.bash_allow", "ls", /"tool_permission.bash_allow" must be a list/, /^$/],
    ["focus_on_delegate", "always", /must be "off", "ask" or "on"/, /^$/],
    ["max_token", 1, /There is no setting "max_token"/, /Did you mean "max_tokens"/],
    ["qqq", "x", /There is no setting "qqq"/, /svc config get/],
    ["tools.deny.x", "x", /There is no setting "tools.deny.x"/, /./],
    ["modes.review.colr", "red", /There is no setting "modes.review.colr"/, /color/],
    ["modes", { review: { colr: "red" } }, /There is no setting "modes.review.colr"/, /color/],
    ["hooks", { SessionStart: [] }, /^"hooks" has no event "SessionStart"\.$/, /turn_start/],
    ["hooks.turn_stat", [], /^"hooks" has no event "turn_stat"\.$/, /^Did you mean "turn_start"/],
    ["tools", { deny: [] }, /"tools" is a group/, /tools\.allow, tools\.deny/],
    ["plugins.enabled", ["a"], /"plugins.enabled" is an old setting/, /"plugins"/],
    ["api_key", "sk-secret", /^API keys are never settings\.$/, /svc connect/],
    ["openai.api-key", "sk-secret", /^API keys are never settings\.$/, /svc connect/],
    ["model", undefined, /"model" must be a text, not missing/, /^$/],
  ];
  for (const [key, value, message, hint] of refused) {
    await assert.rejects(setInFile(temp.local, key, value), { exit: 2, message, hint }, key);
  }
  assert.equal(temp.read("local"), '{"mode": "plan"}');
  assert.equal(Deno.statSync(temp.local).ino, before);
});

Deno.test("set and unset work on a file with other wrong settings", async () => {
  using temp = scratch({ local: '{"mode": 5, "max_tokens": "x", "tools": 3, "modle": "m"}' });
  assert.throws(() => temp.open(), { code: "config_value" });
  await setInFile(temp.local, "mode", "plan");
  assert.throws(() => temp.open(), { message: /max_tokens|tools/ });
  assert.equal(await unsetInFile(temp.local, "max_tokens"), true);
  assert.equal(await unsetInFile(temp.local, "tools"), true);
  assert.equal(await unsetInFile(temp.local, "modle"), true);
  assert.equal(temp.read("local"), '{"mode": "plan"}');
  assert.deepEqual(temp.open().warnings, []);
});

Deno.test("a change without effect does not write the file", async () => {
  using temp = scratch({ local: '{"mode": "plan"} // as it is\n' });
  const { ino } = Deno.statSync(temp.local);
  await setInFile(temp.local, "mode", "plan");
  assert.equal(Deno.statSync(temp.local).ino, ino);
});

Deno.test("concurrent changes are all kept", async () => {
  using temp = scratch();
  const flags = CONFIG_KEYS.filter((key) => typeof temp.open().get(key) === "boolean");
  const alias = join(dirname(temp.local), "alias.json");
  await setInFile(temp.local, "mode", "plan");
  Deno.symlinkSync("config.json", alias);
  await Promise.all(
    flags.map((key, index) => setInFile(index % 2 ? temp.local : alias, key, true)),
  );
  const config = temp.open();
  for (const key of flags) assert.equal(config.getFrom("local", key), true, key);
  assert.ok(flags.length > 10);
});
