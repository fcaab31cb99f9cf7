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
import { needs } from "../support/needs.ts";
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
      const [notes, end] = [
        container.child.stderr.pipeThrough(new TextDecoderStream()),
        listening(),
      ];
      const read = (async () => {
        for await (const text of notes) end.see(text);
        end.fail();
      })();
      assert.equal(await end.url, `http://0.0.0.0:${port}`);
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
      const before = Date.now();
      await container.stop();
      const [{ code }] = await Promise.all([container.child.status, chat, read]);
      await container.child.stdout.cancel();
      assert.equal(code, 0);
      assert.ok(Date.now() - before < 10_000);
      const { turns } = JSON.parse(await Deno.readTextFile(`${work}/.svc/sessions/s.json`));
      assert.equal(turns[0].status, "cancelled");
    });

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

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** The address that a server prints. */
function listening() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let notes = "";
  return {
    url: promise,
    fail: () => reject(new Error(notes)),
    see(text: string) {
      notes += text;
      const [, url] = /^listening on (\S+)$/m.exec(notes) ?? [];
      if (url !== undefined) resolve(url);
    },
  };
}
