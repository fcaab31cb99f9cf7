import assert from "node:assert/strict";
import { runMain } from "../support/io.ts";
import { project } from "../support/project.ts";

Deno.test("svc permissions shows the whole policy: categories, lists of commands and tools, mode, questions, sandbox", async () => {
  const settings = {
    mode: "build",
    tool_permission: { web: "deny", bash_allow: ["git status"] },
    "tools.deny": ["file_write"],
    "tools.allow": ["file_read", "file_write"],
    ask_policy: { permission: "human" },
    sandbox: { network: false, write: ["/var/tmp"], env: ["CI"] },
    "web.allow_private": ["wiki.example"],
  };
  await using work = await project({ ".svc/config.json": JSON.stringify(settings) });
  const { code, out } = await runMain(work.path, "permissions");
  assert.equal(code, 0);
  for (
    const line of [
      /^web +deny +net /m,
      /^bash +ask +run /m,
      /^\(sandbox\) +auto /m,
      /^mode: build$/m,
      /^commands that run unasked \(bash_allow\): git status$/m,
      /^only these tools \(tools\.allow\): file_read, file_write$/m,
      /^never these tools \(tools\.deny\): file_write$/m,
      /^who answers questions \(ask_policy\): permission human, direction human$/m,
      /^network of commands \(sandbox\.network\): none$/m,
      /^also written by commands \(sandbox\.write\): \/var\/tmp$/m,
      /^variables of commands \(sandbox\.env\): CI$/m,
      /^private hosts of web tools \(web\.allow_private\): wiki\.example$/m,
    ]
  ) assert.match(out, line);
});
