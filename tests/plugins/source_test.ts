import assert from "node:assert/strict";
import { join } from "node:path";
import { SvcError } from "../../src/platform/error.ts";
import { cloneCommand, type PluginSource, readSource } from "../../src/plugins/source.ts";
import { project } from "../support/project.ts";

Deno.test("URLs and paths are told apart", async () => {
  await using place = await project({
    "plugin/manifest.json": "{}",
    "bare.git/HEAD": "",
    "bare.git/objects/x": "",
    "one.ts": "",
  });
  const at = (path: string) => join(place.path, path);
  const cases: [given: string, source: Omit<PluginSource, "text">][] = [
    ["https://example.org/you/p.git", git("https://example.org/you/p.git", "https")],
    ["https://example.org/p#v1.2", git("https://example.org/p", "https", "v1.2")],
    ["ssh://git@example.org:2222/p", git("ssh://git@example.org:2222/p", "ssh")],
    ["git@example.org:you/p.git", git("git@example.org:you/p.git", "ssh")],
    ["example.org:p#feature/x", git("example.org:p", "ssh", "feature/x")],
    ["http://127.0.0.1:3000/p", git("http://127.0.0.1:3000/p", "http")],
    ["file:///srv/p.git", git("file:///srv/p.git", "file")],
    ["plugin", { kind: "folder", path: at("plugin") } as never],
    ["./plugin/", { kind: "folder", path: at("plugin") } as never],
    ["~/plugin", { kind: "folder", path: at("plugin") } as never],
    [at("one.ts"), { kind: "module", path: at("one.ts") } as never],
    ["bare.git", git(`file://${at("bare.git")}`, "file")],
  ];
  for (const [given, expected] of cases) {
    const { text: _, ...source } = readSource(given, place.path, place.path);
    assert.deepEqual(source, expected, given);
  }
  assert.equal(readSource("plugin", place.path, place.path).text, at("plugin"));
});

function git(url: string, protocol: string, ref = ""): Omit<PluginSource, "text"> {
  return { kind: "git", url, protocol, ref } as Omit<PluginSource, "text">;
}

const HOSTILE: [given: string, reason: RegExp][] = [
  ["", /no URL and no path/],
  ["-u", /begins with a dash/],
  ["--upload-pack=touch pwned", /begins with a dash/],
  ["--config=core.sshCommand=touch pwned", /begins with a dash/],
  ["ext::sh -c touch% pwned", /transports that run programs/],
  ["fd::17", /transports that run programs/],
  ["EXT::sh", /transports that run programs/],
  ["git-remote-x::y", /transports that run programs/],
  ["git://example.org/p", /git: is not used/],
  ["ftp://example.org/p", /ftp: is not used/],
  ["javascript://x/%0aalert(1)", /javascript: is not used/],
  ["http://example.org/p", /changes on the way/],
  ["http://127.0.0.1.example.org/p", /changes on the way/],
  ["http://localhost@example.org/p", /changes on the way/],
  ["https://-oProxyCommand=touch/p", /no URL|no host/],
  ["ssh://-oProxyCommand=touch/p", /no URL|no host/],
  ["ssh://-oProxyCommand@example.org/p", /no plain name/],
  ["ssh://a%0ab@example.org/p", /no plain name/],
  ["-oProxyCommand=touch:p", /begins with a dash/],
  ["git@-oProxyCommand=touch:p", /no such file/],
  ["example.org:-p", /no URL and no path/],
  ["example.org:p q", /no URL and no path/],
  ["https://me:secret@example.org/p", /holds credentials/],
  ["https://token@example.org/p", /holds credentials/],
  ["ssh://git:secret@example.org/p", /holds credentials/],
  ["git+https://me:secret@example.org/p", /^A plugin cannot be installed from the URL: git\+https/],
  ["http://me:secret@example.org/p", /^A plugin cannot be installed from the URL: http:/],
  [
    "https://me:sec/secret@example.org/p",
    /^A plugin cannot be installed from the URL: it is no URL/,
  ],
  ["https:me:secret@example.org/p", /holds credentials/],
  ["me:secret@example.org:p", /holds credentials/],
  ["https://example.org/p?access_token=secret", /has a query, which may hold credentials/],
  ["https://example.org\\:secret@evil.example/p", /no URL/],
  ["http://localhost\\@evil.example/p", /no URL/],
  ["https://", /no URL/],
  ["https://example.org/p#--upload-pack=x", /no name of a branch/],
  ["https://example.org/p#a..b", /no name of a branch/],
  ["https://example.org/p#a b", /no name of a branch/],
  ["https://example.org/p#$(touch pwned)", /no name of a branch/],
  ["https://example.org/\u0000p", /no URL and no path/],
  ["https://example.org/p\n--upload-pack=x", /no URL and no path/],
  ["nowhere", /no such file or folder/],
  ["../nowhere", /no such file or folder/],
  ["no-manifest", /no manifest\.json/],
  ["plugin.zip", /no folder and no module/],
  ["plugin.tar.gz", /no folder and no module/],
  ["types.d.ts", /no folder and no module/],
];

Deno.test("a source that Git could read as an option, a command or another transport is refused", async () => {
  await using place = await project({
    "no-manifest/x": "",
    "plugin.zip": "",
    "plugin.tar.gz": "",
    "types.d.ts": "",
  });
  for (const [given, reason] of HOSTILE) {
    assert.throws(() => readSource(given, place.path, place.path), (error) => {
      assert.ok(error instanceof SvcError, given);
      assert.equal(error.code, "plugin_source", given);
      assert.equal(error.exit, 2, given);
      assert.match(error.message, reason, given);
      assert.doesNotMatch(error.message, /secret|token@/, given);
      return true;
    });
  }
});

Deno.test("git gets the source after --, and fetches no history, submodules or hooks", () => {
  const source = { kind: "git", text: "", url: "u", protocol: "https", ref: "v1" } as const;
  const command = cloneCommand(source, "/to", "/template");
  assert.deepEqual(command.slice(-3), ["--", "u", "/to"]);
  for (const word of ["--depth=1", "--no-recurse-submodules", "--branch=v1"]) {
    assert.ok(command.indexOf(word) > command.indexOf("clone"), word);
  }
  for (const word of ["core.hooksPath=/dev/null", "credential.helper="]) {
    assert.equal(command[command.indexOf(word) - 1], "-c", word);
  }
});
