import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import { runMain, testIo } from "../support/io.ts";
import { project } from "../support/project.ts";

Deno.test("svc logs lists the logs of a worktree, and shows the end of one", async () => {
  await using work = await project({
    ".svc/logs/jobs.log": "one\ntwo\x1b[31m\nthree\n",
    ".svc/logs/jobs.log.1": "zero\n",
    ".svc/logs/notes.log": "an agent's\n",
  });
  await Deno.mkdir(`${work.path}/.svc/logs/folder.log`);
  await Deno.symlink("/dev/zero", `${work.path}/.svc/logs/endless.log`);
  const listed = await runMain(work.path, "logs");
  assert.match(listed.out, /^jobs {3}1 kB {2}\S+ \S+ UTC\nnotes {2}1 kB {2}\S+ \S+ UTC\n$/);
  assert.deepEqual(await runMain(work.path, "logs", "jobs", "-n", "2"), {
    code: 0,
    out: "two\nthree\n",
    notes: [],
  });
  assert.equal((await runMain(work.path, "logs", "jobs")).out, "zero\none\ntwo\nthree\n");
  const wrong = await runMain(work.path, "logs", "note");
  assert.equal(wrong.code, 2);
  assert.match(wrong.notes.join("\n"), /no log "note".*\nhint: Did you mean "notes"\?/);
  assert.deepEqual((await runMain("/", "logs")).notes, ["There are no logs."]);
});

Deno.test("fleet up --log json notes each line as a JSON object", async () => {
  await using work = await project({ ".svc/fleet.json": '{"agents": [{"name": "a"}]}' });
  const signal = AbortSignal.abort();
  const io = testIo({ home: work.path, cwd: work.path }, {
    onInterrupt: () => ({ signal, release() {} }),
  });
  const code = await main(["fleet", "up", "--port", "0", "--log", "json"], io);
  assert.equal(code, 0);
  const lines = io.notes.map((note) => JSON.parse(note));
  for (const { time } of lines) assert.match(time, /^2\d{3}-\d\d-\d\dT[\d:.]+Z$/);
  assert.match(lines.find(({ level }) => level === "warning").message, /fleet\.json/);
  assert.match(lines.find(({ level }) => level === "info").message, /^listening on http:/);
});
