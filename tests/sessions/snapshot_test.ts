import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import type { Session, TurnLog } from "../../src/sessions/session.ts";
import { SessionStore } from "../../src/sessions/store.ts";
import { project } from "../support/project.ts";

const LONG = "a line of a file, “quoted” and \\n escaped\n".repeat(2000);

async function begin(session: Session): Promise<TurnLog> {
  await session.acquireTurn();
  return session.beginTurn({ model: "m", provider: "p", mode: "build", reasoning: false });
}

async function longLog(path: string) {
  const warnings: string[] = [];
  const directory = `${path}/.svc/sessions`;
  const warn = (message: string) => void warnings.push(message);
  const store = new SessionStore({ directory, version: "1", clock: systemClock, warn });
  const session = store.open("long");
  for (let i = 0; i < 8; i++) {
    const turn = await begin(session);
    turn.append({ type: "user", text: `${i}` });
    turn.append({ type: "text", text: LONG });
    session.recordPermission({ tool: "bash", action: "allow", decision: "granted", path: LONG });
    turn.end("ok");
  }
  return { store, session, warnings, file: `${directory}/long.json` };
}

async function parsed(store: SessionStore): Promise<unknown> {
  using snapshot = store.snapshot("long")!;
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of snapshot.bytes()) pieces.push(piece.slice());
  return JSON.parse(await new Blob(pieces).text());
}

Deno.test("a long log reads the same in slices: open, with a running turn, and closed", async () => {
  await using at = await project();
  const { store, session } = await longLog(at.path);
  const same = async () => {
    const document = store.read("long")!;
    assert.deepEqual(await parsed(store), document);
    assert.deepEqual(await store.turns("long"), document.turns);
    return document.turns.length;
  };
  assert.equal(await same(), 8);
  const turn = await begin(session);
  turn.append({ type: "user", text: "now" });
  session.appendUser("meanwhile");
  assert.equal(await same(), 10);
  turn.end("cancelled");
  assert.equal(await same(), 10);
  session.close();
  assert.equal(await same(), 10);
});

Deno.test("a long log that a crash damaged is read with its journal", async () => {
  await using at = await project();
  const { store, session, file } = await longLog(at.path);
  const before = await Deno.readFile(file);
  const turn = await begin(session);
  turn.append({ type: "text", text: "acknowledged" });
  session.recordError(0, "acknowledged, too");
  await Deno.writeFile(file, before); // the writes that the journal announces did not reach it
  const document = store.read("long")!;
  assert.equal(document.turns.at(-1)!.parts.length, 1);
  assert.deepEqual(await parsed(store), document);
  assert.deepEqual(await store.turns("long"), document.turns);
  session.close();
});

Deno.test("a long answer is read from the document alone once it is on the disk", async () => {
  await using at = await project();
  const { store, session, file } = await longLog(at.path);
  const other = store.open("long");
  const journal = () => Deno.statSync(file.replace("long.json", ".long.journal")).size;
  const answer = async (text: string) => {
    const turn = await begin(session);
    turn.append({ type: "text", text });
    turn.end("ok");
  };
  await answer("a".repeat(500_000));
  assert.ok(journal() > 500_000);
  await session.flush();
  assert.ok(journal() < 1000, `${journal()} bytes`);
  other.appendUser("aside");
  await answer("b".repeat(500_000));
  const flushed = session.flush();
  other.appendUser("meanwhile");
  await flushed;
  const document = store.read("long")!;
  assert.deepEqual(document.turns.slice(8).map(({ parts: [part] }) => part!.type), [
    "text",
    "user",
    "text",
    "user",
  ]);
  assert.deepEqual(await parsed(store), document);
  other.close();
  session.close();
  assert.deepEqual(JSON.parse(await Deno.readTextFile(file)), document);
});

Deno.test("later appends, rewrites and removals do not change a snapshot", async () => {
  await using at = await project();
  const { store, session } = await longLog(at.path);
  const document = store.read("long")!;
  using snapshot = store.snapshot("long")!;
  const turn = await begin(session);
  turn.append({ type: "text", text: LONG });
  session.recordPermission({
    tool: "b",
    action: "allow",
    decision: "granted",
    path: LONG.repeat(4),
  });
  turn.end("ok");
  session.close();
  store.remove("long");
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of snapshot.bytes()) pieces.push(piece.slice());
  assert.deepEqual(JSON.parse(await new Blob(pieces).text()), document);
});

Deno.test("a short, foreign or broken log has no snapshot and is read whole", async () => {
  await using at = await project();
  const { store, session, file, warnings } = await longLog(at.path);
  session.close();
  store.open("short").close();
  assert.equal(store.snapshot("short"), undefined);
  assert.deepEqual(await store.turns("short"), []);
  assert.equal(store.snapshot("none"), undefined);
  assert.equal(await store.turns("none"), undefined);
  const text = await Deno.readTextFile(file);
  const foreign = JSON.stringify(JSON.parse(text), null, 2);
  await Deno.writeTextFile(file, foreign);
  assert.equal(store.snapshot("long"), undefined);
  assert.deepEqual(await store.turns("long"), JSON.parse(foreign).turns);
  await Deno.writeTextFile(file, text.replace('"type":"user"', '"type":"none"'));
  assert.equal(await store.turns("long"), undefined);
  assert.match(warnings.join(), /^Session long does not load: .* is broken at turns\[0\]/);
});

Deno.test("concurrent reads of long logs let the event loop run in between", async () => {
  await using at = await project();
  const { store, session } = await longLog(at.path);
  session.close();
  let loops = 0;
  let counting = true;
  const count = () => {
    loops++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all([1, 2, 3].map(() => store.turns("long")));
  counting = false;
  const turns = 8 * LONG.length; // the smallest that they can be
  assert.ok(loops >= 3 * Math.floor(turns / (128 * 1024)), `${loops}`);
});
