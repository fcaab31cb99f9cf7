import assert from "node:assert/strict";
import { join } from "node:path";
import { nameFor, Roster, scanForAgents } from "../../src/fleet/roster.ts";
import { SnapshotFile } from "../../src/fleet/snapshot.ts";
import { manualClock } from "../support/clock.ts";
import { project } from "../support/project.ts";
import { TRUSTED } from "../support/trust.ts";

const TEXT = `{
  // ours, all of them
  "owner": "me", // not svc's
  "agents": [
    // takes notes
    {
      "name": "notes",
      "dir": "notes", // relative
      "team": "blue"
    },
    { "name": "idle", "dir": "/srv/idle", "enabled": false, "max_restarts": 0 },
  ]
}
`;

async function roster(text?: string) {
  const folder = await project(text === undefined ? {} : { "fleet.json": text });
  const warnings: string[] = [];
  return {
    folder,
    warnings,
    roster: new Roster(folder.path, TRUSTED, (message) => warnings.push(message)),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

Deno.test("a roster may have comments, and missing fields have defaults [2.8]", async () => {
  await using here = await roster(TEXT);
  assert.deepEqual(here.roster.read(), {
    agents: [
      { name: "notes", dir: "notes", enabled: true, max_restarts: 10 },
      { name: "idle", dir: "/srv/idle", enabled: false, max_restarts: 0 },
    ],
    broken: [],
  });
  assert.deepEqual(here.warnings, []);
});

Deno.test("changes of the roster keep everything else in the file: comments, layout, unknown keys, other entries [2.8]", async () => {
  await using here = await roster(TEXT);
  await here.roster.enable("notes", false);
  await here.roster.enable("idle", true);
  await here.roster.add([{ name: "new", dir: "new", prefer_port: 8785 }]);
  assert.equal(
    await here.folder.read("fleet.json"),
    TEXT.replace('"team": "blue"\n', '"team": "blue",\n      "enabled": false\n')
      .replace('"enabled": false, "max', '"enabled": true, "max')
      .replace(
        "0 },\n",
        '0 },\n    {\n      "name": "new",\n      "dir": "new",\n      "prefer_port": 8785\n    },\n',
      ),
  );
  await here.roster.remove("new");
  await here.roster.remove("idle");
  const names = here.roster.read()!.agents.map(({ name }) => name);
  assert.deepEqual(names, ["notes"]);
  assert.match(await here.folder.read("fleet.json"), /\/\/ takes notes\n/);
});

Deno.test("an edit by hand takes effect", async () => {
  await using here = await roster(TEXT);
  here.roster.read();
  await here.folder.write("fleet.json", '{"agents": [{"name": "other", "dir": "x"}]}');
  assert.deepEqual(here.roster.read()!.agents.map(({ name }) => name), ["other"]);
  await Deno.remove(join(here.folder.path, "fleet.json"));
  assert.deepEqual(here.roster.read(), { agents: [], broken: [] });
});

Deno.test("a null and the port 0 of an earlier program count as missing", async () => {
  const entry = { name: "a", dir: "x", enabled: true, prefer_port: 0, max_restarts: null };
  await using here = await roster(JSON.stringify({ version: 1, agents: [entry] }));
  assert.deepEqual(here.roster.read()!.agents, [
    { name: "a", dir: "x", enabled: true, max_restarts: 10 },
  ]);
  assert.deepEqual(here.warnings, []);
});

Deno.test("invalid entries of the roster are warned about once and kept; the others work [2.8]", async () => {
  const text = JSON.stringify({
    agents: [
      { name: "../up", dir: "x" },
      { name: "good", dir: "x" },
      { name: "good", dir: "y" },
      { name: "nowhere" },
      { name: "fleet", dir: "x" },
      "what",
      { name: "port", dir: "x", prefer_port: 70000 },
    ],
  });
  await using here = await roster(text);
  const listing = here.roster.read()!;
  assert.deepEqual(listing.agents.map(({ name, dir }) => [name, dir]), [["good", "x"]]);
  assert.deepEqual(listing.broken, ["../up", "nowhere", "fleet", "port"]);
  here.roster.read();
  assert.equal(here.warnings.length, 1);
  assert.equal(here.warnings[0]!.split("; agents[").length, 6);
  assert.equal(await here.folder.read("fleet.json"), text);
});

Deno.test("a corrupt roster is kept and cannot be changed [7.6]", async () => {
  for (const text of ["{", "[]", '{"agents": {}}', ""]) {
    await using here = await roster(text);
    assert.equal(here.roster.read(), undefined, text);
    assert.equal(here.warnings.length, 1);
    await assert.rejects(here.roster.add([{ name: "a", dir: "a" }]), { exit: 2 });
    assert.equal(await here.folder.read("fleet.json"), text);
  }
});

Deno.test("an unknown agent of the fleet is an error with the nearest name; an agent cannot be added twice [4.6]", async () => {
  await using here = await roster(TEXT);
  assert.throws(() => here.roster.need("note"), { code: "unknown_agent", hint: /"notes"/ });
  await assert.rejects(here.roster.remove("nobody"), { code: "unknown_agent" });
  await assert.rejects(here.roster.add([{ name: "notes", dir: "x" }]), { code: "agent_exists" });
});

Deno.test("fleet init finds folders with settings, except hidden, linked and nested ones [4.6]", async () => {
  await using folder = await project({
    ".svc/config.json": "{}",
    "a/.svc/config.json": "{}",
    "a/inner/.svc/config.json": "{}",
    "b/c/.svc/config.json": "{}",
    "b/.hidden/.svc/config.json": "{}",
    "node_modules/m/.svc/config.json": "{}",
    "1/2/3/4/.svc/config.json": "{}",
    "1/2/3/x/5/.svc/config.json": "{}",
    "d/.svc/other": "",
  });
  await Deno.symlink(join(folder.path, "a"), join(folder.path, "link"));
  assert.deepEqual(scanForAgents(folder.path), ["1/2/3/4", "a", "b/c"]);
});

Deno.test("fleet init names an agent after its folder, with as much of the path as makes the name unique [4.6]", () => {
  assert.equal(nameFor("x/notes", new Set()), "notes");
  assert.equal(nameFor("x/notes", new Set(["notes"])), "x-notes");
  assert.equal(nameFor("my notes", new Set()), "my-notes");
  assert.equal(nameFor("notes", new Set(["notes"])), undefined);
});

Deno.test("fleet.state.json is read back as written, without invalid parts [2.8]", async () => {
  await using folder = await project();
  const path = join(folder.path, "fleet.state.json");
  const file = new SnapshotFile(path, manualClock(), assert.fail);
  const agent = {
    name: "a",
    dir: "a",
    enabled: true,
    state: "running" as const,
    healthy: true,
    failed_probes: 0,
    port: 8780,
    pid: 12,
    since: "2026-01-01T00:00:00.000Z",
    restarts: 1,
    failures: 1,
    retry_at: "",
    error: "",
    launched: "",
  };
  const supervisor = { pid: 1, started: "boot/1", since: agent.since };
  await file.write({ supervisor, agents: [agent] });
  assert.deepEqual(file.read(), { supervisor, agents: [agent] });
  const { ino } = await Deno.stat(path);
  await file.write({ supervisor, agents: [agent] });
  assert.equal((await Deno.stat(path)).ino, ino, "nothing new is not written again");
  const text = JSON.stringify({ agents: [agent, { name: "b", state: "lost" }] });
  await Deno.writeTextFile(path, text);
  assert.deepEqual(file.read(), { supervisor: null, agents: [agent] });
});
