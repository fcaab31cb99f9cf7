import assert from "node:assert/strict";
import { openPaths } from "../../src/platform/environment.ts";

Deno.test("state that is a link out of the worktree or out of .svc is refused in one sentence", () => {
  const root = Deno.realPathSync(Deno.makeTempDirSync());
  const [worktree, outside] = [`${root}/work`, `${root}/work-outside`];
  const open = () => openPaths(worktree, `${root}/user`);
  const remove = () => Deno.removeSync(`${worktree}/.svc`, { recursive: true });
  for (const folder of [worktree, outside, `${worktree}/src`]) Deno.mkdirSync(folder);
  Deno.writeTextFileSync(`${worktree}/settings.json`, "{}");
  const links: [string, string][] = [
    [".svc", outside],
    [".svc", "../work-outside"],
    [".svc", `${root}/missing`],
    [".svc/sessions", outside],
    [".svc/sessions", "../../work-outside"],
    [".svc/memory", outside],
    [".svc/memory/roles", outside],
    [".svc/plugins", "/"],
    [".svc/config.json", "/etc/passwd"],
    [".svc/.jobs.json.lock", `${root}/missing`],
    [".svc/config.json", "../settings.json"], // an agent may write there
    [".svc/plugins", "../src"],
  ];
  for (const [name, target] of links) {
    const link = `${worktree}/${name}`;
    Deno.mkdirSync(link.slice(0, link.lastIndexOf("/")), { recursive: true });
    Deno.symlinkSync(target, link);
    assert.throws(open, (error: Error & { code: string; exit: number }) => {
      assert.deepEqual([error.code, error.exit], ["state_link", 2]);
      assert.ok(error.message.startsWith(`${link} is a link that leads out of ${worktree}`));
      return true;
    });
    remove();
  }
  Deno.mkdirSync(`${worktree}/kept/sessions`, { recursive: true });
  Deno.symlinkSync("kept", `${worktree}/.svc`);
  assert.equal(open().sessions, `${worktree}/.svc/sessions`);
  Deno.symlinkSync("sessions", `${worktree}/kept/logs`);
  assert.equal(open().state, `${worktree}/.svc`);
  Deno.removeSync(root, { recursive: true });
});
