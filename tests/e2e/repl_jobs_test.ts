import assert from "node:assert/strict";
import { hang, say } from "../support/backend.ts";
import { session } from "../support/repl.ts";

Deno.test("/jobs is the shared command: add, list, approve, run, status, show, remove [3.1, 4.5, 4.7]", async () => {
  await using open = await session([say("all is well")], { rows: 120 });
  await open.enter("/jobs", "There are no jobs; add one: /jobs add");
  await open.enter(
    '/jobs add nightly --interval 60 --prompt "look around"',
    "/jobs approve nightly",
  );
  await open.enter("/status", /jobs +1, 1 proposed/);
  await open.enter("/jobs approve nightly", "nightly: approved, enabled");
  await open.enter("/jobs list", /nightly +approved +\S.* every 1 min/);
  await open.enter(
    "/jobs run nightly --verbose",
    /all is well\n[^]*summary: ended ok, not checked/,
  );
  await open.enter(
    "/jobs status",
    /\(\/jobs daemon --detach\)[^]*last run: +ended ok, not checked/,
  );
  await open.enter("/jobs show nightly", "all is well");
  await open.enter("/jobs stop nightly", "nightly: ended ok, not checked, disabled");
  await open.enter("/jobs show nigtly", "! Error: There is no job");
  await open.enter("/jobs --help", "jobs add-supervisor");
  await open.enter("/jobs remove nightly", "Removed the job nightly");
  assert.deepEqual(JSON.parse(await open.place.read(".svc/jobs.json")).jobs, []);
  assert.match(open.saved()[0].session_name, /^job_/, "the sessions of its runs stay");
});

Deno.test("Tab completes the subcommands of /jobs and the names of jobs; Ctrl-C cancels a run", async () => {
  await using open = await session([hang("half of an answer")]);
  await open.enter('/jobs add nightly --interval 60 --prompt "go" --retries 0', "/jobs approve");
  await open.ready();
  for (const [typed, completed] of [["/jobs appr", "approve"], ["/jobs run ni", "nightly"]]) {
    await open.pty.type(typed!);
    await open.pty.until(typed!);
    await open.pty.type("\t");
    await open.pty.until(new RegExp(`› /jobs (run )?${completed}$`));
    await open.pty.type("\x15");
    await open.ready();
  }
  await open.enter("/jobs run nightly --verbose", "half of an answer");
  await open.pty.type("\x03");
  await open.pty.until("summary: failed");
  await open.ready();
});

Deno.test("/jobs edit gives the editor the terminal and its keys [4.5]", async () => {
  const editor = '#!/bin/sh\nstty -echo\necho EDITING\nread line\necho "$line" >> "$1"\n';
  await using open = await session([say("fine")], {
    files: { editor },
    env: { EDITOR: "sh editor" },
  });
  await open.enter('/jobs add nightly --interval 60 --prompt "go"', "/jobs approve nightly");
  await open.enter("/jobs edit nightly", "EDITING");
  await open.pty.type("Count the tides\n");
  await open.ready();
  assert.match(await open.place.read(".svc/jobs/nightly.md"), /## Notes\n*Count the tides\n$/);
  await open.enter("and now?", "fine");
});
