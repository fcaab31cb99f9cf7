import assert from "node:assert/strict";
import { filePostgres } from "../support/postgres.ts";
import { machine, withTables } from "./support.ts";

const { needed, server } = await filePostgres();

const QUESTION = { question: "Which port?", origin: "build_a1b2c3" };

Deno.test({
  ...needed,
  name: "an ask that one machine parks is listed and answered by another",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    await using two = await machine(store);
    const parked = await one.workspace.asks.park(QUESTION);
    await two.workspace.store!.refresh();
    assert.deepEqual(two.workspace.asks.list(), [parked]);
    const { ask } = await two.workspace.asks.answer(parked.id, "8787");
    await one.workspace.store!.refresh();
    assert.deepEqual(one.workspace.asks.list(), [ask]);
    assert.deepEqual([...one.warnings, ...two.warnings], []);
  },
});

Deno.test({
  ...needed,
  name: "asks that two machines park at the same time get ids of their own",
  async fn() {
    const store = await server.database(withTables);
    await using one = await machine(store);
    await using two = await machine(store);
    const parked = await Promise.all(
      Array.from({ length: 20 }, (_, i) => [one, two][i % 2]!.workspace.asks.park(QUESTION)),
    );
    const ids = Array.from({ length: 20 }, (_, i) => i + 1);
    assert.deepEqual(parked.map(({ id }) => id).sort((a, b) => a - b), ids);
    for (const { workspace } of [one, two]) {
      await workspace.store!.refresh();
      assert.deepEqual(workspace.asks.list().map(({ id }) => id), ids);
    }
  },
});
