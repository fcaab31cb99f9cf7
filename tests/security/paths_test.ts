import assert from "node:assert/strict";
import { relative } from "node:path";
import { WorktreeGuard } from "../../src/policy/paths.ts";
import { type Site, site } from "../policy/support.ts";
import { CANARY, fileTools, isRefusal, snapshot } from "./support.ts";

/** Calls of the real file tools with paths that lead out of the worktree or to a protected file. */

/** A site with canaries in all places that an agent must not reach, and links of all kinds to them. */
function trap(options?: { home: boolean }): Site {
  const place = site(options);
  const { worktree, outside, user, root } = place;
  const secret = ["secret", "deep/secret"].map((name) => `${outside}/${name}`)
    .concat(["providers.json", "serve.tokens"].map((name) => `${user}/${name}`));
  const guarded = [
    `${user}/config.json`,
    `${worktree}/.svc/config.json`,
    `${worktree}/.svc/roles.json`,
    `${worktree}/sub/.svc/config.json`,
    `${worktree}/.git/config`,
    `${worktree}/.git/hooks/pre-commit`,
    ...["HEAD", "config", "objects/x", "refs/x"].map((name) => `${worktree}/bare/${name}`),
  ];
  for (const file of [...secret, ...guarded]) {
    Deno.mkdirSync(`${file}/..`, { recursive: true });
    Deno.writeTextFileSync(file, secret.includes(file) ? CANARY : "protected");
  }
  Deno.linkSync(`${user}/providers.json`, `${worktree}/keys_hard`);
  for (
    const [path, name] of [[".svc/config.json", "config_hard"], [
      ".git/config",
      "git_hard",
    ]] as const
  ) {
    Deno.linkSync(`${worktree}/${path}`, `${worktree}/${name}`);
  }
  Deno.writeTextFileSync(`${worktree}/own`, "mine\n");
  const links: Record<string, string> = {
    out: outside,
    out_rel: "../outside",
    out_chain: "out_rel/deep",
    secret_link: `${outside}/secret`,
    secret_rel: "../outside/secret",
    secret_chain: "secret_rel",
    dangling: `${outside}/new`,
    dangling_deep: "../outside/none/new",
    self: ".",
    parent: "..",
    proc: "/proc/self/root",
    cwd: `/proc/self/cwd/${relative(Deno.cwd(), root)}`,
    "src/up": "../..",
    "src/ö": "../../outside",
    "src/ ": "../../outside",
    "src/-l": "../../outside",
    "src/a\nb": "../../outside",
    "src/~": "../../outside",
    settings: ".svc",
    git: ".git",
    home: user,
    keys: `${user}/providers.json`,
    config: ".svc/config.json",
    hook: ".git/hooks/pre-commit",
    loop: "loop",
  };
  for (const [name, target] of Object.entries(links)) {
    Deno.symlinkSync(target, `${worktree}/${name}`);
  }
  return place;
}

/** Spellings of an absolute path outside the worktree. */
function spellings({ worktree, root }: Site, target: string): string[] {
  const up = relative(worktree, target);
  const wide = (text: string) => text.replaceAll("/", "／");
  const proc = [
    "/proc/self/root",
    "/proc/self/root/../..",
    "/proc/thread-self/root",
    "/proc/self/task/self/root",
    `/proc/${Deno.pid}/root`,
    "/proc/self/cwd/../../../../../../../..",
    "/dev/fd/../root",
  ];
  const places = [
    ...[
      "./",
      "src/../",
      "new/../",
      "src//..//",
      "self/",
      "self/self/",
      "own/../",
      "src/./../",
      "new/x/../../",
    ],
    ...[".svc/../", "bare/../", "src/up/work/", "parent/work/"],
  ];
  return [
    target,
    up,
    `/${target}`,
    `//${target}`,
    `/.${target}`,
    `/..${target}`,
    `/../..${target}`,
    target.replaceAll("/", "//"),
    target.replaceAll("/", "/./"),
    `${target}/`,
    `${target}/.`,
    `${target}/x/..`,
    `${up}/`,
    ...proc.map((prefix) => `${prefix}${target}`),
    ...places.map((prefix) => `${prefix}${up}`),
    `/proc/self/cwd/${relative(Deno.cwd(), target)}`,
    `proc${target}`,
    `cwd/${relative(root, target)}`,
    `src/up/${relative(root, target)}`,
    `parent/${relative(root, target)}`,
    ...[
      "out",
      "out_rel",
      "out/../outside",
      "src/ö",
      "src/o\u0308",
      "src/ ",
      "src/-l",
      "src/a\nb",
      "src/~",
    ]
      .map((link) => `${link}/../${relative(root, target)}`),
    `out_chain/../../${relative(root, target)}`,
    // Texts that another program might decode or expand.
    `~/${up}`,
    `~root/${up}`,
    `$HOME/${up}`,
    `$(echo ..)/${up}`,
    `file://${target}`,
    `file:${target}`,
    encodeURIComponent(target),
    up.replaceAll("../", "..%2f"),
    up.replaceAll("..", "%2e%2e"),
    up.replaceAll("..", "%252e%252e"),
    up.replaceAll("/", "\\"),
    `C:\\${up}`,
    `\\\\?\\${target}`,
    wide(up),
    wide(target),
    up.replaceAll("..", "．．"),
    up.replaceAll("..", "‥"),
    up.replaceAll("..", "..\u200b"),
    up.replaceAll("..", ".\u200d."),
    up.replaceAll("..", ".. "),
    up.replaceAll("..", "..."),
    `\ufeff${up}`,
    ` ${up}`,
    `${up} `,
    `${up}.`,
    `${up}\n`,
    `${up}\0`,
    `${up}\0.txt`,
    `own\0/../${up}`,
    `${up}::$DATA`,
    `"${up}"`,
    `'${target}'`,
    `${root}${target.slice(root.length).toUpperCase()}`,
    `${"src/../".repeat(500)}${up}`,
    `${"./".repeat(2000)}${up}`,
    `${"../".repeat(1000)}${target.slice(1)}`,
  ];
}

/** Spellings of a protected path in the worktree, such as `.svc/config.json`. */
function variants(path: string): string[] {
  const [dir, ...rest] = path.split("/") as [string, ...string[]];
  const tail = rest.join("/");
  const names = [
    dir,
    dir.toUpperCase(),
    `${dir.slice(0, 2)}${dir.slice(2).toUpperCase()}`,
    ...["\u200b", "\u200d", "\ufeff", "\u00ad", "\u2060", "\u{e0001}", "\ufe0f"]
      .flatMap((mark) => [`${dir}${mark}`, `${dir.slice(0, 2)}${mark}${dir.slice(2)}`]),
    dir.replace(/[a-z]/g, (letter) => String.fromCodePoint(letter.codePointAt(0)! + 0xfee0)),
    dir.replace(".", "．"),
    dir.replace(".", "\u2024"),
    dir.replace("s", "ſ"),
  ];
  return [
    ...names.map((name) => `${name}/${tail}`),
    ...[
      "./",
      "src/../",
      "self/",
      "self/self/",
      "new/../",
      "parent/work/",
      "src/up/work/",
      "out/../work/",
    ]
      .map((prefix) => `${prefix}${path}`),
    `${dir}//${tail}`,
    `${dir}/./${tail}`,
    `${dir}/x/../${tail}`,
    `${dir}/../${path}`,
    `${path}/`,
    `${path}/.`,
    `src/deep/${path}`,
    `proc/self/../${path}`,
  ];
}

const READS = ["file_read", "grep", "list_dir", "glob"];
const WRITES = ["file_write", "append", "file_edit"];
function args(tool: string, path: string): [string, Record<string, unknown>] {
  switch (tool) {
    case "file_write":
      return [tool, { path, content: "changed" }];
    case "append":
      return ["file_write", { path, content: "changed", mode: "a" }];
    case "file_edit":
      return [tool, { path, old: "c", new: "changed" }];
    case "grep":
      return [tool, { path, pattern: "." }];
    case "glob":
      return [tool, { path, pattern: "*" }];
    default:
      return [tool, { path }];
  }
}

let count = 0;

/**
 * Makes a call with each tool and path. After each, no canary may have been read and nothing changed outside the
 * worktree or under a protected directory.
 */
async function attack(
  place: Site,
  tools: string[],
  paths: string[],
  options: { guard?: WorktreeGuard; yes?: boolean; refused?: boolean } = {},
): Promise<void> {
  const { worktree, outside, user } = place;
  const call = fileTools(place, options);
  const inside = [".svc", "sub/.svc", ".git", "bare"].map((name) => `${worktree}/${name}`);
  const guarded = [outside, user, ...inside];
  const before = snapshot(...guarded);
  for (const path of paths) {
    for (const tool of tools) {
      const result = await call(...args(tool, path));
      count++;
      const shown = `${tool} ${JSON.stringify(path.slice(0, 200))}: ${result.slice(0, 200)}`;
      assert.ok(!result.includes(CANARY), shown);
      if (options.refused) assert.ok(isRefusal(result), shown);
      assert.deepEqual(snapshot(...guarded), before, shown);
    }
  }
}

Deno.test("paths: no tool reads or changes a file outside the worktree", async () => {
  using place = trap();
  const targets: [string, string[]][] = [
    ["secret", [...READS, ...WRITES]],
    ["deep", ["list_dir", "glob", "grep"]],
    ["new", ["file_write", "append"]],
    ["none/new", ["file_write"]],
  ];
  for (const [name, tools] of targets) {
    await attack(place, tools, spellings(place, `${place.outside}/${name}`));
  }
  const links =
    "out secret_link secret_rel secret_chain out_chain dangling dangling_deep parent proc cwd " +
    "home src/up src/ö out/secret out_rel/deep/secret out_chain/secret out/new proc/etc/passwd ../ .. / " +
    "/etc/passwd loop loop/x keys keys_hard";
  await attack(place, [...READS, ...WRITES], links.split(" "), { refused: true });
});

Deno.test("paths: no tool opens a file with keys, even when every call is approved", async () => {
  using place = trap();
  const { user } = place;
  const yes = { yes: true };
  const tools = ["file_read", "grep", ...WRITES];
  await attack(place, tools, spellings(place, `${user}/providers.json`), yes);
  for (const name of ["serve.tokens", ".providers.json.lock", "providers.json.broken-1"]) {
    await attack(place, ["file_read", "append"], spellings(place, `${user}/${name}`), yes);
  }
  await attack(place, tools, ["keys", "keys_hard", "home/providers.json"], {
    ...yes,
    refused: true,
  });
});

const PROTECTED = [
  ".svc/config.json",
  ".svc/roles.json",
  ".svc/plugins/x/plugin.ts",
  ".git/config",
  ".git/hooks/post-checkout",
];

Deno.test("paths: protected files change only with an approval, under every spelling", async () => {
  using place = trap();
  const refused = { refused: true };
  for (const path of PROTECTED) await attack(place, WRITES, variants(path), refused);
  const others =
    "settings/config.json git/config config hook sub/.svc/config.json bare/config bare/HEAD " +
    "bare/hooks/x self/bare/config bare/../bare/config sub/.git/config src/.svc/x .svc .git .svc/ .svc/sessions";
  await attack(place, WRITES, others.split(" "), refused);
  // A second name of the file may be replaced, not written through.
  await attack(place, WRITES, ["config_hard", "git_hard", "self/config_hard", "src/../git_hard"]);
});

Deno.test("paths: an immutable agent changes nothing of svc's, even when every call is approved", async () => {
  using place = trap();
  const sealed = { guard: place.guard.sealed(), yes: true, refused: true };
  const own = PROTECTED.filter((path) => path.startsWith(".svc"));
  for (const path of own) await attack(place, WRITES, variants(path), sealed);
  const others = "settings/config.json config sub/.svc/config.json home/config.json home/new".split(
    " ",
  );
  await attack(place, WRITES, others, sealed);
});

Deno.test("paths: a pattern of a search finds nothing outside the worktree", async () => {
  using place = trap();
  const call = fileTools(place, {});
  const { outside } = place;
  const names = ["*", "**", "**/*", "secret", "{secret,x}", "deep/*", "[s]ecret", "se*"];
  const folders = [
    "../outside",
    outside,
    "out",
    "out_rel",
    "src/../../outside",
    "**/../outside",
    "src/up/outside",
    "{..,x}/outside",
    "[.][.]/outside",
    "\\.\\./outside",
    "?./outside",
    ".*/outside",
    "*/../../outside",
    "src/ö",
    "proc" + outside,
    "/proc/self/root" + outside,
    "parent/outside",
    "{out,x}",
    "o?t",
    "**/out",
    "home",
    "self/out",
  ];
  for (const folder of folders) {
    for (const name of names) {
      const pattern = `${folder}/${name}`;
      for (
        const [tool, given] of [["glob", { pattern }], ["grep", {
          pattern: ".",
          glob: pattern,
        }]] as const
      ) {
        const result = await call(tool, given);
        count++;
        assert.doesNotMatch(result, /secret$|canary|providers/m, `${tool} ${pattern}`);
      }
    }
  }
});

Deno.test("paths: sockets, pipes, devices and directories are neither opened nor waited for", async () => {
  using place = trap();
  const { worktree } = place;
  const script =
    "mkfifo pipe; mknod null c 1 3; mknod zero c 1 5; mkdir folder; ln -s /dev/zero device; ln -s pipe fifo";
  new Deno.Command("sh", { args: ["-c", script], cwd: worktree, stderr: "null" }).outputSync();
  using _socket = Deno.listen({ transport: "unix", path: `${worktree}/socket` });
  const special = "pipe fifo socket device folder pipe/x socket/x folder/ . src".split(" ");
  const nodes = ["null", "zero"].filter((name) => {
    try {
      return Deno.lstatSync(`${worktree}/${name}`).isCharDevice;
    } catch {
      return false; // only root makes devices
    }
  });
  const directories = [
    "/dev/null",
    "/dev/stdin",
    "/dev/tty",
    "/dev/fd/0",
    "/proc/self/mem",
    "/proc/self/environ",
  ];
  await attack(place, ["file_read", ...WRITES], [...special, ...nodes, ...directories], {
    refused: true,
  });
});

Deno.test("paths: keys and settings are protected when the worktree is the root directory", async () => {
  using place = trap();
  const { worktree, user } = place;
  const guard = new WorktreeGuard({ worktree: "/", state: "/.svc", user });
  await attack(
    place,
    ["file_read", ...WRITES],
    spellings(place, `${user}/providers.json`).filter((path) => !path.startsWith("..")),
    { guard },
  );
  const own = PROTECTED.map((path) => `${worktree}/${path}`);
  await attack(place, WRITES, [...own, `${user}/config.json`, `${worktree}/config`], {
    guard,
    refused: true,
  });
});

Deno.test("paths: a worktree that is named through a link is the same worktree", async () => {
  using place = trap();
  const { root, user, outside, worktree } = place;
  Deno.symlinkSync(worktree, `${root}/alias`);
  const alias = `${root}/alias`;
  const guard = new WorktreeGuard({ worktree: alias, state: `${alias}/.svc`, user });
  await attack(place, [...READS, ...WRITES], [
    `${alias}/../outside/secret`,
    `${alias}/out/secret`,
    `${outside}/secret`,
  ], {
    guard,
    refused: true,
  });
  await attack(
    place,
    WRITES,
    PROTECTED.flatMap((path) => [path, `${alias}/${path}`, `${worktree}/${path}`]),
    {
      guard,
      refused: true,
    },
  );
});

Deno.test("paths: the spellings are no straw men, since the system follows them to the secret", async () => {
  using place = trap();
  const { worktree, outside } = place;
  const paths = spellings(place, `${outside}/secret`).filter((path) => !path.includes("\0"));
  const script = 'for path; do cat -- "$path" 2> /dev/null; echo; done';
  const options = { args: ["-c", script, "sh", ...paths], cwd: worktree };
  const { stdout } = await new Deno.Command("sh", options).output();
  const reached = new TextDecoder().decode(stdout).split(CANARY).length - 1;
  assert.ok(reached >= 35, `${reached} of ${paths.length}`);
  // The same calls succeed where the operator approves them: only the approval was missing.
  const call = fileTools(place, { yes: true });
  let approved = 0;
  for (const path of paths) {
    approved += Number((await call("file_read", { path })).includes(CANARY));
  }
  assert.ok(approved >= 35, `${approved} of ${reached}`);
  assert.ok((await call("file_read", { path: "self/own" })).includes("mine"));
});

Deno.test("paths: the corpus is complete", () => {
  // deno-lint-ignore no-console
  console.log(`${count} path calls`);
  assert.ok(count >= 1028);
});
