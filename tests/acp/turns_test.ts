import assert from "node:assert/strict";
import { call, say, startBackend, think } from "../support/backend.ts";
import { project } from "../support/project.ts";
import { backendConfig, startEditor } from "./support.ts";

Deno.test("an editor gets thoughts, text and calls of a turn as they come, and its end", async () => {
  await using backend = startBackend([
    think("Hm.", call("file_read", { path: "a.txt" })),
    say(["It says ", "alpha."]),
  ]);
  await using place = await project({ "a.txt": "alpha\n", ...backendConfig(backend.url) });
  await using editor = await startEditor(place.path);
  const { sessionId } = await editor.session(place.path);
  assert.equal(await editor.prompt(sessionId, "read a.txt"), "end_turn");
  assert.equal(editor.said(sessionId), "It says alpha.");
  console.log(JSON.stringify(editor.updates, null, 1));
});
