import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { openPaths } from "../../src/platform/environment.ts";
import { ServerLog } from "../../src/server/log.ts";
import { project } from "../support/project.ts";

Deno.test("the log of a server is not written through a link, which a worktree may come with", async () => {
  await using outside = await project({ "profile": "mine\n" });
  await using work = await project({ ".svc/logs/other.log": "" });
  const state = `${work.path}/.svc`;
  await Deno.symlink(`${outside.path}/profile`, `${state}/logs/serve.log`);
  const workspace = { paths: openPaths(work.path, outside.path), clock: systemClock };
  const shown: string[] = [];
  const log = new ServerLog(workspace, { format: "text", show: (line) => shown.push(line) });
  log.event("GET /$(id) 403", {});
  log.event("GET /x 404", {});
  log.close();
  assert.equal(shown.length, 2);
  assert.equal(await outside.read("profile"), "mine\n");
  await Deno.remove(`${state}/logs/serve.log`);
  const own = new ServerLog(workspace, { format: "text", show: () => {} });
  for (const path of ["/a", "/b"]) own.event(`GET ${path} 200`, {});
  own.close();
  assert.match(await work.read(".svc/logs/serve.log"), /^\S+Z GET \/a 200\n\S+Z GET \/b 200\n$/);
});
