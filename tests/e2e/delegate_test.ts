import assert from "node:assert/strict";
import { call, type Reply, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const as = (system: string, reply: Reply): Reply => ({ ...reply, when: { system } });

/** A leader, who may run nothing, has a programmer run a command. */
const STORY = [
  as("YOU LEAD", call("run_command", { command: "touch led" })),
  as("YOU LEAD", call("delegate", { role: "smith", task: "make it" })),
  as("YOU FORGE", call("run_command", { command: "touch made" })),
  as("YOU FORGE", say("it is made")),
  as("YOU LEAD", say("done by others")),
];

function worktree(url: string, mode: string) {
  return project({
    ".svc/config.json": JSON.stringify({
      base_url: url,
      model: "test",
      mode,
      memory_enabled: false,
      tool_permission: { bash: "allow" },
    }),
    ".svc/roles.json": JSON.stringify({
      chief: {
        system_prompt: "YOU LEAD",
        tool_permission: { bash: "deny" },
        grant_permission: { bash: "allow" },
      },
      smith: { system_prompt: "YOU FORGE", tool_permission: { bash: "allow" } },
    }),
  });
}

/** The files of a worktree, and what its sessions say of the sub-agent's. */
async function outcome(path: string, session: string) {
  const read = async (name: string) =>
    JSON.parse(await Deno.readTextFile(`${path}/.svc/sessions/${name}.json`));
  const parent = await read(session);
  const [name] = parent.sub_sessions;
  return {
    files: [...Deno.readDirSync(path)].map((entry) => entry.name).filter((name) =>
      !name.startsWith(".")
    ),
    sub: await read(name),
  };
}

Deno.test("a leader who may not run commands has one run; only the leader's answer is printed", async () => {
  await using backend = startBackend(STORY);
  await using place = await worktree(backend.url, "build");
  const { code, stdout, stderr } = await svc(
    ["run", "--role", "chief", "--verbose", "--output", "text", "go"],
    { cwd: place.path },
  );
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "done by others\n");
  assert.match(stderr, /#2 {3}smith starts in session sub_\S+, for #1/);
  assert.match(stderr, /^#2 ok in /m);
  const session = /^session (\S+), turn 1/m.exec(stderr)![1]!;
  const { files, sub } = await outcome(place.path, session);
  assert.deepEqual(files, ["made"]);
  assert.deepEqual([sub.parent_id, sub.role, sub.turns[0].status], [session, "smith", "ok"]);
});

Deno.test("the JSON result is the leader's, and stream-json has every event with its run", async () => {
  for (const output of ["json", "stream-json"]) {
    await using backend = startBackend(STORY);
    await using place = await worktree(backend.url, "build");
    const { code, stdout } = await svc(["run", "--role", "chief", "--output", output, "go"], {
      cwd: place.path,
    });
    assert.equal(code, 0);
    if (output === "json") {
      assert.equal(JSON.parse(stdout).content, "done by others");
    } else {
      const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
      const ended = events.filter(({ type }) => type === "turn_finished");
      assert.deepEqual(ended.map(({ run, result }) => [run, result.content]), [
        [2, "it is made"],
        [1, "done by others"],
      ]);
    }
  }
});

Deno.test("in plan mode no agent runs commands, sub-agents included", async () => {
  await using backend = startBackend(STORY);
  await using place = await worktree(backend.url, "plan");
  const { code, stdout } = await svc(["run", "--role", "chief", "go"], { cwd: place.path });
  assert.equal(code, 0);
  const { files, sub } = await outcome(place.path, JSON.parse(stdout).session);
  assert.deepEqual(files, []);
  assert.equal(sub.turns[0].mode, "build");
  assert.equal(sub.turns[0].parts[1].is_error, true);
});
