import assert from "node:assert/strict";
import { Heartbeat } from "../../src/jobs/heartbeat.ts";
import { runDaemon } from "../../src/jobs/scheduler.ts";
import { manualClock } from "../support/clock.ts";
import { jobs } from "./support.ts";

/** A server that answers each request with a status, and remembers the paths. */
function receiver(status: number, headers: Record<string, string> = {}) {
  const got: string[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, ({ url }) => {
    got.push(new URL(url).pathname);
    return new Response(null, { status, headers });
  });
  const { port } = server.addr as Deno.NetAddr;
  return {
    got,
    url: `http://127.0.0.1:${port}/secret`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

Deno.test("the heartbeat address is called at most once a minute, also after the clock was set back", async () => {
  await using hook = receiver(200);
  const clock = manualClock();
  const heartbeat = new Heartbeat({ clock, warn: assert.fail });
  const start = clock.now();
  for (const seconds of [0, 15, 59, 60, 75, -3600]) {
    clock.set(start + seconds * 1000);
    heartbeat.beat(hook.url);
    heartbeat.beat("");
    await heartbeat.idle();
  }
  assert.deepEqual(hook.got, ["/secret", "/secret", "/secret"]);
});

Deno.test("a heartbeat that fails is a warning without the path, and redirects are not followed", async () => {
  await using elsewhere = receiver(200);
  await using broken = receiver(500);
  await using moved = receiver(302, { location: elsewhere.url });
  const cases: [string, RegExp][] = [
    [broken.url, /^the heartbeat address at 127\.0\.0\.1:\d+ answers 500$/],
    [moved.url, /^the heartbeat address at 127\.0\.0\.1:\d+ answers 302$/],
    ["http://127.0.0.1:1/secret", /^the heartbeat address at 127\.0\.0\.1:1 cannot be reached$/],
    ["file:///etc/passwd", /^jobs\.heartbeat_url is no http or https address$/],
  ];
  for (const [url, message] of cases) {
    const warnings: string[] = [];
    const warn = (text: string) => void warnings.push(text);
    const heartbeat = new Heartbeat({ clock: manualClock(), warn });
    heartbeat.beat(url);
    await heartbeat.idle();
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, message);
  }
  assert.deepEqual(elsewhere.got, []);
});

Deno.test("a tick is healthy while the register can be read", async () => {
  await using place = await jobs([]);
  await place.add({ name: "a", enabled: false });
  const whole = await place.project.read(".svc/jobs.json");
  const stop = new AbortController();
  const healthy: boolean[] = [];
  const clock = manualClock();
  const texts = ["{ broken", "{ broken", whole];
  await runDaemon({
    context: { ...place.context, clock },
    tick: 60,
    settings: () => ({ concurrency: 1, hold: 0, grace: 0 }),
    signal: stop.signal,
    tell: () => {},
    beat(pulse) {
      healthy.push(pulse.healthy);
      const next = texts.shift();
      if (next === undefined) stop.abort();
      else Deno.writeTextFileSync(place.register.path, next);
    },
  });
  assert.deepEqual(healthy.slice(0, 4), [true, false, false, true]);
});
