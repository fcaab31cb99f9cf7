import assert from "node:assert/strict";
import fc from "fast-check";
import { basename, dirname, join } from "node:path";
import { SvcError } from "../../src/platform/error.ts";
import { checkSessionName, idOf, isSessionName, mintName } from "../../src/sessions/names.ts";
import { StepClock } from "./support.ts";

Deno.test("the name of a session contains its kind, the time in UTC and a six-character id [2.1]", () => {
  const name = mintName("job", new StepClock());
  assert.match(name, /^job_20260102_030406_[0-9a-z]{6}$/);
  assert.equal(idOf(name), name.slice(-6));
});

Deno.test("a session name that a user chose has no id [2.1]", () => {
  for (const name of ["nightly", "notes_review", "ses_1_2_abc123", "x_20260102_030405_abc123"]) {
    assert.equal(idOf(name), "");
  }
});

Deno.test("free text is the name of a session when it is a plain file name [2.1]", () => {
  for (const name of ["nightly", "Grüße an Ümit", "a.b", "日本語", "x".repeat(200), "a b", "-x"]) {
    checkSessionName(name);
  }
});

Deno.test("a name with slashes, control characters or a leading dot is rejected with exit 2", () => {
  const bad = [
    ...["", ".", "..", ".hidden", "../x", "a/b", "a\\b", "/etc/passwd", "a\0b", "a\nb", "a\x9bb"],
    ...["\ud800", "x".repeat(201), "é".repeat(101)],
  ];
  for (const name of bad) {
    assert.throws(
      () => checkSessionName(name),
      (error) => error instanceof SvcError && error.code === "session_name" && error.exit === 2,
      JSON.stringify(name),
    );
  }
});

Deno.test("no accepted name leaves its directory", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (name) => {
    fc.pre(isSessionName(name));
    const path = join("/sessions", `${name}.json`);
    assert.equal(dirname(path), "/sessions");
    assert.equal(basename(path), `${name}.json`);
  }));
});
