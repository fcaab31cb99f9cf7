import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { project } from "../support/project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const FILE = `svc-${{ linux: "linux", darwin: "macos" }[Deno.build.os as "linux"]}-${
  Deno.build.arch === "x86_64" ? "x64" : "arm64"
}.gz`;
const NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/** Runs install.sh as a user who is not root, where that can be chosen; it lies next to the home. */
async function install(home: string, args: string[], env: Record<string, string> = {}) {
  const script = join(dirname(home), "install.sh");
  const [program, ...rest] = [...Deno.uid() === 0 ? NOBODY : [], "sh", script, ...args];
  const { code, stdout, stderr } = await new Deno.Command(program!, {
    args: rest,
    cwd: "/",
    clearEnv: true,
    env: { HOME: home, TMPDIR: home, PATH: "/usr/bin:/bin", ...env },
    stdin: "null",
  }).output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

async function bash(...args: string[]) {
  const { success, stderr } = await new Deno.Command("bash", { args, stdin: "null" }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

/** A folder with homes of that user. */
async function homes() {
  const place = await project({}, { dir: "/tmp" }); // every user may read it
  await Deno.chmod(place.path, 0o755);
  await place.write("install.sh", await Deno.readTextFile(join(ROOT, "install.sh")));
  return Object.assign(place, {
    async home(name: string) {
      const path = join(place.path, name);
      await Deno.mkdir(path);
      if (Deno.uid() === 0) await Deno.chown(path, 65534, 65534);
      return path;
    },
    /** A release with a program that has a version and nothing else. */
    async release(name: string, version: string) {
      const folder = join(place.path, name);
      const program = `#!/bin/sh\n[ "$1" = --version ] && echo ${version}\n`;
      await Deno.writeTextFile(join(place.path, "program"), program);
      await bash(join(ROOT, "packaging/release.sh"), folder, join(place.path, "program"));
      return folder;
    },
  });
}

/** Serves the files of a folder over HTTP. */
function serveFolder(folder: string) {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async ({ url }) => {
    try {
      return new Response(await Deno.readFile(join(folder, new URL(url).pathname)));
    } catch {
      return new Response("", { status: 404 });
    }
  });
  const url = `http://127.0.0.1:${server.addr.port}`;
  return { url, [Symbol.asyncDispose]: () => server.shutdown() };
}

const names = (folder: string) => [...Deno.readDirSync(folder)].map(({ name }) => name).sort();

Deno.test("install.sh installs what a release has for this machine over HTTP, without root, and removes it", async () => {
  await using place = await homes();
  const home = await place.home("home");
  const built = Deno.env.get("SVC_EXECUTABLE") ?? join(place.path, "svc");
  if (!Deno.env.has("SVC_EXECUTABLE")) {
    await bash(join(ROOT, "compile.sh"), "--archive", "--output", built);
  }
  await bash(join(ROOT, "packaging/release.sh"), join(place.path, "release"), built);
  assert.deepEqual(names(join(place.path, "release")), ["SHA256SUMS", FILE].sort());
  await using server = serveFolder(join(place.path, "release"));

  const installed = await install(home, ["--from", server.url]);
  const file = join(home, ".local/bin/svc");
  const { version } = JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.json")));
  assert.deepEqual(installed, {
    code: 0,
    stdout: `Installed svc ${version} as ${file} (SHA-256 checked).
${home}/.local/bin is not on your PATH. Add it: export PATH="${home}/.local/bin:$PATH"
Remove it with: install.sh --uninstall
`,
    stderr: "",
  });
  assert.deepEqual(names(join(home, ".local/bin")), ["svc"]);
  assert.equal(Deno.statSync(file).mode! & 0o777, 0o755);

  const removed = await install(home, ["--uninstall"]);
  assert.equal(
    removed.stdout,
    `Removed ${file}.
Removed ${home}/.cache/svc, a cache of svc.
Settings and keys stay in ${home}/.config/svc, and sessions in the .svc folder of each project.
`,
    removed.stderr,
  );
  assert.deepEqual([names(join(home, ".local/bin")), names(join(home, ".cache"))], [[], []]);
  const twice = await install(home, ["--uninstall"]);
  assert.deepEqual([twice.code, twice.stderr], [1, `install.sh: There is no ${file} to remove.\n`]);
});

Deno.test("install.sh replaces an older or a newer version, and only the one that was asked for", async () => {
  await using place = await homes();
  const home = await place.home("home");
  const dir = join(home, "programs");
  const [old, next] = [await place.release("old", "0.1.0"), await place.release("next", "0.3.0")];
  const path = { PATH: `${dir}:/usr/bin:/bin` };
  const first = await install(home, ["--from", old, "--dir", dir], path);
  assert.equal(
    first.stdout,
    `Installed svc 0.1.0 as ${dir}/svc (SHA-256 checked).\n` +
      `Remove it with: install.sh --uninstall --dir ${dir}\n`,
    first.stderr,
  );
  const replaced = "It replaces svc 0.1.0. Restart what runs: servers, schedulers, fleets.\n";
  const upgraded = await install(home, ["--from", next, "--dir", dir, "--version", "v0.3.0"], path);
  assert.ok(upgraded.stdout.includes(replaced), upgraded.stderr);
  const other = await install(home, ["--from", next, "--dir", dir, "--version", "0.1.0"], path);
  assert.deepEqual(other, {
    code: 1,
    stdout: "",
    stderr: `install.sh: ${next} has svc 0.3.0, and not 0.1.0. Nothing was changed.\n`,
  });
  assert.equal((await install(home, ["--from", old, "--dir", dir], path)).code, 0);
  assert.match(await Deno.readTextFile(join(dir, "svc")), /echo 0\.1\.0/);
  assert.deepEqual(names(dir), ["svc"]);
});

Deno.test("install.sh changes nothing when a file is damaged, missing or not its own", async () => {
  await using place = await homes();
  const home = await place.home("home");
  const bin = join(home, ".local/bin");
  const release = await place.release("release", "0.2.0");
  assert.equal((await install(home, ["--from", release])).code, 0);
  const fails = async (from: string, stderr: RegExp) => {
    const ended = await install(home, ["--from", from]);
    assert.deepEqual([ended.code, ended.stdout], [1, ""]);
    assert.match(ended.stderr, stderr);
    assert.deepEqual(names(bin), ["svc"]);
  };
  const good = await Deno.readFile(join(release, FILE));
  await Deno.writeFile(join(release, FILE), good.subarray(0, good.length - 9));
  await fails(
    release,
    /^install\.sh: \S+ is damaged: its SHA-256 is \w{64}, and not \w{64}\. Nothing/,
  );
  await using server = serveFolder(place.path);
  await fails(`${server.url}/release`, /^install\.sh: \S+ is damaged/);
  await fails(`${server.url}/nowhere`, /nowhere\/SHA256SUMS cannot be downloaded\.\n$/);
  await Deno.writeTextFile(join(release, "SHA256SUMS"), `${"0".repeat(64)}  another.gz\n`);
  await fails(release, /does not list svc-/);
  const own = "#!/bin/sh\necho something else\n";
  await Deno.writeTextFile(join(bin, "svc"), own);
  await fails(
    await place.release("third", "0.3.0"),
    /\/svc is another program, or does not start\./,
  );
  const kept = await install(home, ["--uninstall"]);
  assert.match(kept.stderr, /is another program/);
  assert.equal(await Deno.readTextFile(join(bin, "svc")), own);
  await Deno.remove(join(bin, "svc"));
  await Deno.symlink("elsewhere", join(bin, "svc"));
  await fails(release, /\/svc is a link, as npm makes one/);
});

Deno.test("install.sh downloads from the releases of its repository", async () => {
  await using place = await homes();
  const home = await place.home("home");
  const release = await place.release("release", "0.2.0");
  await Deno.mkdir(join(place.path, "tools"));
  const curl = `#!/bin/sh
for url; do :; done
echo "$url" >>"${home}/urls"
while [ "$1" != -o ]; do shift; done
cp "${release}/\${url##*/}" "$2"
`;
  await Deno.writeTextFile(join(place.path, "tools/curl"), curl, { mode: 0o755 });
  const env = { PATH: `${place.path}/tools:/usr/bin:/bin`, SVC_REPOSITORY: "someone/svc" };
  for (const args of [[], ["--version", "0.2.0"]]) {
    const ended = await install(home, args, env);
    assert.equal(ended.code, 0, ended.stderr);
  }
  const releases = "https://github.com/someone/svc/releases";
  assert.deepEqual((await Deno.readTextFile(join(home, "urls"))).trim().split("\n"), [
    `${releases}/latest/download/SHA256SUMS`,
    `${releases}/latest/download/${FILE}`,
    `${releases}/download/v0.2.0/SHA256SUMS`,
    `${releases}/download/v0.2.0/${FILE}`,
  ]);
  const unknown = await install(home, []);
  assert.deepEqual([unknown.code, unknown.stdout], [2, ""]);
  for (const args of [["--zork"], ["--dir"], ["--version", ""]]) {
    const wrong = await install(home, args);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /^install\.sh: .*\n$/);
  }
});
