import assert from "node:assert/strict";
import { calls, say } from "../support/backend.ts";
import { server } from "./support.ts";

const EDIT = { tool_permission: { edit: "allow" } };

Deno.test("GET /sessions/NAME/changes shows what a turn changed, and POST /sessions/NAME/undo takes it back", async () => {
  await using at = await server([
    calls([["file_edit", { path: "a.txt", old: "one", new: "two" }]]),
    say("done"),
    say("I see"),
  ], { files: { "a.txt": "one\n" }, config: EDIT });
  const path = "/sessions/mine";
  assert.equal((await at.get(`${path}/changes`)).status, 404);
  await at.post("/chat", { prompt: "go", session: "mine" });
  const { body } = await at.get(`${path}/changes?turn=1`);
  const { at: time, ...turn } = body.turns[0];
  assert.ok(Date.parse(time) > 0);
  assert.deepEqual([body.session, turn], ["mine", {
    turn: 1,
    state: "applied",
    interrupted: false,
    unknown: "",
    files: [{
      path: "a.txt",
      change: "changed",
      from: "",
      binary: false,
      added: 1,
      removed: 1,
      agents: [],
      diff: "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n",
      note: "",
    }],
  }]);
  assert.equal((await at.get(`${path}/changes?turn=9`)).status, 404);
  assert.equal((await at.get(`${path}/changes?turn=x`)).status, 400);

  const undone = await at.post(`${path}/undo`, {});
  assert.deepEqual([undone.status, undone.body], [
    200,
    {
      session: "mine",
      turn: 1,
      state: "undone",
      files: ["a.txt"],
      unknown: "",
      interrupted: false,
    },
  ]);
  assert.equal(await at.project.read("a.txt"), "one\n");
  assert.equal((await at.post(`${path}/undo`, {})).status, 409);
  await at.project.write("a.txt", "mine\n");
  const refused = await at.post(`${path}/undo`, { turn: 1, redo: true });
  assert.equal(refused.status, 409);
  assert.match(refused.body.error, /a\.txt \(changed since\)/);

  await at.post("/chat", { prompt: "go on", session: "mine" });
  const told = at.backend.chats.at(-1).messages.map((each: { content: string }) => each.content);
  assert.ok(told.includes(
    "[The user has taken back the changes of turn 1: a.txt. These files are as they were before that turn.]",
  ));
});
