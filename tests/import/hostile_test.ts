/** The files of the earlier program are not trusted. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { files, lines, type Moved, moved, write } from "./support.ts";

async function of(content: Record<string, unknown>): Promise<Moved> {
  const place = await moved("");
  write(place.state, { "config.json": {}, ...content });
  return place;
}

const time = "2026-01-02T03:04:05+00:00";
const session = (name: string, version = "0.37.0") => ({
  ...{ session_name: name, session_id: "", created_at: time, updated_at: time, version, turns: [] },
});

Deno.test("links are not followed, whatever they lead to", async () => {
  await using place = await of({ "sessions/own.json": session("own") });
  const outside = join(place.home, "outside");
  write(outside, {
    "secret.json": session("secret"),
    "secret.md": "secret",
    "manifest.json": { name: "secret", version: "secret" },
    "roles.json": { secret: { system_prompt: "secret" } },
  });
  const links = {
    "sessions/linked.json": "secret.json",
    "skills": "",
    "memory/roles": "",
    "jobs/nightly.md": "secret.md",
    "roles.json": "roles.json",
    "plugins/linked": "",
    "eval": "",
  };
  for (const [link, target] of Object.entries(links)) {
    Deno.mkdirSync(dirname(join(place.state, link)), { recursive: true });
    Deno.symlinkSync(join(outside, target), join(place.state, link));
  }
  const report = await place.import("--apply");
  assert.deepEqual(lines(report, "imported"), ["imported session own"]);
  const written = [...files(place.path)].filter(([file]) => file.startsWith(".svc/"));
  assert.ok(written.every(([, text]) => !text.includes("secret")));
  const left = report.items.filter(({ note }) => note === "it is a link, which is not followed");
  assert.deepEqual(left.map(({ name }) => name).sort(), [
    ...["eval", "jobs/nightly.md", "linked", "memory/roles", "roles.json"],
    ...["sessions/linked.json", "skills"],
  ]);
  await Deno.rename(place.state, `${place.state}-real`);
  await Deno.symlink(`${place.state}-real`, place.state);
  const { code, notes } = await place.svc("import", "polyglav");
  assert.equal(code, 2);
  assert.match(notes[0]!, /is no folder; links are not followed/);
});

Deno.test("names that are no plain names are left out, and nothing is written outside of .svc", async () => {
  const bad = ["../evil", "..", "a/b", "", ".hidden", "__proto__", "x".repeat(300), "a\nb"];
  const listed = Object.fromEntries(
    bad.map((name) => [name, { system_prompt: "x", stages: ["x"] }]),
  );
  await using place = await of({
    "sessions/.hidden.json": session("hidden"),
    "sessions/a\nb.json": session("a"),
    "sessions/lies.json": session("../../evil"),
    "roles.json": JSON.stringify(listed).replace("{", '{"__proto__": {"system_prompt": "x"},'),
    "teams.json": Object.entries(listed).map(([name, team]) => ({ ...team, name })),
    "jobs.json": {
      jobs: [
        ...bad.map((name) => ({ name, schedule: { interval: 60 }, prompt: "x" })),
        { name: "session", schedule: { interval: 60 }, session: "../../evil" },
      ],
    },
    "fleet.json": { agents: [...bad, "fleet"].map((name) => ({ name, dir: "x" })) },
    "asks.json": [{ id: -1, question: "x", status: "pending" }, "x", null],
    "memory/roles/a\nb.md": "x",
    "skills/a b.md": "x",
  });
  write(place.user, { "providers.json": { "a/b": {}, "": {}, "a\nb": {} } });
  const before = [...files(dirname(place.path)).keys()].filter((file) => !file.includes(".svc"));
  const report = await place.import("--apply");
  assert.deepEqual(lines(report, "imported", "failed"), ["imported session lies"]);
  const after = files(dirname(place.path));
  assert.deepEqual([...after.keys()].filter((file) => !file.includes(".svc")), before);
  const lies = JSON.parse(after.get("worktree/.svc/sessions/lies.json")!);
  assert.equal(lies.session_name, "lies", "the name is that of the file");
  assert.equal(({} as { system_prompt?: string }).system_prompt, undefined);
});

Deno.test("unreadable files are named with line and column, and everything else is imported", async () => {
  await using place = await of({
    "config.json": '{\n  "mode": plan\n}',
    "jobs.json": { jobs: "x" },
    "roles.json": "[",
    "sessions/a.json": '{"session_name": "a",\n "turns": [}',
    "sessions/b.json": { ...session("b"), turns: [{ index: 1 }] },
    "skills/tone.md": "Write plainly.",
  });
  Deno.writeFileSync(join(place.state, "fleet.json"), new Uint8Array([0xff, 0xfe]));
  const { items, code } = await place.import("--apply");
  assert.equal(code, 1);
  const notes = items.map(({ kind, name, state, note }) => `${kind} ${name} ${state}: ${note}`);
  assert.deepEqual(notes.map((note) => note.trim()).sort(), [
    "file config.json unreadable: it is not valid JSON (line 2, column 11)",
    "file fleet.json unreadable: it is not UTF-8 text",
    "file jobs.json unreadable: it has no list of entries",
    "file roles.json unreadable: it is not valid JSON (line 1, column 2)",
    "session a unreadable: it is not valid JSON (line 2, column 12)",
    "session b unreadable: it is broken at turns[0]",
    "skill tone imported:",
  ]);
});

Deno.test("what imported files open has no effect until the user trusts it", async () => {
  await using place = await moved("0.37.0");
  const { openings } = await place.import("--apply");
  const ids = openings.filter(({ scope }) => scope === "local").map(({ id }) => id);
  const trust = JSON.parse((await place.untrusting("trust", "--output", "json")).out);
  assert.equal(trust.folder, false);
  assert.deepEqual(trust.openings.map(({ id }: { id: string }) => id).sort(), ids.sort());
  const get = async (key: string) => JSON.parse((await place.untrusting("config", "get", key)).out);
  assert.deepEqual(await get("mcp.servers"), []);
  assert.equal(await get("report.webhook"), "");
  const { bash, vcs } = await get("tool_permission");
  assert.deepEqual([bash, vcs], ["deny", "ask"], "what narrows counts, what widens does not");
  const run = await place.untrusting("jobs", "run", "often");
  assert.equal(run.code, 1);
  assert.match(run.notes.join("\n"), /not trusted/);
  await place.untrusting("trust", "--accept");
  assert.equal((await get("tool_permission")).vcs, "allow");
});

Deno.test("what the user's own settings open is reported, since it has effect at once", async () => {
  await using place = await of({});
  write(place.user, {
    "config.json": { tool_permission: { bash: "allow", edit: "deny" } },
  });
  const { out, notes } = await place.untrusting("import", "polyglav");
  assert.match(out, /^setting:tool_permission\.bash +global +allows the categories "bash"$/m);
  assert.doesNotMatch(out, /^setting:tool_permission\.edit/m);
  assert.ok(notes.includes("What your own settings (global) open has effect at once."));
});

Deno.test("an imported role never exceeds the configuration, as in the earlier program", async () => {
  const smith = { tool_permission: { mcp: "allow", edit: "deny" }, accepted: true };
  await using place = await of({ "roles.json": { smith } });
  write(place.user, { "roles.json": { "global-smith": smith } });
  const { openings } = await place.import("--apply");
  assert.deepEqual(openings, []);
  for (const name of ["smith", "global-smith"]) {
    const { out } = await place.untrusting("roles", "show", name, "--output", "json");
    const actions = Object.fromEntries(
      JSON.parse(out).rights.map((right: Record<string, string>) => [right.category, right.action]),
    );
    assert.deepEqual([actions.mcp, actions.edit], ["ask", "deny"], name);
  }
});

Deno.test("an imported job has no run to continue, which would need no approval", async () => {
  const running = { attempt: 1, session: "", started_at: time, phase: "backoff", next_at: time };
  const gates = { require_approval: true, status: "approved", next_run_at: time };
  await using place = await of({
    "jobs.json": {
      jobs: [{ name: "a", schedule: { interval: 60 }, prompt: "x", running, ...gates }],
    },
  });
  await place.import("--apply");
  const { jobs } = JSON.parse(await Deno.readTextFile(join(place.path, ".svc/jobs.json")));
  assert.deepEqual([jobs[0].name, jobs[0].running], ["a", undefined]);
});

Deno.test("in a worktree that is trusted as a whole, the report says that openings have effect", async () => {
  await using place = await of({ "config.json": { tool_permission: { bash: "allow" } } });
  await place.untrusting("trust", "--folder");
  const { notes } = await place.untrusting("import", "polyglav");
  assert.match(notes.at(-1)!, /trusted as a whole: what it opens has effect at once/);
});

Deno.test("a file of svc that cannot be changed fails alone", async () => {
  await using place = await of({
    "roles.json": { clerk: { system_prompt: "x" } },
    "skills/tone.md": "Write plainly.",
  });
  write(join(place.path, ".svc"), { "roles.json": "{" });
  const report = await place.import("--apply");
  assert.deepEqual(lines(report), ["failed role clerk", "imported skill tone"]);
  assert.equal(report.code, 1);
  assert.equal(Deno.readTextFileSync(join(place.path, ".svc", "roles.json")), "{");
});
