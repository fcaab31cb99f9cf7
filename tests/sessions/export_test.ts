import assert from "node:assert/strict";
import { exportMarkdown } from "../../src/sessions/export.ts";
import type { Part, SessionDocument } from "../../src/sessions/schema.ts";

const time = "2026-01-02T03:04:05.000Z";

function document(parts: Part[], rest: Partial<SessionDocument> = {}): SessionDocument {
  return {
    session_name: "x",
    session_id: "",
    created_at: time,
    updated_at: time,
    parent_id: "",
    role: "",
    version: "",
    sub_sessions: [],
    errors: [],
    permissions: [],
    turns: [{
      ...{ index: 1, started_at: time, ended_at: time, status: "ok", model: "m1" },
      ...{ provider: "demo", mode: "build", reasoning: "high", parts },
    }],
    ...rest,
  };
}

Deno.test("an export of a session has every kind of part, in order [4.4]", () => {
  const markdown = exportMarkdown(document([
    { type: "user", text: "Question?\nSecond line", timestamp: time },
    { type: "system", text: "Note.", timestamp: time },
    { type: "thinking", text: "Hm.", timestamp: time },
    {
      ...{ type: "tool", name: "file_read", input: { path: "a.ts" }, output: "1|text" },
      ...{ is_error: true, analysis: "Insight.", timestamp: time },
    },
    { type: "command", text: "/compact", summary: "Sum.", compact_from: 3, timestamp: time },
    { type: "text", text: "Answer.", timestamp: time },
  ]));
  const order = [
    ...["# Session `x`", "## Turn 1: ok", "model `m1`, provider `demo`, mode `build`"],
    ...["reasoning `high`", "### User", "> Question?\n> Second line", "### System note"],
    ...["> Note.", "### Thinking", "> Hm.", "### Tool `file_read`, failed"],
    ...['```json\n{\n  "path": "a.ts"\n}\n```', "> Insight.", "```\n1|text\n```", "### Command"],
    ...["```\n/compact\n```", "starts at turn 3", "> Sum.", "### Assistant", "> Answer."],
  ];
  let at = -1;
  for (const piece of order) {
    const found = markdown.indexOf(piece, at + 1);
    assert.ok(found > at, `${piece} in its place in\n${markdown}`);
    at = found;
  }
});

Deno.test("an export of a session has the errors, the permissions, and links to parent and sub-sessions [4.4]", () => {
  const markdown = exportMarkdown(document([], {
    session_id: "abc123",
    role: "tester",
    version: "0.1.0",
    parent_id: "my [plan] (v2)",
    sub_sessions: ["sub_20260102_030405_k3x9qa", "b"],
    errors: [{ code: 502, message: "Bad\n`gateway`", timestamp: time }],
    permissions: [
      { tool: "run_command", action: "deny", decision: "denied", path: "", timestamp: time },
      {
        ...{ tool: "file_write", action: "ask", decision: "granted", path: "a b.ts" },
        ...{ scope: "always", granted_by: "human", timestamp: time },
      },
    ],
  }));
  const pieces = [
    ...["- id: `#abc123`", "- role: `tester`", "- version: 0.1.0"],
    "- parent: [my \\[plan\\] (v2)](my%20%5Bplan%5D%20%28v2%29.md)",
    "- sub-sessions: [sub\\_20260102\\_030405\\_k3x9qa](sub_20260102_030405_k3x9qa.md), [b](b.md)",
    `- ${time}, code 502: \`\` Bad \`gateway\` \`\``,
    `- ${time}: \`run_command\`: deny, denied\n`,
    `- ${time}: \`file_write\` on \`a b.ts\`: ask, granted (always, by \`human\`)\n`,
  ];
  for (const piece of pieces) assert.ok(markdown.includes(piece), `${piece} in\n${markdown}`);
});

Deno.test("content cannot end the block it stands in, whatever fences it has", () => {
  const hostile = "```\n# Turn 9\n````\n~~~\n<!-- <script>\n`````json";
  const markdown = exportMarkdown(document([
    ...(["user", "text", "thinking", "system"] as const).map((type) => ({
      type,
      text: hostile,
      timestamp: time,
    })),
    { type: "command", text: hostile, timestamp: time },
    {
      ...{ type: "tool" as const, name: "a`` `b", input: { x: hostile }, output: hostile },
      ...{ is_error: false, timestamp: time },
    },
    { type: "user", text: "the end", timestamp: time },
  ]));
  // Outside of quotations and fences, none of it may appear.
  let fence = "";
  const outside: string[] = [];
  for (const line of markdown.split("\n")) {
    const ticks = /^`{3,}/.exec(line)?.[0] ?? "";
    if (fence !== "") {
      if (ticks.length >= fence.length && line === ticks) fence = "";
    } else if (ticks !== "") fence = ticks;
    else if (!line.startsWith(">")) outside.push(line);
  }
  assert.equal(fence, "", "every fence is closed");
  const headings = outside.filter((line) => line.startsWith("#"));
  assert.deepEqual(headings, [
    ...["# Session `x`", "## Turn 1: ok", "### User", "### Assistant", "### Thinking"],
    ...["### System note", "### Command", "### Tool ```a`` `b```", "### User"],
  ]);
  assert.ok(!outside.join("\n").includes("script"));
});

Deno.test("an export has no terminal control characters", () => {
  const markdown = exportMarkdown(document([
    { type: "text", text: "a\x1b[2J\x1b]0;title\x07b\u202ec\x00", timestamp: time },
  ], { errors: [{ code: 0, message: "\x1b[31mred", timestamp: time }] }));
  assert.ok(markdown.includes("> abc"));
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(markdown, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/);
});

Deno.test("a running turn has its start time", () => {
  const running = document([]);
  running.turns[0]!.ended_at = "";
  running.turns[0]!.status = "running";
  assert.match(exportMarkdown(running), /## Turn 1: running\n\nsince 2026/);
});
