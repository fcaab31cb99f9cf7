import assert from "node:assert/strict";
import { THREADS } from "../src/page_thread.ts";
import { parsePage } from "../src/parse_page.ts";
import { isBearable, readable } from "../src/readable.ts";
import { simplify } from "../src/simplify.ts";
import { WebError } from "../src/web_error.ts";

const HERE = new URL("http://example.org/");
const NEVER = new AbortController().signal;
/** A large page that its parsers are busy with: many elements, far inside one another. */
const HOSTILE = "<title>T</title>" +
  `${"<div>".repeat(13)}${"<b>x <a href='/y'>some words</a> and more of them</b>".repeat(600)}${
    "</div>".repeat(13)
  }`.repeat(8);
const PARSED = parsePage(simplify(HOSTILE).html, new URL("http://example.org/").href);

/** Threads that run the given code, or the real one; what they were asked and how many have ended. */
function observed(code?: string, limit = THREADS.limit) {
  const seen = { started: 0, asked: 0, ended: 0 };
  const start = () => {
    seen.started++;
    const source = `data:text/javascript,${encodeURIComponent(code ?? "")}`;
    const worker = code === undefined ? THREADS.start() : new Worker(source, { type: "module" });
    const { postMessage, terminate } = worker;
    worker.postMessage = (message: unknown) => {
      seen.asked++;
      postMessage.call(worker, message);
    };
    worker.terminate = () => {
      seen.ended++;
      terminate.call(worker);
    };
    return worker;
  };
  return { seen, start, limit };
}

const ONE = { started: 1, asked: 1, ended: 1 };

Deno.test("a large page is parsed in a thread of its own, which answers as this one would, and ends", async () => {
  assert.ok(HOSTILE.length >= 200_000 && isBearable(simplify(HOSTILE)));
  const threads = observed();
  const { title, text } = await readable(HOSTILE, HERE, NEVER, threads);
  assert.deepEqual(threads.seen, ONE);
  assert.equal(title, "T");
  assert.ok(text === PARSED);
  assert.match(text.slice(0, 100), /\[some words\]\(http:\/\/example\.org\/y\)/);
});

Deno.test("what the thread answers is the text of the page", async () => {
  const threads = observed(`onmessage = ({ data }) => postMessage({ text: "from " + data.url })`);
  const { text } = await readable(HOSTILE, HERE, NEVER, threads);
  assert.equal(text, "from http://example.org/");
});

Deno.test("a page that is short but full of tags has a thread too", async () => {
  const threads = observed("onmessage = () => postMessage({ text: 'apart' })");
  assert.equal((await readable("<p>a".repeat(3000), HERE, NEVER, threads)).text, "apart");
  assert.deepEqual(threads.seen, ONE);
});

Deno.test("a small page starts no thread", async () => {
  const threads = observed();
  const { text } = await readable("<p>a <b>b</b>".padEnd(150_000), HERE, NEVER, threads);
  assert.equal(text, "a **b**");
  assert.deepEqual(threads.seen, { started: 0, asked: 0, ended: 0 });
});

Deno.test("a page that takes too long is an error that says so, and its thread ends", async () => {
  const threads = observed("for (;;);", 1);
  await assert.rejects(
    readable(HOSTILE, HERE, NEVER, threads),
    (error) => error instanceof WebError && /takes more than 0\.001 s to be/.test(error.message),
  );
  assert.deepEqual(threads.seen, ONE);
  assert.equal(THREADS.limit, 10_000);
});

Deno.test("a cancelled page ends its thread with the reason; one cancelled before starts none", async () => {
  const cancel = new AbortController();
  const threads = observed("for (;;);");
  const reading = readable(HOSTILE, HERE, cancel.signal, threads);
  const reason = new Error("enough");
  cancel.abort(reason);
  await assert.rejects(reading, reason);
  await assert.rejects(readable(HOSTILE, HERE, cancel.signal, threads), reason);
  assert.deepEqual(threads.seen, ONE);
});

Deno.test("without a thread a large page is parsed in this one", async () => {
  const start = () => {
    throw new Error("no thread to be had");
  };
  const none = await readable(HOSTILE, HERE, NEVER, { ...THREADS, start });
  assert.ok(none.text === PARSED);
  const broken = observed("throw new Error('start')");
  assert.ok((await readable(HOSTILE, HERE, NEVER, broken)).text === PARSED);
  assert.deepEqual(broken.seen, ONE);
});

Deno.test("a page that the thread's parsers do not bear is not tried again: it comes as plain text", async () => {
  for (const end of ["postMessage({ failed: true })", "throw new Error('stack')"]) {
    const threads = observed(`onmessage = () => { ${end} }; postMessage({ ready: true })`);
    const { text } = await readable(HOSTILE, HERE, NEVER, threads);
    assert.match(text.slice(0, 100), /^x some words and more of them x/);
    assert.deepEqual(threads.seen, ONE);
  }
});
