import assert from "node:assert/strict";
import { site } from "./support.ts";

const text = (path: string) => Deno.readTextFileSync(path);
const denied = Deno.errors.PermissionDenied;

/** Runs `meanwhile` between the last check of a path and its opening. */
async function duringOpen(meanwhile: () => void, act: () => Promise<unknown>): Promise<void> {
  const { open } = Deno;
  Deno.open = (...args: Parameters<typeof open>) => {
    meanwhile();
    return open(...args);
  };
  try {
    await act();
  } finally {
    Deno.open = open;
  }
}

Deno.test("resolve and open reach only the worktree and approved paths", async () => {
  using place = site();
  const { worktree, outside } = place;
  Deno.writeTextFileSync(`${outside}/a`, "secret");
  Deno.writeTextFileSync(`${outside}/b`, "secret");
  Deno.symlinkSync(outside, `${worktree}/out`);
  const strict = place.guard.callPaths([]);
  const approved = place.guard.callPaths([`${outside}/a`]);
  assert.equal(strict.resolve("src/new"), `${worktree}/src/new`);
  for (const path of ["../outside/a", `${outside}/a`, "out/a"]) {
    assert.throws(() => strict.resolve(path), denied);
    await assert.rejects(strict.open(path, { read: true }), denied);
    assert.equal(approved.resolve(path), `${outside}/a`);
    using file = await approved.open(path, { read: true });
    assert.equal(await new Response(file.readable).text(), "secret");
  }
  assert.throws(() => approved.resolve("out/b"), denied);
  assert.throws(() => approved.resolve("out"), denied);
});

Deno.test("an approved folder includes its contents, but not the targets of links out of it", async () => {
  using place = site();
  const { outside, root } = place;
  Deno.mkdirSync(`${outside}/sub`);
  Deno.writeTextFileSync(`${outside}/sub/a`, "x");
  Deno.writeTextFileSync(`${root}/other`, "secret");
  Deno.symlinkSync(`${root}/other`, `${outside}/sub/link`);
  const paths = place.guard.callPaths([outside]);
  (await paths.open(`${outside}/sub/a`, { read: true })).close();
  await assert.rejects(paths.open(`${outside}/sub/link`, { read: true }), denied);
  assert.throws(() => paths.resolve(`${outside}x`), denied);
});

Deno.test("contains is true for the worktree and approved paths, and false for keys", () => {
  using place = site({ home: true });
  const { worktree, outside, user } = place;
  const paths = place.guard.callPaths([`${outside}/a`]);
  for (const path of [worktree, `${worktree}/x`, `${outside}/a`, `${outside}/a/b`]) {
    assert.equal(paths.contains(path), true, path);
  }
  for (const path of [outside, `${outside}/ab`, `${worktree}x`, "/", `${user}/providers.json`]) {
    assert.equal(paths.contains(path), false, path);
  }
});

Deno.test("the keys stay closed to a call that was approved for their folder", async () => {
  using place = site();
  Deno.writeTextFileSync(`${place.user}/providers.json`, "{}");
  const paths = place.guard.callPaths([place.user, `${place.user}/providers.json`]);
  const keys = `${place.user}/providers.json`;
  assert.throws(() => paths.resolve(keys), denied);
  await assert.rejects(paths.open(keys, { read: true }), /holds keys/);
});

Deno.test("a protected file opens for reading, and for writing only with its own approval", async () => {
  using place = site({ home: true });
  const { worktree, guard } = place;
  Deno.mkdirSync(`${worktree}/.svc`);
  const file = `${worktree}/.svc/config.json`;
  Deno.writeTextFileSync(file, "{}");
  (await guard.callPaths([]).open(".svc/config.json", { read: true })).close();
  const writes: Deno.OpenOptions[] = [
    { write: true },
    { append: true },
    { write: true, truncate: true },
    { write: true, create: true },
    { write: true, createNew: true },
  ];
  for (const options of writes) {
    await assert.rejects(guard.callPaths([]).open(".svc/config.json", options), denied);
    // The approval of a folder around a protected one is not the approval of the protected one.
    await assert.rejects(guard.callPaths([worktree]).open(".svc/config.json", options), denied);
  }
  assert.equal(text(file), "{}");
  (await guard.callPaths([file]).open(".svc/config.json", { write: true, truncate: true })).close();
  assert.equal(text(file), "");
});

Deno.test("open creates, truncates and appends as Deno.open does", async () => {
  using place = site();
  const paths = place.guard.callPaths([]);
  const write = async (options: Deno.OpenOptions, content: string) => {
    using file = await paths.open("src/a", options);
    await file.write(new TextEncoder().encode(content));
  };
  const target = `${place.worktree}/src/a`;
  await assert.rejects(paths.open("src/a", { read: true }), Deno.errors.NotFound);
  await assert.rejects(paths.open("src/a", { write: true }), Deno.errors.NotFound);
  await write({ write: true, create: true, mode: 0o600 }, "one");
  assert.equal(Deno.statSync(target).mode! & 0o777, 0o600);
  await write({ append: true, create: true }, "two");
  assert.equal(text(target), "onetwo");
  await write({ write: true }, "O");
  assert.equal(text(target), "Onetwo");
  await write({ write: true, create: true, truncate: true }, "x");
  assert.equal(text(target), "x");
  const again = paths.open("src/a", { write: true, createNew: true });
  await assert.rejects(again, Deno.errors.AlreadyExists);
  assert.equal(text(target), "x");
  await assert.rejects(
    paths.open("none/a", { write: true, create: true }),
    Deno.errors.NotFound,
  );
});

Deno.test("directories and pipes are refused without waiting for them", async () => {
  using place = site();
  const made = new Deno.Command("mkfifo", { args: [`${place.worktree}/pipe`] }).outputSync();
  assert.equal(made.code, 0);
  const paths = place.guard.callPaths([]);
  for (const path of ["pipe", "src", ""]) {
    for (const options of [{ read: true }, { write: true, create: true }]) {
      await assert.rejects(paths.open(path, options), { code: "no_regular_file" }, path);
    }
  }
});

Deno.test("a folder swapped for a link after the approval is noticed before opening", async () => {
  using place = site();
  const { worktree, outside, guard } = place;
  Deno.writeTextFileSync(`${worktree}/src/a`, "mine");
  Deno.writeTextFileSync(`${outside}/a`, "theirs");
  assert.equal(guard.locate("src/a").inside, true);
  const paths = guard.callPaths([]);
  Deno.renameSync(`${worktree}/src`, `${worktree}/old`);
  Deno.symlinkSync(outside, `${worktree}/src`);
  await assert.rejects(paths.open("src/a", { read: true }), denied);
  await assert.rejects(paths.open("src/a", { write: true, truncate: true }), denied);
  await assert.rejects(paths.open("src/new", { write: true, create: true }), denied);
  assert.equal(text(`${outside}/a`), "theirs");
  assert.throws(() => Deno.statSync(`${outside}/new`), Deno.errors.NotFound);
});

Deno.test("an approved path replaced by a link is no longer approved", async () => {
  using place = site();
  const { outside, root, guard } = place;
  Deno.writeTextFileSync(`${root}/other`, "secret");
  const paths = guard.callPaths([`${outside}/a`]);
  Deno.symlinkSync(`${root}/other`, `${outside}/a`);
  await assert.rejects(paths.open(`${outside}/a`, { read: true }), denied);
});

Deno.test("a swap while opening is noticed: nothing is read, truncated or left behind", async () => {
  const cases: [string, Deno.OpenOptions][] = [
    ["src/a", { read: true }],
    ["src/a", { write: true, truncate: true, create: true }],
    ["src/a", { append: true }],
    ["src/new", { write: true, create: true }],
    ["src/new", { write: true, createNew: true }],
    ["src/new", { append: true, create: true }],
  ];
  for (const [path, options] of cases) {
    using place = site();
    const { worktree, outside } = place;
    Deno.writeTextFileSync(`${worktree}/src/a`, "mine");
    Deno.writeTextFileSync(`${outside}/a`, "theirs");
    const paths = place.guard.callPaths([]);
    const swap = () => {
      Deno.renameSync(`${worktree}/src`, `${worktree}/old`);
      Deno.symlinkSync(outside, `${worktree}/src`);
    };
    await duringOpen(swap, () => assert.rejects(paths.open(path, options), denied));
    assert.equal(text(`${outside}/a`), "theirs");
    assert.deepEqual(Array.from(Deno.readDirSync(outside), ({ name }) => name), ["a"], path);
  }
});

Deno.test("a swap that is undone before the check is noticed by the file itself", async () => {
  for (const [path, swapped] of [["src/a", "src"], ["a", "a"]] as const) {
    using place = site();
    const { worktree, outside } = place;
    Deno.writeTextFileSync(`${worktree}/${path}`, "mine");
    Deno.writeTextFileSync(`${outside}/a`, "theirs");
    const paths = place.guard.callPaths([]);
    const { open } = Deno;
    Deno.open = async (path, options) => {
      Deno.renameSync(`${worktree}/${swapped}`, `${worktree}/old`);
      Deno.symlinkSync(swapped === "a" ? `${outside}/a` : outside, `${worktree}/${swapped}`);
      const file = await open(path, options);
      Deno.removeSync(`${worktree}/${swapped}`);
      Deno.renameSync(`${worktree}/old`, `${worktree}/${swapped}`);
      return file;
    };
    try {
      for (const options of [{ read: true }, { write: true, truncate: true }]) {
        await assert.rejects(paths.open(path, options), { code: "path_changed" }, path);
      }
    } finally {
      Deno.open = open;
    }
    assert.equal(text(`${outside}/a`), "theirs");
    assert.equal(text(`${worktree}/${path}`), "mine");
  }
});

Deno.test("a file swapped for another one while opening is refused untouched", async () => {
  using place = site();
  const { worktree } = place;
  Deno.writeTextFileSync(`${worktree}/a`, "one");
  Deno.writeTextFileSync(`${worktree}/b`, "two");
  const paths = place.guard.callPaths([]);
  const link = () => {
    Deno.removeSync(`${worktree}/a`);
    Deno.symlinkSync("b", `${worktree}/a`);
  };
  await duringOpen(link, async () => {
    const opened = paths.open("a", { write: true, truncate: true });
    await assert.rejects(opened, { code: "path_changed" });
  });
  assert.equal(text(`${worktree}/b`), "two");
});

Deno.test("a file made inside by another process first is not taken for a new one", async () => {
  using place = site();
  const paths = place.guard.callPaths([]);
  const path = `${place.worktree}/new`;
  await duringOpen(() => Deno.writeTextFileSync(path, "theirs"), async () => {
    const opened = paths.open("new", { write: true, create: true });
    await assert.rejects(opened, Deno.errors.AlreadyExists);
  });
  assert.equal(text(path), "theirs");
});

Deno.test("the file with the tokens of the HTTP API is not opened, even when it is a link", async () => {
  using place = site();
  const { worktree, user, guard } = place;
  Deno.writeTextFileSync(`${worktree}/dotfile`, "SECRET");
  Deno.symlinkSync(`${worktree}/dotfile`, `${user}/serve.tokens`);
  Deno.linkSync(`${worktree}/dotfile`, `${worktree}/other`);
  for (const path of ["dotfile", "other"]) {
    await assert.rejects(guard.callPaths(["/"]).open(path, { read: true }), denied, path);
  }
  assert.equal(guard.locate("dotfile").protected, "read");
});

Deno.test("no file is written through a hard link, which a protected file may have", async () => {
  using place = site();
  const { worktree, guard } = place;
  Deno.mkdirSync(`${worktree}/.svc`);
  Deno.mkdirSync(`${worktree}/.git`);
  for (const [at, name] of [[".svc/config.json", "notes"], [".git/config", "more"]] as const) {
    Deno.writeTextFileSync(`${worktree}/${at}`, "{}");
    Deno.linkSync(`${worktree}/${at}`, `${worktree}/${name}`);
    for (const options of [{ write: true }, { append: true }, { write: true, truncate: true }]) {
      await assert.rejects(guard.callPaths([]).open(name, options), denied);
    }
    (await guard.callPaths([]).open(name, { read: true })).close();
    assert.equal(text(`${worktree}/${at}`), "{}");
    // Its own name can be approved.
    (await guard.callPaths([`${worktree}/${at}`]).open(at, { write: true })).close();
  }
});

Deno.test("the file that holds the keys is not opened under any other name", async () => {
  using place = site();
  const { worktree, user, guard } = place;
  Deno.writeTextFileSync(`${user}/providers.json`, "SECRET");
  Deno.linkSync(`${user}/providers.json`, `${worktree}/notes.txt`);
  Deno.symlinkSync("notes.txt", `${worktree}/link`);
  for (const path of ["notes.txt", "link"]) {
    await assert.rejects(guard.callPaths([]).open(path, { read: true }), denied, path);
    await assert.rejects(guard.callPaths(["/"]).open(path, { append: true }), denied, path);
  }
  // Nor through /proc or in any spelling, when everything was approved.
  for (
    const path of [
      `/proc/self/root${user}/providers.json`,
      `/proc/self/task/self/root${user}/providers.json`,
      `/proc/self/cwd/../../../../..${worktree}/notes.txt`,
      `//${user}//./providers.json`,
      `${user}/x/../providers.json`,
      `${user}/.providers.json.lock`,
      `${user}/providers.json.broken-1`,
    ]
  ) {
    await assert.rejects(guard.callPaths(["/"]).open(path, { read: true }), path);
  }
});

Deno.test("a protected name stays one with characters that some file systems leave out", () => {
  using place = site();
  for (const name of [".g\u200cit", ".s\u00advc", ".GIT\ufeff"]) {
    assert.equal(place.guard.locate(`${name}/hooks/x`).protected, "write", name);
  }
});
