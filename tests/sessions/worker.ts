/**
 * A process that waits for a line, then appends to the session `name` in `directory`. It prints each text
 * when its append has returned, and ends. With `stay` it waits to be killed, after so many appends at most.
 */
import { systemClock } from "../../src/platform/clock.ts";
import { SessionStore } from "../../src/sessions/store.ts";

const [directory, name, id, turns, stay] = Deno.args as [string, string, string, string, string];
const store = new SessionStore({ directory, version: "0.1.0", clock: systemClock });
const encoder = new TextEncoder();
let count = 0;

async function acknowledged(append: (text: string) => void): Promise<void> {
  // Some texts take several pages of the file.
  const text = `${id}.${++count} ${"z".repeat(count % 40 === 0 ? 9_000 : 10)}`;
  append(text);
  Deno.stdout.writeSync(encoder.encode(`${id}.${count}\n`));
  if (count === Number(stay)) await forever();
}

await Deno.stdin.read(new Uint8Array(1));
const session = store.open(name);
for (let i = 0; i < Number(turns); i++) {
  await acknowledged((text) => session.appendUser(text));
  await session.acquireTurn();
  const turn = session.beginTurn({ model: id, provider: "p", mode: "build", reasoning: false });
  await acknowledged((text) => turn.append({ type: "user", text }));
  await acknowledged((text) => session.recordError(i, text));
  await acknowledged((text) =>
    session.recordPermission({ tool: "t", action: "allow", decision: "granted", path: text })
  );
  await acknowledged((text) => session.appendUser(text));
  await acknowledged((output) =>
    turn.append({ type: "tool", name: "t", input: {}, output, is_error: false })
  );
  turn.end("ok");
}
if (stay !== "") await forever();
session.close();

function forever(): Promise<never> {
  return new Promise(() => setInterval(() => {}, 1000));
}
