import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { sendRequest } from "../../src/providers/http.ts";

Deno.test("an abort ends a pending read, also right after the last chunk", async () => {
  const hanging = () =>
    new Response(
      new ReadableStream({ start: (body) => body.enqueue(new TextEncoder().encode("a")) }),
    );
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, hanging);
  const url = `http://127.0.0.1:${server.addr.port}/`;
  const peer = { name: "backend", url, model: "", api_key: "", connect: "", now: () => 0 };
  for (let round = 0; round < 200; round++) {
    const turn = new AbortController();
    const answer = await sendRequest({
      method: "GET",
      headers: {},
      signal: turn.signal,
      idle_ms: 0,
      clock: systemClock,
      peer,
    });
    await answer.read();
    const waiting = answer.read();
    setTimeout(() => turn.abort(new Error("enough")), round % 3);
    await assert.rejects(waiting, /enough/);
    answer.close();
  }
});
