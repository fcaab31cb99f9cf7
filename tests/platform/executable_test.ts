import assert from "node:assert/strict";
import { join } from "node:path";
import { ownCommand } from "../../src/platform/executable.ts";
import { processEnvironment } from "../../src/platform/environment.ts";
import { project } from "../support/project.ts";

const ARCHIVE = { ...processEnvironment(), get: () => "/opt/svc" };

Deno.test("the archive is started by the path that it was started by", () => {
  // The main module of a test run has no permissions/ beside it, as that of the archive.
  assert.deepEqual(ownCommand(ARCHIVE), ["/opt/svc"]);
});

Deno.test("the source is started under this Deno with the flags of the build profile", async () => {
  const module = new URL("../../src/platform/executable.ts", import.meta.url).href;
  await using folder = await project({
    "permissions/build.flags": "--no-prompt\n--allow-read\n",
    "main.ts": `import { ownCommand } from ${JSON.stringify(module)};
      console.log(JSON.stringify(ownCommand({ home: "", cwd: "", get: () => "/opt/other" })));`,
  });
  const main = join(folder.path, "main.ts");
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-read", main],
  }).output();
  assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), [
    Deno.execPath(),
    "run",
    "--no-prompt",
    "--allow-read",
    main,
  ]);
});
