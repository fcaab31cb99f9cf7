import assert from "node:assert/strict";
import {
  harmless,
  networkFailure,
  reportedFailure,
  statusFailure,
} from "../../src/providers/failure.ts";

const PEER = {
  name: "acme",
  url: "https://h.test/v1/chat/completions?key=1",
  model: "m1",
  api_key: "sk-secret",
  connect: "acme",
  now: () => 0,
};

// Errors of Deno that cannot be produced on a loopback socket.
const THROWN: [error: unknown, message: string][] = [
  [
    new Deno.errors.NotCapable('Requires net access to "h.test:443"'),
    "svc has no permission to open a connection to h.test.",
  ],
  [
    fetchFailed("client error (Connect): invalid peer certificate: UnknownIssuer"),
    "No secure connection to h.test of acme (UnknownIssuer).",
  ],
  [
    fetchFailed("client error (Connect): tcp connect error: Network is unreachable (os error 101)"),
    "h.test of acme is out of reach.",
  ],
  [
    fetchFailed("client error (Connect): tcp connect error: Connection timed out (os error 110)"),
    "The connection to h.test of acme timed out.",
  ],
  [
    fetchFailed("client error (SendRequest): connection error: Connection reset by peer"),
    "The connection to acme broke off.",
  ],
  [
    new TypeError("Fetch failed: Requests to port 1 are blocked"),
    "The port of h.test is a blocked one.",
  ],
  [new TypeError("something new sk-secret"), "The request to acme at h.test failed."],
  ["thrown text", "The request to acme at h.test failed."],
];

for (const [error, message] of THROWN) {
  Deno.test(`a network failure is one sentence: ${message} [6.2]`, () => {
    const failure = networkFailure(error, PEER);
    assert.equal(failure.message, message);
    assert.equal(failure.status, 0);
    assert.equal(failure.cause, undefined);
  });
}

Deno.test("the error for 404 names model and address, without the query", () => {
  const failure = statusFailure(
    { status: 404, body: JSON.stringify({ detail: "Not Found" }) },
    PEER,
  );
  assert.equal(failure.message, "acme knows no such model or endpoint (404): Not Found.");
  assert.equal(
    failure.hint,
    "Asked for m1 at https://h.test/v1/chat/completions; `svc models list acme` names the models " +
      "on offer.",
  );
});

Deno.test("a page in place of an answer names its URL and content type, and is asked for once", () => {
  const headers = new Headers({ "content-type": "text/html;charset=utf-8" });
  for (const status of [404, 405, 501]) {
    const failure = statusFailure({ status, headers, body: "<title>Not here</title>" }, PEER);
    assert.equal(
      failure.message,
      `acme did not answer as a model server does (${status}, text/html): Not here.`,
    );
    assert.equal(
      failure.hint,
      "Asked at https://h.test/v1/chat/completions; check the base URL, which often ends in /v1.",
    );
    assert.equal(failure.kind, "permanent");
  }
  const busy = statusFailure({ status: 503, headers, body: "<title>Busy</title>" }, PEER);
  assert.deepEqual([busy.message, busy.kind], ["acme failed (503): Busy.", "transient"]);
});

Deno.test("an exhausted credit is not called a rate limit", () => {
  const error = { message: "You exceeded your current quota.", code: "insufficient_quota" };
  const failure = statusFailure({ status: 429, body: JSON.stringify({ error }) }, PEER);
  assert.equal(
    failure.message,
    "acme has no credit left for this account (429): You exceeded your current quota.",
  );
});

Deno.test("the message of an error body is found in every common shape", () => {
  const shapes: [body: unknown, detail: string][] = [
    [{ error: { message: "a" } }, ": a."],
    [{ error: "a" }, ": a."],
    [{ message: "a" }, ": a."],
    [{ detail: "a" }, ": a."],
    [{ detail: [{ msg: "a" }, { msg: "b" }] }, ": a."],
    [{ errors: [{ message: "a" }] }, ": a."],
    [[{ error: { message: "a" } }], ": a."],
    [{ error: { error: { message: "a" } } }, ": a."],
    [{ detail: [{ loc: ["body", "stream_options"], msg: "Extra" }] }, ": stream_options: Extra."],
    [{ error: { message: "a", metadata: { raw: "b", provider_name: "p" } } }, ": a: b."],
    [{ error: { message: "a", metadata: { raw: '{"error":{"message":"b"}}' } } }, ": a: b."],
    [{ error: { message: "a", metadata: { raw: null } } }, ": a."],
    ["a!", ": a!"],
    [{}, "."],
    [{ error: 7 }, "."],
    [null, ": null."],
  ];
  for (const [body, detail] of shapes) {
    const { message } = statusFailure({ status: 418, body: JSON.stringify(body) }, PEER);
    assert.equal(message, `acme rejected the request (418)${detail}`);
  }
  const pages: [body: string, detail: string][] = [
    ["<html><title>\n Bad\n Gateway </title></html>", ": Bad Gateway."],
    ["<html><h1>Oops</h1></html>", "."],
    ["", "."],
    ["{half", ": {half."],
  ];
  for (const [body, detail] of pages) {
    assert.equal(statusFailure({ status: 502, body }, PEER).message, `acme failed (502)${detail}`);
  }
});

Deno.test("a tool call that the backend could not parse is retried like a broken stream", () => {
  const error = { message: "Failed to call a function.", code: "tool_use_failed" };
  const { status, message } = statusFailure({ status: 400, body: JSON.stringify({ error }) }, PEER);
  assert.equal(status, 0);
  assert.equal(
    message,
    "acme could not use the tool call that the model made: Failed to call a function.",
  );
});

Deno.test("a conversation that is too long gets a hint", () => {
  const message = "prompt is too long: 210000 tokens > 200000 maximum";
  const body = JSON.stringify({ message });
  assert.match(statusFailure({ status: 400, body }, PEER).hint, /^`svc compact/);
  assert.match(reportedFailure({ message, code: 400 }, PEER).hint, /^`svc compact/);
  const other = JSON.stringify({ message: "invalid temperature" });
  assert.equal(statusFailure({ status: 400, body: other }, PEER).hint, "");
});

Deno.test("an announced time is said as a time and as a span", () => {
  const spans: [message: string, hint: string][] = [
    ["Try again in 9m38s", "It answers again at 1970-01-01T00:09:38Z, in 9 min 38 s."],
    ["Try again in 250ms", "It answers again at 1970-01-01T00:00:01Z, in 1 s."],
    ["Try again in 2 hours", "It answers again at 1970-01-01T02:00:00Z, in 2 h."],
    ["Try again in 27h1s", "It answers again at 1970-01-02T03:00:01Z, in 1 d 3 h."],
  ];
  for (const [message, hint] of spans) {
    assert.equal(statusFailure({ status: 429, body: message }, PEER).hint, hint);
  }
});

Deno.test("a backend's text becomes one short line without the key", () => {
  assert.equal(harmless(" a\r\n\tb\x1b[2J\u202e c ", ""), "a b c");
  assert.equal(harmless("sk-\x1b[0msecret twice: sk-secret", "sk-secret"), "*** twice: ***");
  const long = harmless("x".repeat(395) + "sk-secret and more", "sk-secret");
  assert.equal(long, `${"x".repeat(395)}*** a…`);
});

function fetchFailed(cause: string): TypeError {
  return new TypeError("fetch failed", {
    cause: new Error(`error sending request for url (https://h.test/): ${cause}`),
  });
}
