/**
 * svc as a process of its own, under a clock that starts at a time and runs fast: `<start> <factor> <arguments ...>`.
 * With the factor 0 the clock is right, and svc is that of an earlier version, which knows one table less.
 */
import { main } from "../../src/cli/main.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";

const [start, factor, ...args] = Deno.args;
const origin = Date.now();
const { sleep } = systemClock;
if (factor === "0") (MIGRATIONS as unknown[]).pop();
else {Object.assign(systemClock, {
    now: () => Math.round(Number(start) + (Date.now() - origin) * Number(factor)),
    sleep: (ms: number, signal?: AbortSignal) => sleep(ms / Number(factor), signal),
  });}
const serve = async () => (await import("../../src/server/main.ts")).serve;
Deno.exit(await main(args, undefined, { serve }));
