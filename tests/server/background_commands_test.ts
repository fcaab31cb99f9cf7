import assert from "node:assert/strict";
import { call, say } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { server } from "./support.ts";

Deno.test("the commands of a session continue between two requests of POST /chat, and end with the server [4.1]", async () => {
  const at = await server([
    call("run_command", { command: "echo up; exec sleep 1000", background: true }),
    say("started"),
    call("command_output", { id: 1, wait_for: "up", timeout: 60 }),
    say("seen"),
    call("command_output", { id: 1 }),
    say("none"),
  ], { config: { tool_permission: { bash: "allow" } } });
  const { path } = at.project;
  try {
    await at.post("/chat", { prompt: "go", session: "one" });
    await at.post("/chat", { prompt: "more", session: "one" });
    await at.post("/chat", { prompt: "another session", session: "two" });
    const outputs = (name: string) =>
      at.workspace.sessions.read(name)!.turns.flatMap(({ parts }) =>
        parts.flatMap((part) => part.type === "tool" ? [part.output] : [])
      );
    assert.match(outputs("one")[1]!, /^command 1 runs: .*\nwaited for "up": there\nup$/);
    assert.equal(outputs("two")[0], "Error: no command 1 runs in the background of this session");
  } finally {
    await at.workspace.close(); // as the end of svc serve does
    await at[Symbol.asyncDispose]();
  }
  await noProcessesLeft(path);
});
