import assert from "node:assert/strict";
import { approveModels, ModelStore } from "../../src/providers/model_approval.ts";
import type { ModelRef } from "../../src/providers/resolve.ts";
import { TestClock } from "./support.ts";

const ONE = { provider: "acme", model: "one" };
const TWO = { provider: "acme", model: "two" };

async function withStore(test: (store: ModelStore) => Promise<void>): Promise<void> {
  const directory = Deno.makeTempDirSync();
  try {
    const store = new ModelStore(directory, new TestClock(), assert.fail);
    await store.approve(ONE.provider, ONE.model);
    await test(store);
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
}

const names = (store: ModelStore) => store.list().map(({ model }) => model);
const noQuestion = () => Promise.reject(new Error("asked"));

Deno.test("approved models and bare model ids pass without a question [5.2]", async () => {
  await withStore(async (store) => {
    const bare = { provider: "", model: "three" };
    await approveModels([ONE, bare, ONE], store, { granted: false, ask: noQuestion });
    assert.deepEqual(names(store), ["one"]);
  });
});

Deno.test("a model that a flag grants is recorded without a question [5.2]", async () => {
  await withStore(async (store) => {
    await approveModels([TWO], store, { granted: true, ask: noQuestion });
    assert.deepEqual(names(store), ["one", "two"]);
  });
});

Deno.test("the operator is asked once about all models that are not approved [5.2]", async () => {
  await withStore(async (store) => {
    const three = { provider: "other", model: "three" };
    const asked: ModelRef[][] = [];
    await approveModels([TWO, ONE, three, TWO], store, {
      granted: false,
      ask: (models) => Promise.resolve(asked.push(models) === 1),
    });
    assert.deepEqual(asked, [[TWO, three]]);
    assert.deepEqual(names(store), ["one", "two", "three"]);
  });
});

Deno.test("a refused model, or no operator to ask, is `model not approved` and records nothing [5.2, 7.4]", async () => {
  const cases = [
    [undefined, /--approve-model.*--model/],
    [() => Promise.resolve(false), /^You declined it/],
  ] as const;
  for (const [ask, hint] of cases) {
    await withStore(async (store) => {
      await assert.rejects(approveModels([ONE, TWO], store, { granted: false, ask }), {
        code: "model_not_approved",
        message: "model not approved: acme/two.",
        hint,
        exit: 2,
      });
      assert.deepEqual(names(store), ["one"]);
    });
  }
});
