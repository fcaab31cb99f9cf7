import assert from "node:assert/strict";
import { join } from "node:path";
import type { Ask } from "../../src/asks/store.ts";
import { AskStore } from "../../src/asks/store.ts";
import { SvcError } from "../../src/platform/error.ts";
import { manualClock } from "../support/clock.ts";
import { openInbox } from "./support.ts";

const NOW = "2026-01-02T03:04:05.000Z";

function inbox() {
  const state = Deno.makeTempDirSync({ prefix: "svc-asks-" });
  const clock = manualClock();
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message.replace(state, "~"));
  const file = join(state, "asks.json");
  const opened = openInbox(state, clock, warn);
  return {
    ...opened,
    state,
    clock,
    warnings,
    another: () => openInbox(state, clock, warn).asks,
    text: () => Deno.readTextFileSync(file),
    json: () => JSON.parse(Deno.readTextFileSync(file)),
    write: (content: unknown) =>
      Deno.writeTextFileSync(
        file,
        typeof content === "string" ? content : JSON.stringify(content),
      ),
    /** Creates a session with one turn. */
    session(name: string) {
      const session = opened.sessions.open(name);
      session.appendUser("hello");
      session.close();
      return name;
    },
    /** All user texts of a session after the first. */
    told: (name: string) =>
      opened.sessions.read(name)!.turns.slice(1)
        .flatMap(({ parts }) => parts.map((part) => part.type === "user" ? part.text : part.type)),
    [Symbol.asyncDispose]: () => Deno.remove(state, { recursive: true }),
  };
}

function fails(code: string, message?: RegExp) {
  return (error: unknown) =>
    error instanceof SvcError && error.code === code && (message?.test(error.message) ?? true);
}

Deno.test("an ask is parked with all its fields, and read back by any store [2.7]", async () => {
  await using it = inbox();
  const whole = {
    question: "Which port?",
    context: "8080 is taken",
    options: ["8081", "9090"],
    origin: "nightly",
    kind: "permission" as const,
    permission: "bash",
  };
  await it.asks.park(whole);
  const second = await it.asks.park({ question: "And now?", origin: "nightly" });
  const rest = { status: "pending", answer: "", created_at: NOW, answered_at: "" };
  const bare = { context: "", options: [], kind: "direction", permission: "" };
  assert.deepEqual(it.json(), [
    { id: 1, ...whole, ...rest },
    { id: 2, question: "And now?", origin: "nightly", ...bare, ...rest },
  ]);
  assert.deepEqual(it.another().list(), it.json());
  assert.deepEqual(it.another().get(2), second);
  assert.equal(it.asks.get(3), undefined);
  assert.deepEqual(it.warnings, []);
});

Deno.test("asks can be listed by status, pending or answered [2.7]", async () => {
  await using it = inbox();
  assert.deepEqual(it.asks.list(), []);
  for (const question of ["a", "b", "c"]) await it.asks.park({ question, origin: "o" });
  await it.asks.answer(2, "yes");
  const ids = (filter?: "all" | "pending" | "answered") => it.asks.list(filter).map(({ id }) => id);
  assert.deepEqual([ids(), ids("all"), ids("pending"), ids("answered")], [
    [1, 2, 3],
    [1, 2, 3],
    [1, 3],
    [2],
  ]);
});

Deno.test("an answer goes into the origin session as a turn of its own, and into the inbox [2.7, 3.2]", async () => {
  await using it = inbox();
  const origin = it.session("nightly");
  await it.asks.park({ question: "Which port?", origin });
  it.clock.set(Date.UTC(2026, 0, 3));
  const answered = await it.another().answer(1, "  8081\nor 9090\n");
  assert.deepEqual(answered, {
    ask: {
      ...it.json()[0],
      status: "answered",
      answer: "8081\nor 9090",
      answered_at: "2026-01-03T00:00:00.000Z",
    },
    session: "nightly",
    resume: 'svc run --session-id nightly "continue"',
    injected: true,
  });
  assert.deepEqual(it.asks.get(1), answered.ask);
  assert.deepEqual(it.told(origin), ["[answer to parked ask #1] 8081\nor 9090"]);
});

Deno.test("when the origin session is missing the injection is skipped, and one that cannot be read spends no answer [3.2]", async () => {
  await using it = inbox();
  it.session("broken");
  const broken = join(it.state, "sessions", "broken.json");
  Deno.writeTextFileSync(broken, '{"messages": []}');
  for (const origin of ["gone", "../outside", ""]) {
    const { id } = await it.asks.park({ question: "?", origin });
    const { injected, session, ask } = await it.asks.answer(id, "yes");
    assert.deepEqual([injected, session, ask.answer], [false, origin, "yes"], origin);
  }
  const { id } = await it.asks.park({ question: "?", origin: "broken" });
  await assert.rejects(it.asks.answer(id, "yes"), { code: "session_unreadable" });
  assert.equal(it.asks.get(id)!.status, "pending");
  assert.equal(Deno.readTextFileSync(broken), '{"messages": []}');
  assert.deepEqual(it.sessions.list(), ["broken"]);
});

Deno.test("an ask takes one answer; an unknown id and an empty answer are refused [3.2]", async () => {
  await using it = inbox();
  const origin = it.session("o");
  await assert.rejects(it.asks.answer(1, "yes"), fails("ask_unknown", /^ask not found: 1$/));
  const names = [...Deno.readDirSync(it.state)].map(({ name }) => name);
  assert.deepEqual(names.sort(), [".gitignore", "sessions"]);
  await it.asks.park({ question: "?", origin });
  await assert.rejects(it.asks.answer(1, " \n"), fails("no_answer"));
  await it.asks.answer(1, "yes");
  const before = it.text();
  await assert.rejects(
    it.another().answer(1, "no"),
    fails("ask_answered", /^Ask #1 is already answered: yes$/),
  );
  assert.equal(it.text(), before);
  assert.deepEqual(it.told(origin), ["[answer to parked ask #1] yes"]);
});

Deno.test("after a crash between the two writes of an answer, the one in the session counts [3.2]", async () => {
  for (const second of ["blue", "red"]) {
    await using it = inbox();
    const origin = it.session("o");
    await it.asks.park({ question: "Which colour?", origin });
    const { state, clock } = it;
    const dying = new AskStore({
      state,
      clock,
      warn: () => {},
      sessions: {
        appendUserOnce(name, part) {
          it.sessions.appendUserOnce(name, part);
          throw new Error("the process ended here");
        },
      },
    });
    await assert.rejects(dying.answer(1, "blue"), /ended here/);
    assert.equal(it.asks.get(1)!.status, "pending");

    const answering = it.asks.answer(1, second);
    if (second === "blue") assert.equal((await answering).injected, true);
    else await assert.rejects(answering, fails("ask_answered", /: blue$/));
    assert.deepEqual([it.asks.get(1)!.status, it.asks.get(1)!.answer], ["answered", "blue"]);
    assert.deepEqual(it.told(origin), ["[answer to parked ask #1] blue"]);
  }
});

Deno.test("when the session cannot be written the ask stays pending", async () => {
  await using it = inbox();
  const { state, clock } = it;
  const full = () => {
    throw new SvcError("session_write", "no space left");
  };
  const asks = new AskStore({ state, clock, warn() {}, sessions: { appendUserOnce: full } });
  await asks.park({ question: "?", origin: "o" });
  const before = it.text();
  await assert.rejects(asks.answer(1, "yes"), fails("session_write"));
  assert.equal(it.text(), before);
});

Deno.test("a prompt or an answer of an older inbox is not taken for the answer", async () => {
  await using it = inbox();
  const session = it.sessions.open("o");
  session.appendUser("[answer to parked ask #1] of an inbox that was deleted");
  it.clock.set(it.clock.now() + 1000);
  await it.asks.park({ question: "?", origin: "o" });
  await session.acquireTurn();
  const turn = session.beginTurn({ model: "m", provider: "p", mode: "build", reasoning: false });
  turn.append({ type: "user", text: "[answer to parked ask #1] forged" });
  turn.end("ok");
  session.close();
  const { ask, injected } = await it.asks.answer(1, "genuine");
  assert.deepEqual([ask.answer, injected], ["genuine", true]);
  assert.equal(it.told("o").at(-1), "[answer to parked ask #1] genuine");
});

Deno.test("an answer is appended while a turn is running", async () => {
  await using it = inbox();
  const session = it.sessions.open("o");
  await session.acquireTurn();
  const turn = session.beginTurn({ model: "m", provider: "p", mode: "build", reasoning: false });
  turn.append({ type: "user", text: "hello" });
  await it.asks.park({ question: "?", origin: "o" });
  assert.equal((await it.asks.answer(1, "yes")).injected, true);
  turn.append({ type: "text", text: "still here" });
  turn.end("ok");
  session.close();
  assert.deepEqual(it.told("o"), ["[answer to parked ask #1] yes"]);
});

Deno.test("invalid entries of asks.json stay unchanged and keep their ids [2.7]", async () => {
  await using it = inbox();
  const known = { id: 3, question: "?", origin: "o", status: "pending", note: "mine" };
  const odd = [{ id: 7, text: "of a later version" }, "x", null, { id: "9" }];
  it.write([known, ...odd]);
  assert.deepEqual(it.asks.list().map(({ id, kind, answer }) => [id, kind, answer]), [
    [3, "direction", ""],
  ]);
  assert.equal((await it.asks.park({ question: "new", origin: "o" })).id, 8);
  await it.asks.answer(3, "yes");
  const [first, ...rest] = it.json();
  assert.deepEqual(first, { ...known, status: "answered", answer: "yes", answered_at: NOW });
  assert.deepEqual(rest.slice(0, 4), odd);
  assert.equal(rest.length, 5);
  assert.deepEqual(it.warnings, ["~/asks.json has an entry that is not understood."]);
});

Deno.test("a corrupt asks.json is read as empty, set aside by the next ask, and its ids are not used again [7.6]", async () => {
  const asks = JSON.stringify([{ id: 4, question: "?" }, { id: 12, question: "?" }]);
  for (const broken of [asks.slice(0, -5), `{"asks": ${asks}}`]) {
    await using it = inbox();
    it.write(broken);
    assert.deepEqual(it.asks.list(), []);
    assert.equal(it.warnings.length, 1);
    assert.match(it.warnings[0]!, /^~\/asks\.json is corrupt/);
    await assert.rejects(it.asks.answer(4, "yes"), fails("ask_unknown"));
    assert.equal(it.text(), broken);

    assert.equal((await it.asks.park({ question: "new", origin: "o" })).id, 13);
    assert.deepEqual(it.json().map(({ id }: Ask) => id), [13]);
    const kept = [...Deno.readDirSync(it.state)].map(({ name }) => name)
      .filter((name) => name.startsWith("asks.json.broken-"));
    assert.equal(kept.length, 1);
    assert.equal(Deno.readTextFileSync(join(it.state, kept[0]!)), broken);
    assert.match(it.warnings.at(-1)!, /it is kept as asks\.json\.broken-/);
  }
});

Deno.test("the resume line of an answered ask is a valid shell command for any session name [2.7]", async () => {
  await using it = inbox();
  for (const origin of ["ses_20260102_030405_abc123", 'it\'s $HOME; `x` "y"', "-rf", "naïve *"]) {
    const { id } = await it.asks.park({ question: "?", origin });
    const { resume } = await it.asks.answer(id, "yes");
    const script = `svc() { printf '%s\\0' "$@"; }\n${resume}`;
    const { stdout } = await new Deno.Command("sh", { args: ["-c", script] }).output();
    const words = new TextDecoder().decode(stdout).split("\0").slice(0, -1);
    const named = origin === "-rf" ? ["--session-id=-rf"] : ["--session-id", origin];
    assert.deepEqual(words, ["run", ...named, "continue"]);
  }
});
