import assert from "node:assert/strict";
import { join } from "node:path";
import { files, lines, moved, VERSIONS } from "./support.ts";

Deno.test("a dry run is the default: it lists what would be imported and writes nothing", async () => {
  for (const version of VERSIONS) {
    await using place = await moved(version);
    const before = files(join(place.path, ".."));
    const dry = await place.import();
    assert.equal(dry.applied, false);
    assert.deepEqual(files(join(place.path, "..")), before);
    const done = await place.import("--apply");
    const expected = lines(dry).map((line) => line.replace(/^new /, "imported "));
    assert.deepEqual(lines(done), expected);
    assert.deepEqual(done.openings, dry.openings);
    assert.deepEqual(lines(done, "failed"), []);
  }
});

Deno.test("importing twice changes nothing", async () => {
  for (const version of VERSIONS) {
    await using place = await moved(version);
    const first = await place.import("--apply");
    const before = files(join(place.path, ".."));
    const again = await place.import("--apply");
    assert.deepEqual(files(join(place.path, "..")), before);
    assert.deepEqual(lines(again, "imported", "failed"), []);
    assert.equal(lines(again, "exists").length, lines(first, "imported").length);
  }
});

Deno.test("the report says what is not imported and why", async () => {
  await using place = await moved("0.37.0");
  const { items, code } = await place.import();
  assert.equal(code, 1, "a session cannot be read");
  const notes = Object.fromEntries(
    items.filter(({ state }) => state !== "new").map((item) => [
      `${item.kind} ${item.name}: ${item.state}`,
      item.note,
    ]),
  );
  assert.match(notes["plugin word-count: incompatible"]!, /Python.*svc plugins new/);
  assert.match(notes["plugin moon-phase: incompatible"]!, /Python/);
  assert.equal(notes["session torn: unreadable"], "it is not valid JSON (line 3, column 13)");
  assert.match(notes["session flat: left_out"]!, /old format/);
  assert.match(notes["setting footer_tokens: left_out"]!, /no such setting/);
  assert.match(notes["setting grant_permission: left_out"]!, /grant_permission/);
  assert.match(notes["file models.json: left_out"]!, /approved anew/);
  assert.match(notes["file fleet.state.json: left_out"]!, /running agents/);
  assert.equal(Object.keys(notes).length, 8);
  const given = items.filter(({ kind }) => kind === "connection").map(({ note }) => note);
  assert.match(given[0]!, /key is not copied.*svc connect groq/);
});

Deno.test("no key is copied, of a connection or of an MCP server", async () => {
  for (const version of VERSIONS) {
    await using place = await moved(version);
    await place.import("--apply");
    const written = [...files(place.path), ...files(place.home)]
      .filter(([file]) => file.includes(".svc/") || file.includes("config/svc/"));
    const leaked = written.filter(([, text]) => /fake/.test(text)).map(([file]) => file);
    assert.deepEqual(leaked, []);
    const config = JSON.parse(Deno.readTextFileSync(join(place.path, ".svc", "config.json")));
    assert.deepEqual(config["mcp.servers"][0].headers, { "X-Team": "core" });
    const { out } = await place.svc("models");
    assert.match(out, /groq/);
  }
});

Deno.test("the text output has a table, what is not imported, what is opened, and a summary", async () => {
  await using place = await moved("0.49.0");
  const { code, out, notes } = await place.untrusting("import", "polyglav");
  assert.equal(code, 1);
  assert.match(out, /^session +survey +local +new$/m);
  assert.match(out, /\nNot imported:\n\n[^]*^team +office +local +left out +svc has no teams of/m);
  assert.match(
    out,
    /\nOpens:\n\n[^]*^mcp:files +local +starts the program "files-server --root \."/m,
  );
  assert.match(
    notes[0]!,
    /^\d+ can be imported, 0 exist, 10 cannot be imported\. Nothing is written/,
  );
  assert.match(notes.at(-1)!, /left out until you trust it: svc trust/);
});

Deno.test("a folder without files of the earlier program is refused", async () => {
  await using place = await moved("");
  const { code, notes } = await place.svc("import", "polyglav");
  assert.equal(code, 2);
  assert.match(notes.join("\n"), /There is no folder .*\.polyglav\.\nhint: .*--from DIR/);
  await using other = await moved("0.37.0");
  const from = await other.svc(
    "import",
    "polyglav",
    "--from",
    "docs/..",
    "--path",
    join(other.path, "shop"),
  );
  assert.equal(from.code, 1, "an import from another worktree");
  assert.equal((await other.svc("import", "polyglav", "--from", "nowhere")).code, 2);
  assert.equal((await other.svc("import", "polyglav", "--from", other.state)).code, 1);
  assert.deepEqual(await other.svc("import"), await other.svc("import", "polyglav"));
  assert.equal((await other.svc("import", "other")).code, 2);
});

Deno.test("without a .polyglav in the worktree, the user's own files are imported alone", async () => {
  await using place = await moved("0.37.0");
  await Deno.remove(place.state, { recursive: true });
  const report = await place.import("--apply");
  assert.equal(report.code, 0);
  assert.ok(report.items.every(({ scope }) => scope === "global"));
});

Deno.test("nothing that svc has is overwritten", async () => {
  await using place = await moved("0.37.0");
  const svc = join(place.path, ".svc");
  const user = join(place.home, ".config", "svc");
  for (const folder of ["sessions", "skills", "memory/roles", "jobs"]) {
    await Deno.mkdir(join(svc, folder), { recursive: true });
  }
  await Deno.mkdir(user, { recursive: true });
  const own: [string, string][] = [
    [join(svc, "sessions", "survey.json"), "mine"],
    [join(svc, "skills", "minutes.md"), "mine"],
    [join(svc, "memory", "roles", "clerk.md"), "mine"],
    [join(svc, "jobs", "nightly.md"), "mine"],
  ];
  for (const [file, text] of own) await Deno.writeTextFile(file, text);
  await Deno.writeTextFile(join(svc, "roles.json"), '{"clerk": {"description": "mine"}}');
  await Deno.writeTextFile(join(svc, "teams.json"), '{"desk": {"description": "mine"}}');
  await Deno.writeTextFile(
    join(svc, "jobs.json"),
    '{"jobs": [{"name": "nightly", "schedule": {"interval": 60}, "prompt": "mine"}]}',
  );
  await Deno.writeTextFile(
    join(svc, "asks.json"),
    '[{"id": 1, "question": "mine", "status": "pending"}]',
  );
  await Deno.writeTextFile(
    join(svc, "fleet.json"),
    '{"agents": [{"name": "docs", "dir": "mine"}]}',
  );
  await Deno.writeTextFile(
    join(svc, "config.json"),
    '{"mode": "build", "tool_permission": {"bash": "ask"}} // mine',
  );
  await Deno.writeTextFile(join(user, "providers.json"), '{"groq": {"api_key": "mine"}}');
  const report = await place.import("--apply");
  for (const [file, text] of own) assert.equal(await Deno.readTextFile(file), text);
  const read = (folder: string, file: string) => Deno.readTextFileSync(join(folder, file));
  assert.equal(JSON.parse(read(svc, "roles.json")).clerk.description, "mine");
  assert.equal(JSON.parse(read(svc, "teams.json")).desk.description, "mine");
  assert.equal(JSON.parse(read(svc, "jobs.json")).jobs[0].prompt, "mine");
  assert.equal(JSON.parse(read(svc, "asks.json"))[0].question, "mine");
  assert.equal(JSON.parse(read(svc, "fleet.json")).agents[0].dir, "mine");
  assert.match(read(svc, "config.json"), /"mode": "build"[^]*"bash": "ask"[^]*\/\/ mine/);
  assert.equal(JSON.parse(read(user, "providers.json")).groq.api_key, "mine");
  assert.ok(lines(report).includes("left_out ask #1"), "another question has its number");
  for (
    const name of ["session survey", "role clerk", "job nightly", "agent docs", "setting mode"]
  ) {
    assert.ok(lines(report).includes(`exists ${name}`), name);
  }
});
