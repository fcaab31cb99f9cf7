import assert from "node:assert/strict";
import { join } from "node:path";
import { call, say, startBackend } from "../support/backend.ts";
import { repository, type TestRepository } from "../support/git.ts";
import { inProcess } from "../support/io.ts";
import { type Ended, startSvc, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { mounts } from "../support/tiny_disk.ts";

const manifest = (version: string, more = {}) =>
  JSON.stringify({
    name: "tides",
    version,
    description: "Knows the tides.",
    entry: "src/plugin.ts",
    provides: { tools: ["tide"], roles: ["pilot"] },
    ...more,
  });

/** A plugin as a third party writes one. */
const module = (answer: string) => `
import { format } from "./format.ts";
interface Registry { register(tool: unknown): void }
interface Roles { add_plugin(entry: unknown): void }
export function register_tools(registry: Registry): void {
  registry.register({
    name: "tide",
    description: "The tide at a place.",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
    permission: "read",
    handler: ({ place }: { place: string }) => format(place, ${JSON.stringify(answer)}),
  });
}
export const register_roles = (roles: Roles) =>
  roles.add_plugin({ name: "pilot", description: ${JSON.stringify(answer)}, system_prompt: "s" });
`;

const FORMAT =
  "export const format = (place: string, tide: string): string => `${place}: ${tide}`;";

async function tides(place: Project): Promise<TestRepository> {
  return await repository(place, "tides", {
    "manifest.json": manifest("1.0.0"),
    "src/plugin.ts": module("high"),
    "src/format.ts": FORMAT,
  });
}

/** The program in the folder `work` of a scratch project; with `svc` in a process of its own. */
function at(place: Project, start = inProcess): (...args: string[]) => Promise<Ended> {
  Deno.mkdirSync(join(place.path, "work"), { recursive: true });
  return (...args) => start(args, { cwd: join(place.path, "work"), home: place.path });
}

/** Runs a turn that calls `tool`. Returns the tools that the model is offered, and the result of the call. */
async function turn(
  place: Project,
  tool: string,
  args: Record<string, unknown>,
  start = inProcess,
) {
  await using backend = startBackend([call(tool, args), say("done")]);
  const ended = await at(place, start)("run", "--base-url", backend.url, "--model", "m", "go");
  const { tools } = backend.chats[0];
  const offered = tools.map((each: { function: { name: string } }) => each.function.name);
  const result = backend.chats[1]?.messages.at(-1).content as string;
  return { ...ended, offered, result };
}

async function plugins(place: Project): Promise<Record<string, string>> {
  const { code, stdout, stderr } = await at(place)("plugins", "list", "--output", "json");
  assert.equal(code, 0, stderr);
  const list: { name: string; version: string; status: string; reason: string }[] = JSON.parse(
    stdout,
  );
  return Object.fromEntries(
    list.filter(({ name }) => !name.startsWith("svc-core-"))
      .map(({ name, version, status, reason }) => [
        name,
        `${version} ${status}${reason && `: ${reason}`}`,
      ]),
  );
}

/** The entries of the local root, hidden ones included. */
function installed(place: Project): string[] {
  return [...Deno.readDirSync(join(place.path, "work/.svc/plugins"))].map(({ name }) => name)
    .sort();
}

Deno.test("a third party's plugin: installed from Git, used in a turn, updated, disabled, uninstalled [2.9, 4.4]", async () => {
  await using place = await project();
  const repo = await tides(place);
  const run = at(place, svc);
  const first = await run("plugins", "install", repo.url);
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stderr, /^Installed tides 1\.0\.0 \(local\) from file:/);
  assert.deepEqual(await plugins(place), { tides: "1.0.0 loaded" });
  assert.equal((await turn(place, "tide", { place: "Husum" }, svc)).result, "Husum: high");
  assert.match((await run("roles", "list")).stdout, /^pilot +plugin +high$/m);
  const shown = await run("plugins", "show", "tides");
  assert.match(shown.stdout, /^tides 1\.0\.0 \(local\)\nstatus: loaded\n/);
  assert.match(shown.stdout, /\nsource: file:.*\ntools: tide\nroles: pilot\n$/);

  await repo.commit({ "manifest.json": manifest("1.1.0"), "src/plugin.ts": module("low") });
  const update = await run("plugins", "update");
  assert.equal(update.code, 0, update.stderr);
  assert.match(update.stderr, /^Updated tides \(1\.0\.0 -> 1\.1\.0\) from file:/m);
  assert.equal((await turn(place, "tide", { place: "Husum" }, svc)).result, "Husum: low");
  assert.match((await run("roles", "list")).stdout, /^pilot +plugin +low$/m);

  assert.equal((await run("plugins", "disable", "tides")).code, 0);
  assert.deepEqual(await plugins(place), { tides: "1.1.0 disabled: not in the setting plugins" });
  const without = await turn(place, "tide", { place: "Husum" }, svc);
  assert.ok(!without.offered.includes("tide"));
  assert.match(without.result, /^Error: .*tide/);
  assert.doesNotMatch((await run("roles", "list")).stdout, /pilot/);
  assert.equal((await run("plugins", "enable", "tides")).code, 0);
  assert.ok((await turn(place, "tide", { place: "x" }, svc)).offered.includes("tide"));

  assert.equal((await run("plugins", "uninstall", "tides")).code, 0);
  assert.deepEqual(installed(place), []);
  assert.deepEqual(await plugins(place), {});
  const left = await turn(place, "file_read", { path: "x" });
  assert.ok(!left.offered.includes("tide"));
  assert.equal(left.stderr, ""); // no list names a plugin that is gone
});

Deno.test("plugins install --global installs for all worktrees; a local plugin wins over it until it is uninstalled [4.4, 4.9]", async () => {
  await using place = await project({ "work/own.js": "" });
  const run = at(place);
  await repository(place, "own", {
    "manifest.json": '{"name": "own", "entry": "o.js"}',
    "o.js": "",
  });
  assert.equal((await run("plugins", "install", "--global", "../own")).code, 0);
  assert.deepEqual(await plugins(place), { own: "0.0.0 loaded" });
  const other = await svc(["plugins", "list"], { cwd: place.path });
  assert.match(other.stdout, /^own +0\.0\.0 +global +loaded$/m);
  assert.equal((await run("plugins", "install", "./own.js")).code, 0);
  assert.match((await run("plugins", "list")).stdout, /^own +0\.0\.0 +local +loaded$/m);
  const { stderr } = await run("plugins", "uninstall", "own");
  assert.match(stderr, /The global plugin of that name counts again/);
  assert.match((await run("plugins", "list")).stdout, /^own +0\.0\.0 +global +loaded$/m);
  assert.equal((await run("plugins", "uninstall", "own")).code, 0);
  assert.deepEqual(await plugins(place), {});
});

Deno.test("a global plugin behind a local one of its name is updated", async () => {
  await using home = await project({
    "word/manifest.json": '{"name": "word", "version": "1.0.0", "entry": "plugin.js"}',
    "word/plugin.js": "",
  });
  await using work = await project();
  const run = (...args: string[]) => svc(args, { cwd: work.path, home: home.path });
  await run("plugins", "install", join(home.path, "word"), "--global");
  await work.write(".svc/plugins/word/manifest.json", '{"name": "word", "entry": "plugin.js"}');
  await work.write(".svc/plugins/word/plugin.js", "");
  const update = await run("plugins", "update");
  assert.match(update.stderr, /^Updated word \(1\.0\.0\) from /m);
  assert.doesNotMatch(update.stderr, /nothing to update/);
});

Deno.test("bundled plugins can be disabled, and neither updated nor uninstalled [3.5, 4.9, 7.6, 9]", async () => {
  await using place = await project();
  const run = at(place);
  for (const action of ["update", "uninstall"]) {
    const { code, stderr } = await run("plugins", action, "svc-core-fs");
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^svc: The plugin svc-core-fs is bundled: .* cannot be (updated|uninstalled)/,
    );
  }
  assert.equal((await run("plugins", "disable", "svc-core-fs")).code, 0);
  assert.match((await run("plugins", "list")).stdout, /^svc-core-fs .* disabled/m);
  const { offered } = await turn(place, "list_dir", { path: "." });
  assert.ok(!offered.includes("file_read"));
  assert.equal((await run("plugins", "enable", "svc-core-fs")).code, 0);
  assert.ok((await turn(place, "list_dir", { path: "." })).offered.includes("file_read"));
  await place.write("work/svc-core-git.js", "");
  assert.match(
    (await run("plugins", "install", "./svc-core-git.js")).stderr,
    /^warning: It takes the place of the bundled plugin svc-core-git\.$/m,
  );
});

Deno.test("plugins install and update with --deps install packages into the plugin's folder; without it the tool says what it requires [2.9, 4.4, 4.9, 7.3]", async () => {
  await using place = await project();
  const run = at(place);
  const repo = await repository(place, "ranges", {
    "manifest.json": '{"name": "ranges", "entry": "r.js", "requires": ["semver@7.8.6"]}',
    "r.js": `export function register_tools(r) {
      r.register({ name: "fits", description: "", permission: "read",
        parameters: { type: "object", properties: {} },
        async handler() { return String((await import("semver")).satisfies("1.2.3", "^1")); } });
    }`,
  });
  const { stderr } = await run("plugins", "install", repo.url);
  assert.match(stderr, /requires semver@7\.8\.6; install with: svc plugins update ranges --deps/);
  assert.equal(
    (await turn(place, "fits", {})).result,
    "Error: fits requires semver; install it with: svc plugins update ranges --deps",
  );
  const added = await run("plugins", "update", "ranges", "--deps");
  assert.equal(added.code, 0, added.stderr);
  assert.equal((await turn(place, "fits", {})).result, "true");
  const folder = join(place.path, "work/.svc/plugins/ranges/node_modules");
  assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["semver"]);
  await run("plugins", "uninstall", "ranges");
  assert.equal((await run("plugins", "install", repo.url, "--deps")).code, 0);
  assert.equal((await turn(place, "fits", {})).result, "true");

  await repo.commit({
    "manifest.json": '{"name": "ranges", "entry": "r.js", "requires": ["a b"]}',
  });
  const refused = await run("plugins", "update", "ranges");
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /requires "a b", which is no npm package/);
  assert.equal((await turn(place, "fits", {})).result, "true");
});

Deno.test("a plugin of plugins new loads, its own tests pass with plugins test, and its types are the API's [4.4]", async () => {
  await using place = await project({ "work/a.txt": "one two\nthree" });
  const run = at(place);
  assert.equal((await run("plugins", "new", "word-tools")).code, 0);
  const tested = await run("plugins", "test", "word-tools");
  assert.equal(tested.code, 0, tested.stdout + tested.stderr);
  assert.match(
    tested.stdout,
    /^word-tools: loaded: tools word_tools_words; commands word-tools-hello\n/,
  );
  assert.match(tested.stdout, /2 passed \| 0 failed/);
  assert.equal((await turn(place, "word_tools_words", { path: "a.txt" })).result, "3 words");
  const checked = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--no-config", "src/plugin.ts", "tests/plugin_test.ts", "types/svc.d.ts"],
    cwd: join(place.path, "work/.svc/plugins/word-tools"),
  }).output();
  assert.ok(checked.success, new TextDecoder().decode(checked.stderr));
  await place.write(
    "work/.svc/plugins/word-tools/tests/plugin_test.ts",
    "Deno.test('no', () => { throw 1; });",
  );
  assert.equal((await run("plugins", "test")).code, 1);
  assert.equal((await run("plugins", "new", "word-tools")).code, 2);
  assert.equal((await run("plugins", "new", "../out")).code, 2);
});

Deno.test("the example of docs/plugins.md works as printed [4.9]", async () => {
  const guide = await Deno.readTextFile(new URL("../../docs/plugins.md", import.meta.url));
  const [source, tests] = [...guide.matchAll(/^```ts\n([^]*?)^```$/mg)].map(([, code]) => code!);
  await using place = await project({ "work/tides/Husum.txt": "high at noon" });
  const run = at(place);
  await run("plugins", "new", "harbour");
  await place.write("work/.svc/plugins/harbour/src/plugin.ts", source!);
  await place.write("work/.svc/plugins/harbour/tests/plugin_test.ts", tests!);
  const tested = await run("plugins", "test", "harbour");
  assert.equal(tested.code, 0, tested.stdout + tested.stderr);
  assert.match(tested.stdout, /^harbour: loaded: tools tide; providers parrot; commands knots$/m);
  assert.match(tested.stdout, /1 passed \| 0 failed/);
  const said = await run("run", "--provider", "parrot", "--output", "text", "Land ahoy");
  assert.equal(said.stdout, "Land ahoy, said the parrot.\n");
  const { stdout } = await svc(["--provider", "parrot"], {
    cwd: join(place.path, "work"),
    home: place.path,
    stdin: '/tool tide {"harbour": "Husum"}\n/knots 10\n',
  });
  assert.equal(stdout, "high at noon\n19.4 kn\n");
});

Deno.test("a plugin's command works in the terminal session, and one that is disabled there until the next start [3.5, 4.9]", async () => {
  await using place = await project();
  await at(place)("plugins", "new", "hi");
  const { stdout } = await svc([], {
    cwd: join(place.path, "work"),
    home: place.path,
    stdin: "/hi-hello you\n/plugins disable hi\n/hi-hello again\n/plugins list\n",
  });
  assert.match(stdout, /^Hello you, in .*work\.$/m);
  assert.match(stdout, /^Hello again, in .*work\.$/m, "until the next start");
  assert.match(stdout, /^hi +0\.1\.0 +local +disabled/m);
});

Deno.test("in an open session, roles change at once with the install, update and uninstall of a plugin [4.7, 4.9]", async () => {
  await using place = await project({ "work/a.txt": "" });
  const repo = await tides(place);
  const { stdout } = await svc([], {
    cwd: join(place.path, "work"),
    home: place.path,
    stdin: [
      "/roles list",
      `/plugins install ${repo.url}`,
      "/roles list",
      "/plugins uninstall tides",
      "/roles list",
    ].join("\n") + "\n",
  });
  assert.equal(stdout.match(/^pilot +plugin/mg)?.length, 1);
});

Deno.test("plugins that throw, clash or reject in the background do not end a turn", async () => {
  const tool = (name: string) =>
    `r.register({ name: "${name}", description: "", permission: "read",
      parameters: { type: "object", properties: {} }, handler: () => "" });`;
  await using place = await project({
    "work/.svc/config.json": '{"plugins": []}',
    "work/.svc/plugins/a-throws.js":
      "export function register_tools() { throw new Error('no luck'); }",
    "work/.svc/plugins/c-clashes.js": `export function register_tools(r) { ${tool("file_read")} }`,
    "work/.svc/plugins/d-rejects.js": `
      Promise.reject(new Error("left alone"));
      setTimeout(() => { throw new Error("in a timer"); });
      Promise.reject(7);
      export function register_tools(r) { ${tool("fine")} }`,
    "work/.svc/plugins/e-breaks.js": "export const = 1",
    "work/.svc/plugins/f-prints.js": "console.log('good bye');",
    "work/a.txt": "text of a",
  });
  const status = await plugins(place);
  assert.match(status["a-throws"]!, /error: hook register_tools failed: no luck$/);
  assert.match(status["c-clashes"]!, /error: .*"file_read".* clashes with/);
  assert.equal(status["d-rejects"], "0.0.0 loaded");
  assert.match(status["e-breaks"]!, /error: it could not be imported/);
  const { code, stdout, stderr, offered, result } = await turn(
    place,
    "file_read",
    { path: "a.txt" },
    svc,
  );
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).content, "done"); // standard output holds nothing else
  assert.match(stderr, /^good bye$/m);
  assert.match(result, /text of a/);
  assert.ok(offered.includes("fine"));
  assert.match(stderr, /The plugin d-rejects failed outside of its hooks: left alone/);
  assert.match(stderr, /The plugin d-rejects failed outside of its hooks: in a timer/);
});

Deno.test("Deno.exit in a plugin ends svc; disabling the plugin runs none of its code", async () => {
  await using place = await project({
    "work/.svc/config.json": '{"plugins": ["exits", "svc-core-demo"]}',
    "work/.svc/plugins/exits.js": "Deno.exit(7);",
  });
  const run = at(place, svc);
  assert.equal((await run("run", "--provider", "demo", "hello")).code, 7);
  assert.equal((await run("plugins", "disable", "exits")).code, 0);
  assert.equal((await run("run", "--provider", "demo", "hello")).code, 0);
});

Deno.test("a clone that fails changes nothing and gives a reason", async () => {
  await using place = await project();
  const repo = await tides(place);
  const run = at(place);
  await run("plugins", "install", repo.url);
  await Deno.rename(join(place.path, "tides"), join(place.path, "moved"));
  const { code, stderr } = await run("plugins", "update", "tides");
  assert.equal(code, 1);
  assert.match(stderr, /^svc: file:.*tides could not be cloned: .+\n$/);
  assert.deepEqual(installed(place), ["tides"]);
  assert.equal((await turn(place, "tide", { place: "Husum" })).result, "Husum: high");
});

Deno.test("kill -9 during an installation leaves no plugin, and the next one removes the leftovers", async () => {
  await using place = await project({
    "bin/git": `#!/bin/sh
for folder; do :; done
mkdir "$folder" && echo '{"name": "tides"}' >"$folder/manifest.json" && echo begun >"$HOME/told"
sleep 300
`,
  });
  await Deno.chmod(join(place.path, "bin/git"), 0o755);
  await new Deno.Command("mkfifo", { args: ["told"], cwd: place.path }).output();
  const repo = await tides(place);
  const run = at(place);
  const child = startSvc(["plugins", "install", repo.url], {
    cwd: join(place.path, "work"),
    home: place.path,
    env: { PATH: `${join(place.path, "bin")}:/usr/local/bin:/usr/bin:/bin` },
  });
  assert.equal(await place.read("told"), "begun\n");
  child.kill("SIGKILL");
  await Promise.all([child.status, child.stdout.cancel(), child.stderr.cancel()]);
  assert.match(installed(place).join(), /^(\.staged-\w+),\1\.template$/);
  assert.deepEqual(await plugins(place), {});
  assert.equal((await run("plugins", "install", repo.url)).code, 0);
  assert.deepEqual(installed(place), ["tides"]);
});

Deno.test(
  "a full disk during an installation or an update changes nothing",
  mounts,
  async () => {
    await using place = await project();
    const run = at(place);
    const work = join(place.path, "work");
    const sh = async (...args: string[]) =>
      assert.ok((await new Deno.Command(args[0]!, { args: args.slice(1) }).output()).success);
    await sh("mount", "-t", "tmpfs", "-o", "size=512k", "none", work);
    try {
      const repo = await tides(place);
      await run("plugins", "install", repo.url);
      await repo.commit({ "manifest.json": manifest("2.0.0"), "big.bin": "x".repeat(700_000) });
      const update = await run("plugins", "update", "tides");
      assert.equal(update.code, 1);
      assert.match(update.stderr, /^svc: .*(No space left|could not be (changed|cloned)).*\n/);
      assert.deepEqual(installed(place), ["tides"]);
      assert.deepEqual(await plugins(place), { tides: "1.0.0 loaded" });
      for (const source of [join(place.path, "tides"), repo.url]) {
        await run("plugins", "uninstall", "tides");
        const { code, stderr } = await run("plugins", "install", source);
        assert.equal(code, 1);
        assert.match(stderr, /^svc: .*(No space left|could not be (changed|cloned)).*\n/);
        assert.deepEqual(installed(place), []);
      }
    } finally {
      await sh("umount", work);
    }
  },
);
