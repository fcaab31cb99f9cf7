/** What is imported means the same as in the earlier program. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { checkDocument } from "../../src/sessions/check.ts";
import { exportMarkdown } from "../../src/sessions/export.ts";
import type { SessionDocument } from "../../src/sessions/schema.ts";
import { say, startBackend } from "../support/backend.ts";
import { files, type Moved, moved, VERSIONS, write } from "./support.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

function sessionsOf(place: Moved): [name: string, document: Json][] {
  const folder = join(place.state, "sessions");
  return [...files(folder)].filter(([file]) => !/^(torn|flat)/.test(file))
    .map(([file, text]) => [file.replace(".json", ""), JSON.parse(text)]);
}

/**
 * A document of the earlier program as svc shows it (docs/import.md): without nulls and empty summaries, with code 0 for
 * none, with svc's word for a granted call, and with an end of the turn that holds the answer to a question.
 */
function expected(document: Json): Json {
  const text = JSON.stringify(
    document,
    (name, value) => name === "reasoning" ? value ?? "" : value ?? undefined,
  );
  const plain = JSON.parse(text);
  for (const error of plain.errors) error.code ||= 0;
  for (const entry of plain.permissions) if (entry.action === "grant") entry.action = "ask";
  for (const turn of plain.turns) {
    for (const part of turn.parts) if (part.summary === "") delete part.summary;
    if (turn.status === "running") Object.assign(turn, { status: "ok", ended_at: turn.started_at });
  }
  return plain;
}

Deno.test("every session loads as it was, and exports as it was [2.1]", async () => {
  for (const version of VERSIONS) {
    await using place = await moved(version);
    const sessions = sessionsOf(place);
    assert.ok(sessions.length >= 11);
    await place.import("--apply");
    for (const [name, document] of sessions) {
      const shown = await place.svc("sessions", "show", name, "--output", "json");
      assert.deepEqual(JSON.parse(shown.out), expected(document), name);
      const exported = await place.svc("export", name, "--out", "-");
      const checked = checkDocument(expected(document)) as { document: SessionDocument };
      assert.equal(exported.out, exportMarkdown(checked.document), name);
    }
    const kinds = new Set(
      sessions.flatMap(([, { turns }]) =>
        turns.flatMap(({ status, parts }: Json) => [status, ...parts.map(({ type }: Json) => type)])
      ),
    );
    const statuses = ["ok", "error", "truncated", "empty", "cancelled", "running"];
    const types = ["user", "text", "thinking", "tool", "command", "system"];
    assert.deepEqual([...kinds].sort(), [...statuses, ...types].sort());
  }
});

Deno.test("an imported session keeps its time, its id and its sub-sessions [2.1]", async () => {
  await using place = await moved("0.37.0");
  const [parent] = sessionsOf(place).find(([, { sub_sessions }]) => sub_sessions.length === 3)!;
  await place.import("--apply");
  const list = JSON.parse((await place.svc("sessions", "list", "all", "--output", "json")).out);
  const times = list.map(({ updated_at }: Json) => updated_at);
  assert.deepEqual(times, [...times].sort().reverse(), "the newest first");
  const id = parent.slice(-6);
  const shown = await place.svc("sessions", "show", `#${id}`, "--output", "json");
  const { sub_sessions } = JSON.parse(shown.out);
  for (const name of sub_sessions) {
    const sub = await place.svc("sessions", "show", name, "--output", "json");
    assert.equal(JSON.parse(sub.out).parent_id, parent);
  }
});

Deno.test("the next turn works on every imported session [2.1]", async () => {
  for (const version of VERSIONS) {
    await using backend = startBackend({ replies: [say("Next.")], loop: true });
    await using place = await moved(version, backend.url);
    await place.import("--apply");
    for (const key of ["report.webhook", "mcp.servers"]) await place.svc("config", "unset", key);
    for (const [name, document] of sessionsOf(place)) {
      const first = backend.chats.length;
      const run = await place.svc("run", "--session-id", name, "-p", "Go on.");
      assert.equal(run.code, 0, run.notes.join("\n"));
      assert.equal(JSON.parse(run.out).content, "Next.");
      const sent = JSON.stringify(backend.chats[first].messages);
      const compacted = document.turns.flatMap(({ parts }: Json) => parts)
        .find(({ summary }: Json) => summary);
      const text = compacted?.summary ?? document.turns.at(0).parts[0].text.split("\n")[0];
      if (document.turns[0].status === "ok") assert.ok(sent.includes(text), `${name}: ${text}`);
      if (compacted === undefined) continue;
      assert.ok(!sent.includes("Hello."), "the summary stands for the first turns");
      assert.ok(sent.includes("Three."), "the turns after it are sent");
    }
  }
});

Deno.test("imported jobs run, with their history and their run memory [2.6]", async () => {
  for (const version of VERSIONS) {
    await using backend = startBackend({ replies: [say("Counted.")], loop: true });
    await using place = await moved(version, backend.url);
    await place.import("--apply");
    for (const key of ["report.webhook", "mcp.servers"]) await place.svc("config", "unset", key);
    const job = async (name: string) =>
      JSON.parse((await place.svc("jobs", "show", name, "--output", "json")).out);
    assert.deepEqual((await job("often")).schedule, { interval: 60 });
    assert.equal((await job("nightly")).history.length, 1);
    assert.equal((await job("nightly")).mode, "plan");
    assert.equal((await job("nightly")).backoff, 2);
    for (const name of ["often", "nightly", "lead"]) {
      const run = await place.svc("jobs", "run", name, "--no-retry");
      assert.equal(run.code, 0, `${name}: ${run.notes.join("\n")}`);
    }
    assert.equal((await job("nightly")).history.length, 2);
    const prompts = backend.chats.map(({ messages }) => JSON.stringify(messages[0]));
    assert.ok(prompts.some((prompt) => prompt.includes("Count the files.")), "the task file");
    assert.ok(prompts.some((prompt) => prompt.includes("A summary of the conversation so far.")));
    const odd = await place.svc("jobs", "run", "odd", "--no-retry");
    assert.equal(odd.code, 1, "its mode does not exist");
    assert.match((await job("odd")).history[0].reason, /no mode "turbo"/);
  }
});

Deno.test("an imported proposed job runs once it is approved [3.1]", async () => {
  await using backend = startBackend({ replies: [say("Done.")], loop: true });
  await using place = await moved("0.49.0", backend.url);
  await place.import("--apply");
  for (const name of ["idea", "once"]) {
    assert.equal((await place.svc("jobs", "approve", name)).code, 0);
    const job = JSON.parse((await place.svc("jobs", "show", name, "--output", "json")).out);
    assert.deepEqual([job.enabled, job.status], [true, "approved"]);
  }
});

Deno.test("an imported question can be answered, and the answer is in its session [3.2]", async () => {
  for (const version of VERSIONS) {
    await using place = await moved(version);
    await place.import("--apply");
    const asks = JSON.parse((await place.svc("asks", "list", "all", "--output", "json")).out);
    const origin = JSON.parse(Deno.readTextFileSync(join(place.state, "asks.json")));
    assert.deepEqual(asks, origin);
    assert.equal((await place.svc("asks", "answer", "1", "Red.")).code, 0);
    const { out } = await place.svc("export", "door", "--out", "-");
    assert.match(out, /\[answer to parked ask #1\] Red\./);
    assert.match(out, /\[answer to parked ask #2\] Two by one\./);
  }
});

Deno.test("imported roles deny what they denied [2.12, 5.3]", async () => {
  for (const version of VERSIONS) {
    await using place = await moved(version);
    await place.import("--apply");
    const roles = JSON.parse(Deno.readTextFileSync(join(place.state, "roles.json")));
    assert.ok("checker" in roles);
    for (const [name, { tool_permission = {} }] of Object.entries<Json>(roles)) {
      const { out } = await place.svc("roles", "show", name, "--output", "json");
      const { rights, value: { tool_permission: imported } } = JSON.parse(out);
      assert.deepEqual({ ...imported, ...tool_permission }, imported);
      for (const [category, action] of Object.entries(imported)) {
        const right = rights.find((each: Json) => each.category === category);
        if (action === "deny") assert.equal(right.action, "deny", `${name}: ${category}`);
      }
    }
    const { out } = await place.svc("roles", "show", "clerk", "--output", "json");
    assert.match(out, /You keep the minutes\./);
  }
});

Deno.test("prompts of roles that are Markdown files are imported [2.12]", async () => {
  await using place = await moved("0.49.0");
  await place.import("--apply");
  const show = async (name: string) =>
    JSON.parse((await place.svc("roles", "show", name, "--output", "json")).out).value;
  const { system_prompt, description, tags, tool_permission } = await show("herald");
  assert.deepEqual([system_prompt, description, tags], [
    "You announce what was done.",
    "Announces releases",
    ["release"],
  ]);
  assert.deepEqual(tool_permission, { bash: "deny", edit: "deny" });
  assert.equal((await show("archivist")).system_prompt, "You file things.");
});

Deno.test("an imported team loops over the same stages, and skills and memories are there [2.12]", async () => {
  for (const version of VERSIONS) {
    await using place = await moved(version);
    await place.import("--apply");
    const { out } = await place.svc("teams", "show", "desk", "--output", "json");
    const { value: team } = JSON.parse(out);
    assert.deepEqual(team.stages.map(({ role }: Json) => role), ["clerk", "checker"]);
    assert.deepEqual(team.loop, { from: 1, until: 2, max_iterations: 2, verdict: "VERDICT:" });
    for (const name of ["minutes", "tone"]) {
      assert.equal((await place.svc("skills", "show", name)).code, 0);
    }
    const memory = JSON.parse((await place.svc("memory", "list", "--output", "json")).out);
    assert.deepEqual(memory.map(({ scope, name }: Json) => `${scope} ${name}`), [
      ...["role checker", "role clerk", "team desk", "job nightly", "job often"],
    ]);
    const desk = memory.find(({ name }: Json) => name === "desk");
    assert.equal(desk.text.length, "The checker wants dates. ".length * 100 - 1, "not cut");
  }
});

Deno.test("the imported roster lists its agents, with folders in the worktree [2.8]", async () => {
  await using place = await moved("0.37.0");
  await place.import("--apply");
  const { out } = await place.svc("fleet", "status", "--output", "json");
  const names = JSON.parse(out).agents.map(({ name }: Json) => name);
  assert.deepEqual(names, ["desk", "docs", "shop", "custom"]);
  const { agents } = JSON.parse(Deno.readTextFileSync(join(place.path, ".svc", "fleet.json")));
  assert.deepEqual(agents[0], {
    ...{ name: "desk", dir: "docs", enabled: true, prefer_port: 8801, max_restarts: 0 },
  });
  assert.deepEqual(agents[3].command, ["serve-it", "{port}"]);
});

Deno.test("imported settings have the same values [2.13]", async () => {
  for (const version of VERSIONS) {
    await using place = await moved(version);
    await place.import("--apply");
    const values = JSON.parse((await place.svc("config", "get")).out);
    const same: Record<string, unknown> = {
      ...{ provider: "ollama", model: "demo-1", temperature: 0.3, max_tokens: 4096 },
      ...{ compact_keep: 1, "memory.role": true, "memory.team": false, "memory.job": true },
      "tools.deny": ["web_fetch"],
      noise_tools: ["web_fetch", "list_dir"],
      session_tool_max_chars: 2000,
      "report.webhook": "https://hooks.example/report",
      mode: version === "0.37.0" ? "plan" : "build",
      modes: {
        review: {
          system_prompt: "Review only.",
          tool_permission: { edit: "deny" },
          tools: { deny: ["git_commit"] },
        },
      },
    };
    for (const [name, value] of Object.entries(same)) {
      assert.deepEqual(values[name], value, `${version}: ${name}`);
    }
    const { bash, vcs, bash_allow } = values.tool_permission;
    assert.deepEqual([bash, vcs, bash_allow], ["deny", "allow", ["ls"]]);
    const plugins = version === "0.37.0" ? 14 : 15; // there, all of the earlier program; here, the default
    assert.equal(values.plugins.length, plugins);
    assert.ok(values.plugins.every((name: string) => name.startsWith("svc-core-")));
  }
});

Deno.test("the modes read and write are plan and build, and a mode that only reads stays so", async () => {
  await using place = await moved("");
  const session = {
    session_name: "new",
    session_id: "",
    created_at: "",
    updated_at: "",
    turns: [],
  };
  write(place.state, {
    "config.json": {
      modes: {
        look: { cap: "read", tool_permission: { read: "allow" } },
        work: { cap: "write", tool_permission: { call: "deny", delegate: "allow" } },
      },
    },
    "sessions/new.json": { ...session, version: "0.49.0" },
    "jobs.json": {
      jobs: ["read", "write", "", "look"].map((mode, i) => ({
        ...{ name: `j${i}`, schedule: { interval: 5 }, prompt: "x", mode },
      })),
    },
    "teams.json": { desk: { stages: [{ role: "tester", mode: "read" }] } },
  });
  const report = await place.import("--apply");
  const get = async (key: string) => JSON.parse((await place.svc("config", "get", key)).out);
  assert.equal(await get("mode"), "plan", "the default of that version is read");
  const { look, work } = await get("modes");
  const denied = ["bash", "delegate", "dev", "edit", "mcp", "team", "vcs"];
  assert.deepEqual(
    denied.map((category) => look.tool_permission[category]),
    denied.map(() => "deny"),
  );
  assert.deepEqual(work.tool_permission, { delegate: "deny", team: "deny" }, "the stricter counts");
  const { jobs } = JSON.parse(Deno.readTextFileSync(join(place.path, ".svc", "jobs.json")));
  assert.deepEqual(jobs.map(({ mode }: { mode: string }) => mode), ["plan", "build", "", "look"]);
  assert.ok(report.items.every(({ kind, note }) => kind !== "job" || note === ""));
  const desk = JSON.parse((await place.svc("teams", "show", "desk", "--output", "json")).out);
  assert.equal(desk.value.stages[0].mode, "plan");
});

Deno.test("words of other versions have the same meaning in roles [2.12]", async () => {
  await using place = await moved("");
  write(place.state, {
    "roles.json": [
      { name: "old", tool_permission: { bash: false, edit: true }, unknown: 1 },
      { name: "new", tool_permission: { call: "ask" }, ask_policy: { permission: "user" } },
    ],
    "roles/new.md": '---\n# a comment\ndescription: New\ntags: ["a"]\n---\n\nYou are new.\n',
    "roles/old.md": "You are old.",
  });
  const report = await place.import("--apply");
  assert.deepEqual(report.items.map(({ note }) => note), ["without its unknown 1", ""]);
  const roles = JSON.parse(Deno.readTextFileSync(join(place.path, ".svc", "roles.json")));
  const accepted = false;
  assert.deepEqual(roles, {
    old: {
      tool_permission: { bash: "deny", edit: "allow" },
      system_prompt: "You are old.",
      accepted,
    },
    new: {
      ...{ description: "New", tags: ["a"], system_prompt: "You are new.", accepted },
      ...{ tool_permission: { delegate: "ask", team: "ask" }, ask_policy: { permission: "human" } },
    },
  });
});
