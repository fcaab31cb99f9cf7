import assert from "node:assert/strict";
import { frozen, mounts } from "../support/tiny_disk.ts";
import { begin, inPlace } from "./support.ts";

Deno.test(
  "a disk that becomes read-only amid a turn loses neither the turn's end nor its open files",
  { ...mounts, sanitizeResources: true },
  () =>
    inPlace(async (place) => {
      const session = place.store.open("x");
      const turn = await begin(session);
      {
        await using _ = await frozen(place.directory);
        turn.append({ type: "text", text: "said" });
        turn.end("ok");
        session.close(); // the sanitizer would tell of a file that stays open
        assert.equal(place.json("x").turns[0]!.status, "ok");
      }
      const next = place.store.open("x");
      (await begin(next)).end("ok");
      next.close();
      assert.deepEqual(place.json("x").turns.map(({ status }) => status), ["ok", "ok"]);
      assert.deepEqual(place.names(), ["x.json"]);
    }),
);
