/**
 * The program's scheduler under a clock that runs fast: `<worktree> <factor> <origin>`, where `origin` is
 * the real millisecond at which both clocks agree, so that time goes on from one start to the next.
 */
import { processIo } from "../../src/cli/io.ts";
import { schedule } from "../../src/commands/jobs/daemon.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";

const [path, factor, origin] = Deno.args as [string, string, string];
const clock: Clock = {
  now: () => Math.round(Number(origin) + (Date.now() - Number(origin)) * Number(factor)),
  sleep: (ms, signal) => systemClock.sleep(ms / Number(factor), signal),
};
const io = processIo();
const { environment } = io;
const warn = (message: string) => io.note(`warning: ${message}`);
const workspace = Workspace.open({ path, environment, warn, clock });
Deno.exit(await schedule(workspace, { tick: 15, quiet: false }, io));
