import assert from "node:assert/strict";
import { Policy } from "../../src/policy/policy.ts";
import { config, settings, site, tool } from "./support.ts";

Deno.test("an immutable agent is denied svc's own files under every name, and nothing else [5.3]", () => {
  using place = site();
  const { worktree, user } = place;
  Deno.mkdirSync(`${worktree}/.svc/plugins`, { recursive: true });
  Deno.mkdirSync(`${worktree}/sub/.svc`, { recursive: true });
  Deno.symlinkSync(`${worktree}/.svc`, `${worktree}/link`);
  Deno.symlinkSync(`${worktree}/.svc/config.json`, `${worktree}/dangling`);
  const sealed = new Policy(settings(), place.guard.sealed(), config());
  const open = new Policy(settings(), place.guard, config());
  const own = [
    ".svc",
    ".svc/config.json",
    ".svc/roles.json",
    ".svc/teams.json",
    ".svc/skills/a.md",
    ".svc/plugins/x/manifest.json",
    ".svc/jobs.json",
    ".svc/fleet.json",
    ".svc/sessions/a.json",
    ".SVC/config.json",
    "src/../.svc/config.json",
    "link/config.json",
    "dangling",
    "sub/.svc/config.json",
    `${user}/config.json`,
  ];
  for (const path of own) {
    assert.equal(sealed.resolve(tool(), { path }).action, "deny", path);
    assert.equal(open.resolve(tool(), { path }).action, "ask", path);
    const reads = sealed.resolve(tool({ permission: "read" }), { path }).action;
    assert.equal(reads, path.startsWith(user) ? "ask" : "allow", path);
  }
  for (const path of ["file", ".svcs/file", "src/svc"]) {
    assert.equal(sealed.resolve(tool(), { path }).action, "allow", path);
  }
  assert.equal(sealed.resolve(tool(), { path: ".git/config" }).action, "ask");
});

Deno.test("no approval opens svc's own files to an immutable agent", async () => {
  using place = site();
  Deno.mkdirSync(`${place.worktree}/.svc`);
  const path = `${place.worktree}/.svc/config.json`;
  const paths = place.guard.sealed().callPaths([path]);
  await assert.rejects(paths.open(path, { write: true, create: true }), /svc's own/);
  (await place.guard.callPaths([path]).open(path, { write: true, create: true })).close();
});

Deno.test("with commands allowed, one that names svc's own files is denied to an immutable agent", () => {
  using place = site();
  const bash = tool({ name: "run_command", permission: "bash", path_arg: undefined });
  const allowed = settings({ actions: { bash: "allow" } });
  const sealed = new Policy(allowed, place.guard.sealed(), config());
  const lines = [
    "echo '{}' > .svc/config.json",
    "rm -r ./.svc",
    "cp x ~/.config/svc/config.json",
    "cd .SVC && ls",
    "echo x > .s'v'c/config.json",
    "git -C .svc init",
  ];
  for (const command of lines) {
    assert.equal(sealed.resolve(bash, { command }).action, "deny", command);
    const open = new Policy(allowed, place.guard, config());
    assert.equal(open.resolve(bash, { command }).action, "allow", command);
  }
  for (const command of ["ls .svcs", "echo svc", "cat my.svc-file"]) {
    assert.equal(sealed.resolve(bash, { command }).action, "allow", command);
  }
});

Deno.test("the tokens of the HTTP API are opened by no file tool", () => {
  using place = site({ home: true });
  const policy = new Policy(settings(), place.guard, config());
  const reading = tool({ permission: "read" });
  for (const path of [".config/svc/serve.tokens", ".config/svc/.serve.tokens.ab12cd.tmp"]) {
    assert.equal(policy.resolve(reading, { path }).action, "deny", path);
  }
});
