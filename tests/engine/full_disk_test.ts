import assert from "node:assert/strict";
import type { TurnEvent } from "../../src/engine/events.ts";
import { teamTurn } from "../../src/engine/team_turn.ts";
import { planTeam } from "../../src/engine/teams.ts";
import { agent } from "../support/agent.ts";
import { say } from "../support/backend.ts";

/** Has nothing be written until it is disposed of. */
function fullDisk(): Disposable {
  const { writeSync } = Deno.FsFile.prototype;
  Deno.FsFile.prototype.writeSync = () => {
    throw new Error("No space left on device (os error 28)");
  };
  return {
    [Symbol.dispose]() {
      Deno.FsFile.prototype.writeSync = writeSync;
    },
  };
}

for (const cancelled of [false, true]) {
  const how = cancelled ? "is cancelled" : "fails";
  Deno.test(`a turn that ${how} while nothing can be logged gives its session back`, async () => {
    await using it = await agent({
      replies: [
        { ...say("lost"), when: { user: "one" } },
        { ...say("with room again"), when: { user: "two" } },
      ],
    });
    const stop = new AbortController();
    const turn = it.engine.turn("one", { signal: stop.signal });
    await turn.next();
    const events: TurnEvent[] = [];
    {
      using _ = fullDisk();
      if (cancelled) stop.abort();
      for await (const event of turn) events.push(event);
    }
    const last = events.at(-1);
    assert.ok(last?.type === "turn_finished");
    assert.equal(last.result.status, cancelled ? "cancelled" : "error");
    assert.deepEqual(last.result.errors.map(({ message }) => message), [
      `Session ${it.session.name} could not be written: No space left on device (os error 28)`,
    ]);

    const next = await it.turn("two");
    assert.equal(next.events[0]!.type, "turn_started"); // no other turn holds the session
    assert.equal(next.result.content, "with room again");
    assert.deepEqual(it.session.document().turns.map(({ status }) => status), ["error", "ok"]);
  });
}

Deno.test("a team that fails while nothing can be logged ends as a turn, and gives its session back", async () => {
  await using it = await agent([say("with room again")], {
    files: {
      ".svc/roles.json": JSON.stringify({ maker: { system_prompt: "YOU MAKE" } }),
      ".svc/teams.json": JSON.stringify({ one: { stages: ["maker"] } }),
    },
  });
  const started = (await it.prepare()).open(it.session);
  const plan = await planTeam(started.agents, "one");
  const command = "/teams run one go";
  const { signal } = new AbortController();
  const turn = teamTurn(started, { plan, task: "go", command }, { signal });
  await turn.next();
  const events: TurnEvent[] = [];
  {
    using _ = fullDisk();
    for await (const event of turn) events.push(event);
  }
  const last = events.at(-1);
  assert.ok(last?.type === "turn_finished");
  assert.equal(last.result.status, "error");
  assert.match(last.result.errors[0]!.message, /^team "one" failed: .* No space left on device/);

  const next = await it.turn("two");
  assert.equal(next.events[0]!.type, "turn_started");
  assert.equal(next.result.content, "with room again");
});
