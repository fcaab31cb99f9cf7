import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SvcError } from "../../src/platform/error.ts";
import {
  addPackages,
  installPlugin,
  type InstallRoot,
  removePlugin,
} from "../../src/plugins/install.ts";
import { readSource } from "../../src/plugins/source.ts";
import { TEST_FLAGS } from "../support/flags.ts";
import { repository } from "../support/git.ts";
import { load, statuses } from "../support/plugins.ts";
import { type Project, project } from "../support/project.ts";

const CHILD = fileURLToPath(new URL("install_child.ts", import.meta.url));
const ENTRY = "export function register_roles(r) { r.add_plugin({ name: 'one' }); }";

function local(scratch: Project): InstallRoot {
  return { origin: "local", path: join(scratch.path, "local"), within: scratch.path };
}

function install(scratch: Project, source: string, more: { replaces?: string } = {}) {
  return installPlugin({
    source: readSource(source, scratch.path, scratch.path),
    root: local(scratch),
    version: "1.4.0",
    deps: false,
    signal: new AbortController().signal,
    ...more,
  });
}

/** The entries of the local root, hidden ones included. */
function installed(scratch: Project): string[] {
  try {
    return [...Deno.readDirSync(join(scratch.path, "local"))].map(({ name }) => name).sort();
  } catch {
    return [];
  }
}

Deno.test("a plugin's folder is installed without .git, .svc and node_modules, and its source is recorded [2.9, 4.9]", async () => {
  await using scratch = await project({
    "from/manifest.json": '{"name": "p", "entry": "src/p.js", "custom": [1]}',
    "from/src/p.js": ENTRY,
    "from/.git/config": "",
    "from/node_modules/x/index.js": "",
    "from/.svc/config.json": "{}",
    "from/docs/README.md": "",
  });
  await Deno.symlink("docs/README.md", join(scratch.path, "from/README.md"));
  const info = await install(scratch, "from");
  assert.deepEqual([info.name, info.status, info.path], [
    "p",
    "loaded",
    join(scratch.path, "local/p"),
  ]);
  assert.deepEqual(JSON.parse(await scratch.read("local/p/manifest.json")), {
    name: "p",
    entry: "src/p.js",
    custom: [1],
    source: join(scratch.path, "from"),
  });
  const entries = [...Deno.readDirSync(join(scratch.path, "local/p"))].map(({ name }) => name)
    .sort();
  assert.deepEqual(entries, ["README.md", "docs", "manifest.json", "src"]);
  assert.deepEqual((await load(scratch)).roles.map(({ entry }) => entry.name), ["one"]);
});

Deno.test("a single module is installed as a plugin with its file name [2.9]", async () => {
  await using scratch = await project({ "one.js": ENTRY });
  assert.equal((await install(scratch, "one.js")).name, "one");
  assert.deepEqual(statuses(await load(scratch)), ["one local loaded"]);
});

Deno.test("a branch or tag after # is installed", async () => {
  await using scratch = await project();
  const repo = await repository(scratch, "repo", {
    "manifest.json": '{"name": "p", "version": "1.0.0", "entry": "p.js"}',
    "p.js": ENTRY,
  });
  await repo.git("tag", "v1");
  await repo.commit({ "manifest.json": '{"name": "p", "version": "2.0.0", "entry": "p.js"}' });
  assert.equal((await install(scratch, `${repo.url}#v1`)).version, "1.0.0");
  assert.equal((await install(scratch, repo.url, { replaces: "p" })).version, "2.0.0");
  await assert.rejects(install(scratch, `${repo.url}#v9`, { replaces: "p" }), {
    code: "plugin_clone",
    message: /could not be cloned: Remote branch v9 not found/,
  });
  assert.deepEqual(installed(scratch), ["p"]);
});

Deno.test("no hook, filter or submodule is run or fetched", async () => {
  await using scratch = await project({
    "home/hooks/post-checkout": '#!/bin/sh\ntouch "$HOME/hooked"\n',
    "home/.gitconfig": '[filter "own"]\n\tsmudge = touch "$HOME/filtered"; cat\n' +
      "[core]\n\thooksPath = ~/hooks\n[init]\n\ttemplateDir = ~/template\n" +
      '[submodule]\n\trecurse = true\n[protocol "file"]\n\tallow = always\n',
    "home/template/hooks/post-checkout": '#!/bin/sh\ntouch "$HOME/hooked"\n',
  });
  for (const hook of ["hooks", "template/hooks"]) {
    await Deno.chmod(join(scratch.path, "home", hook, "post-checkout"), 0o755);
  }
  const inner = await repository(scratch, "inner", { "secret": "x" });
  const repo = await repository(scratch, "repo", {
    "manifest.json": '{"name": "p", "entry": "p.js"}',
    "p.js": `// $Id$\n${ENTRY}`,
    ".gitattributes": "* filter=own ident eol=crlf\n",
  });
  await repo.git(
    "-c",
    "protocol.file.allow=always",
    "submodule",
    "--quiet",
    "add",
    inner.url,
    "sub",
  );
  await repo.commit({});
  assert.equal(
    await installWith({ HOME: join(scratch.path, "home") }, scratch, repo.url),
    undefined,
  );
  assert.deepEqual([...Deno.readDirSync(join(scratch.path, "local/p/sub"))], []);
  for (const mark of ["hooked", "filtered"]) {
    await assert.rejects(Deno.stat(join(scratch.path, "home", mark)), Deno.errors.NotFound);
  }
  assert.equal(await scratch.read("local/p/p.js"), `// $Id$\n${ENTRY}`);
});

/** Installs in a process with additional environment variables. Returns its error, if any. */
async function installWith(
  env: Record<string, string>,
  scratch: Project,
  source: string,
): Promise<{ code: string; message: string } | undefined> {
  const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-check", ...TEST_FLAGS, CHILD, scratch.path, source],
    env,
  }).output();
  const text = new TextDecoder();
  assert.ok(success, text.decode(stderr));
  return stdout.length === 0 ? undefined : JSON.parse(text.decode(stdout));
}

Deno.test("an installation that Git itself started does not change that repository", async () => {
  await using scratch = await project();
  const own = await repository(scratch, "own", { "mine": "x" });
  const repo = await repository(scratch, "repo", manifest({}));
  const index = join(scratch.path, "own/.git/index");
  const before = await Deno.readFile(index);
  const env = {
    GIT_DIR: join(scratch.path, "own/.git"),
    GIT_WORK_TREE: join(scratch.path, "own"),
    GIT_INDEX_FILE: index,
  };
  assert.equal(await installWith(env, scratch, repo.url), undefined);
  assert.deepEqual(installed(scratch), ["p"]);
  assert.deepEqual(await Deno.readFile(index), before);
  assert.deepEqual([...Deno.readDirSync(join(scratch.path, "own"))].length, 2);
  await own.git("diff", "--quiet");
});

Deno.test("a clone that exceeds the limits is stopped and removed", async () => {
  await using scratch = await project({
    "bin/git":
      '#!/bin/sh\nfor folder; do :; done\nmkdir "$folder"\ntruncate -s 500M "$folder/x"\n' +
      "exec sleep 300\n",
  });
  await Deno.chmod(join(scratch.path, "bin/git"), 0o755);
  const PATH = `${join(scratch.path, "bin")}:${Deno.env.get("PATH")}`;
  assert.deepEqual(await installWith({ PATH }, scratch, "file:///huge"), {
    code: "plugin_clone",
    message: "file:///huge could not be cloned: it is larger than 400 MB or 40000 files.",
  });
  assert.deepEqual(installed(scratch), []);
});

/** Repositories and folders that must not be installed; each is written into `from`. */
const HOSTILE: Record<string, {
  files?: Record<string, string>;
  links?: Record<string, string>;
  reason: RegExp;
}> = {
  "no manifest": { files: { "x.js": "" }, reason: /it has no manifest\.json/ },
  "a manifest that is no JSON": { files: { "manifest.json": "{" }, reason: /cannot be read/ },
  "a name that leaves the root": { files: manifest({ name: "../p" }), reason: /no.* plain name/ },
  "an absolute name": { files: manifest({ name: "/tmp/p" }), reason: /plain name/ },
  "a name that ends in a dot": { files: manifest({ name: "p." }), reason: /plain name/ },
  "a manifest beyond all measure": {
    files: manifest({ description: "x".repeat(1_000_000) }),
    reason: /manifest\.json is larger than 1 MB/,
  },
  "a hidden name": { files: manifest({ name: ".p" }), reason: /plain name/ },
  "a name with control characters": {
    files: manifest({ name: "a\u001b[2J" }),
    reason: /plain name/,
  },
  "a name of the machine's": { files: manifest({ name: "__proto__/x" }), reason: /plain name/ },
  "an entry that leaves the folder": {
    files: { ...manifest({ entry: "../../evil.js" }) },
    reason: /lies outside of the plugin's folder|does not exist/,
  },
  "an absolute entry": {
    files: manifest({ entry: "/etc/passwd" }),
    reason: /does not exist|outside/,
  },
  "an entry that is not there": { files: manifest({ entry: "no.js" }), reason: /does not exist/ },
  "an entry that is a folder": {
    files: { ...manifest({ entry: "src" }), "src/x": "" },
    reason: /is not a file/,
  },
  "an entry in Python": { files: { ...manifest({ entry: "p.py" }), "p.py": "" }, reason: /Python/ },
  "another version of svc": {
    files: manifest({ polyglav_version: ">=9" }),
    reason: /it needs svc/,
  },
  "a link out": { links: { "a": "../../secret" }, reason: /"a" is a link that leads out/ },
  "an absolute link": { links: { "a": "/etc/passwd" }, reason: /"a" is a link that leads out/ },
  "a link into nowhere": { links: { "a": "nothing" }, reason: /"a" is a link that leads nowhere/ },
  "a link to itself": { links: { "a": "a" }, reason: /"a" is a link that leads nowhere/ },
  "a link through a link": {
    links: { "b": "src/..", "a": "b/../../secret" },
    reason: /is a link that leads out/,
  },
  "an entry that is a link out": {
    files: { "manifest.json": '{"name": "p", "entry": "p.js"}' },
    links: { "p.js": "../../../evil.js" },
    reason: /"p\.js" is a link that leads/,
  },
  "a linked manifest": {
    files: { "p.js": "" },
    links: { "manifest.json": "../outside.json" },
    reason: /"manifest\.json" is a link that leads out/,
  },
};

function manifest(more: Record<string, string>): Record<string, string> {
  return { "manifest.json": JSON.stringify({ name: "p", entry: "p.js", ...more }), "p.js": ENTRY };
}

Deno.test("a refused plugin changes nothing, from a folder and from a repository", async (t) => {
  for (const [title, { files = manifest({}), links = {}, reason }] of Object.entries(HOSTILE)) {
    await t.step(title, async () => {
      await using scratch = await project({
        "outside.json": JSON.stringify({ name: "p", entry: "p.js" }),
        "secret": "",
        "evil.js": "",
      });
      const repo = await repository(scratch, "from", { "src/x": "", ...files });
      for (const [link, target] of Object.entries(links)) {
        await Deno.symlink(target, join(scratch.path, "from", link));
      }
      await repo.git("add", "--all");
      await repo.git("commit", "--quiet", "--allow-empty", "--message=x");
      const sources = [repo.url];
      if (title !== "no manifest") sources.push("from");
      for (const source of sources) {
        await assert.rejects(install(scratch, source), (error) => {
          assert.ok(error instanceof SvcError, String(error));
          assert.match(error.message, reason);
          assert.equal(error.exit, 2);
          return true;
        });
        assert.deepEqual(installed(scratch), []);
      }
    });
  }
});

Deno.test("a pipe or a device in a folder is refused, and not read", async () => {
  await using scratch = await project(
    Object.fromEntries(Object.entries(manifest({})).map(([file, text]) => [`from/${file}`, text])),
  );
  await new Deno.Command("mkfifo", { args: [join(scratch.path, "from/pipe")] }).output();
  await assert.rejects(
    install(scratch, "from"),
    /"pipe" is neither a file nor a folder nor a link/,
  );
  assert.deepEqual(installed(scratch), []);
});

Deno.test("a plugin that is too large or too deep is refused before it is copied", async () => {
  await using scratch = await project({ "from/manifest.json": '{"name": "p", "entry": "p.js"}' });
  await scratch.write("from/p.js", ENTRY);
  await Deno.truncate(join(scratch.path, "from/p.js"), 300_000_000);
  await assert.rejects(install(scratch, "from"), /"p\.js" makes it larger than 200 MB/);
  await Deno.truncate(join(scratch.path, "from/p.js"), 0);
  await Deno.mkdir(join(scratch.path, "from", ...Array(40).fill("d")), { recursive: true });
  await assert.rejects(install(scratch, "from"), /lies more than 32 folders deep/);
  assert.deepEqual(installed(scratch), []);
});

Deno.test("only an update replaces an installed plugin, and only under the same name", async () => {
  await using scratch = await project();
  const repo = await repository(scratch, "repo", manifest({ version: "1.0.0" }));
  await install(scratch, repo.url);
  await assert.rejects(install(scratch, repo.url), { code: "plugin_exists", exit: 2 });
  await repo.commit(manifest({ name: "other" }));
  await assert.rejects(
    install(scratch, repo.url, { replaces: "p" }),
    /is the plugin other now, not p/,
  );
  await repo.commit(manifest({ entry: "gone.js" }));
  await assert.rejects(install(scratch, repo.url, { replaces: "p" }), /does not exist/);
  assert.deepEqual(installed(scratch), ["p"]);
  assert.equal(JSON.parse(await scratch.read("local/p/manifest.json")).version, "1.0.0");
  await repo.commit(manifest({ version: "2.0.0" }));
  await install(scratch, repo.url, { replaces: "p" });
  assert.deepEqual(installed(scratch), ["p"]);
  assert.equal(JSON.parse(await scratch.read("local/p/manifest.json")).version, "2.0.0");
});

Deno.test("an update that was killed between its renames: the former plugin loads, and is renamed back", async () => {
  await using scratch = await project({
    "local/.replaced-p/manifest.json": '{"name": "p", "entry": "p.js"}',
    "local/.replaced-p/p.js": ENTRY,
    "local/.staged-x1y2z3/manifest.json": '{"name": "half"}',
    "other.js": "",
  });
  assert.deepEqual(statuses(await load(scratch)), ["p local loaded"]);
  await install(scratch, "other.js");
  assert.deepEqual(installed(scratch), ["other", "p"]);
  assert.deepEqual(statuses(await load(scratch)), ["other local loaded", "p local loaded"]);
});

Deno.test("a root that is a link out of the worktree is not written to", async () => {
  await using outside = await project();
  await using scratch = await project({ "one.js": ENTRY });
  await Deno.symlink(outside.path, join(scratch.path, "local"));
  await assert.rejects(install(scratch, "one.js"), { code: "plugin_root", exit: 2 });
  assert.deepEqual([...Deno.readDirSync(outside.path)], []);
});

Deno.test("a cancelled installation leaves no files", async () => {
  await using scratch = await project();
  const repo = await repository(scratch, "repo", manifest({}));
  const installing = installPlugin({
    source: readSource(repo.url, scratch.path, scratch.path),
    root: local(scratch),
    version: "1.4.0",
    deps: false,
    signal: AbortSignal.abort(),
  });
  await assert.rejects(installing, { code: "cancelled", exit: 130 });
  assert.deepEqual(installed(scratch), []);
});

Deno.test("two installations at once wait for each other", async () => {
  await using scratch = await project({ "a.js": ENTRY, "b.js": "" });
  await Promise.all([install(scratch, "a.js"), install(scratch, "b.js")]);
  assert.deepEqual(installed(scratch), ["a", "b"]);
});

Deno.test("removing a linked plugin removes the link and keeps its target", async () => {
  await using scratch = await project({ "work/manifest.json": '{"name": "p"}', "local/.keep": "" });
  await Deno.symlink("../work", join(scratch.path, "local/p"));
  await removePlugin(join(scratch.path, "local/p"), local(scratch));
  assert.deepEqual(installed(scratch), [".keep"]);
  assert.equal(await scratch.read("work/manifest.json"), '{"name": "p"}');
});

Deno.test("the leftovers of a killed installation of packages are removed by the next one", async () => {
  await using scratch = await project({ "local/p/node_modules/.staged-x1y2z3/names.js": "" });
  const { signal } = new AbortController();
  await addPackages(join(scratch.path, "local/p"), [], local(scratch), signal);
  assert.deepEqual([...Deno.readDirSync(join(scratch.path, "local/p/node_modules"))], []);
});
