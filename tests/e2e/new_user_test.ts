/** The needs of a new user, played from the documents in a home with nothing but what an operating system has. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Shell, shellOf } from "../support/documents.ts";
import { done, lineWith, playNeeds, timed } from "../support/new_user.ts";
import { type Project, project } from "../support/project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { version: VERSION } = JSON.parse(Deno.readTextFileSync(join(ROOT, "deno.json")));
const FILE = `svc-${{ linux: "linux", darwin: "macos" }[Deno.build.os as "linux"]}-${
  Deno.build.arch === "x86_64" ? "x64" : "arm64"
}.gz`;

Deno.test("a new user plays the documents from the installation to the removal, without Node and Deno", async () => {
  await using place = await project({ "work/.keep": "", "home/.keep": "" });
  const at = (...path: string[]) => join(place.path, ...path);
  await Deno.remove(at("work/.keep"));
  await programs(place);
  await release(place, `v${VERSION}`, await executable(place));
  await place.write("next", `#!/bin/sh\ncase $1 in --version) echo 9.9.9 ;; *) exit 1 ;; esac\n`);
  const env = { HOME: at("home"), PATH: `${at("home/.local/bin")}:${at("tools")}` };
  const sh = shellOf("/bin/sh", [], { cwd: at("work"), clearEnv: true, env });
  assert.equal((await sh("command -v deno node svc")).text, "");

  await latest(place, `v${VERSION}`);
  await timed("an installation", () => install(sh));
  await playNeeds({ sh, work: at("work") });
  await timed("an upgrade, a way back, and the removal", async () => {
    await release(place, "v9.9.9", at("next"));
    await latest(place, "v9.9.9");
    assert.match(await done(sh, "sh install.sh"), new RegExp(`It replaces svc ${VERSION}\\.`));
    const back = lineWith("docs/install.md", "sh install.sh --version").replace("0.2.0", VERSION);
    assert.match(await done(sh, back), /It replaces svc 9\.9\.9\./);
    assert.match(await done(sh, "svc sessions"), /port/);
    await done(sh, lineWith("docs/install.md", "sh install.sh --uninstall"));
    assert.equal((await sh("command -v svc; ls -d ~/.cache/svc* 2>/dev/null")).text, "");
    assert.match(await done(sh, "ls ~/.config/svc .svc"), /sessions[^]*providers\.json/);
  });
});

async function install(sh: Shell): Promise<void> {
  const text = await done(
    sh,
    `${lineWith("docs/install.md", "download/install.sh")}\n${
      lineWith("docs/install.md", "into ~/.local/bin")
    }\nsvc --version --verbose`,
  );
  assert.match(text, /^Installed svc \S+ as \S+ \(SHA-256 checked\)\.\n[^]*profile build/);
}

/** Makes a folder `tools` with the programs of the system, and a `curl` that downloads from the folder `releases`. */
async function programs({ path, write }: Project): Promise<void> {
  const tools = join(path, "tools");
  await Deno.mkdir(tools);
  for (const folder of ["/bin", "/usr/bin"]) {
    for (const { name } of Deno.readDirSync(folder)) {
      if (/^(deno|node|nodejs|npm|npx|curl|svc)$/.test(name)) continue;
      try {
        await Deno.symlink(join(folder, name), join(tools, name));
      } catch (error) {
        if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
      }
    }
  }
  const curl = `#!/bin/sh
for word; do case $word in https://*) url=$word ;; esac; done
[ "\${url:-}" ] || exec /usr/bin/curl "$@"
while [ $# -gt 1 ] && [ "$1" != -o ]; do shift; done
cp "${path}/releases/\${url#*/releases/}" "\${2:-\${url##*/}}"
`;
  await write("tools/curl", curl);
  await Deno.chmod(join(tools, "curl"), 0o755);
}

/** The executable of these tests, or one that is made now. */
async function executable({ path }: Project): Promise<string> {
  const built = Deno.env.get("SVC_EXECUTABLE");
  if (built !== undefined) return built;
  const output = join(path, "svc");
  const args = [join(ROOT, "compile.sh"), "--archive", "--output", output];
  assert.ok((await new Deno.Command("bash", { args, stdout: "null" }).output()).success);
  return output;
}

/** Makes the release of a version, as the workflow and packaging/release.sh do, but packed in less time. */
async function release({ path }: Project, tag: string, program: string): Promise<void> {
  const folder = join(path, "releases/download", tag);
  await Deno.mkdir(folder, { recursive: true });
  const script = `gzip -1nc "$1" >${FILE} && sha256sum ${FILE} >SHA256SUMS &&
    sed 's|OWNER/svc|someone/svc|' "$2" >install.sh`;
  const args = ["-ec", script, "sh", program, join(ROOT, "install.sh")];
  assert.ok((await new Deno.Command("sh", { args, cwd: folder }).output()).success);
}

/** Makes a version the newest. */
async function latest({ path }: Project, tag: string): Promise<void> {
  const link = join(path, "releases/latest");
  await Deno.remove(link, { recursive: true }).catch(() => {});
  await Deno.mkdir(link, { recursive: true });
  await Deno.symlink(`../download/${tag}`, join(link, "download"));
}
