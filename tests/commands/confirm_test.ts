import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import type { Io } from "../../src/commands/io.ts";
import { httpError, startBackend } from "../support/backend.ts";
import { testIo } from "../support/io.ts";
import { project } from "../support/project.ts";

Deno.test("a question that is declined is no error, one that is left with Ctrl-C is 130; nothing changes [4.7, 5.2]", async () => {
  await using backend = startBackend({ replies: [], models: httpError(401) });
  const yes = { readLine: () => Promise.resolve("1"), readHidden: () => Promise.resolve("key") };
  const cases: [args: string[], answers: Partial<Io>, code: number, said: string][] = [
    [["connect"], {}, 130, "Nothing was saved."],
    [["connect"], { readLine: yes.readLine }, 130, "Nothing was saved."],
    [["connect", backend.url, "mine"], yes, 0, "Nothing was saved."],
    [["model", "openai/gpt-4o-mini"], {}, 0, "The model stays as it is."],
  ];
  for (const [args, answers, code, said] of cases) {
    await using home = await project();
    const { path } = home;
    const io = testIo({ home: path, cwd: path }, { isTerminal: () => true, ...answers });
    assert.equal(await main(args, io), code, `${args.join(" ")}: ${io.notes.join("\n")}`);
    assert.equal(io.notes.at(-1), said);
    assert.deepEqual(settings(path), [], args.join(" "));
  }
});

Deno.test("a connection that fails with no one to ask is an error", async () => {
  await using backend = startBackend({ replies: [], models: httpError(401) });
  await using home = await project();
  const io = testIo({ home: home.path, cwd: home.path });
  assert.equal(await main(["connect", backend.url, "mine"], io), 1);
  assert.match(io.notes.join("\n"), /Nothing was saved\.\nhint: Pass --force/);
});

/** The files with settings of a user whose worktree is the home. */
function settings(path: string): string[] {
  return ["config", "providers", "models"].flatMap((
    name,
  ) => [`${path}/.svc/${name}.json`, `${path}/.config/svc/${name}.json`]).filter((file) => {
    try {
      return Deno.statSync(file).isFile;
    } catch {
      return false;
    }
  });
}
