import assert from "node:assert/strict";
import { authorize } from "../../src/policy/gate.ts";
import { Grants } from "../../src/policy/grants.ts";
import {
  type ConfirmAnswer,
  type ConfirmRequest,
  headlessOperator,
  type Operator,
} from "../../src/policy/operator.ts";
import { Policy } from "../../src/policy/policy.ts";
import type { PolicySettings } from "../../src/policy/settings.ts";
import type { ToolArguments, ToolDefinition, ToolPaths } from "../../src/plugins/api.ts";
import { config, settings, type Site, site, tool } from "./support.ts";

/** An operator that gives the scripted answers and records the questions. */
function human(answer: Partial<ConfirmAnswer> = {}): Operator & { asked: ConfirmRequest[] } {
  const asked: ConfirmRequest[] = [];
  return {
    asked,
    confirm(request) {
      asked.push(request);
      return Promise.resolve({ granted: true, scope: "once", by: "operator", ...answer });
    },
    ask: () => Promise.resolve(undefined),
  };
}

const never = new AbortController().signal;

function gate(place: Site, given: Partial<PolicySettings>, operator: Operator) {
  const grants = new Grants();
  const policy = new Policy(settings(given), place.guard, config());
  return (
    each: ToolDefinition,
    args: ToolArguments,
    signal = never,
    preview: (paths: ToolPaths) => Promise<string> = () => Promise.resolve("what will run"),
  ) =>
    authorize({
      tool: each,
      args,
      policy,
      operator,
      grants,
      guard: place.guard,
      preview,
      run: 3,
      session: "s",
      signal,
    });
}

const bash = tool({ name: "run_command", permission: "bash", path_arg: "cwd" });

Deno.test("the action allow runs a call without a question and is recorded [1, 2.4]", async () => {
  using place = site();
  const operator = human();
  const result = await gate(place, {}, operator)(tool(), { path: "a" });
  assert.equal(operator.asked.length, 0);
  assert.deepEqual(result.entry, {
    tool: "file_write",
    action: "allow",
    decision: "granted",
    path: "a",
  });
  assert.deepEqual([result.granted, result.message], [true, ""]);
});

Deno.test("the rest of a cancelled batch is not recorded as run", async () => {
  using place = site();
  const call = gate(place, {}, human());
  const { granted, entry, message } = await call(tool(), { path: "a" }, AbortSignal.abort());
  assert.deepEqual([granted, entry.action, entry.decision], [false, "allow", "declined"]);
  assert.equal(message, "[cancelled] The turn ended before file_write was to run");
});

Deno.test("the action deny is recorded as denied and answered without a question [2.4]", async () => {
  using place = site();
  const operator = human();
  const { granted, entry, message } = await gate(place, { deny: ["file_write"] }, operator)(
    tool(),
    { path: "a" },
  );
  assert.equal(operator.asked.length, 0);
  assert.deepEqual([granted, entry.action, entry.decision], [false, "deny", "denied"]);
  assert.match(message, /^Error: permission denied: file_write \(category edit\): tools\.deny/);
});

Deno.test("the action ask reaches the operator with the whole request, and the approval is recorded [2.4]", async () => {
  using place = site();
  const operator = human();
  const args = { command: "make" };
  const { granted, entry } = await gate(place, {}, operator)(bash, args);
  const { signal, ...request } = operator.asked[0]!;
  assert.equal(signal, never);
  assert.deepEqual(request, {
    tool: "run_command",
    input: args,
    category: "bash",
    reason: "the category bash is set to ask in mode build",
    preview: "what will run",
    choices: operator.asked[0]!.choices,
    run: 3,
    session: "s",
  });
  assert.equal(granted, true);
  assert.deepEqual(entry, {
    tool: "run_command",
    action: "ask",
    decision: "granted",
    path: "",
    scope: "once",
    granted_by: "operator",
  });
});

Deno.test("a call that the operator declines is declined, and the model is told by whom [2.4]", async () => {
  using place = site();
  const { granted, entry, message } = await gate(place, {}, human({ granted: false }))(bash, {
    command: "make",
  });
  assert.deepEqual([granted, entry.decision, entry.scope], [false, "declined", undefined]);
  assert.equal(message, "[cancelled] User declined the run_command call");
});

Deno.test("a headless run declines what the policy asks about, names tool and category, and forbids a retry [2.4, 5.3, 7.3]", async () => {
  using place = site();
  const { entry, message } = await gate(place, {}, headlessOperator(false))(bash, { command: "x" });
  assert.deepEqual([entry.action, entry.decision], ["ask", "declined"]);
  assert.match(message, /^Error: permission denied: run_command \(category bash\): .*Do not retry/);
});

Deno.test("--yes grants what would be asked and nothing that is denied [5.3]", async () => {
  using place = site();
  const call = gate(place, { actions: { vcs: "deny" } }, headlessOperator(true));
  const { granted, entry } = await call(bash, { command: "x" });
  assert.deepEqual([granted, entry.granted_by], [true, "--yes"]);
  assert.equal((await call(tool({ permission: "vcs" }), { path: "a" })).granted, false);
});

Deno.test("an approval opens its path for its call only", async () => {
  using place = site();
  const { outside } = place;
  Deno.writeTextFileSync(`${outside}/a`, "x");
  const call = gate(place, {}, human());
  const read = tool({ name: "file_read", permission: "read" });
  let reached = "";
  const approved = await call(read, { path: "../outside/a" }, never, (paths) => {
    reached = paths.resolve(`${outside}/a`);
    return Promise.resolve("");
  });
  assert.equal(reached, `${outside}/a`);
  assert.equal(approved.paths.resolve("../outside/a"), `${outside}/a`);
  assert.throws(() => approved.paths.resolve(`${outside}/b`), Deno.errors.PermissionDenied);
  const { paths } = await call(read, { path: "src" });
  assert.throws(() => paths.resolve(`${outside}/a`), Deno.errors.PermissionDenied);
});

Deno.test("a call that was refused gets no path beyond the worktree [5.3]", async () => {
  using place = site();
  for (const given of [{}, { deny: ["file_write"] }]) {
    const { granted, paths } = await gate(place, given, human({ granted: false }))(tool(), {
      path: place.outside,
    });
    assert.equal(granted, false);
    assert.throws(() => paths.resolve(place.outside), Deno.errors.PermissionDenied);
  }
});

/** Answers `always` to the first call; returns whether the second one is asked about. */
async function askedAgain(
  place: Site,
  given: Partial<PolicySettings>,
  first: [ToolDefinition, ToolArguments],
  second: [ToolDefinition, ToolArguments],
): Promise<boolean> {
  const operator = human({ scope: "always" });
  const call = gate(place, given, operator);
  assert.equal((await call(...first)).entry.scope, "always");
  const { granted, entry } = await call(...second);
  assert.equal(granted, true);
  const again = operator.asked.length > 1;
  if (!again) {
    assert.deepEqual([entry.scope, entry.granted_by, entry.action], ["always", "operator", "ask"]);
  }
  return again;
}

Deno.test("an operator's always covers its cause for the session and is not stretched to another [5.3]", async () => {
  using place = site();
  const { outside } = place;
  const edit = tool();
  const other = tool({ name: "file_edit" });
  const commit = tool({
    name: "git_commit",
    permission: "vcs",
    permission_fn: (args) => args.all === true ? "ask" : undefined,
  });
  const asks = { actions: { edit: "ask" as const, vcs: "ask" as const } };
  const cases: [
    string,
    boolean,
    [ToolDefinition, ToolArguments],
    [ToolDefinition, ToolArguments],
    Partial<PolicySettings>?,
  ][] = [
    ["the same command", false, [bash, { command: "make" }], [bash, { command: "make" }]],
    ["the same arguments in another order", false, [bash, { command: "make", timeout: 1 }], [
      bash,
      { timeout: 1, command: "make" },
    ]],
    ["another command", true, [bash, { command: "make" }], [bash, { command: "make all" }]],
    ["another folder", true, [bash, { command: "make" }], [bash, { command: "make", cwd: "src" }]],
    ["a place outside for the same command", true, [bash, { command: "make" }], [
      bash,
      { command: "make", cwd: outside },
    ]],
    ["the same file", false, [edit, { path: "a" }], [other, { path: "./a" }], asks],
    ["another file", true, [edit, { path: "a" }], [edit, { path: "b" }], asks],
    ["the same tool, which has no path", false, [commit, { message: "a" }], [
      commit,
      { message: "b" },
    ], asks],
    ["another tool", true, [commit, { message: "a" }], [tool({ name: "git", permission: "vcs" }), {
      message: "a",
    }], asks],
    ["a place outside for a granted tool", true, [edit, { path: "a" }], [
      edit,
      { path: `${outside}/a` },
    ], asks],
    ["a protected place for a granted tool", true, [edit, { path: "a" }], [
      edit,
      { path: ".svc/config.json" },
    ], asks],
    ["the same place outside, spelled otherwise", false, [edit, { path: `${outside}/a` }], [
      edit,
      { path: "../outside/./a" },
    ]],
    ["a neighbour outside", true, [edit, { path: `${outside}/a` }], [
      edit,
      { path: `${outside}/b` },
    ]],
    ["something below a place outside", true, [edit, { path: outside }], [
      edit,
      { path: `${outside}/a` },
    ]],
    ["the same place for another tool", true, [edit, { path: `${outside}/a` }], [
      other,
      { path: `${outside}/a` },
    ]],
    ["the same category, but the resolver asks", true, [commit, { message: "m" }], [
      commit,
      { message: "m", all: true },
    ], asks],
    ["other arguments that the resolver asks about", true, [commit, { all: true }], [
      commit,
      { all: true, message: "m" },
    ], asks],
  ];
  for (const [what, again, first, second, given = {}] of cases) {
    assert.equal(await askedAgain(place, given, first, second), again, what);
  }
});

const REPOSITORY = "changes of the repository, and the programs that it configures";

/** What may be chosen for a call, as it is shown. */
async function choices(place: Site, each: ToolDefinition, args: ToolArguments): Promise<string[]> {
  const operator = human();
  const actions = { bash: "ask", edit: "ask", web: "ask", vcs: "ask", mcp: "ask" } as const;
  await gate(place, { actions }, operator)(each, args);
  return operator.asked[0]!.choices!.map(({ covers, opens }) => covers + (opens && ` (${opens})`));
}

Deno.test("an operator chooses what always covers: the command, commands that begin so, the category", async () => {
  using place = site();
  const all = "every bash call";
  const exact = "this very command";
  const begins = (prefix: string, opens = "") => [
    exact,
    `commands that begin with: ${prefix}${opens && ` (${opens})`}`,
    all,
  ];
  const files =
    "programs in files of the worktree, which an agent may edit, and those that its arguments name";
  const cases: [string, string[]][] = [
    ["git status -s", begins("git status")],
    ["git log --oneline | head -3", begins("git log, head", "reading any file, keys included")],
    ["npm run build -- --watch", begins("npm run build", files)],
    ["cd src && make test", begins("cd, make", files)],
    ["touch one", begins("touch", "changes of any file")],
    ["git rebase main", begins("git rebase", REPOSITORY)],
    ["git clone x", begins("git clone", "changes of any file")],
    ["uniq a", begins("uniq", "changes of any file")],
    // A beginning of these would cover anything, or nothing that could be said.
    ["bash -c 'ls'", [exact, all]],
    ["sudo ls", [exact, all]],
    ["python3 x.py", [exact, all]],
    ["deno eval 1", [exact, all]],
    ["pip install x", [exact, all]],
    ["go run ./x", [exact, all]],
    ["deno test -A", begins("deno test", "any program, with anything on the machine")],
    ["FOO=1 make", [exact, all]],
    ["git -C x status", [exact, all]],
    ["npm run", [exact, all]],
    ["uv run python x.py", [exact, all]],
    ["poetry run python x.py", [exact, all]],
    ["npx tsx x.ts", [exact, all]],
    ["pnpm dlx tsx", [exact, all]],
    ["cat a | sort", [exact, all]],
    ["git bisect log", [exact, all]],
    ["git config user.name", [exact, all]],
    ["git submodule status", [exact, all]],
    ["git st", [exact, all]],
    ["ls > out", [exact, all]],
    ["ls $(rm -r x)", [exact, all]],
    ["$cmd", [exact, all]],
    ["ls; cat a; head a; wc a", [exact, all]],
    ["git diff --output=x", [exact, all]],
    ["ls\nrm x", [exact, all]],
  ];
  for (const [command, wanted] of cases) {
    assert.deepEqual(await choices(place, bash, { command }), wanted, command);
  }
  assert.deepEqual(await choices(place, bash, { command: "ls", cwd: place.outside }), [exact]);
  const edit = tool();
  assert.deepEqual(await choices(place, edit, { path: "src/../a" }), [
    "every edit call for a",
    "every edit call",
  ]);
  assert.deepEqual(await choices(place, edit, { path: `${place.outside}/a` }), [
    `every edit call for ${place.outside}/a`,
  ]);
  const fetch = tool({ name: "web_fetch", permission: "web", path_arg: undefined });
  assert.deepEqual(await choices(place, fetch, { url: "https://a.example/x?y" }), [
    "every web call for https://a.example",
    "every web call",
  ]);
  assert.deepEqual(await choices(place, tool({ name: "x.y", permission: "mcp" }), {}), [
    "every call of x.y",
    "every mcp call",
  ]);
});

Deno.test("an approval of commands that begin so covers no other command, and is recorded [2.4, 5.3]", async () => {
  using place = site();
  const operator = human({ scope: "always", choice: 1 });
  const call = gate(place, {}, operator);
  const { entry, environment } = await call(bash, { command: "git status -s" });
  assert.deepEqual([entry.scope, entry.covers], [
    "always",
    "commands that begin with: git status",
  ]);
  assert.equal(environment?.GIT_PAGER, "cat", "it runs as a command of bash_allow");
  await call(bash, { command: "ls src" });
  assert.equal(operator.asked.length, 2);
  const asks = async (command: string, more: ToolArguments = {}) => {
    const before = operator.asked.length;
    operator.confirm = (request) => {
      operator.asked.push(request);
      return Promise.resolve({ granted: false, scope: "once", by: "operator" });
    };
    const { granted, entry, environment } = await call(bash, { command, ...more });
    const asked = operator.asked.length > before;
    assert.equal(granted, !asked);
    if (granted) assert.deepEqual([entry.scope, environment?.GIT_PAGER], ["always", "cat"]);
    return asked ? "asks" : entry.covers;
  };
  assert.equal(await asks("git status"), "commands that begin with: git status");
  assert.equal(await asks("ls -la && git status"), "commands that begin with: git status, ls");
  for (
    const command of [
      "git status; rm -rf x",
      "git status && git push",
      "git status $(rm -rf x)",
      "git status `rm -rf x`",
      "git status > x",
      "git status & rm x",
      "git status | sh",
      "git status --output=x",
      "gitx status",
      "git statusx",
      "env git status",
      "./git status",
      "FOO=x git status",
      "git status\nrm -rf x",
      "git status <<E\nE",
      "git 'status' -c x=y; ls $HOME*; $x",
      "GIT status",
    ]
  ) {
    assert.equal(await asks(command), "asks", command);
  }
  assert.equal(await asks("git status", { cwd: place.outside }), "asks");
});

Deno.test("an approval of a command in a folder outside covers no other command there", async () => {
  using place = site();
  const operator = human({ scope: "always" });
  const call = gate(place, {}, operator);
  const there = { command: "make", cwd: place.outside };
  assert.equal((await call(bash, there)).entry.covers, "this very command");
  await call(bash, there);
  assert.equal(operator.asked.length, 1);
  const listed = human({ scope: "always", choice: 1 });
  operator.confirm = listed.confirm;
  await call(bash, { command: "ls" });
  await call(bash, { command: "ls -a" });
  assert.equal(listed.asked.length, 1);
  await call(bash, { command: "ls", cwd: place.outside });
  assert.equal(listed.asked.length, 2);
});

Deno.test("an approval of git rebase does not run what its options name", async () => {
  using place = site();
  const operator = human({ scope: "always", choice: 1 });
  const call = gate(place, {}, operator);
  await call(bash, { command: "git rebase main" });
  await call(bash, { command: "git rebase -Xours main" });
  assert.equal(operator.asked.length, 1);
  const once = human();
  operator.confirm = once.confirm;
  for (const options of ["-x 'sh x'", "-ix true", "--exec=true"]) {
    const before = once.asked.length;
    await call(bash, { command: `git rebase ${options} HEAD~1` });
    assert.equal(once.asked.length, before + 1, options);
  }
});

Deno.test("an approval of a category covers its calls, and no path, resolver or other category", async () => {
  using place = site();
  const commit = tool({
    name: "git_commit",
    permission: "vcs",
    permission_fn: (args) => args.all === true ? "ask" : undefined,
  });
  const edit = tool();
  const operator = human({ scope: "always", choice: 1 });
  const call = gate(place, { actions: { edit: "ask", vcs: "ask" } }, operator);
  const { entry } = await call(edit, { path: "a" });
  assert.equal(entry.covers, "every edit call");
  await call(tool({ name: "file_edit" }), { path: "b" });
  assert.equal(operator.asked.length, 1);
  await call(edit, { path: `${place.outside}/a` });
  assert.equal(operator.asked.length, 2);
  await call(commit, { message: "m" });
  await call(commit, { message: "n" });
  assert.equal(operator.asked.length, 3);
  await call(commit, { message: "n", all: true });
  assert.equal(operator.asked.length, 4);
  const commands = human({ scope: "always", choice: 2 });
  const run = gate(place, { bash_allow: ["ls"] }, commands);
  await run(bash, { command: "make" });
  await run(bash, { command: "rm -rf x" });
  assert.equal(commands.asked.length, 1);
  const { granted } = await run(bash, { command: "ls\nrm x" });
  assert.equal(granted, false, "several lines stay denied with bash_allow");
});

Deno.test("the reason of a no is the tool's result", async () => {
  using place = site();
  const operator = human({ granted: false, reason: "use make instead" });
  const { message, denial } = await gate(place, {}, operator)(bash, { command: "gcc x.c" });
  assert.equal(message, "[cancelled] User declined the run_command call: use make instead");
  assert.equal(denial, "the operator declined it: use make instead");
});

Deno.test("once is forgotten, and always ends with its Grants", async () => {
  using place = site();
  const operator = human();
  const call = gate(place, {}, operator);
  await call(bash, { command: "make" });
  await call(bash, { command: "make" });
  assert.equal(operator.asked.length, 2);
  const eager = human({ scope: "always" });
  await gate(place, {}, eager)(bash, { command: "make" });
  await gate(place, {}, eager)(bash, { command: "make" });
  assert.equal(eager.asked.length, 2);
});

Deno.test("always does not outlive a change of what the path leads to", async () => {
  using place = site();
  const { worktree, outside, root } = place;
  Deno.symlinkSync(`${outside}/a`, `${worktree}/link`);
  const operator = human({ scope: "always" });
  const call = gate(place, {}, operator);
  await call(tool(), { path: "link" });
  await call(tool(), { path: "link" });
  assert.equal(operator.asked.length, 1);
  Deno.removeSync(`${worktree}/link`);
  Deno.symlinkSync(`${root}/.bashrc`, `${worktree}/link`);
  await call(tool(), { path: "link" });
  assert.equal(operator.asked.length, 2);
});

Deno.test("a turn that ends while the operator thinks leaves a declined call", async () => {
  using place = site();
  const turn = new AbortController();
  const operator: Operator = {
    confirm: () => {
      turn.abort();
      return new Promise(() => {});
    },
    ask: () => Promise.resolve(undefined),
  };
  const { granted, entry, message } = await gate(place, {}, operator)(
    bash,
    { command: "x" },
    turn.signal,
  );
  assert.deepEqual([granted, entry.decision], [false, "declined"]);
  assert.equal(message, "[cancelled] The turn ended before run_command was to run");
});

Deno.test("the operator is not asked about a turn that is over", async () => {
  using place = site();
  const operator = human();
  const call = gate(place, {}, operator);
  assert.equal((await call(bash, { command: "x" }, AbortSignal.abort())).granted, false);
  const turn = new AbortController();
  const preview = () => {
    turn.abort();
    return Promise.resolve("");
  };
  assert.equal((await call(bash, { command: "x" }, turn.signal, preview)).granted, false);
  assert.equal(operator.asked.length, 0);
});

/** A gate of an agent whose limit allows more than its own permissions. */
function under(place: Site, own: Partial<PolicySettings>, limit: Partial<PolicySettings>) {
  const grants = new Grants();
  const policy = new Policy(settings(own), place.guard, config(), settings(limit));
  const through = (each: ToolDefinition, args: ToolArguments, operator: Operator) =>
    authorize({
      tool: each,
      args,
      policy,
      operator,
      grants,
      guard: place.guard,
      preview: () => Promise.resolve(""),
      run: 2,
      session: "s",
      signal: never,
    });
  return { grants, through };
}

const ONCE = { scope: "once", by: "ceiling" } as const;

Deno.test("a permission grant opens a category as far as the limit, for one call [2.4]", async () => {
  using place = site();
  const none = human({ granted: false });
  const { grants, through } = under(place, { actions: { edit: "deny" } }, {});
  grants.give("edit", ONCE);
  assert.equal((await through(bash, { command: "ls" }, none)).granted, false);
  const { granted, entry } = await through(tool(), { path: "a" }, none);
  assert.ok(granted);
  assert.deepEqual(entry, {
    tool: "file_write",
    action: "ask",
    decision: "granted",
    path: "a",
    scope: "once",
    granted_by: "ceiling",
  });
  assert.equal((await through(tool(), { path: "a" }, none)).granted, false);
  grants.give("edit", { scope: "always", by: "operator" });
  grants.give("edit", ONCE); // takes nothing back
  for (const path of ["a", "b"]) assert.ok((await through(tool(), { path }, none)).granted);
});

Deno.test("a permission grant covers no outside path and no resolver, and is kept when those are declined", async () => {
  using place = site();
  const no = human({ granted: false });
  const yes = human();
  const { grants, through } = under(place, { actions: { edit: "deny" } }, {});
  grants.give("edit", ONCE);
  const wary = tool({ permission_fn: () => "ask" });
  const strict = tool({ permission_fn: () => "deny" });
  const outside = { path: `${place.outside}/a` };
  assert.equal((await through(tool(), outside, no)).granted, false);
  assert.equal((await through(wary, { path: "a" }, no)).granted, false);
  assert.equal((await through(strict, { path: "a" }, yes)).granted, false);
  assert.equal(no.asked.length, 2);
  assert.deepEqual(yes.asked, []);
  assert.ok(grants.has("edit"));
  assert.ok((await through(tool(), outside, yes)).granted);
  assert.equal(yes.asked.length, 1);
  assert.equal(grants.has("edit"), false);
});

Deno.test("a permission grant is not used up by a call that runs anyway, or that it does not help", async () => {
  using place = site();
  const yes = human();
  const { grants, through } = under(place, {}, {});
  grants.give("edit", ONCE);
  assert.ok((await through(tool(), { path: "a" }, yes)).granted);
  assert.ok((await through(tool(), { path: `${place.outside}/a` }, yes)).granted);
  assert.ok(grants.has("edit"));
  grants.endTurn();
  assert.equal(grants.has("edit"), false);
});

Deno.test("a permission grant for bash obeys the list of the limit, and never runs several lines", async () => {
  using place = site();
  const no = human({ granted: false });
  const list = { bash_allow: ["ls"] };
  const listed = under(place, { actions: { bash: "deny" }, ...list }, {
    actions: { bash: "allow" },
    ...list,
  });
  listed.grants.give("bash", { scope: "always", by: "operator" });
  assert.ok((await listed.through(bash, { command: "ls -l" }, no)).granted);
  assert.equal((await listed.through(bash, { command: "rm x" }, no)).granted, false);

  const asking = under(place, { actions: { bash: "deny" }, ...list }, list);
  asking.grants.give("bash", { scope: "always", by: "operator" });
  assert.ok((await asking.through(bash, { command: "rm x" }, no)).granted);
  assert.equal((await asking.through(bash, { command: "rm x\nrm y" }, no)).granted, false);
});

Deno.test("a call that cannot succeed is rejected without asking, and its reason quotes only readable files", async () => {
  using place = site();
  const operator = human();
  const fails = () => Promise.resolve("Error: old does not occur; the closest line is: secret");
  const ask = { actions: { edit: "ask", read: "allow" } } as const;
  const inside = await gate(place, ask, operator)(tool(), { path: "a" }, never, fails);
  assert.deepEqual([inside.granted, inside.noop, inside.message], [false, true, await fails()]);
  assert.equal(operator.asked.length, 0);
  // For outside paths and unreadable files, only the operator sees the reason.
  const outside = await gate(place, ask, operator)(tool(), { path: "/etc/x" }, never, fails);
  const unread = { actions: { edit: "ask", read: "ask" } } as const;
  const hidden = await gate(place, unread, operator)(tool(), { path: "a" }, never, fails);
  for (const { noop, message } of [outside, hidden]) {
    assert.equal(noop, false);
    assert.doesNotMatch(message, /secret/);
  }
  assert.equal(operator.asked.length, 2);
});

Deno.test("an always for a tool does not cover another tool that a server registers under its name", async () => {
  using place = site();
  const operator = human({ scope: "always" });
  const call = gate(place, {}, operator);
  const imported = (change: Partial<ToolDefinition> = {}) =>
    tool({ name: "notes.add", permission: "mcp", path_arg: undefined, ...change });
  await call(imported(), { other: "a" });
  await call(imported(), { other: "b" });
  assert.equal(operator.asked.length, 1);
  await call(imported({ description: "Sends it to everybody." }), { other: "c" });
  assert.equal(operator.asked.length, 2);
  const properties = { other: { type: "string" }, recipients: { type: "array" } };
  await call(imported({ parameters: { type: "object", properties } }), { other: "d" });
  assert.equal(operator.asked.length, 3);
});

Deno.test("the protected paths are read once for a call, and again once an operator has answered", async () => {
  using place = site();
  let read = 0;
  const context = place.guard.context.bind(place.guard);
  place.guard.context = () => (read++, context());
  assert.ok((await gate(place, {}, human())(tool(), { path: "a" })).granted);
  assert.equal(read, 1);

  // While the operator was asked, `.git` became a link to a folder of the worktree.
  const operator = human();
  const ask = operator.confirm;
  operator.confirm = (request) => {
    Deno.symlinkSync(`${place.worktree}/src`, `${place.worktree}/.git`);
    return ask(request);
  };
  const { granted, paths } = await gate(place, {}, operator)(bash, { command: "make" });
  assert.deepEqual([granted, read], [true, 3]);
  const writing = paths.open("src/config", { write: true, create: true });
  await assert.rejects(writing, Deno.errors.PermissionDenied);
});
