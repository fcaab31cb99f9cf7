import assert from "node:assert/strict";
import { bashListObjection, callObjection } from "../../src/policy/bash_allow.ts";
import { report } from "../../src/policy/deno_permissions.ts";
import { LISTED_ENVIRONMENT } from "../../src/policy/listed_commands.ts";
import { Policy } from "../../src/policy/policy.ts";
import { config, settings, site, tool } from "./support.ts";

const LIST = [
  "git log",
  "git diff",
  "git status",
  "git grep",
  "git blame",
  "git show",
  "git rev-parse",
  "printf",
];

Deno.test("options of git that write, run or lead elsewhere are not covered", () => {
  const refused = [
    "git log --format=%s --output=.svc/config.json",
    "git log --output .svc/config.json",
    "git log --outp=.svc/config.json",
    "git log '--out'put=x",
    "git diff --output=x",
    "git diff --ext-diff",
    "git log -p --ext-d",
    "git show --textconv",
    "git show --textc HEAD",
    "git diff -Oorder",
    "git grep -Oless x",
    "git grep -nOsh x",
    "git grep --open-files-in-pager=sh x",
    "git grep --open x",
    "git grep --no-index x",
    "git grep -f /home/me/.config/svc/providers.json",
    "git grep -nf keys",
    "git blame -S keys a",
    "git blame --contents keys a",
    "git blame --ignore-revs-file=keys a",
    "git diff --no-index /dev/null secrets",
    "git diff /dev/null ../secrets",
    "git diff -- /etc/passwd /etc/group",
    "git diff ~/.netrc x",
    "git diff {/etc/passwd,x}",
    "git log --work-tree=/tmp",
    "git log --git-dir=/tmp/evil",
    "git log --exec-path=/tmp",
    "git log --config-env=core.pager=X",
    "git log --upload-pack=x",
    "git status --ignore-submodules=none",
    "git diff --submodule=log",
    "git grep --recurse-submodules x",
    "git log *",
    "git log */*",
    "git log {--output=x,HEAD}",
    "git log $_",
    "git log a$_",
    'git log "$_"',
    "printf --output=x; git log $_",
    "git log [-]-output=x",
    "git log -{-output=x,}",
    "git log --out{put,}=x",
    "git log --out*",
    'git log "-"{-output=x,}',
    "git diff x{/.,y}.{/,z}etc/passwd y",
    "git diff src/.*/.*/etc/passwd y",
    "printf %n PATH",
    "printf '%5n' 'a[$(rm x)]'",
    "printf '%-*n' 1 PATH",
    "printf %hhn PATH",
  ];
  for (const command of refused) {
    const objection = bashListObjection(command, LIST);
    assert.ok(objection !== undefined, command);
    assert.equal(objection.final, false);
  }
});

Deno.test("harmless options and arguments of git stay covered", () => {
  const covered = [
    "git log --oneline -n 5",
    'git log --format="%h %s" main..HEAD -- src/*.ts a@{u}',
    "git log -p -C -c --stat --color=never",
    "git log -SOpen",
    "git diff --text --no-ext-diff --no-textconv HEAD~1 -- src",
    "git diff --output-indicator-new=x",
    "git diff a/b..c/d",
    "git grep -n -e Open",
    "git rev-parse --show-toplevel",
    "git show HEAD:src/a.ts",
    "printf '%s\\n' n",
  ];
  for (const command of covered) {
    assert.equal(bashListObjection(command, LIST), undefined, command);
  }
});

Deno.test("every git that a list covers is looked into, except for the words of the entry", () => {
  const refused: [string, string][] = [
    ["git", "git -c core.pager=sh log"],
    ["git", "git -C /tmp log"],
    ["git", "git --exec-path=/tmp log"],
    ["git", "git --git-dir /tmp log"],
    ["git", "git -p log"],
    ["git", "git clone -c core.x=y a b"],
    ["git", "git fetch -u"],
    ["git fetch", "git fetch --upload-pack=sh ."],
    ["git fetch", "git fetch --up sh ."],
    ["/usr/bin/git log", "/usr/bin/git log --output=x"],
    ["timeout 5 git log", "timeout 5 git log --output=x"],
    ["git log --output=a", "git log --output=a --output=b"],
  ];
  for (const [entry, command] of refused) {
    assert.ok(bashListObjection(command, [entry]), command);
  }
  for (const command of ["git log --output=a", "git log --output=a HEAD"]) {
    assert.equal(bashListObjection(command, ["git log --output=a"]), undefined, command);
  }
  assert.equal(bashListObjection("git --no-pager log", ["git"]), undefined);
});

Deno.test("the worktree's root and the folder of a cd are checked like a cwd", () => {
  using at = site();
  const list = ["git status", "cd", "pushd", "popd", "ls"];
  const objection = (command: string, cwd?: string) =>
    callObjection({ command, ...cwd === undefined ? {} : { cwd } }, list, at.guard.context())
      ?.reason;
  assert.equal(objection("git status"), undefined);
  assert.equal(objection("cd src && git status"), undefined);
  for (
    const command of [
      "cd && git status",
      "cd - && git status",
      "cd .. && git status",
      "cd src/../.. && git status",
      `cd ${at.outside} && git status`,
      "cd / && ls",
      "cd $HOME && git status",
      "cd ~ && git status",
      "cd src; cd src; git status",
      "cd -P src && git status",
      "pushd +1; git status",
      "popd; git status",
    ]
  ) assert.ok(objection(command), command);
  Deno.symlinkSync(at.outside, `${at.worktree}/away`);
  assert.match(objection("cd away && git status")!, /outside the worktree/);

  const bare = (folder: string) => {
    for (const name of ["objects", "refs"]) {
      Deno.mkdirSync(`${folder}/${name}`, { recursive: true });
    }
    Deno.writeTextFileSync(`${folder}/HEAD`, "ref: refs/heads/main\n");
  };
  bare(`${at.worktree}/vendor`);
  assert.match(objection("cd vendor && git status")!, /may run what is configured there/);
  assert.match(objection("git status", "vendor")!, /may run what is configured there/);
  assert.match(objection("cd refs && git status", "vendor")!, /may run what is configured there/);
  bare(at.worktree);
  assert.match(objection("git status")!, /"\." may run what is configured there/);
});

Deno.test("a repository that configures programs is not for listed commands", () => {
  using at = site();
  Deno.mkdirSync(`${at.worktree}/.git`);
  const git = (text: string) => {
    Deno.writeTextFileSync(`${at.worktree}/.git/config`, text);
    return ["git status", "cd src && git status"].map((command) =>
      callObjection({ command }, ["git status", "cd"], at.guard.context())
    );
  };
  assert.deepEqual(git('[core]\n\tbare = false\n[remote "x"]\n\turl = y\n'), [
    undefined,
    undefined,
  ]);
  for (
    const text of [
      '[diff "x"]\n\ttextconv = rm',
      "[diff]\n external=rm",
      '[filter "x"] clean = rm',
      '[Filter "x"]\nProcess = rm',
      "[include]\npath = ../evil",
      "[core]\n\tworktree = /",
      '[remote "o"]\n\tpromisor = true',
      "[extensions]\n\tpartialClone = o",
      '[includeIf "gitdir:."]\npath = x',
    ]
  ) for (const objection of git(text)) assert.match(objection!.reason, /configured there/, text);
  git("[core]\n\tbare = false\n[core]\n\tsshCommand = ssh -i key\n");
  assert.equal(
    callObjection({ command: "git status" }, ["git status"], at.guard.context()),
    undefined,
  );
  Deno.writeTextFileSync(`${at.worktree}/.git/commondir`, "../evil");
  assert.ok(callObjection({ command: "git status" }, ["git status"], at.guard.context()));
  Deno.removeSync(`${at.worktree}/.git`, { recursive: true });
  for (const [folder, refused] of [["evil", true], [`${at.outside}/.git/worktrees/a`, false]]) {
    Deno.writeTextFileSync(`${at.worktree}/.git`, `gitdir: ${folder}\n`);
    const objection = callObjection({ command: "git status" }, ["git status"], at.guard.context());
    assert.equal(objection !== undefined, refused);
  }
});

Deno.test("a covered command gets an environment in which git runs nothing that a repository names", async () => {
  using at = site();
  const run = tool({ name: "run_command", permission: "bash", path_arg: "cwd" });
  const policy = new Policy(settings({ bash_allow: ["git status"] }), at.guard, config());
  const decided = policy.resolve(run, { command: "git status" });
  assert.deepEqual([decided.action, decided.environment], ["allow", LISTED_ENVIRONMENT]);
  assert.equal(policy.resolve(run, { command: "git push" }).environment, undefined);

  const git = (args: string[], env: Record<string, string>) =>
    new Deno.Command("git", { args, cwd: at.worktree, env, stderr: "null" }).output();
  await git(["init", "-q"], {});
  await git(["config", "core.fsmonitor", "touch monitored; false"], {});
  Deno.writeTextFileSync(`${at.worktree}/a`, "a");
  await git(["add", "a"], {});
  Deno.removeSync(`${at.worktree}/monitored`);
  assert.equal((await git(["status"], { ...decided.environment })).code, 0);
  assert.throws(() => Deno.statSync(`${at.worktree}/monitored`), Deno.errors.NotFound);
  await git(["init", "-q", "--bare", "bare"], {});
  const inBare = ["-C", "bare", "log"];
  const { code } = await git(["-C", "bare", "rev-parse", "--git-dir"], { ...decided.environment });
  assert.equal(code, 128, inBare.join(" "));
});

Deno.test("svc permissions says what the entries of the list open", () => {
  const effects = (bash_allow: string[], bash: "ask" | "deny" = "ask") =>
    report(settings({ bash_allow, actions: { bash } }), []).filter(({ entry }) => entry)
      .map(({ opens }) => opens);
  const quiet = ["git status", "git log", "git diff --stat", "ls -l", "echo"];
  assert.deepEqual(effects(quiet), quiet.map(() => ""));
  for (
    const entry of [
      "git",
      "git -C x",
      "git commit",
      "git config",
      "npm test",
      "./build.sh",
      "find",
      "rg",
      "cat",
      "make",
      "env",
      "xargs",
      "sed",
      "awk",
      "python3 x.py",
      "deno test",
      "/bin/sh",
      "timeout 5 ls",
      "tee",
      "curl",
      "frobnicate",
    ]
  ) assert.notEqual(effects([entry])[0], "", entry);
  assert.deepEqual(effects(["cat"], "deny"), []);
  assert.deepEqual(effects(["*"]), []); // allows nothing
});
