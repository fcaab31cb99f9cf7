import assert from "node:assert/strict";
import fc from "fast-check";
import { WorktreeGuard } from "../../src/policy/paths.ts";
import { type Site, site } from "./support.ts";

/** A site with links of every kind. */
function linked(): Site {
  const place = site();
  const { worktree, outside } = place;
  Deno.mkdirSync(`${outside}/deep`);
  Deno.writeTextFileSync(`${worktree}/file`, "x");
  const links: [string, string][] = [
    ["out", outside],
    ["relative", "../outside"],
    ["in", "src"],
    ["self", "."],
    ["chain", "relative/deep"],
    ["dangling", `${outside}/new`],
    ["dangling_in", "src/new"],
    ["loop", "loop"],
    ["ping", "pong"],
    ["pong", "ping"],
    ["up", "src/.."],
  ];
  for (const [name, target] of links) Deno.symlinkSync(target, `${worktree}/${name}`);
  return place;
}

Deno.test("a path resolves to where the system would arrive", () => {
  using place = linked();
  const { worktree, outside, root } = place;
  const cases: [string, string][] = [
    ["", worktree],
    [".", worktree],
    ["./", worktree],
    ["src", `${worktree}/src`],
    ["src/", `${worktree}/src`],
    ["src//a/./b", `${worktree}/src/a/b`],
    ["src/../file", `${worktree}/file`],
    [worktree, worktree],
    [`${worktree}/`, worktree],
    [`${worktree}/../outside`, outside],
    [`${worktree}x`, `${worktree}x`],
    ["..", root],
    ["../../../../../../../../..", "/"],
    ["/", "/"],
    ["~/x", `${worktree}/~/x`],
    ["~", `${worktree}/~`],
    ["file:///etc/passwd", `${worktree}/file:/etc/passwd`],
    ["new/deep/file", `${worktree}/new/deep/file`],
    ["new/../../outside/x", `${outside}/x`],
    ["out", outside],
    ["out/", outside],
    ["out/..", root],
    ["out/../work/file", `${worktree}/file`],
    ["out/new/file", `${outside}/new/file`],
    ["new/../out/x", `${outside}/x`],
    ["new/deep/../../out/x", `${outside}/x`],
    ["new/../new/../dangling/../deep/x", `${outside}/deep/x`],
    ["relative/deep", `${outside}/deep`],
    ["chain/x", `${outside}/deep/x`],
    ["chain/../x", `${outside}/x`],
    ["in/x", `${worktree}/src/x`],
    ["in/..", worktree],
    ["self/self/self/src", `${worktree}/src`],
    ["up/file", `${worktree}/file`],
    ["dangling", `${outside}/new`],
    ["dangling/x", `${outside}/new/x`],
    ["dangling_in", `${worktree}/src/new`],
    ["file/x", `${worktree}/file/x`],
    ["SRC", `${worktree}/SRC`],
  ];
  for (const [path, real] of cases) {
    const location = place.guard.locate(path);
    assert.equal(location.real, real, path);
    const inside = real === worktree || real.startsWith(`${worktree}/`);
    assert.equal(location.inside, inside, path);
  }
});

Deno.test("existing paths resolve as the system's own realpath does", () => {
  using place = linked();
  const names = ["..", ".", "src", "out", "in", "self", "up", "deep", "chain", "relative", "work"];
  fc.assert(fc.property(fc.array(fc.constantFrom(...names), { maxLength: 6 }), (parts) => {
    const path = parts.join("/");
    // Asked of a real process, because Deno folds `..` before it follows links.
    const { success, stdout } = new Deno.Command("realpath", {
      args: ["--canonicalize-existing", "--", path === "" ? "." : path],
      cwd: place.worktree,
      stderr: "null",
    }).outputSync();
    fc.pre(success);
    assert.equal(place.guard.locate(path).real, new TextDecoder().decode(stdout).trimEnd());
  }));
});

Deno.test("a NUL byte, a loop of links and an endless name are refused by name", () => {
  using place = linked();
  for (const path of ["a\0", "loop", "loop/x", "ping", "src/../pong/x", "n".repeat(5000)]) {
    assert.throws(() => place.guard.locate(path), { code: "bad_path" }, path.slice(0, 20));
  }
});

Deno.test("with Deno's read permission for the worktree alone, the guard still works", () => {
  using place = linked();
  const module = new URL("../../src/policy/paths.ts", import.meta.url).href;
  const script = `${place.root}/guard.mjs`;
  const options = { worktree: place.worktree, state: `${place.worktree}/.svc`, user: place.user };
  Deno.writeTextFileSync(
    script,
    `import { WorktreeGuard } from ${JSON.stringify(module)};
    const guard = new WorktreeGuard(${JSON.stringify(options)});
    const codes = ["/etc/passwd", "out/x", ".."].map((path) => {
      try { return guard.locate(path).inside; } catch (error) { return error.code; }
    });
    console.log(JSON.stringify([guard.locate("in/x").inside, guard.locate(".svc").protected, codes]));`,
  );
  const { stdout, stderr } = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", `--allow-read=${place.worktree}`, script],
  }).outputSync();
  assert.equal(new TextDecoder().decode(stderr), "");
  const [inside, guarded, codes] = JSON.parse(new TextDecoder().decode(stdout));
  assert.deepEqual([inside, guarded], [true, "write"]);
  assert.deepEqual(codes, ["bad_path", "bad_path", false]);
});

Deno.test("the worktree is known by its real path, even when it was named through a link", () => {
  using place = linked();
  Deno.symlinkSync(place.worktree, `${place.root}/alias`);
  const worktree = `${place.root}/alias`;
  const guard = new WorktreeGuard({ worktree, state: `${worktree}/.svc`, user: place.user });
  assert.deepEqual(guard.locate("file"), {
    real: `${place.worktree}/file`,
    inside: true,
    protected: false,
    closed: false,
    sealed: false,
    skill: false,
    kept: false,
  });
  assert.equal(guard.locate(`${worktree}/file`).inside, true);
  assert.equal(guard.callPaths([]).worktree, place.worktree);
});

Deno.test("a worktree inside a protected folder is not protected as a whole", () => {
  using place = site();
  const worktree = `${place.worktree}/.svc/eval/one`;
  Deno.mkdirSync(worktree, { recursive: true });
  const guard = new WorktreeGuard({ worktree, state: `${worktree}/.svc`, user: place.user });
  assert.equal(guard.locate("a").protected, false);
  assert.equal(guard.locate(".svc/a").protected, "write");
});

Deno.test("a git repository is protected under any name, including the file that would make it one", () => {
  using place = site();
  const { worktree, guard } = place;
  const guarded = (path: string) => guard.locate(path).protected;
  const parts = ["HEAD", "objects/x", "refs/x"];
  for (const last of parts) {
    const folder = `made-by-${last.split("/")[0]}`;
    for (const part of parts.filter((each) => each !== last)) {
      assert.equal(guarded(`${folder}/${part}`), false, `${folder}/${part}`);
      Deno.mkdirSync(`${worktree}/${folder}/${part}/..`, { recursive: true });
      Deno.writeTextFileSync(`${worktree}/${folder}/${part}`, "ref: refs/heads/main\n");
    }
    assert.equal(guarded(`${folder}/config`), false);
    assert.equal(guarded(`${folder}/${last}`), "write", last);
    assert.equal(guarded(`${folder}/${last.toLowerCase()}`), "write", last);
  }
  // A linked one has its objects elsewhere.
  Deno.mkdirSync(`${worktree}/linked`);
  Deno.writeTextFileSync(`${worktree}/linked/HEAD`, "");
  assert.equal(guarded("linked/gitdir"), false);
  assert.equal(guarded("linked/commondir"), "write");

  for (const part of parts) {
    Deno.mkdirSync(`${worktree}/bare/${part}/..`, { recursive: true });
    Deno.writeTextFileSync(`${worktree}/bare/${part}`, "");
  }
  for (const path of ["bare/config", "bare/hooks/x/y", "bare/HEAD", "src/../bare/new"]) {
    assert.equal(guarded(path), "write", path);
  }
  // Its folder may be one of many, and a file of that name is only one.
  for (const path of ["bare", "other", "docs/HEAD", "docs/head"]) {
    assert.equal(guarded(path), false, path);
  }
});
