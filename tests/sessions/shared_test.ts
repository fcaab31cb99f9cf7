import assert from "node:assert/strict";
import { basename } from "node:path";
import fc from "fast-check";
import type { Session, TurnLog } from "../../src/sessions/session.ts";
import { filePostgres } from "../support/postgres.ts";
import { runs } from "../support/random.ts";
import { type Machine, machine, tables } from "./machines.ts";
import { begin, HEAD, texts } from "./support.ts";

const { needed, server } = await filePostgres();

function story(name: string, body: (url: string) => Promise<void>): void {
  Deno.test({ name, ...needed, fn: async () => await body(await server.database(tables)) });
}

/** A finished turn of one part. */
async function turn({ sessions }: Machine, name: string, text: string): Promise<void> {
  await sessions.current(name);
  const session = sessions.open(name);
  try {
    const log = await begin(session);
    log.append({ type: "user", text });
    log.end("ok");
    await session.flush();
  } finally {
    session.close();
  }
}

async function said(at: Machine, name: string): Promise<string[][]> {
  return JSON.parse(await at.text(name)).turns.map(texts);
}

story(
  "machines take the turns of a session alternately, and all have the same bytes [2.1]",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    await turn(one, "nightly", "a");
    for (const [at, text] of [[other, "b"], [one, "c"], [other, "d"]] as const) {
      await turn(at, "nightly", text);
    }
    assert.deepEqual(await said(one, "nightly"), [["a"], ["b"], ["c"], ["d"]]);
    assert.equal(await one.text("nightly"), await other.text("nightly"));
    await using third = machine(url);
    assert.equal(await third.text("nightly"), await one.text("nightly"));
  },
);

story("other machines see the parts of a turn that runs [6.2]", async (url) => {
  await using one = machine(url);
  await using other = machine(url);
  const session = one.sessions.create("ses");
  const log = await begin(session);
  log.append({ type: "user", text: "hello" });
  await session.share();
  assert.deepEqual(await said(other, session.name), [["hello"]]);
  const [summary] = await (await other.sessions.index({})).summaries();
  const { running, first_prompt } = summary!;
  assert.deepEqual({ running, first_prompt }, { running: true, first_prompt: "hello" });
  log.append({ type: "text", text: "hi" });
  log.end("ok");
  await session.flush();
  session.close();
  assert.deepEqual(await said(other, session.name), [["hello", "hi"]]);
  assert.equal(await other.sessions.locate(`#${session.id}`), session.name);
});

story(
  "an id that two machines gave to a session each is refused with the names, until one is deleted [2.1]",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    await using third = machine(url);
    const [first, second] = ["ses_20260101_000000_abc123", "job_20260202_000000_abc123"] as const;
    await turn(one, first, "hello");
    await turn(other, second, "hi");
    for (const { sessions } of [one, other, third]) {
      for (const given of ["#abc123", "abc123"]) {
        await assert.rejects(sessions.locate(given), {
          code: "ambiguous_id",
          exit: 2,
          message: `${given} is the id of 2 sessions: ${second}, ${first}.`,
        });
      }
      assert.equal(await sessions.locate(first), first);
    }
    await other.sessions.delete(first);
    for (const { sessions } of [one, other, third]) {
      await assert.rejects(sessions.locate("abc123"), { code: "session_id" });
      assert.equal(await sessions.locate("#abc123"), second);
    }
    await one.sessions.delete(second);
    await assert.rejects(third.sessions.locate("#abc123"), { code: "no_session" });
    assert.equal(await third.sessions.locate("abc123"), "abc123");
  },
);

story(
  "a process that lost its session appends nothing more, and the next one closes its turn [2.2]",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    const session = one.sessions.open("x");
    const lost = (await session.acquireTurn())!;
    const log = session.beginTurn(HEAD);
    log.append({ type: "user", text: "first" });
    await session.share();
    await one.expire();
    await turn(other, "x", "second");
    assert.equal(lost.aborted, false);
    log.append({ type: "text", text: "too late" });
    await assert.rejects(session.share(), { code: "lease_lost" });
    assert.equal(lost.reason.code, "lease_lost");
    assert.throws(() => log.append({ type: "text", text: "later" }), { code: "lease_lost" });
    assert.throws(() => log.end("cancelled"), { code: "lease_lost" });
    await assert.rejects(session.flush(), { code: "lease_lost" });
    session.close();
    const { turns, errors } = JSON.parse(await one.text("x"));
    assert.deepEqual(turns.map(texts), [["first"], ["second"]]);
    assert.deepEqual(turns.map(({ status }: { status: string }) => status), ["error", "ok"]);
    assert.match(errors[0].message, /ended before turn 1 did/);
    assert.equal(await one.text("x"), await other.text("x"));
    await turn(one, "x", "third");
    assert.deepEqual(await said(other, "x"), [["first"], ["second"], ["third"]]);
  },
);

story("a copy of other operations, or a damaged one, is written anew [2.1]", async (url) => {
  await using one = machine(url);
  await turn(one, "x", "first");
  await turn(one, "x", "second");
  const right = await one.text("x");
  const wrong: Record<string, string> = {
    "an operation that was never sent": right.replaceAll("second", "secund"),
    "another creation": right.replace(/"created_at":"2/, '"created_at":"1'),
    "a torn document": right.slice(0, -100),
    "no JSON": "x".repeat(right.length),
    "nothing": "",
  };
  for (const [what, text] of Object.entries(wrong)) {
    await using other = machine(url);
    Deno.writeTextFileSync(`${other.directory}/x.json`, text);
    assert.equal(await other.text("x"), right, what);
    Deno.writeTextFileSync(`${other.directory}/x.json`, text);
    if (what !== "nothing" && what !== "no JSON" && what !== "a torn document") {
      const session = other.sessions.open("x");
      await session.acquireTurn();
      session.close();
      assert.equal(await other.text("x"), right, `${what}, in a turn`);
    }
  }
});

story("of two machines that fight for a session one writes at a time [2.1]", async (url) => {
  await using one = machine(url);
  await using other = machine(url);
  const write = async (at: Machine, letter: string) => {
    for (let i = 0; i < 6; i++) await turn(at, "x", `${letter}${i}`);
  };
  await Promise.all([write(one, "a"), write(other, "b")]);
  const found = (await said(one, "x")).flat();
  assert.deepEqual(found.filter((text) => text.startsWith("a")), [
    "a0",
    "a1",
    "a2",
    "a3",
    "a4",
    "a5",
  ]);
  assert.deepEqual(found.filter((text) => text.startsWith("b")), [
    "b0",
    "b1",
    "b2",
    "b3",
    "b4",
    "b5",
  ]);
  assert.equal(await one.text("x"), await other.text("x"));
});

story("a turn goes on when PostgreSQL was restarted between two appends [2.1]", async (url) => {
  await using one = machine(url);
  await using other = machine(url);
  const session = one.sessions.open("x");
  const log = await begin(session);
  log.append({ type: "user", text: "before" });
  await session.share();
  await server.restart("immediate");
  log.append({ type: "text", text: "after" });
  log.end("ok");
  await session.flush();
  session.close();
  assert.deepEqual(await said(other, "x"), [["before", "after"]]);
});

story("a turn ends with one error when PostgreSQL stays away [7.2]", async (url) => {
  const one = machine(url, { timeout: 1 });
  const session = one.sessions.open("x");
  const lost = (await session.acquireTurn())!;
  const log = session.beginTurn(HEAD);
  await session.share();
  await server.stop("immediate");
  log.append({ type: "text", text: "after" });
  await assert.rejects(session.share(), { code: "store_unreachable" });
  assert.equal(lost.reason.code, "store_unreachable");
  assert.throws(() => log.end("error"), { code: "store_unreachable" });
  await server.start();
  await one.expire();
  session.close();
  await turn(one, "x", "next");
  assert.deepEqual(await said(one, "x"), [[], ["next"]]);
  await one[Symbol.asyncDispose]();
});

story(
  "what is appended outside of a turn waits for the turn of another machine [3.2]",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    const session = one.sessions.open("x");
    const log = await begin(session);
    await session.share();
    await other.sessions.current("x");
    const late = other.sessions.open("x");
    assert.throws(() => late.appendUser("not now"), { code: "lease_lost" });
    const appended = late.appending(() => late.appendUser("later"));
    log.append({ type: "user", text: "in the turn" });
    await session.appending(() => session.appendUser("between"));
    log.end("ok");
    await session.flush();
    await appended;
    late.close();
    session.close();
    assert.deepEqual(await said(one, "x"), [["in the turn"], ["between"], ["later"]]);
  },
);

story(
  "a session that one machine deletes is gone on all, and its name is free [4.7]",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    await turn(one, "x", "old");
    await other.sessions.current("x");
    const open = other.sessions.open("x");
    assert.equal(await one.sessions.delete("x"), true);
    await assert.rejects(open.acquireTurn(), { code: "session_removed" });
    open.close();
    await other.sessions.current("x");
    assert.equal(other.sessions.read("x"), undefined);
    assert.deepEqual(await other.sessions.names(), []);
    assert.equal(await one.sessions.delete("x"), false);
    await turn(other, "x", "new");
    assert.deepEqual(await said(one, "x"), [["new"]]);
    const running = other.sessions.open("x");
    await begin(running);
    await assert.rejects(one.sessions.delete("x"), { code: "session_busy" });
    running.close();
  },
);

story("a session that was added elsewhere comes to all machines as it is [4.7]", async (url) => {
  await using one = machine(url);
  await using other = machine(url);
  await turn(one, "x", "old");
  const document = one.sessions.read("x")!;
  one.sessions.add("copy", document);
  await one.sessions.publish("copy");
  assert.deepEqual(await said(other, "copy"), [["old"]]);
  const { total, names } = await other.sessions.index({ prefix: "c" });
  assert.deepEqual({ total, names }, { total: 1, names: ["copy"] });
});

story(
  "an answer from another machine is in the log after the turn that runs, once [3.2]",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    const session = one.sessions.open("x");
    const log = await begin(session);
    const { id } = await one.asks.park({ question: "Which?", origin: "x" });
    await session.share();
    const { injected } = await other.asks.answer(id, "that one");
    assert.equal(injected, true);
    await assert.rejects(one.asks.answer(id, "another"), { code: "ask_answered" });
    assert.deepEqual(await said(other, "x"), [[]]);
    log.append({ type: "text", text: "asked" });
    log.end("ok");
    await session.flush();
    session.close();
    const answer = `[answer to parked ask #${id}] that one`;
    assert.deepEqual(await said(other, "x"), [["asked"], [answer]]);
    assert.equal(await one.text("x"), await other.text("x"));
  },
);

story("an answer is in the log at once where no turn runs, in every copy [3.2]", async (url) => {
  await using one = machine(url);
  await using other = machine(url);
  await turn(one, "x", "asks");
  const { id } = await one.asks.park({ question: "Which?", origin: "x" });
  await other.asks.answer(id, "first");
  const answer = `[answer to parked ask #${id}] first`;
  assert.deepEqual(await said(one, "x"), [["asks"], [answer]]);
  const gone = await one.asks.park({ question: "Which?", origin: "none" });
  assert.equal((await other.asks.answer(gone.id, "x")).injected, false);
});

story(
  "an answer that came while its turn was killed is appended by the next one [3.2]",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    const session = one.sessions.open("x");
    await begin(session);
    await session.share();
    const { id } = await one.asks.park({ question: "Which?", origin: "x" });
    await other.asks.answer(id, "that one");
    await one.expire();
    await turn(other, "x", "next");
    const answer = `[answer to parked ask #${id}] that one`;
    assert.deepEqual(await said(other, "x"), [[], [answer], ["next"]]);
    session.close();
    assert.equal(await one.text("x"), await other.text("x"));
  },
);

story(
  "a turn loses nothing when PostgreSQL crashes at any moment of its appends [2.1]",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    const expected: string[][] = [];
    for (let i = 0; i < 4; i++) {
      const session = one.sessions.open("x");
      const log = await begin(session);
      const crash = server.restart("kill");
      for (let part = 0; part < 30; part++) {
        log.append({ type: "text", text: `${i}.${part}` });
        if (part % 3 === 0) await session.share();
      }
      log.end("ok");
      await session.flush();
      session.close();
      await crash;
      expected.push(Array.from({ length: 30 }, (_, part) => `${i}.${part}`));
    }
    assert.deepEqual(await said(other, "x"), expected);
    assert.equal(await one.text("x"), await other.text("x"));
  },
);

/** A turn with attachments, and with a tool result that the log leaves out. */
async function rich({ sessions }: Machine, name: string, texts: string[], sent: string) {
  await sessions.current(name);
  const session = sessions.open(name);
  const log = await begin(session);
  const attachments = await Promise.all(
    texts.map((text, i) =>
      session.attachments.keep({ name: `${i}.txt`, content: new TextEncoder().encode(text) })
    ),
  );
  log.append({ type: "user", text: "see", attachments });
  session.results.append({ turn: log.index, part: 1, output: "[left out]", sent });
  log.append({ type: "tool", name: "t", input: {}, output: "[left out]", is_error: false });
  return { session, log };
}

/** What a machine sends a model of a session: the texts of attachments and of left-out results. */
async function sentOf({ sessions }: Machine, name: string): Promise<(string | undefined)[]> {
  await sessions.current(name);
  const session = sessions.open(name);
  const leftOut = session.results.read();
  const found = session.document().turns.flatMap(({ index, parts }) =>
    parts.flatMap((part, place) =>
      part.type === "user"
        ? (part.attachments ?? []).map((each) => {
          const content = session.attachments.read(each);
          return content && new TextDecoder().decode(content);
        })
        : [leftOut(index, place, part)]
    )
  );
  session.close();
  return found;
}

story(
  "attachments and left-out results come to another machine with the turn that names them",
  async (url) => {
    await using one = machine(url);
    await using other = machine(url);
    const long = "ü".repeat(700_000);
    for (
      const [at, texts, sent] of [[one, ["a", long], "r1\0"], [other, ["a", "b"], "r2"]] as const
    ) {
      const { session, log } = await rich(at, "x", [...texts], sent);
      await session.share();
      log.end("ok");
      await session.flush();
      session.close();
      const expected = at === one ? ["a", long, "r1\0"] : ["a", long, "r1\0", "a", "b", "r2"];
      await using third = machine(url);
      for (const each of [one, other, third]) assert.deepEqual(await sentOf(each, "x"), expected);
    }
    assert.equal(await one.sessions.delete("x"), true);
    await other.sessions.current("x");
    for (const each of [one, other]) {
      assert.deepEqual(
        [...Deno.readDirSync(each.directory)].filter(({ name }) => /^\.x\./.test(name)),
        [],
      );
    }
    await turn(one, "x", "new");
    assert.deepEqual(await sentOf(other, "x"), []);
  },
);

story("images and the whole of long results come to another machine too", async (url) => {
  await using one = machine(url);
  await using other = machine(url);
  const session = one.sessions.open("x");
  const log = await begin(session);
  const image = await session.kept.keep({
    name: "a.png",
    media_type: "image/png",
    content: new Uint8Array([1, 2, 3]),
  });
  const texts = await Promise.all(
    ["logged ", "left out "].map((text) => session.kept.keepText(text.repeat(1000))),
  );
  const [logged, sent] = texts.map((path) =>
    `a ... (9 left out; the whole is in ${path}, for file_read and grep)`
  );
  const tool = { type: "tool" as const, name: "t", input: {}, is_error: false };
  log.append({ ...tool, output: logged!, attachments: [image] });
  session.results.append({ turn: log.index, part: 1, output: "[left out]", sent: sent! });
  log.append({ ...tool, output: "[left out]" });
  log.end("ok");
  await session.flush();
  session.close();
  await other.sessions.current("x");
  const names = [image.digest, ...texts.map((path) => basename(path))].sort();
  const kept = `${other.directory}/.x.kept`;
  assert.deepEqual(Array.from(Deno.readDirSync(kept), ({ name }) => name).sort(), names);
  for (const name of names) {
    assert.deepEqual(
      Deno.readFileSync(`${kept}/${name}`),
      Deno.readFileSync(`${one.directory}/.x.kept/${name}`),
    );
  }
  assert.equal(await one.sessions.delete("x"), true);
  await other.sessions.current("x");
  assert.throws(() => Deno.statSync(kept), Deno.errors.NotFound);
});

story("of what tools gave, the store has the newest 16 MB of a session", async (url) => {
  await using one = machine(url);
  await using other = machine(url);
  const session = one.sessions.open("x");
  const log = await begin(session);
  const digests: string[] = [];
  for (let i = 0; i < 3; i++) {
    const content = new Uint8Array(7 * 1024 * 1024).fill(i);
    const image = await session.kept.keep({ name: "a.png", media_type: "image/png", content });
    digests.push(image.digest);
    const tool = { type: "tool" as const, name: "t", input: {}, is_error: false };
    log.append({ ...tool, output: "a", attachments: [image] });
    await session.share();
  }
  log.end("ok");
  await session.flush();
  session.close();
  await other.sessions.current("x");
  const kept = Array.from(Deno.readDirSync(`${other.directory}/.x.kept`), ({ name }) => name);
  assert.deepEqual(kept.sort(), digests.slice(1).sort());
});

story("what a machine kept for a turn that another has taken over stays out", async (url) => {
  await using one = machine(url);
  await using other = machine(url);
  const { session, log } = await rich(one, "x", ["first"], "r1");
  await session.share();
  await one.expire();
  await turn(other, "x", "second");
  session.results.append({ turn: 1, part: 2, output: "[left out]", sent: "late" });
  log.append({ type: "tool", name: "t", input: {}, output: "[left out]", is_error: false });
  await assert.rejects(session.flush(), { code: "lease_lost" });
  session.close();
  for (const each of [one, other]) assert.deepEqual(await sentOf(each, "x"), ["first", "r1"]);
});

story("a session that comes into the store brings what it has kept", async (url) => {
  await using one = machine(url);
  await using other = machine(url, { project: "q" });
  const texts = Array.from({ length: 5 }, (_, i) => `${i}`.repeat(600_000));
  const { session, log } = await rich(one, "x", texts, "r1");
  log.end("ok");
  await session.flush();
  session.close();
  for (const suffix of [".results", ".attached"]) {
    const copied = await new Deno.Command("cp", {
      args: ["-r", `${one.directory}/.x${suffix}`, `${other.directory}/.x${suffix}`],
    }).output();
    assert.ok(copied.success);
  }
  Deno.copyFileSync(`${one.directory}/x.json`, `${other.directory}/x.json`);
  await other.sessions.publish("x");
  await using third = machine(url, { project: "q" });
  assert.deepEqual(await sentOf(third, "x"), [...texts, "r1"]);
});

story("the store keeps the newest of the left-out results of a session", async (url) => {
  await using one = machine(url);
  const session = one.sessions.open("x");
  const log = await begin(session);
  const sent = "x".repeat(3_000_000);
  for (let part = 0; part < 4; part++) {
    session.results.append({ turn: 1, part, output: "[left out]", sent });
    log.append({ type: "tool", name: "t", input: {}, output: "[left out]", is_error: false });
    await session.share();
  }
  log.end("ok");
  session.close();
  await using other = machine(url);
  const found = (await sentOf(other, "x")).map((text) => text?.length);
  assert.deepEqual(found, [undefined, undefined, 3_000_000, 3_000_000]);
});

/** One handle's work: what it appends, and whether another machine takes the session over before the last. */
interface Work {
  machine: number;
  appends: [kind: number, text: string][];
  stolen: boolean;
}

const work: fc.Arbitrary<Work> = fc.record({
  machine: fc.nat(2),
  appends: fc.array(
    fc.tuple(
      fc.nat(5),
      fc.oneof(
        fc.string({ unit: "binary", maxLength: 30 }),
        fc.integer({ min: 0, max: 6_000 }).map((length) => "ü".repeat(length)),
      ),
    ),
    { maxLength: 12 },
  ),
  stolen: fc.boolean(),
});

function append(session: Session, log: TurnLog, [kind, text]: [number, string]): void {
  if (kind === 0) log.append({ type: "text", text });
  if (kind === 1) {
    log.append({ type: "tool", name: text, input: { [text]: 1 }, output: text, is_error: false });
  }
  if (kind === 2) session.appendUser(text);
  if (kind === 3) session.recordError(1, text);
  if (kind === 4) {
    session.recordPermission({ tool: "t", action: "allow", decision: "granted", path: text });
  }
  if (kind === 5) session.addSubSession(text);
}

story(
  "property: rows applied on another machine give the very document, whatever was appended [2.1]",
  async (url) => {
    let count = 0;
    await using all = new AsyncDisposableStack();
    const machines = [0, 1, 2].map(() => all.use(machine(url)));
    await fc.assert(
      fc.asyncProperty(fc.array(work, { minLength: 1, maxLength: 5 }), async (steps) => {
        const name = `s${++count}`;
        for (const { machine: number, appends, stolen } of steps) {
          const at = machines[number]!;
          const next = machines[(number + 1) % 3]!;
          await at.sessions.current(name);
          const session = at.sessions.open(name);
          const log = await begin(session);
          for (const each of appends) append(session, log, each);
          if (stolen) {
            await at.expire();
            await turn(next, name, "taken over");
            assert.throws(() => {
              log.append({ type: "text", text: "late" });
              log.end("ok");
              throw Object.assign(new Error(), { code: "lease_lost" }); // seen when it is sent
            }, { code: "lease_lost" });
            await assert.rejects(session.flush(), { code: "lease_lost" });
          } else {
            log.end("ok");
            await session.flush();
          }
          session.close();
          assert.equal(await at.text(name), await next.text(name));
        }
        await using fresh = machine(url);
        assert.equal(await fresh.text(name), await machines[0]!.text(name));
      }),
      runs(40),
    );
  },
);
