import assert from "node:assert/strict";
import { begin, inPlace, type Place } from "./support.ts";
import { Random } from "../support/random.ts";

/** A log of three turns with two parts each, a permission and an error. */
async function written({ store, text }: Place): Promise<string> {
  const session = store.open("x", { role: "clerk" });
  for (const word of ["one", "two", "three"]) {
    const turn = await begin(session);
    turn.append({ type: "user", text: `${word} "asks"` });
    session.recordPermission({ tool: "t", action: "ask", decision: "denied" });
    turn.append({ type: "tool", name: "t", input: { word }, output: `${word}\n`, is_error: false });
    turn.end("ok");
  }
  session.recordError(500, "broken");
  session.close();
  return text("x");
}

Deno.test("each line of a damaged log that is whole is kept, and the others are named", () =>
  inPlace(async (place) => {
    const { store, file } = place;
    const whole = await written(place);
    const before = store.read("x")!;
    assert.deepEqual(await store.repair("x"), { document: before, lost: [] });
    const lines = whole.split("\n");
    for (const [index, line] of lines.entries()) {
      if (line.trim() === "" || /^(\],)?"\w+":\[$|^\],"updated_at/.test(line)) continue;
      const broken = lines.with(index, line.replace(":", "\u0000")).join("\n");
      Deno.writeTextFileSync(file("x"), broken);
      const repair = (await store.repair("x"))!;
      if (line.trim() !== '{"parts":[') assert.deepEqual(repair.lost, [index + 1], line);
      const parts = repair.document.turns.flatMap((turn) => turn.parts).length;
      assert.ok(parts >= 5 && repair.document.turns.length >= 2, line);
    }
  }));

Deno.test("a repaired log is a new session that goes on, and the damaged one stays as it is", () =>
  inPlace(async (place) => {
    const { store, file, text } = place;
    const damaged = (await written(place)).replace('"one \\"asks\\""', '"one "asks""');
    Deno.writeTextFileSync(file("x"), damaged);
    const repair = (await store.repair("x", "y"))!;
    assert.equal(repair.lost.length, 1);
    assert.equal(text("x"), damaged);
    const { session_name, role, turns } = store.read("y")!;
    assert.deepEqual([session_name, role, turns.length], ["y", "clerk", 3]);
    const session = store.open("y");
    session.appendUser("more");
    session.close();
    assert.equal(store.read("y")!.turns.length, 4);
    await assert.rejects(store.repair("x", "y"), { code: "session_exists" });
    Deno.writeTextFileSync(file("z"), '{"messages": []}');
    assert.equal(await store.repair("z"), undefined);
    assert.equal(await store.repair("none"), undefined);
  }));

Deno.test("property: no damaged byte makes a repair throw, or add what was not there", () =>
  inPlace(async (place) => {
    const { store, file } = place;
    const bytes = new TextEncoder().encode(await written(place));
    const random = new Random();
    const known = new Set(store.read("x")!.turns.flatMap(({ parts }) => parts).map(said));
    for (let n = 0; n < 300; n++) {
      const copy = bytes.slice();
      for (let m = 0; m <= random.below(4); m++) {
        copy[random.below(copy.length)] = random.below(256);
      }
      const end = random.below(3) === 0 ? random.below(copy.length) : copy.length;
      Deno.writeFileSync(file("x"), copy.subarray(0, end));
      const parts = (await store.repair("x"))?.document.turns.flatMap((turn) => turn.parts) ?? [];
      const changed = parts.map(said).filter((text) => !known.has(text)).length;
      assert.ok(changed <= 4, `${changed} parts differ`); // damage inside a text cannot be seen
    }
  }));

function said(part: { type: string; text?: string; output?: string }): string {
  return JSON.stringify([part.type, part.text, part.output]);
}
