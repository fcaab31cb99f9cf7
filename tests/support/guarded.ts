/**
 * `<piped|inherit|null> <program> [argument...]`: starts a guard and then, as svc does, a command with such an
 * output; prints its own number and the command's, and is killed before the guard has been told of it.
 */
import { startGuard } from "../../src/platform/guard.ts";

const [output, program = "", ...args] = Deno.args as [Deno.CommandOptions["stdout"], ...string[]];
startGuard();
const child = new Deno.Command(program, {
  args,
  detached: true,
  stdin: "null",
  stdout: output,
  stderr: output,
}).spawn();
Deno.stdout.writeSync(new TextEncoder().encode(`${Deno.pid} ${child.pid}\n`));
Deno.kill(Deno.pid, "SIGKILL");
