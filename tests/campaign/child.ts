/** svc as a process of its own, under a clock that starts at a time and runs fast: `<start> <factor> <arguments ...>`. */
import { main } from "../../src/cli/main.ts";
import { systemClock } from "../../src/platform/clock.ts";

const [start, factor, ...args] = Deno.args;
const origin = Date.now();
const { sleep } = systemClock;
Object.assign(systemClock, {
  now: () => Math.round(Number(start) + (Date.now() - origin) * Number(factor)),
  sleep: (ms: number, signal?: AbortSignal) => sleep(ms / Number(factor), signal),
});
const serve = async () => (await import("../../src/server/main.ts")).serve;
Deno.exit(await main(args, undefined, { serve }));
