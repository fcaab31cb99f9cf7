/**
 * `<fresh|kept|late|early> <piped|inherit|null> <program> [argument...]`: starts a watchdog and then, as svc does, a
 * command with such an output. It prints its own number and the command's, and kills itself before it tells the watchdog.
 * A kept watchdog has watched another command before; a late one does not run while the command starts; an early
 * command starts before the watchdog is told of one.
 */
import { Watchdogs } from "../../src/platform/process.ts";

type Output = Deno.CommandOptions["stdout"];
const [mode, output, program = "", ...args] = Deno.args as [string, Output, ...string[]];
const start = (program: string, args: string[]) =>
  new Deno.Command(program, {
    args,
    detached: true,
    stdin: "null",
    stdout: output,
    stderr: output,
  }).spawn();
const watchdogs = new Watchdogs();
const watchdog = await watchdogs.take();
if (mode !== "fresh") {
  const other = start("true", []);
  watchdog?.watch(other.pid);
  await other.status;
  await watchdogs.release(watchdog);
}
const ticks = () => new Promise((resolve) => setTimeout(resolve, 50)); // several of the kernel's clock
const signal = (signal: string) =>
  new Deno.Command("pkill", { args: [signal, "-f", `svc-watchdog ${Deno.pid} `] }).output();
let child: Deno.ChildProcess | undefined;
if (mode === "early") {
  child = start(program, args);
  await ticks();
}
if (mode === "late") await signal("-STOP");
if (mode !== "fresh") await watchdogs.take();
child ??= start(program, args);
if (mode === "late") {
  await ticks();
  await signal("-CONT");
  await ticks();
}
Deno.stdout.writeSync(new TextEncoder().encode(`${Deno.pid} ${child.pid}\n`));
Deno.kill(Deno.pid, "SIGKILL");
