import assert from "node:assert/strict";
import { startSvc } from "../support/program.ts";
import { project } from "../support/project.ts";

Deno.test("svc fleet console serves a console of all agents, and prints a link that signs in", async () => {
  await using place = await project({
    ".svc/config.json": JSON.stringify({ provider: "demo" }),
    ".svc/fleet.json": JSON.stringify({ agents: [{ name: "notes", dir: "notes" }] }),
    "notes/.svc/asks.json": JSON.stringify([
      {
        id: 1,
        question: "Which title?",
        status: "pending",
        created_at: "2026-01-02T03:04:05.000Z",
      },
    ]),
  });
  await using child = startSvc(["fleet", "console"], { cwd: place.path });
  let printed = "";
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    printed += text;
    if (printed.includes("\n")) break;
  }
  const signedIn = await fetch(printed.trim(), { redirect: "manual" });
  await signedIn.body?.cancel();
  const cookie = signedIn.headers.get("set-cookie")!.split(";")[0]!;
  const page = await fetch(new URL(signedIn.headers.get("location")!, printed), {
    headers: { cookie },
  });
  const html = await page.text();
  assert.match(html, /No supervisor runs/);
  assert.match(html, /<a href="\/console\/fleet\/notes">notes<\/a>/);
  assert.match(html, /Which title\?/);
  child.kill("SIGINT");
  await child.stderr.cancel();
  assert.equal((await child.status).code, 0);
});
