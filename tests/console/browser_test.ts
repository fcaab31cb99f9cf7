import assert from "node:assert/strict";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { jobContext } from "../../src/jobs/context.ts";
import { startServer } from "../../src/server/server.ts";
import { accessibilityFaults, chromium, startBrowser } from "../support/browser.ts";
import { signIn } from "../server/console.ts";
import type { TestServer } from "../server/support.ts";
import { withFleet, world } from "./world.ts";

const PAGES = [
  "/console",
  "/console/night?since=7d",
  "/console/jobs",
  "/console/jobs/triage",
  "/console/sessions",
  "/console/sessions/first-look",
  "/console/fleet",
  "/console/fleet/notes",
  "/console/usage",
];

/** The width of a page with what does not fit into the window. */
const WIDTH = "document.documentElement.scrollWidth";

/** What a hostile model writes: markup, links, control characters and marks that reorder text. */
const HOSTILE = [
  "<script>hacked = 1</script>",
  '<img src="x" onerror="hacked = 1"><svg onload="hacked = 1">',
  '</pre></textarea></title><style>* { display: none }</style><iframe srcdoc="<script>1</script>">',
  '[link](javascript:hacked=1) <a href="javascript:hacked=1">javascript:hacked=1</a>',
  "\x1b[2J\x07\x00\u202eevil\u202c\u200b end of the hostile text",
].join("\n");

Deno.test("the console in a browser", await chromium(), async (t) => {
  await using at = await world();
  await using _agent = await withFleet(at);
  const browser = await startBrowser();
  try {
    const cookie = await signIn(at);
    const open = (options?: Parameters<Browser["newContext"]>[0]) =>
      openContext(browser, at, cookie, options);

    await t.step(
      "pages fit three widths in both themes, for everybody, within their policy",
      async () => {
        await using context = await open();
        const { page, faults } = context;
        for (const path of PAGES) {
          const response = await page.goto(at.http.url + path);
          assert.equal(response?.status(), 200, path);
          for (const colorScheme of ["light", "dark"] as const) {
            await page.emulateMedia({ colorScheme });
            for (const width of [360, 768, 1280]) {
              await page.setViewportSize({ width, height: 800 });
              const wide = await page.evaluate<number>(WIDTH);
              assert.ok(wide <= width, `${path} is ${wide} wide at ${width}`);
            }
            if (colorScheme === "light") await page.setViewportSize({ width: 360, height: 800 });
            assert.deepEqual(await accessibilityFaults(page), [], `${path} ${colorScheme}`);
          }
        }
        assert.deepEqual(faults, []);
      },
    );

    await t.step("a page follows what happens, also through a restart of the server", async () => {
      await using context = await open();
      const { page } = context;
      await page.goto(`${at.http.url}/console`);
      const asked = (question: string) => page.getByText(question).waitFor();
      const ask = (question: string) => at.workspace.asks.park({ question, origin: "" });
      await page.getByText("Live").waitFor();
      await ask("Is this shown at once?");
      await asked("Is this shown at once?");
      // A region in which the person writes stays as it is.
      const [field] = await page.getByRole("textbox").all();
      await field!.fill("half an answer");
      const { port } = at.http;
      await at.http.stop();
      await page.getByText("Reconnecting…").waitFor();
      at.http = startServer({ workspace: at.workspace, host: "127.0.0.1", port, insecure: false });
      await page.getByText("Live").waitFor();
      assert.equal(await field!.inputValue(), "half an answer");
      await field!.fill("");
      await field!.blur();
      await ask("Is this shown after the restart?");
      await asked("Is this shown after the restart?");
    });

    await t.step("a form of another site changes nothing", async () => {
      await using context = await open();
      const { page } = context;
      const closing = new AbortController();
      const evil = Deno.serve(
        { hostname: "127.0.0.1", port: 0, onListen: () => {}, signal: closing.signal },
        () =>
          new Response(
            `<form method="post" action="${at.http.url}/console/jobs/changelog">` +
              '<input name="gate" value="approve"></form><script>document.forms[0].submit()</script>',
            { headers: { "content-type": "text/html" } },
          ),
      );
      const origin = `http://127.0.0.1:${evil.addr.port}`;
      await page.route(`${origin}/empty`, (route) => route.fulfill({ body: "" }));
      await page.goto(`${origin}/empty`);
      const read = await page.evaluate<string>(
        `fetch("${at.http.url}/console", { credentials: "include" }).then((answer) => answer.text(), String)`,
      );
      assert.match(read, /Failed to fetch/);
      const posted = page.waitForResponse((response) => response.url().endsWith("/changelog"));
      await page.goto(origin).catch(() => {}); // the form cuts it off
      assert.equal((await posted).status(), 403);
      closing.abort(); // a browser may keep a connection without a request
      await evil.finished;
      assert.equal(jobContext(at.workspace).register.need("changelog").status, "proposed");
    });

    await t.step("what a hostile model writes is text", async () => {
      await hostileWorld(at);
      await using context = await open();
      const { page, faults } = context;
      for (
        const path of [
          "/console",
          "/console/night",
          "/console/jobs/hostile",
          "/console/sessions",
          "/console/sessions/hostile",
          "/console/fleet/crawler",
          "/console/usage",
        ]
      ) {
        const response = await page.goto(at.http.url + path);
        const html = await response!.text();
        assert.ok(html.length < 1_000_000, `${path} has ${html.length} characters`);
        // deno-lint-ignore no-control-regex
        assert.doesNotMatch(html, /[\x00-\x08\x0b\x0c\x0e-\x1f\u202e\u200b]/, path);
        assert.doesNotMatch(html, /href="javascript:/);
        await page.locator("h1").waitFor();
        const [hacked, frames] = await page.evaluate<[boolean, number]>(
          '["hacked" in globalThis, document.querySelectorAll("iframe, img, main script").length]',
        );
        assert.deepEqual([hacked, frames], [false, 0], path);
        await page.setViewportSize({ width: 360, height: 800 });
        const wide = await page.evaluate<number>(WIDTH);
        assert.ok(wide <= 360, `${path} is ${wide} wide`);
      }
      await page.goto(`${at.http.url}/console/sessions/hostile`);
      await page.getByText("end of the hostile text").first().waitFor();
      assert.deepEqual(faults, []);
    });

    await t.step("everything but live views works without a script", async () => {
      await using context = await open({ javaScriptEnabled: false });
      const { page } = context;
      await page.goto(`${at.http.url}/console`);
      const card = page.locator("#asks li", { hasText: "after the restart" });
      await card.getByRole("textbox").fill("Yes, it is.");
      await card.getByRole("button", { name: "Answer" }).click();
      assert.equal(new URL(page.url()).pathname, "/console");
      assert.equal(await card.count(), 0);
      await page.goto(`${at.http.url}/console/jobs`);
      await page.getByRole("button", { name: "Approve changelog" }).click();
      assert.equal(jobContext(at.workspace).register.need("changelog").status, "approved");
      await page.goto(`${at.http.url}/console/night`);
      await page.getByText("changed files").first().click();
      await page.getByText("+- #44 is a duplicate of #39").waitFor();
    });

    // Chromium has been seen to answer no key any more; a second try has a page of its own.
    const keyboard = async () => {
      const { page } = await open();
      await page.goto(`${at.http.url}/console`);
      const focused = () => page.evaluate<string>("document.activeElement.textContent.trim()");
      await page.keyboard.press("Tab");
      assert.equal(await focused(), "Skip to the content");
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate("document.activeElement.id"), "main");
      const before = at.workspace.asks.list("pending").length;
      const field = () => page.evaluate<boolean>(`document.activeElement.tagName === "TEXTAREA"`);
      for (let n = 0; n < 20 && !await field(); n++) await page.keyboard.press("Tab");
      await page.keyboard.type("By keyboard.");
      await page.keyboard.press("Tab");
      assert.equal(await focused(), "Answer");
      const sent = page.waitForResponse((response) => response.request().method() === "POST");
      await page.keyboard.press("Enter");
      assert.equal((await sent).status(), 303);
      assert.equal(at.workspace.asks.list("pending").length, before - 1);
    };
    await t.step("a keyboard is enough", async () => {
      await within(keyboard()).catch(() => within(keyboard()));
    });
  } finally {
    await within(browser.close()).catch(() => {});
  }
});

/** @throws Error when the work has not ended after half a minute */
async function within<T>(work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("no end after 30 seconds")), 30_000);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

interface Opened extends AsyncDisposable {
  page: Page;
  /** Broken rules of the content policy, errors of scripts, dialogs and requests to other servers. */
  faults: string[];
}

/** A page of a person who is signed in. */
async function openContext(
  browser: Browser,
  at: TestServer,
  cookie: string,
  options: Parameters<Browser["newContext"]>[0] = {},
): Promise<Opened> {
  const context: BrowserContext = await browser.newContext(options);
  const [name, value] = cookie.split("=") as [string, string];
  await context.addCookies([{ name, value, url: at.http.url }]);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`${page.url()}: ${message.text()}`);
  });
  page.on("pageerror", ({ message }) => faults.push(`${page.url()}: ${message}`));
  page.on("dialog", (dialog) => {
    faults.push(`${page.url()}: a dialog`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${at.http.url}/console`) && !url.startsWith("data:")) faults.push(url);
  });
  return { page, faults, [Symbol.asyncDispose]: () => context.close() };
}

/** Has a session, a job, an ask, a log and the ledger hold hostile texts. */
async function hostileWorld(at: TestServer): Promise<void> {
  const { workspace } = at;
  const session = workspace.sessions.open("hostile");
  await session.acquireTurn();
  const turn = session.beginTurn({ model: HOSTILE, provider: "p", mode: "build", reasoning: "" });
  const text = `${HOSTILE}\n${"x".repeat(10_000_000)}`;
  turn.append({ type: "user", text: HOSTILE });
  turn.append({ type: "thinking", text: HOSTILE });
  turn.append({
    type: "tool",
    name: HOSTILE,
    input: { path: HOSTILE, content: text },
    output: text,
    is_error: false,
  });
  turn.append({ type: "text", text });
  turn.end("ok");
  session.close();
  const now = new Date().toISOString();
  const { register } = jobContext(workspace);
  await register.add({
    ...register.need("triage"),
    ...{ name: "hostile", prompt: HOSTILE, verify: HOSTILE, task_file: ".svc/jobs/hostile.md" },
  }, [{
    ...{ started_at: now, finished_at: now, status: "failed", reason: HOSTILE, duration: 1 },
    ...{ session: "hostile", attempt: 1, content: HOSTILE },
    denied: [{ tool: HOSTILE, reason: HOSTILE }],
  }]);
  await at.project.write(".svc/jobs/hostile.md", HOSTILE);
  await at.project.write(".svc/logs/crawler.log", `${text}\n${HOSTILE}\n`);
  await workspace.asks.park({
    question: HOSTILE,
    context: HOSTILE,
    options: [HOSTILE],
    origin: "",
  });
  workspace.spending.ledger.append({
    ...{ time: now, for: "turn", provider: HOSTILE, model: HOSTILE, job: HOSTILE },
    ...{ in: 1, out: 1, cached: 0, reasoning: 0, cost: 1, calls: 0, chars: 4 },
  });
}
