import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import type { QueueItem, QueueWorker, RunQueue } from "../../src/store/port.ts";
import { until } from "../support/processes.ts";

/** Queues of one project, each as another machine has it. */
export interface TestQueues extends AsyncDisposable {
  queues: RunQueue[];
}

/** Releases everything that a test holds. */
const held = new Set<() => void>();

/** A worker that runs its items until they are released. */
function holding(queue: RunQueue, concurrency = 1, labels: string[] = []) {
  const began: string[] = [];
  const open = new Map<string, () => void>();
  const worker = queue.work({ labels, concurrency: () => concurrency }, async ({ name }) => {
    began.push(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    open.set(name, resolve);
    held.add(resolve);
    await promise;
  });
  return {
    worker,
    began,
    release: (name: string) => open.get(name)!(),
    close() {
      for (const resolve of open.values()) resolve();
      return worker.close();
    },
  };
}

const job = (name: string, given: Partial<QueueItem> = {}): QueueItem => ({
  kind: "job",
  name,
  key: `job/${name}`,
  ...given,
});

/** What every {@linkcode RunQueue} does. */
export function queueSuite(
  kind: string,
  open: (queues: number, most: () => number) => Promise<TestQueues>,
  needed: { ignore?: boolean } = {},
): void {
  const test = (
    name: string,
    run: (queues: RunQueue[]) => Promise<void>,
    queues = 1,
    most = () => 0,
  ) =>
    Deno.test({
      name: `${kind}: ${name}`,
      ...needed,
      async fn() {
        await using place = await open(queues, most);
        try {
          await run(place.queues);
        } finally {
          for (const release of held) release();
        }
      },
    });
  const put = async (queue: RunQueue, ...items: QueueItem[]) => {
    for (const item of items) assert.equal(await queue.put(item), true, item.key);
  };

  test("an item with the key of one that waits or runs is not put again", async ([queue]) => {
    assert.equal(await queue!.put(job("a")), true);
    assert.equal(await queue!.put(job("a")), false);
    const { worker, began, release, close } = holding(queue!);
    await until(() => began.length === 1);
    assert.equal(await queue!.put(job("a")), false);
    release("a");
    await worker.idle();
    await until(async () => await queue!.put(job("a")));
    await until(() => began.length === 2);
    await close();
  });

  test("an item is handed to a worker as it was put", async ([queue]) => {
    const item = job("a", { kind: "run", priority: 3, label: "gpu", group: "g" });
    await put(queue!, item);
    const taken = Promise.withResolvers<QueueItem>();
    const worker = queue!.work(
      { labels: ["gpu"], concurrency: () => 1 },
      (item) => Promise.resolve(taken.resolve(item)),
    );
    assert.deepEqual(await taken.promise, item);
    await worker.close();
  });

  test("items with a larger priority are taken first, others in the order they were put", async ([queue]) => {
    await put(queue!, job("low", { priority: -1 }), job("one"), job("two"));
    await put(queue!, job("high", { priority: 9 }));
    const order: string[] = [];
    const worker = queue!.work(
      { labels: [], concurrency: () => 1 },
      ({ name }) => Promise.resolve(void order.push(name)),
    );
    await until(() => order.length === 4);
    assert.deepEqual(order, ["high", "one", "two", "low"]);
    await worker.close();
  });

  test("what has begun is taken before other items of its priority", async ([queue]) => {
    await put(queue!, job("new"), job("high", { priority: 1 }), job("begun", { begun: true }));
    const order: string[] = [];
    const worker = queue!.work(
      { labels: [], concurrency: () => 1 },
      ({ name }) => Promise.resolve(void order.push(name)),
    );
    await until(() => order.length === 3);
    assert.deepEqual(order, ["high", "begun", "new"]);
    await worker.close();
  });

  test("only a worker with the label of an item takes it", async ([queue]) => {
    await put(queue!, job("big", { label: "gpu" }), job("any"));
    const plain = holding(queue!, 5);
    await until(() => plain.began.length === 1);
    plain.release("any");
    await plain.worker.idle();
    assert.deepEqual([...await queue!.depth()], [["gpu", 1]]);
    const gpu = holding(queue!, 5, ["gpu", "fast"]);
    await put(queue!, job("quick", { label: "fast" }));
    await until(() => gpu.began.length === 2);
    assert.deepEqual(plain.began, ["any"]);
    await plain.close();
    await gpu.close();
  });

  test("a worker takes items of the kinds that it is for", async ([queue]) => {
    const taken: string[] = [];
    await put(queue!, job("a"), job("b", { kind: "run" }), job("c"));
    const worker = queue!.work(
      { kinds: ["run"], labels: [], concurrency: () => 3 },
      ({ name }) => Promise.resolve(void taken.push(name)),
    );
    await until(async () => (await queue!.depth()).get("") === 2);
    await worker.close();
    assert.deepEqual(taken, ["b"]);
  });

  test("items of a group run one after another, by whichever worker", async ([one, two]) => {
    const both = [holding(one!, 5), holding(two!, 5)];
    const began = () => both.flatMap(({ began }) => began);
    await put(one!, job("a1", { group: "a" }), job("a2", { group: "a" }), job("b", { group: "b" }));
    await until(() => began().length === 2);
    assert.deepEqual(began().sort(), ["a1", "b"]);
    for (const { began, release } of both) if (began.includes("a1")) release("a1");
    await until(() => began().includes("a2"));
    for (const each of both) await each.close();
  }, 2);

  test("at most as many items run as a worker has room for", async ([queue]) => {
    let room = 2;
    const running = new Set<string>();
    const waiting: (() => void)[] = [];
    const worker = queue!.work({ labels: [], concurrency: () => room }, async ({ name }) => {
      running.add(name);
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        held.add(resolve);
      });
      running.delete(name);
    });
    await put(queue!, job("a"), job("b"), job("c"), job("d"));
    await until(() => running.size === 2);
    room = 3;
    worker.look();
    await until(() => running.size === 3);
    room = 0;
    for (const end of waiting.splice(0)) end();
    await worker.idle();
    assert.equal((await queue!.depth()).get(""), 1);
    await worker.close();
  });

  let most = 2;
  test(
    "at most as many items of a project run as its limit says, on all workers",
    async ([one, two]) => {
      await put(one!, ...["a", "b", "c"].map((name) => job(name)));
      await put(one!, job("d", { kind: "run" }), job("e", { label: "gpu" }));
      const both = [holding(one!, 5, ["gpu"]), holding(two!, 5, ["gpu"])];
      const began = () => both.flatMap(({ began }) => began);
      const end = (name: string) => both.find(({ began }) => began.includes(name))!.release(name);
      await until(() => began().length === 2);
      for (const { worker } of both) worker.look();
      await systemClock.sleep(100);
      assert.deepEqual(began().sort(), ["a", "b"]);
      end("a");
      await until(() => began().length === 3);
      most = 3;
      for (const { worker } of both) worker.look();
      await until(() => began().length === 4);
      most = 0;
      for (const { worker } of both) worker.look();
      await until(() => began().length === 5);
      for (const each of both) await each.close();
    },
    2,
    () => most,
  );

  test("an item is not taken before its time", async ([queue]) => {
    const { began, close } = holding(queue!);
    const after = new Date(Date.now() + 1200);
    await put(queue!, job("later", { after: after.toISOString() }));
    await until(() => began.length === 1);
    assert.ok(Date.now() >= after.getTime() - 50);
    await close();
  });

  test("a worker that closes takes no more items and waits for those that run", async ([queue]) => {
    const { worker, began, release } = holding(queue!);
    await put(queue!, job("a"), job("b"));
    await until(() => began.length === 1);
    let closed = false;
    const done = worker.close().then(() => closed = true);
    await systemClock.sleep(30);
    assert.equal(closed, false);
    release("a");
    await done;
    assert.deepEqual(began, ["a"]);
    assert.deepEqual([...await queue!.depth()], [["", 1]]);
  });

  test("an item whose handler fails is run again", async ([queue]) => {
    let tries = 0;
    await put(queue!, job("a"));
    const worker: QueueWorker = queue!.work({ labels: [], concurrency: () => 1 }, () => {
      return ++tries === 1 ? Promise.reject(new Error("no")) : Promise.resolve();
    });
    await until(() => tries === 2);
    await worker.close();
  });

  test("each item is run once, by many workers that take at the same time", async (queues) => {
    const ran: string[] = [];
    const workers = queues.map((queue) =>
      queue.work(
        { labels: [], concurrency: () => 4 },
        ({ name }) => Promise.resolve(void ran.push(name)),
      )
    );
    const names = Array.from({ length: 30 }, (_, n) => `job-${n}`);
    const put = await Promise.all(
      names.flatMap((name) => queues.map((queue) => queue.put(job(name, { key: name })))),
    );
    const accepted = put.filter((made) => made).length;
    await until(() => ran.length === accepted);
    for (const worker of workers) await worker.close();
    assert.equal(ran.length, accepted);
    assert.deepEqual([...new Set(ran)].sort(), names.sort());
  }, 3);
}
