/** The image of the Dockerfile; with SVC_TEST_FULL=1 as buildah and podman from Debian make and run it. */
import assert from "node:assert/strict";
import { call, hang, say, startBackend, type TestBackend } from "../support/backend.ts";
import {
  changedRoot,
  type Container,
  type Image,
  makeBundle,
  podmanImage,
} from "../support/container.ts";
import { blockWith, freePort, type Shell } from "../support/documents.ts";
import { needs } from "../support/needs.ts";
import { playNeeds, timed } from "../support/new_user.ts";
import { project } from "../support/project.ts";
import { mounts } from "../support/tiny_disk.ts";

const FULL = Deno.env.get("SVC_TEST_FULL") === "1";
const PACKAGES = ["buildah", "mmdebstrap", "podman", "runc"];

Deno.test({
  name:
    "the image runs without root on a read-only root, reaps 1,000 orphans and stops within Docker's ten seconds",
  ...mounts,
  async fn(t) {
    await using place = await project({}, { dir: "/tmp" });
    await Deno.chmod(place.path, 0o755);
    const bundle = await makeBundle(place);
    const make = FULL ? await install() ? podmanImage : undefined : changedRoot;
    await using image = await make?.(place, bundle);
    if (image === undefined) {
      return void needs("the packages of the image cannot be installed", false);
    }

    await t.step("a turn: user 10001, a read-only root, and no orphan left", async () => {
      const orphans = "i=0; while [ $i -lt 1000 ]; do (true &); i=$((i+1)); done";
      const zombies = 'grep -l "^State:.Z" /proc/[0-9]*/status | wc -l';
      const command =
        `id -u; id -g; touch /opt/x /home/svc/x; ${orphans}; sleep 1; ${zombies}; tr "\\\\0" " " </proc/1/cmdline`;
      await using backend = startBackend([call("run_command", { command }), say("done")]);
      const { container, work } = await inWork(image, backend, ["run", "--yes", "go"]);
      const { code, stdout, stderr } = await container.child.output();
      assert.equal(code, 0, new TextDecoder().decode(stderr));
      assert.equal(JSON.parse(new TextDecoder().decode(stdout)).content, "done");
      const output = backend.chats[1].messages.at(-1).content;
      assert.match(output, /^10001\n0$/m);
      assert.match(output, /cannot touch '\/opt\/x': Read-only file system/);
      assert.match(output, /^0\n\S*tini -- svc run /m);
      assert.ok([...Deno.readDirSync(`${work}/.svc/sessions`)].length > 0);
    });

    await t.step("a server: its health, and its end in the middle of a turn", async () => {
      await using backend = startBackend([hang("half")]);
      const port = freePort();
      const { container, work } = await inWork(image, backend, ["serve", "--insecure"], {
        SVC_PORT: `${port}`,
      });
      const { url, read } = listening(container.child);
      assert.equal(await url, `http://0.0.0.0:${port}`);
      const health = await container.exec(["svc", "health"]);
      assert.deepEqual([health.code, health.stdout], [
        0,
        `healthy: http://127.0.0.1:${port}/health answered 200\n`,
      ]);
      const chat = fetch(`http://127.0.0.1:${port}/chat`, {
        method: "POST",
        body: JSON.stringify({ prompt: "hi", session: "s" }),
      }).then((response) => response.text(), () => "");
      await backend.arrived(1);
      await container.stop(); // kills it after ten seconds
      const [{ code }] = await Promise.all([container.child.status, chat, read]);
      await container.child.stdout.cancel();
      assert.equal(code, 0);
      const { turns } = JSON.parse(await Deno.readTextFile(`${work}/.svc/sessions/s.json`));
      assert.equal(turns[0].status, "cancelled");
    });

    await t.step(
      "a new user connects a model, serves with a token, and plays the documents",
      async () => {
        const [connect, token, serve, health, read, ask] = blockWith(
          "docs/install.md",
          "sh",
          "serve token",
        )
          .replaceAll("\\\n", "").trim().split("\n") as [
            string,
            string,
            string,
            string,
            string,
            string,
          ];
        const work = `${place.path}/user`;
        await Deno.mkdir(work);
        await Deno.chown(work, 10001, 0);
        const port = freePort();
        const options = { work, home: "home", env: { SVC_TRUST: "", SVC_PORT: `${port}` } };
        /** The words after the image, or the container, of a line. */
        const words = (line: string) =>
          / svc ?([^()]*)\)?$/.exec(line)![1]!.split(" ").filter(Boolean);
        const run = async (args: string[]) => {
          const { code, stderr } = await image.run(args, options).child.output();
          assert.equal(code, 0, new TextDecoder().decode(stderr));
        };
        await using backend = startBackend({ replies: [], default: say("two files") });
        await timed("a container that serves with a token", async () => {
          await run(words(connect).with(1, backend.url).concat("local", "--no-key"));
          await run(words(token));
        });
        const container = image.run(words(serve), options);
        const ended = listening(container.child);
        await ended.url;
        assert.equal((await container.exec(words(health))).code, 0);
        const { stdout } = await container.exec(words(read));
        const [, body] = /-d '(.*)'$/.exec(ask)!;
        const chat = (headers: HeadersInit) =>
          fetch(`http://127.0.0.1:${port}/chat`, { method: "POST", body, headers });
        const answer = await chat({ authorization: `Bearer ${stdout.trim()}` });
        assert.equal((await answer.json()).content, "two files");
        const refused = await chat({});
        await refused.body?.cancel();
        assert.equal(refused.status, 401);
        const sh: Shell = async (script) => {
          const { code, stdout } = await container.exec(
            ["env", "HOME=/home/svc", "sh", "-c", `exec 2>&1\n${script}`],
          );
          return { code, text: stdout };
        };
        if (FULL) await playNeeds({ sh, work: "/work" }, { serves: true });
        await container.stop();
        await Promise.all([container.child.status, container.child.stdout.cancel(), ended.read]);
      },
    );

    /** Starts a container with a worktree whose model is the backend. */
    async function inWork(
      image: Image,
      { url }: TestBackend,
      args: string[],
      env: Record<string, string> = {},
    ): Promise<{ container: Container; work: string }> {
      const work = `${place.path}/${args[0]}`;
      await place.write(
        `${args[0]}/.svc/config.json`,
        JSON.stringify({ base_url: url, model: "test", memory_enabled: false }),
      );
      for (const path of [work, `${work}/.svc`]) await Deno.chown(path, 10001, 0);
      return { container: image.run(args, { work, env: { SVC_TRUST: "1", ...env } }), work };
    }
  },
});

/** Installs what a full run needs. */
async function install(): Promise<boolean> {
  const args = ["install", "--yes", "--no-install-recommends", ...PACKAGES];
  return (await new Deno.Command("apt-get", { args }).output()).success;
}

/** The address that a server prints, and the end of its notes. */
function listening(child: Deno.ChildProcess): { url: Promise<string>; read: Promise<void> } {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const read = async () => {
    let notes = "";
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      notes += text;
      const [, url] = /^listening on (\S+)$/m.exec(notes) ?? [];
      if (url !== undefined) resolve(url);
    }
    reject(new Error(notes));
  };
  return { url: promise, read: read() };
}
