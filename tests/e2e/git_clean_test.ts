import assert from "node:assert/strict";
import { dirname } from "node:path";
import { project } from "../support/project.ts";
import { svc } from "../support/program.ts";
import { programsWithoutBubblewrap } from "../support/sandbox.ts";

async function status(folder: string): Promise<string> {
  const args = ["-C", folder, "status", "--porcelain", "--untracked-files=all"];
  const { stdout } = await new Deno.Command("git", { args }).output();
  return new TextDecoder().decode(stdout);
}

for (const kind of ["a sandbox of this machine", "no bubblewrap"]) {
  Deno.test(`with ${kind}, a turn leaves nothing in a repository that would be committed with everything else`, async () => {
    await using place = await project({ "README.md": "one\n" });
    await using programs = kind === "no bubblewrap"
      ? await programsWithoutBubblewrap(dirname(place.path))
      : undefined;
    const options = { cwd: place.path, env: programs && { PATH: programs.path } };
    await new Deno.Command("git", { args: ["init", "-q", place.path] }).output();
    const run = () => svc(["run", "--provider", "demo", "read README.md"], options);
    assert.equal((await run()).code, 0);
    assert.equal(await status(place.path), "?? .svc/.gitignore\n?? README.md\n");

    await svc(["config", "set", "mode", "plan", "--local"], options);
    assert.equal(
      await status(place.path),
      "?? .svc/.gitignore\n?? .svc/config.json\n?? README.md\n",
      "settings are the project's",
    );

    await place.write(".svc/eval/mine.json", "[]");
    assert.match(await status(place.path), /^\?\? \.svc\/eval\/mine\.json$/m, "fixtures are, too");

    await place.write(".svc/.gitignore", "mine\n");
    assert.equal((await run()).code, 0);
    assert.equal(await place.read(".svc/.gitignore"), "mine\n");
  });
}
