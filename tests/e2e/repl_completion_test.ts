import assert from "node:assert/strict";
import { call, say } from "../support/backend.ts";
import { session } from "../support/repl.ts";

Deno.test("Tab completes commands, subcommands, options and names of every kind", async () => {
  const cases: [typed: string, completed: RegExp][] = [
    ["/unat", /› \/unattended$/],
    ["/session lo", /› \/session load$/],
    ["/session load night", /› \/session load nightly$/],
    ["/history --ru", /› \/history --run$/],
    ["/history --run night", /› \/history --run nightly$/],
    ["/roles show code", /› \/roles show code-reviewer$/],
    ["/teams run writ", /› \/teams run writing$/],
    ["/skills show bre", /› \/skills show brevity$/],
    ["/tool file_r", /› \/tool file_read$/],
    ["/config set print_m", /› \/config set print_max_chars$/],
    ["/model acme/b", /› \/model acme\/big$/],
    ["/mode pl", /› \/mode plan$/],
    ["/help comp", /› \/help compact$/],
    ["/provider gro", /› \/provider groq$/],
    ["read @no", /› read @notes\.txt$/],
    ["read src/in", /› read src\/inner\/$/],
  ];
  await using open = await session([], {
    files: {
      ".svc/sessions/nightly.json": "{}",
      ".svc/skills/brevity.md": "Be brief.",
      "notes.txt": "",
      "src/inner/deep.txt": "",
    },
  });
  await open.home.write(
    ".config/svc/models.json",
    JSON.stringify([{ provider: "acme", model: "big" }]),
  );
  for (const [typed, completed] of cases) {
    await open.pty.type(typed);
    await open.pty.until(typed);
    await open.pty.type("\t");
    await open.pty.until(completed);
    await open.pty.type("\x15"); // Ctrl-U
    await open.ready();
  }
});

Deno.test("Tab completes live runs by their number", async () => {
  const replies = [
    call("delegate", { role: "smith", task: "make it" }),
    { ...say("made"), when: { system: "YOU FORGE" } },
    say("all done"),
  ];
  const roles = JSON.stringify({ smith: { system_prompt: "YOU FORGE" } });
  await using open = await session(replies, { files: { ".svc/roles.json": roles } });
  await open.enter("go", "all done");
  await open.ready();
  await open.pty.type("/focus #2");
  await open.pty.type("\t");
  await open.pty.until(/› \/focus #2(\n#2\s+#2\w+|\n#2\w+\s+#2)?$/); // an id may begin with it too
  await open.pty.type("\r");
  await open.pty.until("The focus is on run #2 (smith)");
});

Deno.test("/sessions lists the newest of 10,000 first, and reads no others", async () => {
  const name = (n: number) => `ses_20260101_000000_${n.toString(36).padStart(6, "0")}`;
  const files: Record<string, string> = {};
  for (let n = 0; n < 10_000; n++) files[`.svc/sessions/${name(n)}.json`] = "";
  await using open = await session([], { files });
  const newest = `${open.place.path}/.svc/sessions/${name(4711)}.json`;
  await Deno.utime(newest, new Date(), new Date(Date.now() + 60_000));
  await open.enter("/sessions 3", "3 of 10000; the others: /sessions all");
  const [, first] = /\/sessions 3\n\s+SESSION.*\n\s+(\S+)/.exec(open.pty.screen.text())!;
  assert.equal(first, name(4711));
  assert.doesNotMatch(open.pty.written, /warning/, "files that do not load were not looked into");
});
