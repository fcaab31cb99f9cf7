import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { TakenIds } from "../../src/sessions/names.ts";
import { SvcError } from "../../src/platform/error.ts";
import { sessionDocument } from "../../src/sessions/schema.ts";
import type { SessionStore } from "../../src/sessions/store.ts";
import { until } from "../support/processes.ts";
import { begin, inPlace } from "./support.ts";

const fails = (code: string, exit: number) => (error: unknown) =>
  error instanceof SvcError && error.code === code && error.exit === exit && error.hint !== "";

Deno.test("a new session has its name, id, role, parent and version [2.1]", () =>
  inPlace(({ store, json }) => {
    const session = store.create("sub", { parent_id: "nightly", role: "tester" });
    session.close();
    assert.equal(session.created, true);
    assert.match(session.name, /^sub_20260102_0304\d\d_[0-9a-z]{6}$/);
    const document = json(session.name);
    assert.deepEqual({ ...document, created_at: "", updated_at: "" }, {
      session_name: session.name,
      session_id: session.id,
      created_at: "",
      updated_at: "",
      parent_id: "nightly",
      role: "tester",
      version: "0.1.0",
      sub_sessions: [],
      errors: [],
      permissions: [],
      turns: [],
    });
    assert.deepEqual(store.read(session.name), document);
    assert.match(document.created_at, /^2026-01-02T03:04:\d\d\.000Z$/);
  }));

Deno.test("an explicit session name gets no id, and the origin of a later open changes nothing [2.1]", () =>
  inPlace(({ store, json }) => {
    const first = store.open("nightly", { role: "tester" });
    assert.deepEqual([first.id, first.created], ["", true]);
    first.close();
    const again = store.open("nightly", { role: "writer", parent_id: "x" });
    assert.deepEqual([again.id, again.created], ["", false]);
    again.appendUser("hello");
    again.close();
    const { session_id, role, parent_id } = json("nightly");
    assert.deepEqual([session_id, role, parent_id], ["", "tester", ""]);
  }));

Deno.test("a new session has nothing of one whose file was removed by hand, and others keep theirs", () =>
  inPlace(({ store, file }) => {
    const kept = (name: string) => join(file(name), "..", "..", "checkpoints", "sessions", name);
    for (const name of ["nightly", "other"]) {
      store.open(name).close();
      Deno.mkdirSync(kept(name), { recursive: true });
      Deno.writeTextFileSync(join(kept(name), "content"), "x");
    }
    Deno.removeSync(file("nightly"));
    store.open("nightly").close();
    assert.throws(() => Deno.statSync(kept("nightly")), Deno.errors.NotFound);
    assert.equal(Deno.readTextFileSync(join(kept("other"), "content")), "x");
  }));

Deno.test("the role of a session is known when its turns are damaged, and its file was written elsewhere [2.1]", () =>
  inPlace(({ store, json, file }) => {
    store.open("own", { role: "tester", parent_id: "up" }).close();
    Deno.writeTextFileSync(file("other"), JSON.stringify(json("own"), null, 2));
    Deno.writeTextFileSync(file("own"), `${Deno.readTextFileSync(file("own"))}}`);
    for (const name of ["own", "other"]) {
      const { role, parent_id } = store.origin(name) ?? {};
      assert.deepEqual([role, parent_id], ["tester", "up"], name);
    }
    Deno.writeTextFileSync(file("none"), "{");
    assert.deepEqual([store.origin("none"), store.origin("missing")], [undefined, undefined]);
  }));

Deno.test("the version of a session is set once, and not added to an older file [2.1, 9]", () =>
  inPlace(({ store, json, file }) => {
    store.open("now").close();
    const { version: _, ...older } = json("now");
    Deno.writeTextFileSync(file("old"), JSON.stringify({ ...older, session_name: "old" }));
    Deno.writeTextFileSync(
      file("now"),
      Deno.readTextFileSync(file("now")).replace("0.1.0", "0.0.9"),
    );
    for (const name of ["now", "old"]) {
      const session = store.open(name);
      session.appendUser("hello");
      session.close();
    }
    assert.equal(json("now").version, "0.0.9");
    assert.equal("version" in json("old"), false);
    assert.equal(store.read("old")?.version, "");
  }));

Deno.test("an id that a session already has is generated again [2.1]", () =>
  inPlace(({ store, file }) => {
    Deno.writeTextFileSync(file("job_20200101_000000_000000"), "");
    const random = crypto.getRandomValues;
    let calls = 0;
    crypto.getRandomValues = (<T extends Uint8Array>(bytes: T) => {
      const value = calls++ === 0 ? 0 : 1;
      return bytes.fill(value);
    }) as typeof random;
    try {
      const session = store.create("ses");
      session.close();
      assert.equal(session.id, "111111");
    } finally {
      crypto.getRandomValues = random;
    }
  }));

Deno.test("a new session costs the same with 10,000 others, and no id is given twice", () =>
  inPlace(({ store, another, directory }) => {
    const name = (i: number) => `ses_20260101_000000_${100_000 + i}`;
    for (let i = 0; i < 10_000; i++) {
      Deno.symlinkSync("/nonexistent", `${directory}/${name(i)}.json`);
    }
    const first = store.create("ses"); // lists all sessions, once for all processes
    const counted = countCalls(["readDirSync"]);
    try {
      for (const each of [store, another()]) each.create("ses").close();
      assert.deepEqual(counted.calls, {});
    } finally {
      counted.restore();
    }
    first.close();
    assert.equal(store.remove(first.name), true);
    const ids = new TakenIds(directory);
    for (const id of ["100000", "109999", first.id]) {
      assert.equal(ids.take(id, () => assert.fail()), false, id);
    }
    assert.equal(ids.take("zzzzzz", () => assert.fail()), true);
    assert.equal(new TakenIds(directory).take("zzzzzz", () => assert.fail()), false);
  }));

Deno.test("the folder of ids is not followed when it is a link", () =>
  inPlace(({ store, directory }) => {
    const elsewhere = Deno.makeTempDirSync();
    try {
      Deno.symlinkSync(elsewhere, `${directory}/.ids`);
      assert.throws(() => store.create("ses"), fails("session_write", 1));
      assert.deepEqual([...Deno.readDirSync(elsewhere)], []);
    } finally {
      Deno.removeSync(elsewhere);
    }
  }));

Deno.test("a session is found by its id, with or without the sign, and never by a chosen name [2.1]", () =>
  inPlace(({ store, file }) => {
    for (const name of ["ses_20260101_000000_000007", "sub_20260101_000000_000008"]) {
      Deno.writeTextFileSync(file(name), "");
    }
    Deno.writeTextFileSync(file("notes_review"), "");
    assert.equal(store.findById("000007"), "ses_20260101_000000_000007");
    assert.equal(store.findById("#000008"), "sub_20260101_000000_000008");
    assert.equal(store.findById("zzzzzz"), undefined);
    assert.equal(store.findById("review"), undefined);
    assert.equal(store.findById(""), undefined);
    assert.equal(store.findById("#"), undefined);
  }));

Deno.test("listing sessions and finding one by id read the directory once and no file, with 10,000 sessions [2.1]", () =>
  inPlace(({ store, directory }) => {
    const names = Array.from({ length: 10_000 }, (_, i) => `ses_20260101_000000_${100_000 + i}`);
    for (const name of names) Deno.symlinkSync("/nonexistent", `${directory}/${name}.json`);
    const counted = countCalls(["readDirSync", "openSync", "lstatSync", "statSync"]);
    try {
      assert.deepEqual(store.list(), names);
      assert.equal(store.findById("#104242"), "ses_20260101_000000_104242");
      assert.deepEqual(counted.calls, { readDirSync: 2, lstatSync: 2 });
    } finally {
      counted.restore();
    }
  }));

Deno.test("a directory of sessions at rest is not read again, and only sessions in use are looked at [2.1]", async () =>
  await inPlace(async ({ store, another, directory, file }) => {
    const old = new Date(Date.UTC(2026, 0, 1));
    for (let i = 0; i < 100; i++) {
      Deno.writeTextFileSync(file(`ses_${i}`), "");
      Deno.utimeSync(file(`ses_${i}`), old, old);
    }
    const open = another().open("live");
    const turn = await begin(open);
    Deno.utimeSync(directory, old, old); // nothing was created since long ago
    assert.equal(store.newest()[0]?.name, "live");
    const counted = countCalls(["readDirSync", "openSync", "lstatSync", "statSync"]);
    try {
      assert.equal(store.list().length, 101);
      assert.equal(store.newest().length, 101);
      assert.deepEqual(counted.calls, { lstatSync: 4 }, "the directory twice, and two files");
    } finally {
      counted.restore();
    }
    const later = new Date(Date.now() + 60_000);
    turn.append({ type: "user", text: "x" });
    Deno.utimeSync(file("live"), later, later);
    assert.deepEqual(store.newest()[0], { name: "live", updated: later.getTime() });
    open.close();
    assert.equal(store.remove("ses_7"), true);
    assert.equal(store.list().length, 100);
    assert.ok(!store.newest().some(({ name }) => name === "ses_7"));
  }));

Deno.test("the newest sessions can be those of a prefix, and those written since a time [4.7]", () =>
  inPlace(({ store, file }) => {
    const write = (name: string, minute: number) => {
      Deno.writeTextFileSync(file(name), "");
      const time = new Date(Date.UTC(2026, 0, 1, 0, minute));
      Deno.utimeSync(file(name), time, time);
    };
    for (const [name, minute] of [["job_a", 1], ["ses_b", 2], ["job_c", 3]] as const) {
      write(name, minute);
    }
    const names = (filter = {}) => store.newest(filter).map(({ name }) => name);
    assert.deepEqual(names(), ["job_c", "ses_b", "job_a"]);
    assert.deepEqual(names({ prefix: "job_" }), ["job_c", "job_a"]);
    const since = Date.UTC(2026, 0, 1, 0, 2);
    assert.deepEqual(names({ since }), ["job_c", "ses_b"]);
    assert.deepEqual(names({ since, prefix: "job_" }), ["job_c"]);
  }));

Deno.test("sessions are listed sorted, including unreadable ones, and nothing else [2.1]", () =>
  inPlace(({ store, file, directory }) => {
    assert.deepEqual(store.list(), []);
    const open = store.open("b");
    open.appendUser("x"); // its hidden files are there now
    Deno.writeTextFileSync(file("broken"), "{");
    Deno.writeTextFileSync(file("a"), '{"messages":[]}');
    Deno.writeTextFileSync(`${directory}/notes.txt`, "");
    Deno.mkdirSync(`${directory}/folder.json`);
    assert.deepEqual(store.list(), ["a", "b", "broken"]);
    open.close();
  }));

Deno.test("a store without a directory has no sessions", () =>
  inPlace(({ store, directory }) => {
    Deno.removeSync(directory);
    assert.deepEqual(store.list(), []);
    assert.equal(store.read("x"), undefined);
    assert.equal(store.findById("000000"), undefined);
    assert.equal(store.remove("x"), false);
    store.open("x").close();
    assert.deepEqual(store.list(), ["x"]);
  }));

const OLD_FORMATS = {
  messages: { name: "x", messages: [{ role: "user", content: "hi" }] },
  unnamed: { created_at: "t", updated_at: "t", turns: [] },
};
for (const [name, content] of Object.entries(OLD_FORMATS)) {
  Deno.test(`an old session file (${name}) is unreadable, unchanged, listed, and not continued [2.1, 9]`, () =>
    inPlace(({ store, file, text, names, warnings }) => {
      const before = JSON.stringify(content);
      Deno.writeTextFileSync(file(name), before);
      assert.equal(store.read(name), undefined);
      assert.match(warnings.join(), /old format/);
      assert.throws(() => store.open(name), fails("session_unreadable", 2));
      assert.deepEqual(store.list(), [name]);
      assert.equal(text(name), before);
      assert.deepEqual(names(), [`${name}.json`]);
    }));
}

const BROKEN = {
  "cut off": '{"session_name":"x","session_id":"","turns":[',
  "not an object": "[]",
  "of a wrong shape": '{"session_name":"x","session_id":"","turns":[{"index":1}]}',
  "no text": "\xff\xfe",
};
for (const [how, content] of Object.entries(BROKEN)) {
  Deno.test(`a broken session file (${how}) causes a warning and is never overwritten [2.1]`, () =>
    inPlace(({ store, file, names, warnings }) => {
      const bytes = Uint8Array.from(content, (char) => char.charCodeAt(0));
      Deno.writeFileSync(file("x"), bytes);
      assert.equal(store.read("x"), undefined);
      assert.equal(warnings.length, 1);
      assert.throws(() => store.open("x"), fails("session_unreadable", 2));
      assert.deepEqual(Deno.readFileSync(file("x")), bytes);
      assert.deepEqual(names(), ["x.json"]);
    }));
}

Deno.test("a truncated file without its journal is not continued", () =>
  inPlace(async ({ store, file, text }) => {
    const session = store.open("x");
    const turn = await begin(session);
    turn.append({ type: "text", text: "hello" });
    turn.end("ok");
    session.close();
    const cut = text("x").slice(0, -30);
    Deno.writeTextFileSync(file("x"), cut);
    assert.throws(() => store.open("x"), fails("session_unreadable", 2));
    assert.equal(text("x"), cut);
  }));

Deno.test("a document written by hand is continued and keeps its content", () =>
  inPlace(async ({ store, file, json, names }) => {
    const t = "2025-05-05T05:05:05.123456+00:00";
    const turn = { started_at: t, ended_at: t, model: "m", provider: "p", mode: "build" };
    const before = {
      created_at: t,
      errors: [{ code: 401, message: "no 🔑", timestamp: t }],
      extra: { kept: true },
      parent_id: "",
      permissions: [],
      session_id: "",
      session_name: "hand",
      sub_sessions: ["sub_20250505_050505_aaaaaa"],
      turns: [{
        index: 1,
        status: "ok",
        ...turn,
        reasoning: false,
        note: "kept",
        parts: [{ type: "user", text: "grüß\u2028 dich", timestamp: t }],
      }],
      updated_at: t,
    };
    Deno.writeTextFileSync(file("hand"), JSON.stringify(before, null, 2));
    const untouched = store.open("hand");
    untouched.close();
    assert.equal(Deno.readTextFileSync(file("hand")), JSON.stringify(before, null, 2));

    const session = store.open("hand");
    session.recordError(0, "x");
    const turnLog = await begin(session);
    turnLog.end("empty");
    session.close();
    const after = json("hand") as unknown as typeof before & { turns: { index: number }[] };
    assert.deepEqual(after.turns[0], before.turns[0]);
    assert.equal(after.turns[1]?.index, 2);
    assert.deepEqual(after.extra, before.extra);
    assert.deepEqual(after.sub_sessions, before.sub_sessions);
    assert.deepEqual(after.errors[0], before.errors[0]);
    assert.equal(after.updated_at, t, "no part was appended");
    assert.equal(sessionDocument.safeParse(after).success, true);
    assert.deepEqual(names(), ["hand.json"]);
  }));

Deno.test("a file found with a running turn and no journal is closed as failed on open", () =>
  inPlace(({ store, file, json }) => {
    const t = "2025-05-05T05:05:05.000Z";
    const turn = { ...{ started_at: t, ended_at: "", model: "m", provider: "p", mode: "build" } };
    Deno.writeTextFileSync(
      file("x"),
      JSON.stringify({
        session_name: "x",
        session_id: "",
        created_at: t,
        updated_at: t,
        turns: [{ index: 1, status: "running", ...turn, reasoning: false, parts: [] }],
      }),
    );
    store.open("x").close();
    const { turns, errors } = json("x");
    assert.equal(turns[0]?.status, "error");
    assert.notEqual(turns[0]?.ended_at, "");
    assert.deepEqual(errors.map(({ code }) => code), [0]);
  }));

Deno.test("a session file that is a link is not followed for writing", () =>
  inPlace(({ store, directory, file }) => {
    const outside = Deno.makeTempDirSync();
    try {
      store.open("real").close();
      const target = `${outside}/target.json`;
      Deno.renameSync(file("real"), target);
      const before = Deno.readTextFileSync(target);
      Deno.symlinkSync(target, file("linked"));
      Deno.symlinkSync(`${outside}/missing.json`, file("dangling"));
      for (const name of ["linked", "dangling"]) {
        assert.throws(() => store.open(name), fails("session_write", 1));
      }
      assert.equal(Deno.readTextFileSync(target), before);

      // The hidden files next to a session are not followed either.
      const session = store.open("own");
      for (const hidden of [".own.journal", ".own.turn", ".own.json.tmp", ".own.journal.tmp"]) {
        Deno.symlinkSync(`${outside}/hidden`, `${directory}/${hidden}`);
      }
      assert.throws(() => session.appendUser("x"), fails("session_write", 1));
      session.close();
      assert.deepEqual([...Deno.readDirSync(outside)].map(({ name }) => name), ["target.json"]);

      assert.equal(store.remove("linked"), true);
      assert.equal(Deno.readTextFileSync(target), before);
    } finally {
      Deno.removeSync(outside, { recursive: true });
    }
  }));

Deno.test("an invalid name is not opened, read or removed", () =>
  inPlace(({ store, directory }) => {
    const outside = `${directory}/../${crypto.randomUUID()}`;
    Deno.writeTextFileSync(`${outside}.json`, "{}");
    try {
      const name = `../${outside.split("/").at(-1)}`;
      assert.throws(() => store.open(name), fails("session_name", 2));
      assert.equal(store.read(name), undefined);
      assert.equal(store.remove(name), false);
      assert.equal(Deno.readTextFileSync(`${outside}.json`), "{}");
    } finally {
      Deno.removeSync(`${outside}.json`);
    }
  }));

Deno.test("a removed session has no hidden files left, and its handles fail", () =>
  inPlace(async ({ store, another, names }) => {
    const session = store.open("x");
    session.appendUser("a");
    const turn = await begin(session);
    assert.throws(() => another().remove("x"), fails("session_busy", 1));
    turn.end("ok");
    assert.equal(another().remove("x"), true);
    assert.equal(another().remove("x"), false);
    assert.deepEqual(names(), []);
    assert.throws(() => session.appendUser("b"), fails("session_removed", 1));
    assert.throws(() => session.document(), fails("session_removed", 1));
    session.close();
    assert.deepEqual(names(), []);
  }));

Deno.test("a journal of a session that was deleted by hand is not applied to the next one", () =>
  inPlace(({ store, file, json }) => {
    const session = store.open("x");
    session.appendUser("old");
    Deno.removeSync(file("x"));
    session.close();
    const next = store.open("x");
    next.appendUser("new");
    next.close();
    assert.deepEqual(json("x").turns.map(({ index }) => index), [1]);
    assert.deepEqual(json("x").turns[0]?.parts[0], {
      type: "user",
      text: "new",
      timestamp: json("x").updated_at,
    });
  }));

Deno.test("a journal that does not belong to its document is set aside with a warning", () =>
  inPlace(({ store, file, json, names, warnings, text }) => {
    const session = store.open("x");
    session.appendUser("first");
    const replaced = { ...json("x"), turns: [], role: "edited" };
    // The process dies here; then someone puts another file in place.
    Deno.copyFileSync(file("x").replace("x.json", ".x.journal"), `${file("x")}.journal`);
    session.close();
    Deno.renameSync(`${file("x")}.journal`, file("x").replace("x.json", ".x.journal"));
    Deno.writeTextFileSync(file("x"), JSON.stringify(replaced));
    assert.deepEqual(store.read("x")?.role, "edited");
    assert.equal(text("x"), JSON.stringify(replaced), "reading writes nothing");
    const again = store.open("x");
    again.appendUser("second");
    again.close();
    assert.deepEqual(json("x").turns.map(({ parts }) => parts[0]?.type), ["user"]);
    assert.equal(json("x").role, "edited");
    assert.equal(names().filter((name) => /^\.x\.journal\.[0-9a-z]{6}$/.test(name)).length, 1);
    assert.match(warnings.join(), /kept as/);
  }));

function countCalls(
  names: ("readDirSync" | "openSync" | "lstatSync" | "statSync" | "readFileSync")[],
) {
  const calls: Record<string, number> = {};
  const host = Deno as unknown as Record<string, (...rest: unknown[]) => unknown>;
  const originals = names.map((name) => [name, host[name]!] as const);
  for (const [name, original] of originals) {
    host[name] = (...rest) => {
      calls[name] = (calls[name] ?? 0) + 1;
      return original(...rest);
    };
  }
  return {
    calls,
    restore() {
      for (const [name, original] of originals) host[name] = original;
    },
  };
}

Deno.test("a session appears with its first line, and what a kill at its birth left is removed after an hour", () =>
  inPlace(async ({ store, directory, clock, text, names }) => {
    const link = Deno.linkSync;
    let seen = "";
    Deno.linkSync = (from, to) => {
      assert.equal(store.list().length, 0, "nothing is there before the content is");
      link(from, to);
      seen = text("x");
    };
    try {
      store.open("x").close();
    } finally {
      Deno.linkSync = link;
    }
    assert.equal(JSON.parse(seen).session_name, "x");
    const left = [".y.json.tmp", ".y.journal.tmp", "empty.json"];
    for (const name of left) await Deno.writeTextFile(join(directory, name), "");
    const now = new Date(clock.now());
    for (const name of names()) await Deno.utime(join(directory, name), now, now);
    store.tidy();
    assert.deepEqual(names(), [...left, "x.json"].sort());
    const old = new Date(clock.now() - 2 * 3_600_000);
    for (const name of names()) await Deno.utime(join(directory, name), old, old);
    store.tidy();
    assert.deepEqual(names(), ["x.json"]);
  }));

Deno.test("a file system without links has sessions too", () =>
  inPlace(({ store, json }) => {
    const link = Deno.linkSync;
    Deno.linkSync = () => {
      throw new Deno.errors.PermissionDenied("Operation not permitted");
    };
    try {
      const session = store.create("ses");
      assert.equal(session.created, true);
      assert.equal(json(session.name).session_name, session.name);
      session.close();
      assert.equal(store.open(session.name).created, false);
    } finally {
      Deno.linkSync = link;
    }
  }));

Deno.test("the message about a damaged log has the line and the column, whatever the damage is", () =>
  inPlace(({ store, warnings, file }) => {
    const text = '{"session_name":"s",\n "session_id":"", "turns":[]}';
    const damage: [damaged: string | Uint8Array, where: string][] = [
      [text.replace(":[]", ":x"), "line 2, column 27"],
      [text.slice(0, -2), "line 2, column 28"],
      [text.replace('"s"', '"s'), "line 1, column 17"],
      [new TextEncoder().encode(text).with(17, 0xff), "line 1, column 18"],
    ];
    for (const [damaged, where] of damage) {
      const bytes = typeof damaged === "string" ? new TextEncoder().encode(damaged) : damaged;
      Deno.writeFileSync(file("s"), bytes);
      if (typeof damaged === "string") assert.equal(store.read("s"), undefined);
      assert.throws(() => store.open("s"), {
        message: new RegExp(`not valid JSON \\(${where}\\)`),
      });
    }
    assert.equal(warnings.filter((each) => /JSON \(line \d, column \d+\)/.test(each)).length, 3);
  }));

Deno.test("a session that was logged elsewhere is added once, under the name of its file [2.1]", () =>
  inPlace(({ store, json, file }) => {
    const time = "2025-01-02T03:04:05Z";
    const turn = (index: number, model: string) => ({
      ...{ index, started_at: time, ended_at: "", status: "running" as const, model, provider: "" },
      ...{ mode: "", reasoning: "", parts: [] },
    });
    const document = sessionDocument.parse({
      ...{ session_name: "../lies", session_id: "", created_at: time, updated_at: time },
      turns: [turn(1, "m"), turn(2, "")],
    });
    const name = "ses_20250102_030405_abc123";
    assert.equal(store.add(name, document), true);
    assert.equal(store.add(name, { ...document, role: "other" }), false);
    const added = json(name);
    assert.deepEqual([added.session_name, added.session_id, added.role], [name, "abc123", ""]);
    // One that a process left open has failed; the other is a message between turns.
    assert.deepEqual(added.turns.map(({ status }) => status), ["error", "ok"]);
    assert.equal(added.errors.length, 1);
    assert.equal(Deno.statSync(file(name)).mtime?.toISOString(), "2025-01-02T03:04:05.000Z");
    assert.throws(() => store.add("../lies", document), fails("session_name", 2));
  }));

/** The names of the files that `act` opens or looks for in vain. */
async function opened(act: () => unknown): Promise<string[]> {
  const { openSync } = Deno;
  const names: string[] = [];
  Deno.openSync = (path, options) => {
    names.push(basename(String(path)));
    return openSync(path, options);
  };
  try {
    await act();
  } finally {
    Deno.openSync = openSync;
  }
  return names;
}

async function turnIn(store: SessionStore, name: string): Promise<void> {
  const session = store.open(name);
  const log = await begin(session);
  log.append({ type: "user", text: "hello" });
  log.end("ok");
  await session.flush();
  session.close();
}

Deno.test("a session that stays open is not opened again, until another process has changed it", () =>
  inPlace(async ({ store, another, json, names }) => {
    await using _ = store.keepOpen(2);
    await turnIn(store, "a");
    store.origin("a");
    const next = async () => {
      store.origin("a");
      await turnIn(store, "a");
    };
    assert.deepEqual(await opened(next), [".a.turn"]);
    assert.equal(json("a").turns.length, 2);
    const other = another().open("a");
    other.appendUser("from elsewhere");
    other.close();
    assert.ok((await opened(next)).includes("a.json"));
    assert.deepEqual(store.read("a")!.turns.map(({ index }) => index), [1, 2, 3, 4]);
    store.remove("a");
    await turnIn(store, "a");
    assert.equal(json("a").turns.length, 1);
    assert.deepEqual(names(), [".a.journal", "a.json"]);
  }));

Deno.test("the sessions that were closed last stay open, for a while", () =>
  inPlace(async ({ store, clock, names }) => {
    const kept = store.keepOpen(2);
    for (const name of ["a", "b", "a", "c"]) await turnIn(store, name);
    await until(() => names().length === 5);
    assert.deepEqual(names(), [".a.journal", ".c.journal", "a.json", "b.json", "c.json"]);
    for (let i = 0; i < 10; i++) clock.now();
    clock.wake();
    await until(() => names().length === 3);
    assert.deepEqual(names(), ["a.json", "b.json", "c.json"]);
    await turnIn(store, "b");
    await kept[Symbol.asyncDispose]();
    await turnIn(store, "c");
    assert.deepEqual(names(), ["a.json", "b.json", "c.json"]);
  }));

Deno.test("a killed process that kept a session open leaves a log that the next one continues", () =>
  inPlace(async ({ store, another, json, names }) => {
    await using _ = store.keepOpen(2);
    for (let i = 0; i < 3; i++) await turnIn(store, "a");
    const next = another(); // as after kill -9: the journal is there
    assert.equal(next.read("a")!.turns.length, 3);
    await turnIn(next, "a");
    assert.equal(json("a").turns.length, 4);
    assert.deepEqual(names(), ["a.json"]);
  }));

Deno.test("a session that stays open waits for one sync a turn, and its journal repairs a power failure", () =>
  inPlace(async ({ store, another, file, json, names }) => {
    const kept = store.keepOpen(2);
    await turnIn(store, "a");
    const before = Deno.readFileSync(file("a"));
    const { syncData } = Deno.FsFile.prototype;
    let syncs = 0;
    Deno.FsFile.prototype.syncData = function () {
      syncs++;
      return syncData.call(this);
    };
    try {
      for (let i = 0; i < 3; i++) await turnIn(store, "a");
      assert.equal(syncs, 3);
    } finally {
      Deno.FsFile.prototype.syncData = syncData;
    }
    const after = json("a").turns;
    Deno.writeFileSync(file("a"), before); // what the disk may have
    assert.deepEqual(another().read("a")!.turns, after);
    another().open("a").close();
    assert.deepEqual(json("a").turns, after);
    await kept[Symbol.asyncDispose]();
    assert.deepEqual(json("a").turns, after);
    assert.deepEqual(names(), ["a.json"]);
  }));

Deno.test("the files of a new session are its owner's alone; one that is there keeps its permissions", () =>
  inPlace(async ({ directory, store, file }) => {
    /** The permissions of a session's files while a turn runs. */
    const work = async (name: string) => {
      const session = store.open(name);
      const turn = await begin(session);
      // Enough for a larger document, and for a further journal.
      for (let n = 0; n < 300; n++) turn.append({ type: "text", text: "x".repeat(10_000) });
      const modes = [...Deno.readDirSync(directory)].map((entry) => entry.name)
        .filter((each) => [`${name}.json`, `.${name}.journal`].includes(each)).sort()
        .map((each) => [each, (Deno.statSync(join(directory, each)).mode! & 0o777).toString(8)]);
      turn.end("ok");
      session.close();
      return modes;
    };
    assert.deepEqual(await work("own"), [[".own.journal", "600"], ["own.json", "600"]]);
    store.open("old").close();
    Deno.chmodSync(file("old"), 0o640);
    assert.deepEqual(await work("old"), [[".old.journal", "640"], ["old.json", "640"]]);
  }));
