import assert from "node:assert/strict";
import { systemClock } from "../../../src/platform/clock.ts";
import type { Child } from "../../../src/plugins/api.ts";
import { noProcessesLeft } from "../../../tests/support/processes.ts";
import { project } from "../../../tests/support/project.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { Connection } from "../src/connection.ts";
import { serverSettings } from "../src/servers.ts";
import { bad, imported, noLogins, until } from "./support.ts";

Deno.test("an MCP server that exits at the probe is started again and initialized [4.3, 9]", async () => {
  await using at = await imported([bad("dies-at-probe")]);
  assert.deepEqual(await at.tools(), ["dies-at-probe.run", "dies-at-probe.other"]);
  assert.equal(await at.call("dies-at-probe.run", { text: "hi" }), "said hi");
});

Deno.test("an MCP server that never answers times out, and the prompt has the tools of the others [8]", async () => {
  await using at = await imported([bad("hang", { timeout: 0.5 }), bad("plain")]);
  assert.deepEqual(await at.tools(), ["plain.run", "plain.other"]);
  assert.match(at.warnings.join(), /^The MCP server hang is not connected: .*timed out/i);
  await at.workspace.close();
  await noProcessesLeft(at.project.path);
});

Deno.test("a server that dies in a call is reported with its last output, and restarted after a wait", async () => {
  let now = 1_000_000;
  const clock = { ...systemClock, now: () => now };
  await using at = await imported([bad("dies")], clock);
  await at.tools();
  const call = at.tool("dies.run");
  const message = await at.call("dies.run");
  assert.match(
    message,
    /^Error: the MCP server dies is gone: it closed the connection; it said: out of cheese$/,
  );
  assert.deepEqual(await at.tools(), [], "not before its wait is over");
  now += 1000;
  assert.deepEqual(await at.tools(), ["dies.run", "dies.other"]);
  await at.call("dies.run");
  now += 1000;
  assert.deepEqual(
    await at.tools(),
    ["dies.run", "dies.other"],
    "a connection that stood starts anew",
  );
  assert.notEqual(at.tool("dies.run"), call);
});

Deno.test("the wait after a failed connection doubles, up to a minute", async () => {
  let now = 0;
  const tried: number[] = [];
  await using at = await imported([{ name: "none", command: "none" }]);
  const [settings] = serverSettings(at.workspace.config).values();
  const connection = new Connection(settings!, {
    config: at.workspace.config,
    user_agent: "svc/0",
    start() {
      tried.push(now);
      throw new Error("no such program");
    },
    now: () => now,
    sleep: () => Promise.reject(new Error("nothing sleeps")),
    warn() {},
    logins: noLogins(),
  });
  for (; now < 200_000; now += 500) await connection.ready();
  const waits = tried.slice(1).map((each, n) => each - tried[n]!);
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  assert.deepEqual([connection.state, connection.problem], ["failed", "no such program"]);
});

Deno.test("a problem is reported once", async () => {
  let now = 0;
  await using at = await imported([{ name: "none", command: "/nonexistent/program" }], {
    ...systemClock,
    now: () => now,
  });
  for (; now < 10_000; now += 1000) await at.tools();
  assert.deepEqual(at.warnings, [
    "The MCP server none is not connected: The program /nonexistent/program was not found.",
  ]);
});

Deno.test("invalid messages and answers to no request are ignored", async () => {
  await using at = await imported([bad("nonsense")]);
  assert.deepEqual(await at.tools(), ["nonsense.run", "nonsense.other"]);
  assert.equal(await at.call("nonsense.run"), "said nothing");
});

Deno.test("a server that floods its output is stopped before it fills the memory", async () => {
  await using at = await imported([bad("floods"), bad("plain")]);
  const stopped = () => at.warnings.some((warning) => warning.includes("floods is not connected"));
  for (let prompt = 0; !stopped() && prompt < 20; prompt++) {
    assert.deepEqual(await at.tools(), ["plain.run", "plain.other"]);
  }
  assert.match(at.warnings.join("\n"), /floods is not connected: .*more than was requested/);
});

Deno.test("a message that is too large ends the connection, a large result is cut as any other", async () => {
  await using at = await imported([bad("huge"), bad("large")]);
  await at.tools();
  assert.match(await at.call("huge.run"), /^Error: .*a message that is too large/);
  assert.equal((await at.call("large.run")).length, 500_000, "the engine cuts it");
});

Deno.test("a request that takes longer than the timeout is cancelled at the MCP server [2.10, 8]", async () => {
  await using at = await imported([]);
  const log = `${at.project.path}/seen`;
  at.workspace.config.override("mcp.servers", [bad("slow", { timeout: 0.5 }, log)]);
  await at.tools();
  assert.equal(
    await at.call("slow.run"),
    "Error: the MCP server slow did not answer within 0.5 seconds; the request was cancelled",
  );
  await until(log, "notifications/cancelled");
});

Deno.test("a cancelled turn cancels the request", async () => {
  await using at = await imported([]);
  const log = `${at.project.path}/seen`;
  at.workspace.config.override("mcp.servers", [bad("slow", {}, log)]);
  await at.tools();
  const cancel = new AbortController();
  const call = at.call("slow.run", {}, cancel.signal);
  await until(log, "tools/call");
  cancel.abort();
  assert.match(await call, /^Error: /);
  await until(log, "notifications/cancelled");
});

Deno.test("thousands of tools, and listings without an end, are bounded", async () => {
  await using at = await imported([bad("many"), bad("endless")]);
  const tools = await at.tools();
  assert.equal(tools.filter((name) => name.startsWith("many.")).length, 500);
  assert.deepEqual(tools.filter((name) => name.startsWith("endless.")), [
    "endless.run",
    "endless.other",
  ]);
  assert.match(at.warnings.join("\n"), /many offers what cannot be used: more than 500 tools/);
});

Deno.test("hostile names, descriptions and schemas are skipped or sanitised", async () => {
  await using at = await imported([bad("hostile", { prefix: "h" })]);
  assert.deepEqual(await at.tools(), ["h.fine", "h.loose", "h.proto"]);
  const { description } = at.tool("h.fine");
  assert.match(description, /^red evil x+\.\.\.$/);
  assert.ok(description.length <= 2003);
  assert.deepEqual(at.tool("h.loose").parameters.required, []);
  assert.deepEqual(Object.keys(at.tool("h.proto").parameters.properties), ["a"]);
  const listed = await at.call("mcp_list", {});
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(listed, /[\x00-\x09\x0b-\x1f]/);
  assert.match(listed, /left out: "fine" twice, "badname" has a name that no tool can have/);
});

Deno.test("an imported tool does not replace another one with the same prefix [2.10, 4.3]", async () => {
  await using at = await imported([bad("one", { prefix: "p" }), bad("two", { prefix: "p" })]);
  assert.deepEqual(await at.tools(), ["p.run", "p.other"]);
});

Deno.test("an invalid answer or a refusal is an error of one sanitised line", async () => {
  await using at = await imported([bad("wrong"), bad("refuses")]);
  await at.tools();
  assert.match(await at.call("wrong.run"), /^Error: the MCP server wrong answered: /);
  assert.match(await at.call("refuses.run"), /^Error: the MCP server refuses answered: .*no no$/);
});

Deno.test("an MCP server gets a minimal environment and what is configured for it, in its folder [2.10, 5.1]", async () => {
  await using folder = await project();
  await using at = await imported([bad("env", { env: { TOKEN: "t" }, cwd: folder.path })]);
  await at.tools();
  const { cwd, ...environment } = JSON.parse(await at.call("env.run"));
  assert.equal(cwd, folder.path);
  const seen = Object.keys(environment);
  const allowed = ["HOME", "PATH", "TOKEN", "PWD", "OLDPWD", "SHLVL", "_"];
  const caches = ["XDG_CACHE_HOME", "DENO_DIR", "GOCACHE", "GOMODCACHE", "npm_config_cache"];
  allowed.push(...caches); // set inside a sandbox
  assert.deepEqual(seen.filter((name) => !allowed.includes(name)), []);
  assert.ok(seen.includes("TOKEN"));
});

Deno.test("a server that ignores the end of its input and SIGTERM is killed", async () => {
  await using at = await imported([]);
  const log = `${at.project.path}/seen`;
  at.workspace.config.override("mcp.servers", [bad("stays", {}, log)]);
  await at.tools();
  assert.equal(await at.call("mcp_disconnect", { name: "stays" }), "stays is disconnected");
  const seen = await Deno.readTextFile(log);
  assert.match(seen, /end of input\nSIGTERM\n$/);
  await noProcessesLeft(at.project.path);
});

Deno.test("the last output of a server does not reveal its credentials", async () => {
  await using at = await imported([bad("tells", { env: { API_KEY: "hunter2-hunter2" } })]);
  await at.tools();
  assert.match(await at.call("tells.run"), /it said: cannot log in with \(hidden\)$/);
  assert.match(await at.call("mcp_list"), /^tells {2}failed .*\(hidden\)$/);
});

Deno.test("servers that flood, hang, die and send garbage do not block the others", async () => {
  const others = ["floods", "huge", "dies", "nonsense", "wrong", "refuses"].map((kind) =>
    bad(kind)
  );
  await using at = await imported([bad("plain"), bad("slow", { timeout: 0.5 }), ...others]);
  await at.tools();
  const called = at.workspace.tools.list().map(({ name }) => name)
    .filter((name) => /^(slow|huge|dies|wrong|refuses)\.run$/.test(name));
  assert.ok(called.length >= 4, called.join());
  const many = Array.from({ length: 20 }, (_, number) => number);
  const bads = called.flatMap((name) => many.map(() => at.call(name)));
  const good = many.flatMap((number) =>
    many.map(async (more) => {
      const text = `${number}-${more}`;
      assert.equal(await at.call("plain.run", { text }), `said ${text}`);
    })
  );
  await Promise.all(good);
  for (const text of await Promise.all(bads)) assert.match(text, /^Error: the MCP server /);
  assert.deepEqual(await at.call("plain.run", { text: "still" }), "said still");
  await at.workspace.close();
  await noProcessesLeft(at.project.path);
});

Deno.test("a thousand lost connections leave one process and no other resources", async () => {
  let now = 0;
  let running = 0;
  const old: WeakRef<Child>[] = [];
  await using at = await imported([{ name: "frail", command: "frail" }]);
  const [settings] = serverSettings(at.workspace.config).values();
  const connection = new Connection(settings!, {
    config: at.workspace.config,
    user_agent: "svc/0",
    start() {
      running++;
      const child = frail(() => running--);
      old.push(new WeakRef(child));
      return Promise.resolve(child);
    },
    now: () => now,
    sleep: () => Promise.reject(new Error("nothing sleeps")),
    warn() {},
    logins: noLogins(),
  });
  const { signal } = new AbortController();
  for (let round = 0; round < 1000; round++) {
    await connection.ready();
    assert.deepEqual([connection.state, running], ["connected", 1]);
    const answer = await connection.tools[0]!.handler({}, toolContext({ worktree: "/", signal }));
    assert.equal(answer, "Error: the MCP server frail is gone: it closed the connection");
    assert.deepEqual([connection.state, running], ["failed", 0]);
    now += 1000;
  }
  // A collector that can be asked would keep nothing but the last of them.
  await new Promise((resolve) => setTimeout(resolve, 0)); // weak references hold until then
  (globalThis as { gc?: () => void }).gc?.();
  if ("gc" in globalThis) assert.equal(old.filter((each) => each.deref() !== undefined).length, 0);
  await connection.leave();
});

/** A server without a process, which ends at the first call. */
function frail(stopped: () => void): Child {
  const lines = new TransformStream<Uint8Array, Uint8Array>();
  const errors = new TransformStream<Uint8Array, Uint8Array>();
  const writer = lines.writable.getWriter();
  let over = false;
  const stop = async () => {
    if (over) return;
    over = true;
    stopped();
    await Promise.all(
      [writer.close(), errors.writable.close()].map((each) => each.catch(() => {})),
    );
  };
  const input = new WritableStream<Uint8Array>({
    write(bytes) {
      const { id, method } = JSON.parse(new TextDecoder().decode(bytes));
      const reply = (body: object) => {
        const line = JSON.stringify({ jsonrpc: "2.0", id, ...body });
        writer.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
      };
      if (method === "tools/call") writer.close().catch(() => {});
      else if (method === "initialize") {
        const serverInfo = { name: "frail", version: "1" };
        reply({
          result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo },
        });
      } else if (method === "tools/list") {
        reply({ result: { tools: [{ name: "run", inputSchema: { type: "object" } }] } });
      } else if (id !== undefined) reply({ error: { code: -32601, message: "no" } });
    },
  });
  const ended = Promise.resolve(0);
  return { pid: 1, input, output: lines.readable, errors: errors.readable, ended, stop };
}
