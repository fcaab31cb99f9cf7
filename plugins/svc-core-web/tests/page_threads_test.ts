import assert from "node:assert/strict";
import { readable } from "../src/page.ts";
import { PageThreads } from "../src/page_threads.ts";
import { WebError } from "../src/text.ts";
import { inside, site, web } from "./support.ts";

const HERE = new URL("http://example.org/");
const NEVER = new AbortController().signal;
const PAGE = "<title>T</title><p>Read <a href='/y'>some words</a> and more of them";

/** Threads that run the given code, or the real one; what they were asked and how many have ended. */
function observed(
  code?: string,
  { limit, most, asked }: { limit?: number; most?: number; asked?: () => void } = {},
) {
  const seen = { started: 0, asked: 0, ended: 0, most: 0 };
  const real = new URL("../src/page_worker.ts", import.meta.url).href;
  const source = code === undefined ? real : `data:text/javascript,${encodeURIComponent(code)}`;
  const start = () => {
    seen.started++;
    seen.most = Math.max(seen.most, seen.started - seen.ended);
    const worker = new Worker(source, { type: "module" });
    const { postMessage, terminate } = worker;
    worker.postMessage = (message: unknown) => {
      seen.asked++;
      postMessage.call(worker, message);
      asked?.();
    };
    worker.terminate = () => {
      seen.ended++;
      terminate.call(worker);
    };
    return worker;
  };
  return { seen, threads: new PageThreads({ start, limit, most }) };
}

/** A busy thread that does end: Deno does not end one inside a loop, and it would slow down all other tests. */
const BUSY = "for (const end = Date.now() + 500; Date.now() < end;);";
const ONE = { started: 1, asked: 1, ended: 1, most: 1 };

Deno.test("each page is parsed in a thread of its own, which ends with it", async () => {
  const { seen, threads } = observed();
  const page = await threads.parse("page", PAGE, HERE, NEVER);
  assert.deepEqual(seen, ONE);
  assert.deepEqual(page, {
    title: "T",
    text: "Read [some words](http://example.org/y) and more of them",
  });
  assert.deepEqual(page, readable(PAGE, HERE.href));
});

Deno.test("web_fetch and DuckDuckGo parse pages in a thread; other texts need none", async () => {
  const { seen, threads } = observed(`onmessage = ({ data: { task, html, url } }) => postMessage({
    done: task === "page" ? { title: "", text: html + " of " + url } : [{ title: task, url }],
  })`);
  await using it = site((_, path) =>
    new Response("<p>x", {
      headers: { "content-type": path === "/t" ? "text/plain" : "text/html" },
    })
  );
  const call = web({
    threads,
    config: { "web.allow_private": [it.host], "web.search_url": `${it.url}/d` },
  });
  const fetched = await call("web_fetch", { url: `${it.url}/p` });
  assert.equal(inside(fetched), `<p>x of ${it.url}/p`);
  const found = await call("web_search", { query: "q" });
  assert.equal(inside(found), `[1] duckduckgo\n    ${it.url}/d?q=q`);
  assert.equal(inside(await call("web_fetch", { url: `${it.url}/t` })), "<p>x");
  assert.deepEqual(seen, { started: 2, asked: 2, ended: 2, most: 1 });
});

Deno.test("a page that takes too long is an error, and its thread ends", async () => {
  const { seen, threads } = observed(BUSY, { limit: 1 });
  await assert.rejects(
    threads.parse("page", PAGE, HERE, NEVER),
    (error) => error instanceof WebError && /takes more than 0\.001 s to be/.test(error.message),
  );
  assert.deepEqual(seen, ONE);
});

Deno.test("a cancelled page ends its thread with the reason; one cancelled before starts none", async () => {
  const cancel = new AbortController();
  const reason = new Error("enough");
  const { seen, threads } = observed(BUSY, { asked: () => cancel.abort(reason) });
  await assert.rejects(threads.parse("page", PAGE, HERE, cancel.signal), reason);
  await assert.rejects(threads.parse("page", PAGE, HERE, cancel.signal), reason);
  assert.deepEqual(seen, ONE);
});

Deno.test("the number of threads is limited; further pages wait until they run or are cancelled", async () => {
  const { seen, threads } = observed("onmessage = ({ data }) => postMessage({ done: data.html })", {
    most: 2,
  });
  const cancel = new AbortController();
  const parse = (html: string, signal = NEVER) => threads.parse("page", html, HERE, signal);
  const all = Array.from({ length: 6 }, (_, n) => parse(`${n}`));
  const left = parse("left", cancel.signal);
  cancel.abort(new Error("enough"));
  await assert.rejects(left, /enough/);
  assert.deepEqual(await Promise.all(all) as unknown, ["0", "1", "2", "3", "4", "5"]);
  assert.deepEqual(seen, { started: 6, asked: 6, ended: 6, most: 2 });
});

Deno.test("a thread that cannot start, fails or reports an error does not affect the next page", async () => {
  const fails = async (threads: PageThreads, sentence: string) =>
    await assert.rejects(
      threads.parse("page", PAGE, HERE, NEVER),
      (error) => error instanceof WebError && error.message === sentence,
    );
  const start = () => {
    throw new Error("no thread to be had");
  };
  const none = new PageThreads({ start, most: 1 });
  for (const threads of [none, none]) {
    await fails(threads, "the thread that parses pages has failed");
  }
  const broken = observed("onmessage = () => reportError(null)", { most: 1 });
  await fails(broken.threads, "the thread that parses pages has failed");
  await fails(broken.threads, "the thread that parses pages has failed");
  assert.deepEqual(broken.seen, { started: 2, asked: 2, ended: 2, most: 1 });
  const wrong = observed("onmessage = () => postMessage({ wrong: 'it is odd' })");
  await fails(wrong.threads, "it is odd");
});
