import assert from "node:assert/strict";
import { call, type Reply, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const as = (system: string, reply: Reply): Reply => ({ ...reply, when: { system } });
const TASK = "write clock.txt with the hour of closing";
const ANSWER = "[answer to parked ask #1] UTC, all year";

/** The bundled team under its bundled leader, with prompts that the script can tell apart. */
const ROLES = {
  leader: { system_prompt: "YOU LEAD" },
  planner: { system_prompt: "YOU PLAN" },
  programmer: { system_prompt: "YOU WRITE" },
  tester: { system_prompt: "YOU TEST" },
  "code-reviewer": { system_prompt: "YOU REVIEW" },
};

Deno.test("a leader's team parks a question while no one is there; it is answered, and later turns see the answer [1]", async () => {
  await using backend = startBackend([
    as("YOU LEAD\n\nAn agent that works for you", say("CANNOT DECIDE")),
    as("YOU LEAD", call("team", { name: "programming", task: TASK })),
    as("YOU PLAN", say("write, then test")),
    as("YOU WRITE", call("file_write", { path: "clock.txt", content: "closes at 17\n" })),
    as("YOU WRITE", say("written")),
    as("YOU TEST", call("file_read", { path: "clock.txt" })),
    as("YOU TEST", call("ask", { question: "17 of which time zone?", context: "clock.txt" })),
    as("YOU TEST", say("the zone is open: ask #1")),
    as("YOU REVIEW", say("fine, save for the zone\nVERDICT: pass")),
    as("YOU LEAD", say("waits for ask #1")),
  ]);
  await using place = await project({
    ".svc/config.json": config(backend.url),
    ".svc/roles.json": JSON.stringify(ROLES),
  });
  const at = { cwd: place.path };

  // What lies on standard input is not for the run, and answers nothing.
  const first = await svc(["run", "--role", "leader", "--unattended", "-p", "close in time"], {
    ...at,
    stdin: "14\n",
  });
  assert.equal(first.code, 0, first.stderr);
  const led = JSON.parse(first.stdout);
  assert.deepEqual([led.status, led.content], ["ok", "waits for ask #1"]);
  assert.equal(await place.read("clock.txt"), "closes at 17\n");

  const read = async (session: string) =>
    JSON.parse(await place.read(`.svc/sessions/${session}.json`));
  const { sub_sessions } = await read(led.session);
  const documents = await Promise.all(sub_sessions.map(read));
  assert.deepEqual(documents.map(({ role, parent_id }) => [role, parent_id === led.session]), [
    ["planner", true],
    ["programmer", true],
    ["tester", true],
    ["code-reviewer", true],
  ]);
  const origin: string = sub_sessions[2];
  const listed = await svc(["asks", "list", "--output", "json"], at);
  const [ask, ...others] = JSON.parse(listed.stdout);
  assert.deepEqual(others, []);
  assert.deepEqual([ask.id, ask.origin, ask.kind, ask.status, ask.question], [
    1,
    origin,
    "direction",
    "pending",
    "17 of which time zone?",
  ]);

  const answered = await svc(["asks", "answer", "1", "UTC, all year", "--output", "json"], at);
  assert.equal(answered.code, 0, answered.stderr);
  const { session, injected, resume } = JSON.parse(answered.stdout);
  assert.deepEqual([session, injected], [origin, true]);
  assert.equal(resume, `svc run --session-id ${origin} "continue"`);
  assert.equal((await read(origin)).turns.at(-1).parts[0].text, ANSWER);

  await using alone = startBackend([say("UTC it is")]);
  await place.write(".svc/config.json", config(alone.url));
  const words = resume.replaceAll('"', "").split(" ").slice(1);
  const second = await svc(words, at);
  assert.equal(JSON.parse(second.stdout).session, origin, second.stderr);
  const said = alone.chats[0].messages.map(({ content }: Said) => content);
  assert.deepEqual(said.slice(-2), [ANSWER, "continue"]);

  // The leader has its team go on from the tester, who has asked and now knows.
  const id = origin.split("_").at(-1)!;
  await using again = startBackend([
    as("YOU LEAD", call("team", { name: "programming", task: TASK, resume: `#${id}` })),
    as("YOU TEST", say("17 UTC holds")),
    as("YOU REVIEW", say("VERDICT: pass")),
    as("YOU LEAD", say("closed in time")),
  ]);
  await place.write(".svc/config.json", config(again.url));
  const third = await svc(
    ["run", "--role", "leader", "--session-id", led.session, "--unattended", "go on"],
    at,
  );
  assert.equal(JSON.parse(third.stdout).content, "closed in time", third.stderr);
  const [, tested, reviewed] = again.chats;
  assert.ok(tested.messages.some(({ content }: Said) => content === ANSWER));
  assert.match(tested.messages[0].content, /YOU TEST/);
  assert.match(reviewed.messages.at(-1).content, /17 UTC holds/);
  assert.equal((await read(led.session)).sub_sessions.length, 5);
});

function config(base_url: string): string {
  return JSON.stringify({
    base_url,
    model: "test",
    memory_enabled: false,
    tool_permission: { edit: "allow", bash: "allow" },
  });
}

interface Said {
  content: string;
}
