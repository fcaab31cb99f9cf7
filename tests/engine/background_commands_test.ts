import assert from "node:assert/strict";
import { SessionCommands } from "../../src/engine/background_commands.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { sessionChanges, undo } from "../../src/engine/undo.ts";
import type { ChatMessage, WireTool } from "../../src/plugins/api.ts";
import { agent, collect, results, type TestAgent } from "../support/agent.ts";
import { as, call, calls, type Reply, say } from "../support/backend.ts";
import { repository } from "../support/git.ts";
import { noProcessesLeft, until } from "../support/processes.ts";

const config = { tool_permission: { bash: "allow" } };
const start = (command: string, more: Reply = {}) =>
  call("run_command", { command, background: true }, more);
const output = (id: number, more: Record<string, unknown> = {}) =>
  call("command_output", { id, timeout: 60, ...more });

/** Runs a command until a file is there. */
const UNTIL = "until [ -e stop ]; do sleep 0.02; done";

/** A TCP port that nothing listens on. */
function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}

/** Whether each request begins with the messages of the one before it, byte for byte. */
function assertPrefixes(it: TestAgent): void {
  const requests = it.backend.chats.map(({ messages }) =>
    messages.map((each: ChatMessage) => JSON.stringify(each))
  );
  for (const [i, messages] of requests.entries()) {
    const before = requests[i - 1] ?? [];
    assert.deepEqual(messages.slice(0, before.length), before, `request ${i + 1}`);
  }
}

/** The notes about commands in the last request. */
function notes(it: TestAgent): string[] {
  const { messages } = it.backend.chats.at(-1);
  return messages.flatMap(({ content }: ChatMessage) =>
    content?.startsWith("[background commands] ") ? [content.slice(22)] : []
  );
}

Deno.test("a person sees what is waited for, and when it did not come", async () => {
  await using it = await agent([
    start(UNTIL),
    output(1, { wait_for: "never", port: freePort(), timeout: 0.1 }),
    say("done"),
  ], { config });
  const { events } = await it.turn("go");
  const status = events.flatMap((event) => event.type === "tool_call" ? [event.status] : []).at(-1);
  assert.match(status!, /^output of command 1, until "never" and port \d+$/);
  const last = events.filter((event) => event.type === "tool_result").at(-1)!;
  assert.match(
    last.output.slice(last.details!.output_at),
    /^waited for "never" and port \d+: not there after 0\.1 seconds\n/,
  );
});

Deno.test("a model starts a server, waits for its line and its port, tests against it and stops it [4.8]", async () => {
  const port = freePort();
  const command = "sh server.sh";
  await using it = await agent([
    start(command),
    output(1, { wait_for: "ready" }),
    output(1, { port }),
    call("run_command", {
      command:
        `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3`,
    }),
    call("command_stop", { id: 1 }),
    output(1),
    output(2),
    say("done"),
  ], {
    config,
    files: {
      "server.sh": `exec ${Deno.execPath()} run --allow-net server.ts`,
      "server.ts":
        `Deno.serve({ hostname: "127.0.0.1", port: ${port}, onListen: () => console.log("ready") }, () => new Response("pong"));`,
    },
  });
  const { events, result } = await it.turn("test it");
  assert.equal(result.status, "ok");
  const [started, ready, open, asked, stopped, ended, none] = results(events);
  assert.equal(started, `$ ${command} &\ncommand 1 runs in the background`);
  assert.equal(ready, `command 1 runs: ${command}\nwaited for "ready": there\nready`);
  assert.equal(open, `command 1 runs: ${command}\nwaited for port ${port}: there\n(no new output)`);
  assert.match(asked!, /\nexit 0\nHTTP\/1.* 200 OK[^]*pong$/);
  assert.match(stopped!, /^command 1 ended with exit code 143: /);
  assert.match(ended!, /^command 1 ended with exit code 143: .*\n\(no new output\)$/);
  assert.equal(none, "Error: no command 2 runs in the background of this session");
  await noProcessesLeft(it.project.path);
  assertPrefixes(it);
});

Deno.test("the next round lists what runs in the background, and an exit code that a call has told is not repeated", async () => {
  const line = `${UNTIL}; exit 7`;
  await using it = await agent([
    start(line),
    calls([
      ["run_command", { command: "touch stop" }],
      ["command_output", { id: 1, timeout: 60 }],
    ]),
    say("done"),
    say("again"),
  ], { config });
  const { events } = await it.turn("go");
  const { content, role } = it.backend.chats[1].messages.at(-1);
  assert.deepEqual([role, content], ["system", `[background commands] Running: 1 (${line}).`]);
  assert.match(results(events).at(-1)!, /^command 1 ended with exit code 7: /);
  await it.turn("more");
  assert.deepEqual(notes(it), [`Running: 1 (${line}).`, "Running: none."]);
  assertPrefixes(it);
});

Deno.test("a list of commands is not repeated because a secret in it is masked", async () => {
  const secret = "hunter2-hunter2-hunter2";
  await using it = await agent([
    start(`: ${secret}; exec sleep 600`),
    call("list_dir", { path: "." }),
    call("list_dir", { path: "." }),
    say("done"),
  ], { config: { ...config, "report.secret": secret } });
  await it.turn("go");
  assert.deepEqual(notes(it), ["Running: 1 (: [masked]; exec sleep 600)."]);
});

Deno.test("a command that ended by itself is reported once with its exit code, to the model and the person", async () => {
  await using it = await agent([start("exit 3"), say("one"), say("two"), say("three")], { config });
  const first = await it.turn("go");
  const commands = it.workspace.commands.of(it.session.name)!;
  while (commands.running.length > 0) await new Promise((again) => setTimeout(again, 10));
  const later = [first, await it.turn("more"), await it.turn("more")];
  const notices = later.flatMap(({ events }) =>
    events.flatMap((event) => event.type === "notice" ? [event.message] : [])
  );
  assert.deepEqual(notices, ["Command 1 (exit 3) ended with exit code 3."]);
  const said = notes(it).filter((note) => note.includes("ended"));
  assert.deepEqual(said, ["Command 1 (exit 3) ended with exit code 3. Running: none."]);
  assertPrefixes(it);
});

Deno.test("command_output gives the lines since the last call, without control characters and secrets, and not more than fits", async () => {
  const secret = "hunter2-hunter2-hunter2";
  const command =
    `printf 'one\\n\\033[31mred\\033[0m ${secret}\\nhalf'; until [ -e more ]; do sleep 0.02; done; echo ' whole'; ` +
    "seq 1 200000; echo last";
  await using it = await agent([
    start(command),
    output(1, { wait_for: "half" }),
    call("run_command", { command: "touch more" }),
    output(1),
    say("done"),
  ], { config: { ...config, "report.secret": secret, tool_max_result_chars: 5000 } });
  const { events } = await it.turn("go");
  const [, first, , second] = results(events);
  assert.match(first!, /\none\nred \S+\nhalf$/);
  assert.ok(!first!.includes(secret));
  assert.match(
    second!,
    /^command 1 ended with exit code 0: .*\n\.\.\. \(\d+ lines dropped\) \.\.\.\n/,
  );
  assert.match(second!, /\n200000\nlast$/);
  assert.ok(second!.length <= 5000, String(second!.length));
});

Deno.test("a wait that is not fulfilled ends with its time, or with the command", async () => {
  await using it = await agent([
    start("echo no; exit 2"),
    output(1, { wait_for: "ready" }),
    start("exec sleep 1000"),
    output(2, { port: 1, timeout: 0.01 }),
    output(2, { port: 70000 }),
    output(2, { timeout: 0.01 }),
    say("done"),
  ], { config });
  const { events } = await it.turn("go");
  const [, died, , late, wrong, runs] = results(events);
  assert.equal(
    died,
    'command 1 ended with exit code 2: echo no; exit 2\nwaited for "ready": not there\nno',
  );
  assert.equal(
    late,
    "command 2 runs: exec sleep 1000\nwaited for port 1: not there after 0.01 seconds\n(no new output)",
  );
  assert.equal(wrong, "Error: the port is 1 to 65535");
  assert.equal(runs, "command 2 runs: exec sleep 1000\n(no new output)");
});

Deno.test("a wait for a port ends with its time when the program there accepts no connection", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0, tcpBacklog: 1 });
  const { port } = listener.addr as Deno.NetAddr;
  const waiting: Deno.TcpConn[] = [];
  try {
    for (;;) { // until the kernel takes no more of them
      const signal = AbortSignal.timeout(200);
      waiting.push(await Deno.connect({ hostname: "127.0.0.1", port, signal }));
    }
  } catch {
    // its queue is full
  }
  await using it = await agent(
    [start("exec sleep 1000"), output(1, { port, timeout: 0.01 }), say("done")],
    { config },
  );
  const { events } = await it.turn("go");
  assert.match(results(events)[1]!, /not there after 0\.01 seconds/);
  for (const each of waiting) each.close();
});

Deno.test("what commands in the background have started ends with them, with the session of a sub-agent, and with svc", async () => {
  const nested = "setsid sleep 1000 & sleep 1000 & sleep 1000";
  await using it = await agent([
    call("delegate", { role: "digger", task: "dig" }),
    as("YOU DIG", start(nested)),
    as("YOU DIG", say("dug")),
    start(nested),
    say("done"),
  ], {
    config: { tool_permission: { bash: "allow", delegate: "allow" } },
    files: { ".svc/roles.json": JSON.stringify({ digger: { system_prompt: "YOU DIG" } }) },
  });
  const { events } = await it.turn("go");
  const sub = events.find((event) => event.type === "run_started")!;
  assert.ok("session" in sub);
  assert.equal(it.workspace.commands.of(sub.session), undefined);
  assert.equal(it.workspace.commands.of(it.session.name)?.running.length, 1);
  await it.workspace.commands.close();
  assert.equal(it.workspace.commands.of(it.session.name), undefined);
  if (await it.workspace.sandbox.kind() === "bubblewrap") await noProcessesLeft(it.project.path);
});

Deno.test("a cancelled turn leaves the commands of its session running", async () => {
  await using it = await agent([
    start(UNTIL),
    call("run_command", { command: "touch here; sleep 1000" }),
    say("ok"),
  ], { config });
  const cancel = new AbortController();
  for await (const event of it.engine.turn("go", { signal: cancel.signal })) {
    if (event.type === "tool_call" && event.arguments.background !== true) cancel.abort();
  }
  assert.equal(it.workspace.commands.of(it.session.name)?.running.length, 1);
});

Deno.test("another process that continues the session says that no command runs any more", async () => {
  await using it = await agent([start(UNTIL), say("one"), say("two"), say("three")], { config });
  await it.turn("go");
  await it.workspace.commands.end(it.session.name); // as the end of svc does
  const other = it.another();
  await collect(other.turn("more"));
  await collect(other.turn("more"));
  assert.deepEqual(notes(it), [`Running: 1 (${UNTIL}).`, "Running: none."]);
  assertPrefixes(it);
});

Deno.test("where bash is denied, no command runs in the background; where it asks, one needs an approval, and looking after it none", async () => {
  const names = ({ tools }: { tools: WireTool[] }) => tools.map((tool) => tool.function.name);
  const own = ["run_command", "command_output", "command_stop"];
  const replies = () => [start("touch ran"), output(1), say("ok")];
  await using denied = await agent(replies(), { config: { tool_permission: { bash: "deny" } } });
  const refused = await denied.turn("go");
  assert.deepEqual(names(denied.backend.chats[0]).filter((name) => own.includes(name)), []);
  assert.equal(refused.result.denied.length, 2);

  await using asking = await agent(replies());
  const { result } = await asking.turn("go");
  assert.deepEqual(result.denied.map(({ tool }) => tool), ["run_command"]);
  assert.equal(asking.workspace.commands.of(asking.session.name), undefined);

  const listed = { tool_permission: { bash: "allow", bash_allow: ["echo"] } };
  await using narrowed = await agent(
    [
      calls([["run_command", { command: "touch ran", background: true }], ["run_command", {
        command: "echo yes",
        background: true,
      }]]),
      output(1),
      say("ok"),
    ],
    { config: listed },
  );
  const turn = await narrowed.turn("go");
  assert.deepEqual(turn.result.denied.map(({ tool }) => tool), ["run_command"]);
  assert.equal(results(turn.events).at(-1), "command 1 ended with exit code 0: echo yes\nyes");
  for (const it of [denied, asking, narrowed]) {
    assert.throws(() => Deno.statSync(`${it.project.path}/ran`));
  }
});

Deno.test("a session runs 8 commands in the background at most", async () => {
  const run = ["run_command", { command: "exec sleep 1000", background: true }] as [string, object];
  await using it = await agent([calls(Array(9).fill(run)), say("ok")], { config });
  const { events } = await it.turn("go");
  assert.match(results(events)[8]!, /^Error: 8 commands run in the background already/);
});

Deno.test("what a command in the background changes belongs to the turn in which it runs, and can be taken back", async () => {
  await using it = await agent([
    start("until [ -e go ]; do sleep 0.02; done; echo new > a.txt; echo written; exec sleep 1000"),
    say("one"),
    call("file_write", { path: "go", content: "" }),
    output(1, { wait_for: "written" }),
    say("two"),
  ], { config });
  await repository(it.project, ".", { "a.txt": "old\n" });
  await it.turn("go");
  await it.turn("more");
  const changes = await sessionChanges(it.workspace, { session: it.session.name, turn: 2 });
  assert.ok(changes!.turns[0]!.files.some(({ path }) => path === "a.txt"));
  await undo(it.workspace, { session: it.session.name, turn: 2 });
  assert.equal(await it.project.read("a.txt"), "old\n");
});

Deno.test("in a server, the commands of a session end when no turn has begun for 15 minutes", async () => {
  const idle = Promise.withResolvers<void>();
  const QUARTER = 15 * 60_000;
  let waits = 0;
  const clock = {
    now: () => Date.now(),
    sleep(ms: number, signal?: AbortSignal) {
      if (ms !== QUARTER) return systemClock.sleep(ms, signal);
      waits++;
      return new Promise<void>((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
        idle.promise.then(resolve);
      });
    },
  };
  await using it = await agent([start(UNTIL), say("ok")], { config, clock });
  await it.turn("go");
  const { workspace: { commands }, session: { name } } = it;
  commands.leave(name); // the end of a turn
  commands.use(name); // the next turn
  commands.leave(name);
  assert.equal(waits, 2);
  assert.equal(commands.of(name)?.running.length, 1);
  idle.resolve();
  await noProcessesLeft(it.project.path);
  assert.equal(commands.of(name), undefined);
});

Deno.test("a program waits while no call takes its output, at a million characters a second, and goes on for a call", async () => {
  await using it = await agent([]);
  const pauses: { ms: number; end: () => void }[] = [];
  const clock = {
    now: () => 0,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((end, stop) => {
        pauses.push({ ms, end });
        signal?.addEventListener("abort", stop);
      }),
  };
  const commands = new SessionCommands(it.workspace.sandbox, clock);
  const line = "for i in {1..200}; do printf '%050000d\\n' $i; echo $i >count; done; echo the end";
  const cwd = it.project.path;
  const command = await commands.start({ command: ["bash", "-c", line], cwd, line });
  let passed = 0;
  for (let paused = 1; paused <= 4; paused++) {
    await until(() => pauses.length === paused);
    const written = 50_001 * Number(await it.project.read("count"));
    // What is kept, what is in the pipe, and a piece that was read with the one that filled it.
    assert.ok(written <= passed * 1000 + 200_000 + 3 * 65_536 + 100_000, `${paused}: ${written}`);
    passed += pauses.at(-1)!.ms;
    if (paused < 4) pauses.at(-1)!.end();
  }
  const wait = { wait_for: "the end", timeout: 60 };
  const found = await command.output(wait, new AbortController().signal);
  assert.deepEqual([found.reached, found.output.endsWith("the end\n")], [true, true]);
  assert.deepEqual(pauses.length, 5, "the last one is the limit of the call");
  await commands.end();
});

Deno.test("a program that is made to wait is stopped at once", async () => {
  await using it = await agent([]);
  let pauses = 0;
  const sleep = (_: number, signal?: AbortSignal) =>
    new Promise<void>((_, stop) => {
      pauses++;
      signal?.addEventListener("abort", stop);
    });
  const commands = new SessionCommands(it.workspace.sandbox, { now: () => 0, sleep });
  const cwd = it.project.path;
  const command = await commands.start({ command: ["yes"], cwd, line: "yes" });
  await until(() => pauses > 0);
  await command.stop();
  assert.ok(command.code !== undefined);
});
