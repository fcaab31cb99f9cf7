import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import { testIo } from "../support/io.ts";
import { project } from "../support/project.ts";

/** Runs a command in this process, in a worktree with these files. */
async function run(
  files: Record<string, string>,
  args: string[],
  prepare?: (path: string) => void,
) {
  const work = await project(files);
  const home = await project();
  prepare?.(work.path);
  const io = testIo({ home: home.path, cwd: work.path });
  const code = await main([...args, "--path", work.path], io);
  return {
    code,
    out: io.printed,
    notes: io.notes,
    work,
    async [Symbol.asyncDispose]() {
      await work[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}

const session = (session_name: string) =>
  JSON.stringify({ session_name, session_id: "", created_at: "", updated_at: "", turns: [] });

Deno.test("the name inside a session file does not choose the path of its export", async () => {
  await using it = await run(
    { ".svc/sessions/x.json": session("../../escaped") },
    ["export", "x"],
  );
  assert.equal(it.code, 0);
  assert.match(await it.work.read(".svc/exports/x.md"), /escaped/);
});

Deno.test("an export follows no link out of the state folder", async () => {
  await using outside = await project();
  await using it = await run(
    { ".svc/sessions/x.json": session("x") },
    ["export", "x"],
    (path) => Deno.symlinkSync(outside.path, `${path}/.svc/exports`),
  );
  assert.equal(it.code, 2);
  assert.match(it.notes[0]!, /exports is a link that leads out of /);
  assert.deepEqual([...Deno.readDirSync(outside.path)], []);
});

Deno.test("the permissions table removes control characters of a configuration file", async () => {
  await using it = await run(
    { ".svc/config.json": JSON.stringify({ tool_permission: { "\x1b[2Jmine\u202e\n": "deny" } }) },
    ["permissions"],
  );
  assert.equal(it.code, 0);
  assert.match(it.out, /^mine +deny/m);
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(it.out, /[\x1b\u202e]/);
});
