import assert from "node:assert/strict";
import { join } from "node:path";
import { Workspace } from "../../src/engine/workspace.ts";
import { type Project, project } from "../support/project.ts";

/** Opens and loads a worktree; returns its trust notices. */
async function look(
  work: Project,
  home: Project,
  overrides: Record<string, unknown> = {},
): Promise<string[]> {
  const warnings: string[] = [];
  const workspace = Workspace.open({
    path: work.path,
    environment: { home: home.path, cwd: work.path, get: () => undefined },
    warn: (message) => warnings.push(message),
    overrides,
  });
  await workspace.load({ tools: "all" });
  return warnings.filter((warning) => warning.includes("This is said once"));
}

/** The openings in the trust notice for the worktree's settings, given the user's own. */
async function opened(
  local: Record<string, unknown>,
  own: Record<string, unknown> = {},
): Promise<string> {
  await using work = await project({ ".svc/config.json": JSON.stringify(local) });
  await using home = await project({ ".config/svc/config.json": JSON.stringify(own) });
  const [warning = ""] = await look(work, home);
  return warning.replace(`${work.path}/.svc `, "").replace(/\. This is said once\..*/, "");
}

Deno.test("the trust notice names code and wider permissions once, before they take effect", async () => {
  await using work = await project({
    ".svc/config.json": '{"tool_permission": {"bash": "allow"}}',
    ".svc/plugins/svc-core-fs/manifest.json": '{"name": "svc-core-fs", "entry": "plugin.js"}',
    ".svc/plugins/svc-core-fs/plugin.js": "globalThis.ranFirst = true;",
  });
  await using home = await project();
  const first: string[] = [];
  const workspace = Workspace.open({
    path: work.path,
    environment: { home: home.path, cwd: work.path, get: () => undefined },
    warn: (message) => first.push(`${"ranFirst" in globalThis} ${message}`),
  });
  await workspace.load({ tools: "all" });
  assert.equal("ranFirst" in globalThis, true);
  assert.equal(
    first[0],
    `false ${work.path}/.svc runs code of its own (plugins "svc-core-fs"); allows the categories ` +
      '"bash". This is said once. If it is none of your doing, look at that folder before you let ' +
      "an agent work here.",
  );
  assert.deepEqual(await look(work, home), []);
  await work.write(".svc/config.json", '{"tool_permission": {"bash": "allow", "vcs": "allow"}}');
  assert.match((await look(work, home))[0]!, /the categories "bash", "vcs"/);
  const seen = join(home.path, ".config/svc/worktrees.json");
  assert.equal(Object.keys(JSON.parse(Deno.readTextFileSync(seen))).length, 1);
});

Deno.test("the trust notice names each kind of opening", async () => {
  assert.equal(
    await opened({ tool_permission: { bash_allow: ["curl"] } }),
    'runs unasked what begins with "curl"',
  );
  assert.equal(
    await opened(
      { "tool_permission.bash_allow": [] },
      { tool_permission: { bash: "allow", bash_allow: ["ls"] } },
    ),
    "runs any command, whatever your list says",
  );
  assert.equal(
    await opened({ "tools.deny": [] }, { "tools.deny": ["web_fetch"] }),
    'no longer denies the tools "web_fetch"',
  );
  assert.equal(
    await opened({ "tools.allow": ["file_read", "run_command"] }, { "tools.allow": ["file_read"] }),
    "offers tools beyond your tools.allow",
  );
  assert.equal(
    await opened({ tool_permission: { edit: "ask" } }, { tool_permission: { edit: "deny" } }),
    'no longer denies the categories "edit"',
  );
  assert.equal(
    await opened({ mode: "free", modes: { free: { tool_permission: { bash: "allow" } } } }),
    'allows the categories "bash"',
  );
  assert.equal(
    await opened({ mode: "build" }, { mode: "plan" }),
    'allows the categories "edit"; no longer denies the categories "bash", "dev"',
  );
  assert.equal(
    await opened({ base_url: "https://elsewhere.example/v1" }),
    'sends the conversation to "https://elsewhere.example/v1"',
  );
  assert.equal(
    await opened({ "report.webhook": "https://hooks.example/services/T0/secret" }),
    'sends reports of job runs to "hooks.example"',
  );
  assert.equal(
    await opened({ "web.search_engine": "searxng", "web.search_url": "https://s.example" }),
    'sends web searches to "https://s.example"',
  );
  assert.equal(
    await opened({ web: { search_engine: "brave" } }),
    'sends web searches to "brave"',
  );
  assert.equal(
    await opened({ "web.search_url": "" }, { "web.search_url": "http://127.0.0.1:8888" }),
    'sends web searches to "duckduckgo"',
  );
  assert.equal(await opened({ web_search: true }), "searches the web for every prompt");
  assert.equal(
    await opened(
      { "web.allow_private": ["10.0.0.1", "wiki"] },
      { "web.allow_private": ["wiki"] },
    ),
    'lets web tools reach "10.0.0.1" in a private network',
  );
});

Deno.test("the trust notice omits settings that narrow, equal the user's, or come from a flag", async () => {
  assert.equal(await opened({ tool_permission: { edit: "deny" }, "tools.deny": ["glob"] }), "");
  const bash = { tool_permission: { bash: "allow" } };
  assert.equal(await opened(bash, bash), "");
  assert.equal(await opened({ base_url: "http://127.0.0.1:11434/v1", model: "m" }), "");
  assert.equal(await opened({ "report.webhook": "http://127.0.0.1:9/hook" }), "");
  assert.equal(await opened({}, { "report.webhook": "https://hooks.example/mine" }), "");
  assert.equal(await opened({ web_search: false, "web.allow_private": [] }), "");
  await using work = await project({ ".svc/config.json": '{"mode": "build"}' });
  await using home = await project({ ".config/svc/config.json": '{"mode": "plan"}' });
  assert.deepEqual(await look(work, home, { mode: "plan" }), []);
  assert.deepEqual([...Deno.readDirSync(join(home.path, ".config/svc"))].length, 1);
});
