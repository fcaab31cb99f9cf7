import { systemClock } from "../../src/platform/clock.ts";
import { LocalQueue } from "../../src/store/queue.ts";
import { queueSuite } from "./queue_suite.ts";

queueSuite("one process", (queues) => {
  const queue = new LocalQueue(systemClock);
  return Promise.resolve({
    queues: Array.from({ length: queues }, () => queue),
    [Symbol.asyncDispose]: () => queue.close(),
  });
});
