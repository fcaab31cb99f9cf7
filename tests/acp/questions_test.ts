import type { RequestPermissionOutcome } from "@agentclientprotocol/sdk";
import assert from "node:assert/strict";
import { as, call, say, startBackend } from "../support/backend.ts";
import { project } from "../support/project.ts";
import { backendConfig, startEditor } from "./support.ts";

/** Answers questions in turn with the options that these words begin, or not at all for `cancel`. */
function answers(...words: string[]) {
  return (
    { options }: { options: { optionId: string; name: string }[] },
  ): RequestPermissionOutcome => {
    const word = words.shift()!;
    if (word === "cancel") return { outcome: "cancelled" };
    const chosen = options.find(({ name }) => name.startsWith(word));
    assert.ok(chosen, `${word} is none of ${options.map(({ name }) => name)}`);
    return { outcome: "selected", optionId: chosen.optionId };
  };
}

Deno.test("the editor's user allows a call once, or always what a choice covers, or rejects it", async () => {
  const run = (command: string) => call("run_command", { command });
  await using backend = startBackend([
    run("git status"),
    run("git status"),
    run("git status --short"),
    run("touch made"),
    call("file_edit", { path: "a.txt", old: "one", new: "\u202e1" }),
    say("done"),
  ]);
  const ask = { tool_permission: { edit: "ask" } };
  const files = { "a.txt": "one\n", ...backendConfig(backend.url, ask) };
  await using place = await project(files);
  await using editor = await startEditor(place.path, {
    permission: answers("Allow once", "Always allow commands that begin", "Reject", "cancel"),
  });
  const { sessionId } = await editor.session(place.path);
  assert.equal(await editor.prompt(sessionId, "work"), "end_turn");
  const [once, always, made, edit] = editor.asked;
  assert.equal(editor.asked.length, 4, "the third call needs no question");
  assert.deepEqual(once!.options.map(({ kind }) => kind), [
    "allow_once",
    "allow_always",
    "allow_always",
    "allow_always",
    "reject_once",
  ]);
  const { toolCall } = once!;
  assert.deepEqual([toolCall.title, toolCall.kind, toolCall.rawInput], [
    "$ git status",
    "execute",
    { command: "git status" },
  ]);
  assert.match(JSON.stringify(toolCall.content), /\$ git status.*set to ask/);
  const calls = editor.updates.flatMap(({ update }) =>
    update.sessionUpdate === "tool_call" ? [update.toolCallId] : []
  );
  assert.deepEqual(
    [once, always, made, edit].map((each) => each!.toolCall.toolCallId),
    [calls[0], calls[1], calls[3], calls[4]],
  );
  assert.deepEqual(edit!.toolCall.content![0], {
    type: "diff",
    path: `${place.path}/a.txt`,
    oldText: "one",
    newText: "<U+202E>1",
  });
  await assert.rejects(Deno.stat(`${place.path}/made`), Deno.errors.NotFound);
  assert.equal(await place.read("a.txt"), "one\n");
  const { permissions } = JSON.parse(await place.read(`.svc/sessions/${sessionId}.json`));
  assert.deepEqual(
    permissions.map(({ decision, scope }: Record<string, string>) => [decision, scope]),
    [
      ["granted", "once"],
      ["granted", "always"],
      ["granted", "always"],
      ["declined", undefined],
      ["declined", undefined],
    ],
  );
});

Deno.test("a question of the model is a form where the editor has forms, else a choice, else it is parked", async () => {
  const options = ["red", "blue"];
  const choice = call("ask", { question: "Which colour?", options });
  await using backend = startBackend([
    choice,
    call("ask", { question: "Which name?" }),
    say("thanks"),
    choice,
    call("ask", { question: "Which name?" }),
    say("waiting"),
  ]);
  await using place = await project(backendConfig(backend.url));
  const results = () =>
    backend.chats.at(-1).messages.filter(({ role }: { role: string }) => role === "tool")
      .map(({ content }: { content: string }) => content);
  {
    const given = [{ choice: "blue" }, { answer: "  Ada " }];
    await using editor = await startEditor(place.path, {
      capabilities: { elicitation: { form: {} } },
      elicitation: (request) => {
        assert.match(request.message, /^Which (colour|name)\?$/);
        return { action: "accept", content: given.shift()! };
      },
    });
    const { sessionId } = await editor.session(place.path);
    assert.equal(await editor.prompt(sessionId, "paint"), "end_turn");
    assert.deepEqual(results(), ["blue", "Ada"]);
  }
  await using editor = await startEditor(place.path, { permission: answers("red") });
  const { sessionId } = await editor.session(place.path);
  assert.equal(await editor.prompt(sessionId, "paint"), "end_turn");
  const [chosen, parked] = results();
  assert.equal(chosen, "red");
  assert.match(parked, /^\[parked\] Ask #1 waits for a human/);
  assert.equal(await editor.prompt(sessionId, "/asks answer 1 Grace"), "end_turn");
  assert.match(editor.said(sessionId), /Ask #1 is answered, and session .* has it/);
});

Deno.test("a question is withdrawn when its turn is cancelled or no answer comes in time", async () => {
  const run = call("run_command", { command: "touch made" });
  await using backend = startBackend([run, say("late"), run]);
  await using place = await project(backendConfig(backend.url, { confirm_timeout: 1 }));
  const waiting = Promise.withResolvers<void>();
  const withdrawn: boolean[] = [];
  await using editor = await startEditor(place.path, {
    async permission(_request, signal) {
      if (withdrawn.length === 1) waiting.resolve();
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      withdrawn.push(true);
      return { outcome: "cancelled" };
    },
  });
  const { sessionId } = await editor.session(place.path);
  assert.equal(await editor.prompt(sessionId, "one"), "end_turn");
  assert.equal(await editor.prompt(sessionId, "/config set confirm_timeout 0"), "end_turn");
  const ended = editor.prompt(sessionId, "two");
  await waiting.promise;
  await editor.agent.notify("session/cancel", { sessionId });
  assert.equal(await ended, "cancelled");
  await assert.rejects(Deno.stat(`${place.path}/made`), Deno.errors.NotFound);
});

Deno.test("a model that the settings refer to is approved by the editor's user", async () => {
  await using backend = startBackend([say("hello")]);
  await using place = await project({
    ".config/svc/providers.json": JSON.stringify({ lab: { base_url: backend.url, api_key: "k" } }),
    ".svc/config.json": JSON.stringify({ model: "lab/big" }),
  });
  await using editor = await startEditor(place.path, { permission: answers("No", "Approve") });
  const { sessionId } = await editor.session(place.path);
  await assert.rejects(editor.prompt(sessionId, "hi"), /model not approved: lab\/big/);
  assert.equal(await editor.prompt(sessionId, "hi"), "end_turn");
  assert.equal(editor.asked[1]!.toolCall.title, "Approve lab/big for use from now on?");
  assert.deepEqual(backend.chats.map(({ model }) => model), ["big"]);
});

Deno.test("the editor's user sees and approves the calls of sub-agents", async () => {
  await using backend = startBackend([
    as("YOU LEAD", call("delegate", { role: "smith", task: "make it" })),
    as("YOU FORGE", call("run_command", { command: "touch made" })),
    as("YOU FORGE", say("it is made")),
    as("YOU LEAD", say("done by others")),
  ]);
  await using place = await project({
    ...backendConfig(backend.url, {
      memory_enabled: false,
      tool_permission: { delegate: "allow" },
    }),
    ".svc/roles.json": JSON.stringify({
      chief: { system_prompt: "YOU LEAD", model: "lead" },
      smith: { system_prompt: "YOU FORGE" },
    }),
  });
  await using editor = await startEditor(place.path, { args: ["--role", "chief"] });
  const { sessionId, configOptions } = await editor.session(place.path);
  assert.equal(configOptions![1]!.currentValue, "generic-compatible/lead", "the role's");
  assert.equal(await editor.prompt(sessionId, "build"), "end_turn");
  assert.equal(editor.said(sessionId), "done by others");
  const titles = editor.updates.flatMap(({ update }) =>
    update.sessionUpdate === "tool_call" ? [[update.toolCallId, update.title]] : []
  );
  assert.deepEqual(titles, [["call-1", "delegate smith"], [
    "call-2",
    "#2 smith: $ touch made",
  ]]);
  assert.deepEqual(editor.asked.map(({ toolCall }) => toolCall.toolCallId), ["call-2"]);
  assert.equal((await Deno.stat(`${place.path}/made`)).size, 0);
  const { sessions } = await editor.agent.request("session/list", { cwd: place.path });
  assert.deepEqual(sessions.map((each) => each.sessionId), [sessionId], "not the sub-agent's");
});
