import assert from "node:assert/strict";
import { join } from "node:path";
import { agentCommand } from "../../src/fleet/agent_process.ts";
import { composeFile, systemdUnit } from "../../src/fleet/export.ts";
import { followLog, lastLine, tailLog } from "../../src/fleet/logs.ts";
import { findPort, portRange, PORTS } from "../../src/fleet/ports.ts";
import { probeHealth, probeVersion } from "../../src/fleet/probe.ts";
import type { AgentSnapshot } from "../../src/fleet/snapshot.ts";
import { startStatusServer } from "../../src/fleet/status.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { rotateLog } from "../../src/platform/detached.ts";
import { manualClock } from "../support/clock.ts";
import { project } from "../support/project.ts";
import { somePorts } from "./support.ts";

Deno.test("ports of agents are 8780 to 8890, or those of SVC_FLEET_PORT [4.6, 8]", () => {
  assert.deepEqual(PORTS, { first: 8780, last: 8890 });
  assert.deepEqual(portRange(""), PORTS);
  assert.deepEqual(portRange("9000"), { first: 9000, last: 9110 });
  assert.deepEqual(portRange("9000-9001"), { first: 9000, last: 9001 });
  for (const wrong of ["x", "0", "9-8", "70000", "-1"]) {
    assert.throws(() => portRange(wrong), { code: "usage" });
  }
});

Deno.test("an agent gets its prefer_port first, then a free port, then one that other agents prefer [4.6]", () => {
  const { first } = somePorts(4);
  const range = { first, last: first + 3 };
  const taken = new Set<number>();
  assert.equal(findPort(range, { prefer: first + 2, taken }), first + 2);
  assert.equal(findPort(range, { taken, wanted: new Set([first]) }), first + 1);
  const listener = Deno.listen({ hostname: "127.0.0.1", port: first });
  const everywhere = Deno.listen({ hostname: "0.0.0.0", port: first + 1 });
  assert.equal(findPort(range, { prefer: first, taken }), first + 2);
  assert.equal(findPort(range, { taken, wanted: new Set([first + 2, first + 3]) }), first + 2);
  assert.equal(findPort(range, { taken: new Set([first + 2, first + 3]) }), undefined);
  listener.close();
  everywhere.close();
});

Deno.test("ports that fetch and browsers block are not assigned", async () => {
  for (const port of [6000, 6667, 10080]) {
    await assert.rejects(fetch(`http://127.0.0.1:${port}/`), /blocked/);
    assert.equal(findPort({ first: port, last: port }, { taken: new Set() }), undefined);
    assert.notEqual(findPort(PORTS, { prefer: port, taken: new Set() }), port);
  }
});

Deno.test("a probe distinguishes a healthy agent from none, a failing, a silent and another program", async () => {
  let answer: () => Response | Promise<Response> = () => Response.json({ status: "ok" });
  const mute = Promise.withResolvers<Response>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => answer());
  const { port } = server.addr;
  assert.equal(await probeHealth(port, systemClock), undefined);
  answer = () => new Response("", { status: 503 });
  assert.equal(await probeHealth(port, systemClock), "GET /health answered 503");
  answer = () => new Response("", { status: 302, headers: { location: "http://127.0.0.1:1/" } });
  assert.equal(await probeHealth(port, systemClock), "GET /health answered 302");
  answer = () => new Response(new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(9999)) }));
  assert.equal(await probeHealth(port, systemClock), undefined, "a body without an end");
  answer = () => mute.promise;
  assert.equal(
    await probeHealth(port, manualClock()),
    "GET /health was not answered within 2 s",
  );
  mute.resolve(new Response());
  const versions: [unknown, number, string | undefined][] = [
    [{ version: "1.2.3" }, 200, undefined],
    [{ error: "a valid token is required" }, 401, undefined],
    [{ hello: "world" }, 200, "GET /version is not answered as svc does"],
  ];
  for (const [body, status, doubt] of versions) {
    answer = () => Response.json(body, { status });
    assert.equal(await probeVersion(port, systemClock, { own: false }), doubt);
    assert.equal(await probeVersion(port, systemClock, { own: true }), undefined);
  }
  await server.shutdown();
  // A connection that the kernel accepted while the listener was closed is reset instead.
  assert.match(
    await probeHealth(port, systemClock) ?? "",
    /^(nothing listens on port|Connection reset)/,
  );
});

Deno.test("a prober that was stopped reads an answer that arrived before it continued", async () => {
  const server = Deno.serve({ port: 0, onListen: () => {} }, () => new Response("well"));
  // What wakes up after more than two seconds finds its time over at once.
  const late: Clock = {
    now: () => 0,
    sleep: (ms, signal) => ms > 1000 ? Promise.resolve() : systemClock.sleep(ms, signal),
  };
  assert.equal(await probeHealth(server.addr.port, late), undefined);
  await server.shutdown();
});

Deno.test("an agent's command is svc serve with port and folder, or its own, without a shell [2.8]", () => {
  const place = { svc: ["svc"], port: 8780, dir: "/a b" };
  const command = (command?: string | string[]) => agentCommand({ name: "a", command }, place);
  const serve = ["svc", "serve", "--host", "127.0.0.1", "--port", "8780", "--path", "/a b"];
  assert.deepEqual(command(), serve);
  const json = ["--log", "json"];
  assert.deepEqual(agentCommand({ name: "a" }, { ...place, serve: json }), [...serve, ...json]);
  assert.deepEqual(command("run --port={port} '{dir}/x y'"), ["run", "--port=8780", "/a b/x y"]);
  assert.deepEqual(command(["sh", "-c", "echo $0 {port}"]), ["sh", "-c", "echo $0 8780"]);
  for (const more of ["a; b", "a | b", "a > b", "a $HOME", "a $(b)"]) {
    assert.throws(() => command(more), { code: "agent_command" }, more);
  }
});

Deno.test("fleet logs: the end of a short log includes the rotated one [4.6]", async () => {
  await using folder = await project({ "a.log": "three\nfour\n", "a.log.1": "one\ntwo\n" });
  const path = join(folder.path, "a.log");
  assert.deepEqual(tailLog(path, 1), ["four"]);
  assert.deepEqual(tailLog(path, 3), ["two", "three", "four"]);
  assert.deepEqual(tailLog(path, 0), []);
  assert.deepEqual(tailLog(join(folder.path, "none.log"), 5), []);
  await folder.write("a.log", "x\nsvc: \x1b[31mbad\x1b[0m\n\n");
  assert.equal(lastLine(path), "svc: bad");
});

Deno.test("fleet logs -f follows a log across rotations and shows each line once [4.6]", async () => {
  await using folder = await project({ "a.log": "before\n" });
  const path = join(folder.path, "a.log");
  const stop = new AbortController();
  let seen = "";
  let lines = 0;
  // After each read of the follower, the next change of the log is made.
  const clock = {
    now: () => 0,
    sleep() {
      for (let more = 0; more < 3; more++) {
        Deno.writeTextFileSync(path, `line ${++lines}\n`, { append: true });
      }
      if (lines % 2 === 0) rotateLog(path, 1);
      Deno.writeTextFileSync(path, `line ${++lines}\n`, { append: true });
      if (lines > 100) stop.abort();
      return Promise.resolve();
    },
  };
  await followLog(path, (text) => seen += text, clock, stop.signal);
  const shown = seen.split("\n").slice(0, -1);
  assert.deepEqual(shown, Array.from(shown, (_, index) => `line ${index + 1}`));
  assert.ok(shown.length >= 96);
});

const AGENT: AgentSnapshot = {
  name: "notes",
  dir: "notes",
  enabled: true,
  state: "running",
  healthy: true,
  failed_probes: 0,
  port: 8780,
  pid: 12,
  since: "",
  restarts: 3,
  failures: 1,
  retry_at: "",
  error: "",
  launched: "secret",
};

Deno.test("the supervisor answers /agents and /metrics, and rejects other hosts", async () => {
  const server = startStatusServer(0, () => [AGENT]);
  const base = `http://127.0.0.1:${server.port}`;
  const { agents } = await (await fetch(`${base}/agents`)).json();
  const { launched: _, ...shown } = AGENT;
  assert.deepEqual(agents, [shown]);
  const metrics = await (await fetch(`${base}/metrics`)).text();
  const values = metrics.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  assert.deepEqual(values, [
    'svc_fleet_agents{state="down"} 0',
    'svc_fleet_agents{state="running"} 1',
    'svc_fleet_agents{state="stopping"} 0',
    'svc_fleet_agents{state="restarting"} 0',
    'svc_fleet_agents{state="crashed"} 0',
    'svc_fleet_agent_up{agent="notes"} 1',
    'svc_fleet_agent_restarts{agent="notes"} 3',
  ]);
  const status = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${base}${path}`, init);
    await response.body?.cancel();
    return response.status;
  };
  assert.equal(await status("/health"), 200);
  assert.equal(await status("/other"), 404);
  assert.equal(await status("/agents", { method: "POST" }), 405);
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const request = "GET /agents HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
  await connection.write(new TextEncoder().encode(request));
  assert.match(await new Response(connection.readable).text(), /^HTTP\/1\.1 403 /);
  assert.throws(() => startStatusServer(server.port, () => []), { code: "address" });
  await server.stop();
});

const DEFINITIONS = [
  { name: "notes", dir: "agents/notes", enabled: true, max_restarts: 10 },
  {
    name: "own",
    dir: "/srv/o$wn",
    enabled: true,
    prefer_port: 8780,
    max_restarts: 0,
    command: "run {port} {dir}",
  },
];

Deno.test("the compose file has a service with folder, port and health check for each agent", () => {
  const text = composeFile(DEFINITIONS, "/fleet");
  const lines = text.split("\n").map((line) => line.trim());
  for (
    const line of [
      '"notes":',
      'command: ["serve", "--host", "0.0.0.0", "--port", "8781", "--path", "/work", "--insecure"]',
      'ports: ["127.0.0.1:8781:8781"]',
      '- {type: bind, source: "./agents/notes", target: "/work"}',
      'restart: "on-failure:10"',
      'test: ["CMD", "svc", "health"]',
      '"own":',
      'command: ["run", "8780", "/work"]',
      '- {type: bind, source: "/srv/o$$wn", target: "/work"}',
      'restart: "unless-stopped"',
    ]
  ) assert.ok(lines.includes(line), `${line}\n${text}`);
  assert.match(composeFile([], "/fleet"), /^services: \{\}$/m);
});

Deno.test("the systemd unit is valid, starts this svc and leaves agents to the next supervisor", async () => {
  await using folder = await project();
  const worktree = join(folder.path, "my fleet");
  await Deno.mkdir(worktree);
  const svc = ["/bin/echo", "50%", "$x", 'a"b'];
  const unit = systemdUnit({ svc, worktree, home: "/home/me" });
  assert.match(
    unit,
    new RegExp(`^ExecStart=/bin/echo 50%% "\\$\\$x" "a\\\\"b" fleet up --path "${worktree}"$`, "m"),
  );
  assert.match(unit, /^KillMode=process$/m);
  assert.match(unit, /^Restart=on-failure$/m);
  assert.match(unit, /^WantedBy=default\.target$/m);
  assert.match(systemdUnit({ svc, worktree, home: "/h", user: "me" }), /^User=me$/m);
  const file = join(folder.path, "svc-fleet.service");
  await Deno.writeTextFile(file, unit);
  const verify = new Deno.Command("systemd-analyze", { args: ["verify", "--man=no", file] });
  const result = await verify.output().catch((error) => {
    if (error instanceof Deno.errors.NotFound) return undefined; // a machine without systemd
    throw error;
  });
  const said = new TextDecoder().decode(result?.stderr);
  assert.doesNotMatch(said, /svc-fleet\.service/, said);
});
