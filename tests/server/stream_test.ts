import assert from "node:assert/strict";
import { streamTurn } from "../../src/server/routes/chat.ts";
import type { TurnEnd, TurnRequest, Turns } from "../../src/server/turns.ts";

Deno.test("a stream gets a comment after fifteen seconds of silence, and not earlier", async () => {
  let now = 0;
  let wake = () => {};
  const slept: number[] = [];
  const clock = {
    now: () => now,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        const end = now + ms;
        slept.push(ms);
        wake = () => {
          now = end;
          resolve();
        };
        signal?.addEventListener("abort", () => reject(signal.reason));
      }),
  };
  const ended = Promise.withResolvers<TurnEnd>();
  let emit!: NonNullable<TurnRequest["emit"]>;
  const run = (request: TurnRequest) => {
    emit = request.emit!;
    request.onAdmitted!();
    return ended.promise;
  };
  const response = await streamTurn({ run } as Turns, { prompt: "p" }, clock);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const next = async () => (await reader.read()).value;
  wake();
  assert.equal(await next(), ": keep-alive\n\n");
  assert.equal(now, 15_000);
  now += 5_000;
  emit({ type: "token", run: 1, content: "x" });
  assert.match((await next())!, /^event: token\n/);
  wake(); // ten seconds after the event: not silent for long enough
  await new Promise((resume) => setImmediate(resume));
  assert.deepEqual(slept, [15_000, 15_000, 5_000]);
  wake();
  assert.equal(await next(), ": keep-alive\n\n");
  assert.equal(now, 35_000);
  ended.resolve({ result: { status: "ok" } } as TurnEnd);
  assert.match((await next())!, /^event: result\n/);
  assert.equal(await next(), undefined);
});
