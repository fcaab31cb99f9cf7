import assert from "node:assert/strict";
import type { TurnEvent } from "../../src/engine/events.ts";
import { Progress, type ProgressPiece, unfinished } from "../../src/engine/progress.ts";
import type { Operator } from "../../src/policy/operator.ts";
import { agent } from "../support/agent.ts";
import { call, say } from "../support/backend.ts";
import { FORBIDDEN, HOSTILE } from "../support/hostile.ts";

/** A progress whose intervals pass when the test says so. */
function progress(mask = (text: string) => text) {
  const pieces: ProgressPiece[] = [];
  let pass = () => {};
  const it = new Progress({
    clock: {
      now: () => 0,
      sleep: (_, signal) =>
        new Promise((resolve, reject) => {
          pass = resolve;
          signal?.addEventListener("abort", () => reject(signal.reason));
        }),
    },
    mask,
    emit: (piece) => void pieces.push(piece),
  });
  const tick = async () => {
    pass();
    await new Promise((resolve) => setTimeout(resolve));
    return pieces.splice(0);
  };
  return { it, tick };
}

Deno.test("what a call prints comes in pieces of whole lines, one for each interval", async () => {
  const { it, tick } = progress();
  for (const text of ["on", "e\ntw", "o\nthr"]) it.write(text);
  assert.deepEqual(await tick(), [{ content: "one\ntwo\n", skipped: 0 }]);
  assert.deepEqual(await tick(), []);
  it.write("ee\r\n10%\r20%\r");
  assert.deepEqual(await tick(), [{ content: "three\n10%\n", skipped: 0 }]);
  it.write("\nlast\n");
  it.end();
  it.write("more\n");
  assert.deepEqual(await tick(), []);
});

Deno.test("of much output the last lines come, and how many lines are left out", async () => {
  const { it, tick } = progress();
  const lines = Array.from({ length: 100_000 }, (_, n) => `line ${n}\n`);
  for (let at = 0; at < lines.length; at += 500) it.write(lines.slice(at, at + 500).join(""));
  const [piece, ...others] = await tick();
  assert.deepEqual(others, []);
  assert.ok(piece!.content.length <= 2000 && piece!.content.endsWith("line 99999\n"));
  assert.equal(piece!.content.split("\n").length - 1 + piece!.skipped, 100_000);
  it.write("x".repeat(1_000_000));
  assert.deepEqual(await tick(), []);
});

Deno.test("many lines of an encoding are looked at once", async () => {
  const line = `${"a".repeat(76)}\n`;
  const { it, tick } = progress();
  it.write(`${line.repeat(800)}that was all\n`);
  const [piece] = await tick();
  assert.ok(piece!.content.endsWith("that was all\n"));
  it.write(line.repeat(800));
  assert.deepEqual(await tick(), []);
  // A search from each line would take hours.
  assert.equal(unfinished(line.repeat(100_000)), 100_000 * line.length);
});

Deno.test("no control sequence and no secret is in what a call shows while it runs", async () => {
  const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQ";
  const broken = new RegExp([...secret].join("\\n?"), "g");
  const { it, tick } = progress((text) => text.replaceAll(broken, "[masked]"));
  it.write(`${HOSTILE}\nthe key ${secret.slice(0, 20)}`);
  const [first] = await tick();
  assert.equal(FORBIDDEN.exec(first!.content), null);
  assert.ok(!first!.content.includes("the key"));
  it.write(`${secret.slice(20)}\n${secret.slice(0, 45)}\n`);
  assert.deepEqual(await tick(), [{ content: "the key [masked]\n", skipped: 0 }]);
  it.write(`${secret.slice(45)}\nend\n`);
  assert.deepEqual(await tick(), [{ content: "[masked]\nend\n", skipped: 0 }]);
});

Deno.test("a command's output comes in events while it runs, and in the log once", async () => {
  const operator: Operator = {
    confirm: () => Promise.resolve({ granted: true, scope: "once", by: "operator" }),
    ask: () => Promise.resolve(undefined),
  };
  // The command ends when what it printed has arrived.
  const command = "seq 1 3; until [ -e seen ]; do sleep 0.02; done; exit 3";
  await using it = await agent([call("run_command", { command }), say("done")], {
    operator,
    headless: false,
  });
  const events: TurnEvent[] = [];
  for await (const event of it.engine.turn("go")) {
    events.push(event);
    if (event.type === "tool_output") await it.project.write("seen", "");
  }
  const outputs = events.filter((event) => event.type === "tool_output");
  assert.deepEqual(outputs.map(({ content, skipped }) => [content, skipped]), [["1\n2\n3\n", 0]]);
  const result = events.find((event) => event.type === "tool_result")!;
  assert.equal(outputs[0]!.id, result.id);
  assert.equal(result.is_error, false);
  assert.equal(result.details?.exit_code, 3);
  assert.equal(result.output.slice(result.details?.output_at), "1\n2\n3");
  const log = JSON.stringify(it.session.document());
  assert.equal(log.split("1\\n2\\n3").length, 2);
});

Deno.test("the event of an edit that needs no confirmation has its diff where a person is there", async () => {
  for (const headless of [false, true]) {
    await using it = await agent([
      call("file_write", { path: "a.txt", content: "one\n2\n" }),
      say("done"),
    ], {
      headless,
      files: { "a.txt": "one\ntwo\n" },
      config: { tool_permission: { edit: "allow" } },
    });
    const { events } = await it.turn("go");
    const { preview } = events.find((event) => event.type === "permission")!;
    if (headless) assert.equal(preview, undefined);
    else assert.match(preview!, /^--- a\.txt\n\+\+\+ a\.txt\n@@ .* @@\n one\n-two\n\+2\n/);
  }
});
