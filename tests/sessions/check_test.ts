import assert from "node:assert/strict";
import fc from "fast-check";
import { checkDocument } from "../../src/sessions/check.ts";
import { type SessionDocument, sessionDocument } from "../../src/sessions/schema.ts";

const time = "2026-01-02T03:04:05.000Z";
const whole = {
  session_name: "x",
  session_id: "abc123",
  created_at: time,
  updated_at: time,
  parent_id: "",
  role: "",
  version: "0.1.0",
  sub_sessions: ["sub_a"],
  errors: [{ code: 401, message: "no", timestamp: time }],
  permissions: [
    { tool: "t", action: "ask", decision: "declined", path: "", timestamp: time },
    {
      ...{ tool: "t", action: "allow", decision: "granted", path: "p", timestamp: time },
      ...{ scope: "once", granted_by: "human" },
    },
  ],
  turns: [{
    index: 1,
    started_at: time,
    ended_at: "",
    status: "running",
    model: "m",
    provider: "p",
    mode: "build",
    reasoning: false,
    parts: [
      { type: "user", text: "a", timestamp: time },
      { type: "text", text: "a", timestamp: time },
      {
        ...{ type: "thinking", text: "a", timestamp: time, round: 1 },
        continued: [{ text: 1, thinking: 0, request: "Go on" }],
      },
      { type: "system", text: "a", timestamp: time },
      { type: "command", text: "a", summary: "s", compact_from: 1, timestamp: time },
      {
        ...{ type: "command", text: "a", compact_part: 2, results_max: 0, results_since: 1 },
        ...{ results_from: 1, results_part: 3, window: 64000, timestamp: time },
      },
      {
        ...{ type: "tool", name: "n", input: {}, output: "", is_error: false, round: 2 },
        call: {
          ...{ id: "c", name: "m", arguments: "{ }", extra_content: { signature: "s" } },
          reasoning_details: [{ type: "reasoning.text" }],
        },
        timestamp: time,
      },
      {
        ...{ type: "tool", name: "n", input: { a: 1 }, output: "", is_error: true, analysis: "" },
        timestamp: time,
      },
    ],
  }],
};

/** The path of every value in the document. */
function places(value: unknown, way: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== "object" || value === null) return [way];
  const inside = Object.entries(value).flatMap(([key, child]) => places(child, [...way, key]));
  return [way, ...inside];
}

function changed(
  way: (string | number)[],
  change: (holder: Record<string, unknown>, key: string) => void,
) {
  const copy = structuredClone(whole);
  let holder = copy as unknown as Record<string, unknown>;
  for (const key of way.slice(0, -1)) holder = holder[key] as Record<string, unknown>;
  change(holder, String(way.at(-1)));
  return copy;
}

const OTHER_VALUES = [0, 1.5, -1, "", "ok", "text", "ask", "once", true, null, [], {}, [[]], "\0"];

Deno.test("a session's check and its schema agree on every change of one value [2.2]", () => {
  let refused = 0;
  const compare = (document: unknown, where: string) => {
    const checked = checkDocument(document);
    // The check has completed the document in place.
    const parsed = sessionDocument.safeParse(document);
    assert.equal(checked.kind === "document", parsed.success, where);
    if (!parsed.success) refused++;
    else if (checked.kind === "document") {
      // The check keeps unknown fields.
      assert.deepEqual(sessionDocument.parse(checked.document), parsed.data, where);
      for (const name of Object.keys(parsed.data)) assert.ok(name in checked.document, where);
    }
  };
  compare(whole, "unchanged");
  for (const way of places(whole).filter(({ length }) => length > 0)) {
    for (const value of OTHER_VALUES) {
      const document = changed(way, (holder, key) => holder[key] = value);
      compare(document, `${way.join(".")} = ${JSON.stringify(value)}`);
    }
    const without = changed(way, (holder, key) => {
      if (!Array.isArray(holder)) delete holder[key];
    });
    compare(without, `without ${way.join(".")}`);
  }
  assert.ok(refused > 300, `${refused} refused`);
});

Deno.test("a null in a session of another program counts as missing, and an error without a code has code 0 [2.1, 2.3]", () => {
  const [turn] = whole.turns;
  const [user, , , , command, tool] = turn!.parts;
  const foreign = {
    ...whole,
    parent_id: null,
    errors: [{ code: "", message: "no", timestamp: time }],
    permissions: [
      { tool: "t", action: "ask", decision: "declined", timestamp: time },
      { tool: "t", action: "ask", decision: "denied", path: null, scope: null, timestamp: time },
    ],
    turns: [{
      ...turn,
      reasoning: null,
      parts: [user, { ...tool, analysis: null }, { ...command, summary: null, compact_from: null }],
    }],
  };
  const checked = checkDocument(foreign);
  assert.equal(checked.kind, "document");
  const { document } = checked as { document: SessionDocument };
  assert.deepEqual(sessionDocument.parse(document), document);
  assert.deepEqual([document.parent_id, document.errors[0]!.code], ["", 0]);
  assert.deepEqual(document.permissions.map(({ path }) => path), [undefined, undefined]);
  assert.equal(document.turns[0]!.reasoning, "");
  assert.equal("analysis" in document.turns[0]!.parts[1]!, false);
});

Deno.test("an empty summary without compact_from is no compaction record [2.2]", () => {
  const command = { type: "command", text: "/exit", timestamp: time };
  const parts = [
    { ...command, summary: "", compact_from: null },
    { ...command, summary: "", compact_from: 1 },
  ];
  const checked = checkDocument({ ...whole, turns: [{ ...whole.turns[0], parts }] });
  const { document } = checked as { document: SessionDocument };
  assert.deepEqual(document.turns[0]!.parts, [command, {
    ...command,
    summary: "",
    compact_from: 1,
  }]);
});

Deno.test("the audit entry of a granted call of the earlier program loads as an ask that was granted [2.4]", () => {
  const granted = { tool: "edit", decision: "granted", scope: "once", granted_by: "supervisor" };
  const entry = { ...granted, action: "grant", timestamp: time };
  const checked = checkDocument({ ...whole, permissions: [entry] });
  assert.equal(checked.kind, "document");
  const { permissions } = (checked as { document: SessionDocument }).document;
  assert.deepEqual(permissions, [{ ...granted, action: "ask", timestamp: time }]);
});

Deno.test("the check never throws, and only a document passes", () => {
  fc.assert(fc.property(fc.anything({ withNullPrototype: true }), (value) => {
    assert.notEqual(checkDocument(value).kind, "document");
  }));
});

Deno.test("a session file without session_name or session_id is old, any other fault is broken [2.1]", () => {
  assert.equal(checkDocument({ messages: [] }).kind, "old");
  assert.equal(checkDocument({ turns: [], session_id: "" }).kind, "old");
  assert.equal(checkDocument({ turns: [], session_name: "" }).kind, "old");
  assert.deepEqual(checkDocument({ ...whole, turns: [{}] }), { kind: "broken", where: "turns[0]" });
  assert.deepEqual(checkDocument({ ...whole, role: 1 }), { kind: "broken", where: "role" });
  assert.equal(checkDocument([]).kind, "broken");
});
