/**
 * A process that waits for a line, then appends to the session `name` in `directory`. It prints each text
 * when its append has returned, and ends, or with `stay` waits to be killed.
 */
import { systemClock } from "../../src/platform/clock.ts";
import { SessionStore } from "../../src/sessions/store.ts";

const [directory, name, id, turns, stay] = Deno.args as [string, string, string, string, string];
const store = new SessionStore({ directory, version: "0.1.0", clock: systemClock });
const encoder = new TextEncoder();
let count = 0;

function acknowledged(append: (text: string) => void): void {
  // Some texts take several pages of the file.
  const text = `${id}.${++count} ${"z".repeat(count % 40 === 0 ? 9_000 : 10)}`;
  append(text);
  Deno.stdout.writeSync(encoder.encode(`${id}.${count}\n`));
}

await Deno.stdin.read(new Uint8Array(1));
const session = store.open(name);
for (let i = 0; i < Number(turns); i++) {
  acknowledged((text) => session.appendUser(text));
  await session.acquireTurn();
  const turn = session.beginTurn({ model: id, provider: "p", mode: "build", reasoning: false });
  acknowledged((text) => turn.append({ type: "user", text }));
  acknowledged((text) => session.recordError(i, text));
  acknowledged((text) =>
    session.recordPermission({ tool: "t", action: "allow", decision: "granted", path: text })
  );
  acknowledged((text) => session.appendUser(text));
  acknowledged((output) =>
    turn.append({ type: "tool", name: "t", input: {}, output, is_error: false })
  );
  turn.end("ok");
}
if (stay === "stay") await new Promise(() => setInterval(() => {}, 1000));
session.close();
