import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { testIo } from "../support/io.ts";

async function complete(...words: string[]): Promise<string[]> {
  const io = testIo({ home: "/", cwd: "/" });
  assert.equal(await main(["completion", "bash", ...words], io), 0);
  return io.printed.split("\n").filter((line) => line !== "");
}

Deno.test("commands, subcommands and options are completed", async () => {
  assert.deepEqual(await complete("ex"), ["export"]);
  assert.ok((await complete("")).includes("jobs"));
  assert.deepEqual(await complete("asks", "an"), ["answer"]);
  assert.ok((await complete("run", "--unat")).includes("--unattended"));
  assert.ok((await complete("run", "--output", "stream")).includes("stream-json"));
  assert.deepEqual(await complete("nothing", "x"), []);
  assert.deepEqual(await complete("comp"), ["compact", "completion"]);
  assert.deepEqual(await complete("completion", "z"), ["zsh"]);
  assert.deepEqual(await complete("help", "ex"), ["export"]);
  assert.deepEqual(await complete("help", "jobs", "app"), ["approve"]);
  assert.deepEqual(await complete("--v"), ["--version"]);
  // A command without a subcommand takes the options of the implied one.
  assert.deepEqual(await complete("jobs", "--ou"), ["--output"]);
  assert.ok((await complete("jobs", "")).includes("approve"));
});

Deno.test("each shell gets a script, and another one a hint", async () => {
  for (const shell of ["bash", "zsh", "fish", "nu", "pwsh"]) {
    const io = testIo({ home: "/", cwd: "/" });
    assert.equal(await main(["completion", shell], io), 0);
    assert.match(io.printed, /completion/);
  }
  const io = testIo({ home: "/", cwd: "/" });
  assert.equal(await main(["completion", "tcsh"], io), 2);
  assert.match(
    io.notes.join("\n"),
    /There is no completion for tcsh\..*\n?hint: Pass one of bash/s,
  );
});

Deno.test("bash completes with the script of the real program", async () => {
  await using work = await project();
  const script = await svc(["completion", "bash"], { cwd: work.path });
  assert.equal(script.code, 0, script.stderr);
  await work.write("script.sh", script.stdout);
  await work.write("try.sh", "source ./script.sh\ndeclare -F _svc >/dev/null && complete -p svc\n");
  const { stdout } = await new Deno.Command("bash", { args: ["try.sh"], cwd: work.path }).output();
  assert.match(new TextDecoder().decode(stdout), /^complete .*-F _svc svc\n$/);
});
