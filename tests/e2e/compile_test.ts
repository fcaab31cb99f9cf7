import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath, pathToFileURL } from "node:url";
import manifest from "../../deno.json" with { type: "json" };
import { buildFlags } from "../support/flags.ts";
import { needs } from "../support/needs.ts";
import { type Project, project } from "../support/project.ts";
import { mounts, tiny } from "../support/tiny_disk.ts";

const SCRIPT = fileURLToPath(new URL("../../compile.sh", import.meta.url));
const ENTRY = fileURLToPath(new URL("../support/executable_entry.ts", import.meta.url));
/** Everything the archive's stub may need; Deno is not among it. */
const PROGRAMS = ["cksum", "dd", "id", "mkdir", "mktemp", "mv", "rm", "tar"];

/** A home directory that not even root can make. */
const NO_HOME = "/proc/no home";

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

Deno.test("compile.sh refuses what it cannot do, with a sentence", async (t) => {
  await using scratch = await project();
  const output = join(scratch.path, "svc");
  const refusals: [args: string[], code: number, sentence: RegExp][] = [
    [["--profile", "all"], 2, /profile is build, plan or sandboxed, not "all"/],
    [["--fast"], 2, /no option "--fast"/],
    [["--output"], 2, /--output needs a value/],
    [["--archive", "--target", "aarch64-apple-darwin"], 2, /--target needs deno compile/],
    [["--target", "aarch64-apple-darwin"], 1, /archive can only be made for this machine/],
    [["--entry", join(scratch.path, "nowhere.ts")], 1, /bundling failed/],
  ];
  for (const [args, code, sentence] of refusals) {
    await t.step(args.slice(0, 3).map((arg) => basename(arg)).join(" "), async () => {
      const ended = await compile(["--output", output, "--entry", ENTRY, ...args]);
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stderr, sentence);
      assert.deepEqual([...Deno.readDirSync(scratch.path)], []);
    });
  }
});

Deno.test("compile.sh --bundle replaces a bundle, and no other folder", async () => {
  await using scratch = await project({
    "home/letter.txt": "x",
    "old/main.js": "",
    "old/x.js": "",
    "work/README.md": "",
  });
  const bundle = (name: string) =>
    compile(["--bundle", "--output", join(scratch.path, name), "--entry", ENTRY]);
  const refused = await bundle("home");
  assert.deepEqual([refused.code, refused.stdout], [2, ""]);
  assert.match(refused.stderr, /\/home is there, and is not a bundle\.\n$/);
  assert.deepEqual(names(join(scratch.path, "home")), ["letter.txt"]);
  assert.equal((await bundle("old")).code, 0);
  assert.ok(!exists(join(scratch.path, "old/x.js")));
  const env = { HOME: scratch.path };
  const { stdout } = await start(join(scratch.path, "old/svc"), ["echo", "a b"], scratch, env, "");
  assert.deepEqual(JSON.parse(stdout).args, ["a b"]);
});

Deno.test("compile.sh --help prints its options", async () => {
  const { code, stdout } = await compile(["--help"]);
  assert.equal(code, 0);
  assert.match(stdout, /^Builds the single executable of svc\.\n/);
  for (const option of ["--profile", "--target", "--output", "--archive", "--bundle", "--entry"]) {
    assert.ok(stdout.includes(`\n  ${option} `), option);
  }
  assert.ok(!stdout.includes("set -e"));
});

Deno.test("making the bundle small loses no using: one that is read once is moved, and nothing closed", async () => {
  await using scratch = await project();
  const main = fileURLToPath(new URL("../../main.ts", import.meta.url));
  const usings = async (...options: string[]) => {
    const outdir = join(scratch.path, `bundle${options.length}`);
    const { success } = await new Deno.Command(Deno.execPath(), {
      args: ["bundle", "--quiet", ...options, "--platform", "deno", "--outdir", outdir, main],
      stderr: "null",
    }).output();
    assert.ok(success);
    const files = [...Deno.readDirSync(outdir)].filter(({ name }) => name.endsWith(".js"));
    return files.map(({ name }) => Deno.readTextFileSync(join(outdir, name))).join("\n")
      .match(/\busing [\w$]+\s*=/g)!.length;
  };
  const wanted = await usings("--code-splitting");
  assert.ok(wanted > 10, `${wanted}`);
  assert.equal(await usings("--code-splitting", "--minify"), wanted);
});

Deno.test("deno compile is given exactly the profile's flags", async () => {
  await using scratch = await project();
  // The Deno binary cannot start the result, but it can be compiled into.
  const output = join(scratch.path, "svc");
  const ended = await compile(["--profile", "plan", "--output", output, "--entry", ENTRY], {
    DENORT_BIN: Deno.execPath(),
  });
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stdout, /: deno compile, profile plan, \d+ MB\n$/);
  const bytes = new TextDecoder("latin1").decode(await Deno.readFile(output));
  const permissions = JSON.parse(/"permissions":(\{[^}]*\})/.exec(bytes)![1]!);
  const { allow_import: _, ...granted } = permissions;
  const allowed = Object.entries(granted)
    .filter(([name, value]) => name.startsWith("allow") && value !== null)
    .map(([name, value]) => {
      const list = (value as string[]).join(",");
      return `--${name.replace("_", "-")}${list && "="}${list}`;
    });
  const [, features] = /"features":(\[[^\]]*\])/.exec(bytes)!;
  const unstable = JSON.parse(features!).map((name: string) => `--unstable-${name}`);
  // Deno's own come first, then ours.
  const [, engine] = /"v8_flags":(\[[^\]]*\])/.exec(bytes)!;
  const ours = JSON.parse(engine!).filter((flag: string) =>
    /semi-space|heap-growing|regexp-engine/.test(flag)
  );
  assert.deepEqual(
    ["--no-prompt", ...allowed, ...unstable, `--v8-flags=${ours.join(",")}`].sort(),
    buildFlags("plan").sort(),
  );
  assert.equal(permissions.prompt, false);
  assert.ok(bytes.includes("page_worker.js"), "the worker is part of it");
});

Deno.test("the archive form", async (t) => {
  await using scratch = await project({ "work/README.md": "" });
  const folder = join(scratch.path, "a folder with spaces");
  const executable = join(folder, "svc");
  const plan = join(scratch.path, "svc-plan");
  await Deno.mkdir(join(scratch.path, "bin"));
  for (const program of PROGRAMS) {
    const path = ["/usr/bin", "/bin"].map((bin) => join(bin, program)).find(exists);
    await Deno.symlink(path!, join(scratch.path, "bin", program));
  }
  let homes = 0;
  /** A home directory of a user who has never run the program. */
  const newHome = async () => {
    const home = join(scratch.path, `home ${++homes}`);
    await Deno.mkdir(home);
    return home;
  };
  const run = (args: string[], env: Record<string, string>, program = executable, stdin = "") =>
    start(program, args, scratch, env, stdin);

  await t.step("is built, and said to be, where deno compile cannot be done", async () => {
    const ended = await compile(["--output", executable, "--entry", ENTRY], {
      DENORT_BIN: join(scratch.path, "nowhere"),
    });
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /deno compile cannot be done here \(.+\); making an archive/);
    assert.match(ended.stdout, /a folder with spaces\/svc: archive, profile build, \d+ MB\n$/);
    const other = await compile(
      ["--archive", "--profile", "plan", "--output", plan, "--entry", ENTRY],
    );
    assert.equal(other.code, 0, other.stderr);
    assert.equal(other.stderr, "");
  });

  await t.step("has the flags of its profile, also when it is asked for", async () => {
    const asked = join(scratch.path, "asked");
    const ended = await compile(["--archive", "--output", asked, "--entry", ENTRY]);
    assert.equal(ended.code, 0, ended.stderr);
    assert.deepEqual(await Deno.readFile(asked), await Deno.readFile(executable));
    const stub = new TextDecoder().decode((await Deno.readFile(asked)).subarray(0, 20_000));
    for (const flag of buildFlags()) assert.ok(stub.includes(` ${flag} `), flag);
  });

  await t.step("holds the same bytes whenever it is built", async () => {
    const [one, two] = await Promise.all([payload(executable), payload(plan)]);
    assert.ok(one.length > 10_000_000);
    assert.deepEqual(one, two);
  });

  await t.step("says its version without unpacking itself", async () => {
    const fresh = await newHome();
    for (const option of ["--version", "-V"]) {
      const ended = await run([option], { HOME: fresh });
      assert.deepEqual(ended, { code: 0, stdout: `${manifest.version}\n`, stderr: "" });
    }
    assert.deepEqual(names(fresh), []);
  });

  const home = await newHome();
  await t.step("passes arguments, directory, input, output and process id through", async () => {
    const child = spawn(executable, ["echo", "a b", "", "--version", "$HOME", "*"], scratch, {
      HOME: home,
    });
    const ended = await finish(child, "line\nünd mehr");
    assert.equal(ended.stderr, "");
    assert.deepEqual(JSON.parse(ended.stdout), {
      args: ["a b", "", "--version", "$HOME", "*"],
      cwd: join(scratch.path, "work"),
      stdin: "line\nünd mehr",
      pid: child.pid,
    });
  });

  await t.step(
    "refuses a directory that was removed, and a run without standard output",
    async () => {
      const lines = async (script: string) => {
        const { code, stderr } = await new Deno.Command("sh", {
          args: ["-c", script, "sh", executable, scratch.path],
          env: { HOME: home },
        }).output();
        return { code, said: new TextDecoder().decode(stderr).trim().split("\n").at(-1) };
      };
      assert.deepEqual(
        await lines('mkdir "$2/gone" && cd "$2/gone" && rmdir "$2/gone" && "$1" echo'),
        {
          code: 2,
          said: "svc: The current directory is not there any more. Change to another one.",
        },
      );
      assert.deepEqual(await lines('"$1" run >&-'), {
        code: 2,
        said: "svc: Standard output is closed, so the result would be lost. Nothing was started.",
      });
    },
  );

  await t.step("unpacks into one private folder and nowhere else", () => {
    assert.deepEqual(names(home), [".cache"]);
    assert.deepEqual(names(join(home, ".cache")), ["svc"]);
    const [content, ...others] = names(join(home, ".cache", "svc"));
    assert.deepEqual(others, []);
    assert.ok(names(join(home, ".cache", "svc", content!)).includes("page_worker.js"));
    for (const path of [join(home, ".cache/svc"), join(home, ".cache/svc", content!)]) {
      assert.equal(Deno.statSync(path).mode! & 0o777, 0o700, path);
    }
  });

  await t.step("brings what its files import, so that Deno parses none of them", () => {
    const [content = ""] = names(join(home, ".cache/svc"));
    const folder = join(home, ".cache/svc", content);
    using database = new DatabaseSync(join(folder, "eager/dep_analysis_cache_v2"));
    const query = "SELECT specifier FROM moduleinfocache WHERE specifier LIKE '%main.js'";
    const known = database.prepare(query).all().map(({ specifier }) => specifier);
    assert.deepEqual(known, [pathToFileURL(join(folder, "main.js")).href]);
  });

  await t.step("needs no program at all once it is unpacked", async () => {
    const ended = await run(["exit", "0"], { HOME: home, PATH: "/nowhere" });
    assert.deepEqual(ended, { code: 0, stdout: "", stderr: "" });
  });

  await t.step("passes exit codes and signals through", async () => {
    assert.equal((await run(["exit", "42"], { HOME: home })).code, 42);
    const child = spawn(executable, ["wait"], scratch, { HOME: home });
    const reader = child.stdout.getReader();
    assert.equal(new TextDecoder().decode((await reader.read()).value), "ready\n");
    child.kill("SIGTERM");
    assert.equal(new TextDecoder().decode((await reader.read()).value), '"stopped"\n');
    await reader.cancel();
    await child.stdin.close();
    await child.stderr.cancel();
    assert.equal((await child.status).code, 0);
  });

  await t.step("starts through a link and by its name on the PATH", async () => {
    const fresh = await newHome();
    await Deno.mkdir(join(scratch.path, "links"));
    await Deno.symlink(executable, join(scratch.path, "links", "agent"));
    const linked = join(scratch.path, "links", "agent");
    assert.equal((await run(["exit", "3"], { HOME: fresh }, linked)).code, 3);
    const path = `${join(scratch.path, "links")}:${join(scratch.path, "bin")}`;
    const named = await run(
      ["-c", "agent exit 4"],
      { HOME: await newHome(), PATH: path },
      "/bin/sh",
    );
    assert.equal(named.code, 4, named.stderr);
  });

  await t.step("has the permissions of its profile, and asks for none", async () => {
    const places = [".svc/x", "x", join(scratch.path, "elsewhere")];
    const states = async (program: string) =>
      JSON.parse((await run(["permissions", ...places], { HOME: home }, program)).stdout);
    const common = {
      net: "granted",
      read: "granted",
      home: "granted",
      ffi: "prompt",
      sys: "prompt",
    };
    const all = ["granted", "granted", "granted"];
    assert.deepEqual(await states(executable), {
      ...common,
      run: "granted",
      env: "prompt",
      write: all,
    });
    assert.deepEqual(await states(plan), {
      ...common,
      run: "prompt",
      env: "prompt",
      write: ["granted", "prompt", "prompt"],
    });
  });

  await t.step("imports TypeScript from disk, and packages from itself", async () => {
    await scratch.write("p lug.ts", "enum E { A = 'yes' }\nexport const answer: string = E.A;");
    const plugin = await run(["plugin", join(scratch.path, "p lug.ts")], { HOME: home });
    assert.equal(plugin.stdout, '"yes"\n', plugin.stderr);
    assert.equal((await run(["package"], { HOME: home })).stdout, "3\n");
  });

  await t.step("runs no code from the network", async () => {
    for (const url of ["https://127.0.0.1:1/x.ts", "npm:diff"]) {
      const ended = await run(["remote", url], { HOME: home });
      assert.equal(ended.code, 1);
      assert.match(ended.stderr, /--no-npm is specified|Requires import access/);
    }
  });

  await t.step("keeps Deno's cache folder to itself", async () => {
    const variables = async (env: Record<string, string>) =>
      (JSON.parse((await run(["child"], { HOME: home, ...env })).stdout) as string[])
        .filter((line) => line.includes("DENO_DIR"));
    assert.deepEqual(await variables({}), []);
    assert.deepEqual(await variables({ DENO_DIR: "/my own" }), ["DENO_DIR=/my own"]);
    assert.deepEqual(names(join(home, ".cache")), ["svc"]);
  });

  await t.step("bounds its heap, and that of no program that it runs", async () => {
    const bounds = (lines: string[]) =>
      lines.filter((line) => line.startsWith("MALLOC_")).map((line) => line.split("=")[0]).sort();
    for (const [command, bound] of [["serve", "TRIM_THRESHOLD"], ["run", "TOP_PAD"]] as const) {
      const { started, child } = JSON.parse((await run([command], { HOME: home })).stdout);
      if (Deno.build.os === "linux") {
        assert.deepEqual(bounds(started), ["MALLOC_MMAP_THRESHOLD_", `MALLOC_${bound}_`]);
      }
      assert.deepEqual(bounds(child), []);
    }
  });

  await t.step("is not disturbed by configuration files around it", async () => {
    await Deno.writeTextFile(join(home, "deno.json"), "{ broken");
    await Deno.writeTextFile(join(home, "package.json"), "{ broken");
    await scratch.write("work/deno.json", "{ broken");
    const ended = await run(["exit", "5"], { HOME: home });
    assert.equal(ended.code, 5, ended.stderr);
  });

  await t.step("unpacks once when several start at the same time", async () => {
    const fresh = await newHome();
    const ended = await Promise.all(
      [1, 2, 3].map((code) => run(["exit", String(code)], { HOME: fresh })),
    );
    assert.deepEqual(ended.map(({ code, stderr }) => [code, stderr]), [[1, ""], [2, ""], [3, ""]]);
    assert.equal(names(join(fresh, ".cache/svc")).length, 1);
  });

  await t.step("notices what is missing or empty, and unpacks again", async () => {
    const content = join(home, ".cache/svc", names(join(home, ".cache/svc"))[0]!);
    const chunk = names(content).find((name) => name.endsWith(".js") && name !== "main.js")!;
    await Deno.remove(join(content, chunk));
    assert.equal((await run(["exit", "6"], { HOME: home })).code, 6);
    await Deno.writeTextFile(join(content, "main.js"), "");
    assert.equal((await run(["exit", "7"], { HOME: home })).code, 7);
    assert.ok(exists(join(content, chunk)));
    assert.equal(names(join(home, ".cache/svc")).length, 1);
  });

  await t.step("goes to XDG_CACHE_HOME, and else to the temporary directory", async () => {
    const cache = join(scratch.path, "xdg");
    assert.equal((await run(["exit", "8"], { HOME: NO_HOME, XDG_CACHE_HOME: cache })).code, 8);
    assert.equal(names(join(cache, "svc")).length, 1);
    const temporary = join(scratch.path, "tmp");
    await Deno.mkdir(temporary);
    const env = { HOME: NO_HOME, TMPDIR: temporary };
    for (const code of [9, 10]) {
      const ended = await run(["exit", String(code)], env);
      assert.deepEqual([ended.code, ended.stderr], [code, ""]);
    }
    assert.deepEqual(names(temporary), [`svc-${Deno.uid()}`]);
    const place = join(temporary, `svc-${Deno.uid()}`);
    assert.equal(Deno.statSync(place).mode! & 0o777, 0o700);
    assert.equal(names(place).length, 1);
  });

  await t.step({
    name: "runs nothing out of a folder that belongs to somebody else",
    ...needs("only root can give a folder away, which does not run the tests", Deno.uid() === 0),
    fn: async () => {
      const fresh = await newHome();
      await Deno.mkdir(join(fresh, ".cache/svc"), { recursive: true });
      await Deno.chown(join(fresh, ".cache/svc"), 12345, 12345);
      const temporary = join(scratch.path, "tmp2");
      await Deno.mkdir(temporary);
      assert.equal((await run(["exit", "11"], { HOME: fresh, TMPDIR: temporary })).code, 11);
      assert.deepEqual(names(join(fresh, ".cache/svc")), []);
      const [content] = names(join(temporary, "svc-0"));
      await Deno.chown(join(temporary, "svc-0", content!), 12345, 12345);
      await scratch.write(`tmp2/svc-0/${content}/main.js`, "Deno.exit(99)");
      assert.equal((await run(["exit", "12"], { HOME: fresh, TMPDIR: temporary })).code, 12);
    },
  });

  await t.step("runs nothing out of a folder that other users may write into", async () => {
    const cases: [string, number, boolean][] = [
      [".cache", 0o777, false],
      [".cache", 0o1777, true],
      [".cache", 0o755, true],
      [".cache/svc", 0o777, false],
      [".cache/svc", 0o1755, true],
      [".cache/svc/*", 0o777, false],
      [".cache/svc/*", 0o1777, false],
      ...Deno.uid() === 0 ? [[".cache", 0o2775, false] as [string, number, boolean]] : [],
    ];
    for (const [index, [name, mode, kept]] of cases.entries()) {
      const fresh = await newHome();
      const temporary = join(scratch.path, `shared ${index}`);
      await Deno.mkdir(temporary);
      const env = { HOME: fresh, TMPDIR: temporary };
      // Unpacked already.
      const linked = new Deno.Command("cp", { args: ["-al", `${home}/.cache`, fresh] });
      assert.ok((await linked.output()).success);
      const base = join(fresh, ".cache/svc");
      const content = join(base, names(base)[0]!);
      const folder = name.endsWith("*") ? content : join(fresh, name);
      if (mode === 0o2775) await Deno.chown(folder, 0, 12345);
      await Deno.chmod(folder, mode);
      await Deno.remove(join(content, "main.js"));
      await Deno.writeTextFile(join(content, "main.js"), "Deno.exit(99)");
      const { code } = await run(["exit", "4"], env);
      assert.equal(code, kept ? 99 : 4, `${name} ${mode.toString(8)}`);
      assert.equal(names(temporary).length, kept ? 0 : 1);
    }
  });

  await t.step("does not follow a link that was laid in its way", async () => {
    const temporary = join(scratch.path, "tmp3");
    await Deno.mkdir(join(temporary, "target"), { recursive: true });
    await Deno.symlink("target", join(temporary, `svc-${Deno.uid()}`));
    const ended = await run(["exit", "0"], { HOME: NO_HOME, TMPDIR: temporary });
    assert.equal(ended.code, 1);
    assert.match(ended.stderr, /tmp3\/svc-\d+ \(it is not a folder that you alone can write to\)/);
    assert.deepEqual(names(join(temporary, "target")), []);
  });

  await t.step("leaves nothing behind when it is damaged", async () => {
    const fresh = await newHome();
    const damaged = join(scratch.path, "damaged");
    const bytes = await Deno.readFile(executable);
    for (const text of [bytes.subarray(0, bytes.length >> 1), flip(bytes)]) {
      await Deno.writeFile(`${damaged}.bytes`, text, { mode: 0o755 });
      // Copied by another process: a file that this one has written may still be open in a program that starts.
      await new Deno.Command("cp", { args: ["--preserve=mode", `${damaged}.bytes`, damaged] })
        .output();
      const ended = await run(["exit", "0"], { HOME: fresh, TMPDIR: fresh }, damaged);
      assert.equal(ended.code, 1);
      const sentence =
        `svc: ${damaged} is damaged or was not downloaded whole; download it again.\n`;
      assert.equal(ended.stderr, sentence);
    }
    assert.deepEqual(names(fresh), []);
  });

  await t.step("removes what a killed process had unpacked, at the next start", async () => {
    const fresh = await newHome();
    const tools = join(scratch.path, "killing");
    await Deno.mkdir(tools);
    // The last argument is the folder, unpack.<process id>.<host>.<random>.
    const kill = `#!/bin/sh
for folder; do :; done
echo half >"$folder/deno"
id=\${folder##*/unpack.}
kill -9 "\${id%%.*}"
`;
    await Deno.writeTextFile(join(tools, "tar"), kill, { mode: 0o755 });
    const env = { HOME: fresh, PATH: `${tools}:/usr/bin:/bin` };
    assert.equal((await run(["exit", "0"], env)).code, 137);
    assert.match(names(join(fresh, ".cache/svc"))[0]!, /^unpack\.\d+\./);
    const again = await run(["exit", "13"], { HOME: fresh, PATH: "/usr/bin:/bin" });
    assert.deepEqual([again.code, again.stderr], [13, ""]);
    assert.deepEqual(names(join(fresh, ".cache/svc")), names(join(home, ".cache/svc")));
  });

  await t.step(
    "keeps itself, the newest other version and what runs or unpacks, and no more",
    async () => {
      const fresh = await newHome();
      const cache = join(fresh, ".cache/svc");
      const folders = ["1", "2", "3", "4"].map((digit) => digit.repeat(16));
      const host = Deno.readTextFileSync("/etc/hostname").trim();
      const unpacking = [`unpack.${Deno.pid}.${host}.abcdef`, "unpack.1.elsewhere.abcdef"];
      for (const [age, name] of [...folders, ...unpacking, "unpack.abcdef", "notes"].entries()) {
        await Deno.mkdir(join(cache, name), { recursive: true });
        if (name === folders[2]) await Deno.copyFile("/bin/sleep", join(cache, name, "deno"));
        const time = Date.now() / 1000 - 3600 * (name === "unpack.abcdef" ? 2 : age / 60);
        await Deno.utime(join(cache, name), time, time);
      }
      for (const folder of [".cache", ".cache/svc"]) await Deno.chmod(join(fresh, folder), 0o700);
      const old = new Deno.Command(join(cache, folders[2]!, "deno"), { args: ["60"] }).spawn();
      const ended = await run(["exit", "14"], { HOME: fresh, PATH: "/usr/bin:/bin" });
      old.kill();
      await old.status;
      assert.deepEqual([ended.code, ended.stderr], [14, ""]);
      const [content] = names(join(home, ".cache/svc"));
      const kept = [content!, folders[0]!, folders[2]!, "notes", ...unpacking];
      assert.deepEqual(names(cache), kept.sort());
    },
  );

  await t.step({
    name: "says in one sentence what a file system does not let it do",
    ...mounts,
    fn: async () => {
      const cases: [flags: string, cause: string][] = [
        ["size=1m", "the disk is full"],
        ["noexec", "programs may not run there: is it mounted with noexec?"],
        ["ro", "it cannot be made"],
      ];
      for (const [flags, cause] of cases) {
        await using _ = await tiny(scratch, { flags });
        const disk = join(scratch.path, "tiny");
        const ended = await run(["exit", "0"], { HOME: disk, TMPDIR: disk });
        const [cache, temporary] = [`${disk}/.cache/svc`, `${disk}/svc-${Deno.uid()}`];
        assert.deepEqual(ended, {
          code: 1,
          stdout: "",
          stderr:
            `svc: cannot unpack itself into ${cache} (${cause}), nor into ${temporary} (${cause}); ` +
            "XDG_CACHE_HOME can name a folder of yours with 100 MB.\n",
        });
      }
    },
  });

  await t.step({
    name: "says that Deno needs /proc where it is not mounted",
    ...mounts,
    fn: async () => {
      const script = 'umount --lazy /proc && exec "$0" exit 0';
      const ended = await run(["--mount", "sh", "-c", script, executable], {
        HOME: home,
        PATH: "/usr/bin:/bin",
      }, "/usr/bin/unshare");
      assert.deepEqual(ended, {
        code: 1,
        stdout: "",
        stderr: "svc: Deno needs /proc, which is not mounted here.\n",
      });
    },
  });

  await t.step("says which machine it is for, on another", async () => {
    const other = join(scratch.path, "other");
    const bytes = await Deno.readFile(executable);
    const machine = `${uname("-s")} ${uname("-m")}`;
    const text = new TextDecoder("latin1").decode(bytes.subarray(0, 20_000));
    for (const { index } of text.matchAll(new RegExp(machine, "g"))) {
      bytes.fill("x".charCodeAt(0), index, index + machine.length);
    }
    await Deno.writeFile(`${other}.bytes`, bytes, { mode: 0o755 });
    await new Deno.Command("cp", { args: ["--preserve=mode", `${other}.bytes`, other] }).output();
    // Deno cannot be started here: it is for the other machine.
    const tools = join(scratch.path, "foreign");
    await Deno.mkdir(tools);
    const tar =
      '#!/bin/sh\nfor folder; do :; done\ncat >/dev/null\nprintf "#!/nowhere" >"$folder/deno"\nchmod +x "$folder/deno"\n';
    await Deno.writeTextFile(join(tools, "tar"), tar, { mode: 0o755 });
    const fresh = await newHome();
    const env = { HOME: fresh, PATH: `${tools}:/usr/bin:/bin` };
    const ended = await run(["exit", "0"], env, other);
    assert.equal(
      ended.stderr,
      `svc: this executable is for ${"x".repeat(machine.length)}, and this is ${machine}.\n`,
    );
    const glibc = await run(["exit", "0"], env);
    assert.match(glibc.stderr, /^svc: Deno needs the GNU C library.*\n$/);
    assert.deepEqual(names(join(fresh, ".cache/svc")), []);
  });
});

async function compile(args: string[], env: Record<string, string> = {}): Promise<Ended> {
  const { code, stdout, stderr } = await new Deno.Command("bash", {
    args: [SCRIPT, ...args],
    env: { DENORT_BIN: "/nowhere", ...env },
    stdin: "null",
  }).output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

/** Starts a program in `work`, with nothing in its environment but what is given. */
function spawn(
  program: string,
  args: string[],
  { path }: Project,
  env: Record<string, string>,
): Deno.ChildProcess {
  return new Deno.Command(program, {
    args,
    cwd: join(path, "work"),
    clearEnv: true,
    env: { PATH: join(path, "bin"), ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

async function finish(child: Deno.ChildProcess, stdin: string): Promise<Ended> {
  const writer = child.stdin.getWriter();
  const written = writer.write(new TextEncoder().encode(stdin)).then(() => writer.close());
  const [{ code, stdout, stderr }] = await Promise.all([child.output(), written.catch(() => {})]);
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

function start(
  program: string,
  args: string[],
  scratch: Project,
  env: Record<string, string>,
  stdin: string,
): Promise<Ended> {
  return finish(spawn(program, args, scratch, env), stdin);
}

/** What follows the stub of an archive. */
async function payload(executable: string): Promise<Uint8Array> {
  const bytes = await Deno.readFile(executable);
  const [, size] = /^size=(\d+) *$/m.exec(new TextDecoder().decode(bytes.subarray(0, 20_000)))!;
  return bytes.subarray(Number(size));
}

/** The bytes with one in the middle changed. */
function flip(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  copy[copy.length >> 1]! ^= 0xff;
  return copy;
}

function uname(option: string): string {
  const { stdout } = new Deno.Command("uname", { args: [option] }).outputSync();
  return new TextDecoder().decode(stdout).trim();
}

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
