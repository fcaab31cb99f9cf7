import assert from "node:assert/strict";
import { runCommand } from "../../src/commands/command.ts";
import { teams } from "../../src/commands/teams.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import type { Operator } from "../../src/policy/operator.ts";
import { call, say, startBackend } from "../support/backend.ts";
import { testIo } from "../support/io.ts";
import { project } from "../support/project.ts";

Deno.test("in a terminal session the operator approves a team's models and calls, in the open worktree [5.2]", async () => {
  await using backend = startBackend([
    call("run_command", { command: "touch made" }),
    say("made"),
    say("seen"),
  ]);
  await using home = await project({
    ".config/svc/providers.json": JSON.stringify({ far: { base_url: backend.url, api_key: "" } }),
  });
  await using place = await project({
    ".svc/config.json": JSON.stringify({
      base_url: backend.url,
      model: "test",
      memory_enabled: false,
    }),
    ".svc/roles.json": JSON.stringify({
      maker: { model: "far/big" },
      viewer: { model: "far/eye" },
    }),
    ".svc/teams.json": JSON.stringify({ pair: { stages: ["maker", "viewer"] } }),
  });
  const asked: string[] = [];
  const operator: Operator = {
    confirm({ tool }) {
      asked.push(tool);
      return Promise.resolve({ granted: true, scope: "once", by: "operator" });
    },
    ask: () => Promise.resolve(undefined),
    approveModels(models) {
      asked.push(models.join(" and "));
      return Promise.resolve(true);
    },
  };
  const places = { home: home.path, cwd: home.path };
  const live = Workspace.open({ path: place.path, environment: testIo(places).environment });
  const io = testIo(places, { operator, live, program: "/" });
  const code = await runCommand(
    teams,
    ["teams", "run", "pair", "make it", "--output", "text"],
    io,
  );
  assert.equal(code, 0, io.notes.join("\n"));
  assert.equal(io.printed, "seen\n");
  assert.deepEqual(asked, ["far/big and far/eye", "run_command"]);
  assert.ok((await Deno.stat(`${place.path}/made`)).isFile);
  assert.equal(live.sessions.list().filter((name) => name.startsWith("ses_")).length, 1);
});
