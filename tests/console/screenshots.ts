/** Makes the screenshots of docs/console.md: `deno task screenshots`. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { jobContext } from "../../src/jobs/context.ts";
import { signIn } from "../server/console.ts";
import { startBrowser } from "../support/browser.ts";
import { withFleet, world } from "./world.ts";

const DOCS = fileURLToPath(new URL("../../docs", import.meta.url));
const DESK = { width: 1100, height: 760 };
const LONG = { width: 1100, height: 1000 };
const PHONE = { width: 380, height: 760 };

await using at = await world();
await using _agent = await withFleet(at);
const { register } = jobContext(at.workspace);
const [name, value] = (await signIn(at)).split("=") as [string, string];
const session = register.history("triage").at(-1)!.session;
const browser = await startBrowser();
for (
  const [file, path, colorScheme, viewport] of [
    ["inbox", "/console", "light", DESK],
    ["night", "/console/night", "light", LONG],
    ["job", "/console/jobs/nightly-tests", "light", DESK],
    ["session", `/console/sessions/${session}`, "light", DESK],
    ["phone", "/console/jobs", "dark", PHONE],
  ] as const
) {
  const context = await browser.newContext({ viewport, colorScheme });
  await context.addCookies([{ name, value, url: at.http.url }]);
  const page = await context.newPage();
  await page.goto(at.http.url + path);
  await page.getByText("Live").waitFor();
  if (file === "night") await page.getByText("changed files").first().click();
  // The scratch folder has no name that says anything.
  await page.evaluate(`{
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = texts.currentNode;
      node.data = node.data.replace(/\\S*svc-test-[0-9a-f]+/g, (path) =>
        path.startsWith("/") ? "/home/ada/harbour" : "harbour");
    }
  }`);
  await page.screenshot({ path: join(DOCS, `console-${file}.png`) });
  await context.close();
}
await browser.close();
