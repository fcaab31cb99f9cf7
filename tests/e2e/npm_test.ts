import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { needs } from "../support/needs.ts";
import { type Project, project } from "../support/project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MAKE = join(ROOT, "packaging/npm.sh");

/** Variables by which npm reaches its registry; nothing else of this environment is passed on. */
const NETWORK = Object.fromEntries(
  Object.entries(Deno.env.toObject()).filter(([name]) =>
    /CERT|CA_|_proxy$|^npm_config_reg/i.test(name)
  ),
);

Deno.test({
  name: "the npm package is installed in a home with Node alone, runs nothing then, and works",
  ...needs("npm's registry cannot be reached", await succeeds("npm", "ping", "--fetch-retries=0")),
  async fn(t) {
    await using scratch = await project({ "work/README.md": "one\ntwo\n", "home/.keep": "" });
    const at = (...path: string[]) => join(scratch.path, ...path);
    await nodeAlone(scratch);
    const env = { ...NETWORK, HOME: at("home"), PATH: `${at("tools")}:/usr/bin:/bin` };
    const run = (command: string, ...args: string[]) => finished(command, args, env, at("work"));
    const svc = at("prefix/bin/svc");

    await t.step(
      "its archive has the program and no script that an installation runs",
      async () => {
        const made = await finished("bash", [MAKE, at("package")], Deno.env.toObject(), ROOT);
        assert.equal(made.code, 0, made.stderr);
        const packed = await run("npm", "pack", at("package"), "--pack-destination", at());
        assert.equal(packed.code, 0, packed.stderr);
        const manifest = JSON.parse(await scratch.read("package/package.json"));
        const deno = Deno.readTextFileSync(join(ROOT, ".deno-version")).trim();
        assert.equal(manifest.scripts, undefined);
        assert.deepEqual(manifest.os, ["linux", "darwin"]);
        assert.deepEqual(new Set(Object.values(manifest.optionalDependencies)), new Set([deno]));
        assert.equal(
          manifest.version,
          JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.json"))).version,
        );
      },
    );

    await t.step("npm installs it, with the Deno of this system", async () => {
      const [archive] = [...Deno.readDirSync(at())].map(({ name }) => name)
        .filter((name) => name.endsWith(".tgz"));
      const flags = ["--global", "--prefix", at("prefix"), "--fetch-retries=0", "--ignore-scripts"];
      const installed = await run("npm", "install", ...flags, at(archive!));
      assert.equal(installed.code, 0, installed.stderr);
      const { stdout } = await run(
        "npm",
        "ls",
        "--global",
        "--prefix",
        at("prefix"),
        "--all",
        "--json",
      );
      const { dependencies } = JSON.parse(stdout).dependencies["@svc-run/svc"];
      for (const name of Object.keys(dependencies)) {
        const path = `prefix/lib/node_modules/@svc-run/svc/node_modules/${name}/package.json`;
        if (dependencies[name].version === undefined) continue; // of another system
        assert.equal(JSON.parse(await scratch.read(path)).scripts, undefined, name);
      }
    });

    await t.step("it starts without a process of Node, and says what it is", async () => {
      const { code, stdout, stderr } = await run(svc, "--version", "--verbose");
      assert.deepEqual([code, stderr], [0, ""]);
      assert.match(stdout, /^svc \S+\nbuild: bundle, profile build\ncommit: \S+\nDeno: 2\./);
      const child = new Deno.Command(svc, {
        args: ["serve", "--port", "0"],
        cwd: at("work"),
        clearEnv: true,
        env,
        stderr: "piped",
      }).spawn();
      let notes = "";
      let asked = false;
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
        notes += text;
        const [, url] = /^listening on (\S+)$/m.exec(notes) ?? [];
        if (url === undefined || asked) continue;
        asked = true;
        assert.deepEqual(await (await fetch(`${url}/health`)).json(), { status: "ok" });
        const healthy = await run(svc, "health", "--url", url);
        assert.equal(healthy.code, 0, healthy.stderr);
        child.kill("SIGTERM"); // the process that was started is the server itself
      }
      assert.equal((await child.status).code, 0, notes);
    });

    await t.step("it runs a turn on the demo model", async () => {
      const prompt = "how many lines does README.md have?";
      const turn = await run(svc, "run", "--provider", "demo", "--output", "text", "-p", prompt);
      assert.match(turn.stdout, /README\.md has 2 lines/, turn.stderr);
    });

    await t.step("it says what to do where npm left out Deno", async () => {
      await Deno.remove(at("prefix/lib/node_modules/@svc-run/svc/node_modules"), {
        recursive: true,
      });
      const { code, stdout, stderr } = await run(svc, "--version", "--verbose");
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /^svc: npm has not installed Deno, [^\n]*\n$/);
    });

    await t.step("npm removes it", async () => {
      const flags = ["--global", "--prefix", at("prefix")];
      const removed = await run("npm", "uninstall", ...flags, "@svc-run/svc");
      assert.equal(removed.code, 0, removed.stderr);
      assert.deepEqual([...Deno.readDirSync(at("prefix/bin"))], []);
    });
  },
});

/** Makes a folder `tools` with Node and npm. */
async function nodeAlone({ path }: Project): Promise<void> {
  await Deno.mkdir(join(path, "tools"));
  for (const tool of ["node", "npm"]) {
    const { stdout } = await finished(
      "sh",
      ["-c", `command -v ${tool}`],
      Deno.env.toObject(),
      path,
    );
    await Deno.symlink(await Deno.realPath(stdout.trim()), join(path, "tools", tool));
  }
}

async function finished(command: string, args: string[], env: Record<string, string>, cwd: string) {
  const { code, stdout, stderr } = await new Deno.Command(command, {
    args,
    cwd,
    clearEnv: true,
    env,
    stdin: "null",
  }).output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

async function succeeds(command: string, ...args: string[]): Promise<boolean> {
  try {
    return (await new Deno.Command(command, { args, stdout: "null", stderr: "null" }).output())
      .success;
  } catch {
    return false;
  }
}
