/**
 * A process that waits for a line, then parks `count` asks. With a negative count it answers the asks 1 to
 * `-count` with its own name and prints the results.
 */
import { systemClock } from "../../src/platform/clock.ts";
import { SvcError } from "../../src/platform/error.ts";
import { openInbox } from "./support.ts";

const [state, name, count] = Deno.args as [string, string, string];
const { asks } = openInbox(state, systemClock);
const say = (text: string) => Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));

say("ready");
await Deno.stdin.read(new Uint8Array(1));
for (let i = 0; i < Number(count); i++) await asks.park({ question: `${name}.${i}`, origin: "o" });
for (let id = 1; id <= -Number(count); id++) {
  try {
    const { injected } = await asks.answer(id, name);
    say(`injected ${injected}`);
  } catch (error) {
    say(error instanceof SvcError ? error.code : String(error));
  }
}
