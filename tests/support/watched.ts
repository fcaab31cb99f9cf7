/**
 * `<piped|inherit|null> <program> [argument...]`: starts a watchdog and then, as svc does, a command with such
 * an output. It prints its own number and the command's, and kills itself before it tells the watchdog.
 */
import { startWatchdog } from "../../src/platform/process.ts";

const [output, program = "", ...args] = Deno.args as [Deno.CommandOptions["stdout"], ...string[]];
startWatchdog();
const child = new Deno.Command(program, {
  args,
  detached: true,
  stdin: "null",
  stdout: output,
  stderr: output,
}).spawn();
Deno.stdout.writeSync(new TextEncoder().encode(`${Deno.pid} ${child.pid}\n`));
Deno.kill(Deno.pid, "SIGKILL");
