import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { blockWith } from "../support/documents.ts";
import { needs } from "../support/needs.ts";
import { type Project, project } from "../support/project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NAME = "@svc-run/svc";
/** The newest version, another one, and the removal. */
const INSTALL = blockWith("docs/install.md", "sh", `npm rm -g ${NAME}`)
  .replaceAll(/ +#.*$/gm, "").trim().split("\n");
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

    await t.step(
      "npm installs it by the commands of docs/install.md, with the Deno of this system",
      async () => {
        await scratch.write("old/package.json", JSON.stringify({ name: NAME, version: "0.0.1" }));
        await using registry = await registryOf(scratch, ["old", "package"], run);
        await scratch.write(
          "home/.npmrc",
          `@svc-run:registry=${registry.url}\nprefix=${
            at("prefix")
          }\nfetch-retries=0\nignore-scripts=true\n`,
        );
        const [newest, older] = INSTALL as [string, string];
        for (const command of [older.replace(/@[\d.]+$/, "@0.0.1"), newest]) {
          const installed = await run("sh", "-c", command);
          assert.equal(installed.code, 0, installed.stderr);
        }
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
      },
    );

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
      const removed = await run("sh", "-c", INSTALL[2]!);
      assert.equal(removed.code, 0, removed.stderr);
      assert.deepEqual([...Deno.readDirSync(at("prefix/bin"))], []);
    });
  },
});

/** A registry that has the packages of these folders, each at its version; the last one is the newest. */
async function registryOf(
  { path, read }: Project,
  folders: string[],
  run: (command: string, ...args: string[]) => ReturnType<typeof finished>,
) {
  const versions: Record<string, { dist: { tarball: string } } & Record<string, unknown>> = {};
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async ({ url }) => {
    const { pathname } = new URL(url);
    if (pathname.endsWith(".tgz")) return new Response(await Deno.readFile(join(path, pathname)));
    const latest = Object.keys(versions).at(-1);
    return Response.json({ name: NAME, "dist-tags": { latest }, versions });
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  for (const folder of folders) {
    const packed = await run("npm", "pack", join(path, folder), "--pack-destination", path);
    assert.equal(packed.code, 0, packed.stderr);
    const manifest = JSON.parse(await read(`${folder}/package.json`));
    const tarball = `${url}${packed.stdout.trim()}`;
    versions[manifest.version] = { ...manifest, dist: { tarball } };
  }
  return { url, [Symbol.asyncDispose]: () => server.shutdown() };
}

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
