import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import type { JobReport, JobsDigest, ReportService } from "../../../src/plugins/api.ts";
import { deliver, register_services } from "../src/plugin.ts";

interface Got {
  headers: Headers;
  body: string;
}

/** A server that answers one request after the other with these statuses, and the last one from then on. */
function receiver(...answers: (number | ((signal: AbortSignal) => Promise<Response>))[]) {
  const got: Got[] = [];
  const server = Deno.serve({ port: 0, onListen: () => {} }, async (request) => {
    got.push({ headers: request.headers, body: await request.text() });
    const answer = answers[Math.min(got.length, answers.length) - 1]!;
    if (typeof answer === "number") return new Response(null, { status: answer });
    return await answer(closing.signal);
  });
  const closing = new AbortController();
  const { port } = server.addr as Deno.NetAddr;
  return {
    got,
    url: `http://127.0.0.1:${port}/hook/key-in-path`,
    async [Symbol.asyncDispose]() {
      closing.abort();
      await server.shutdown();
    },
  };
}

const slept: number[] = [];
const sleep = (ms: number) => Promise.resolve(void slept.push(ms));

const PAYLOAD: JobReport = {
  event: "job.run.completed",
  job: "nightly",
  status: "failed",
  outcome: "failed",
  duration: 1.5,
  reason: "no model — ü",
  session: "job_20260102_030405_abc123",
  started_at: "2026-01-02T03:04:05.000Z",
  finished_at: "2026-01-02T03:04:06.500Z",
  content: "",
  checked: false,
  denied: [],
  worktree: "/work",
  usage: {},
  cost: null,
  memory: "",
  parked_asks: [{ id: 1, origin: "job_20260102_030405_abc123", question: "May I?" }],
};

function service(): ReportService {
  let found: unknown;
  register_services({ register: (name, each) => void (name === "report" && (found = each)) });
  return found as ReportService;
}

Deno.test("a report is posted as JSON to report.webhook, signed when there is a secret [6.1]", async () => {
  for (const secret of ["", "s3cret ü"]) {
    await using hook = receiver(204);
    const settings = new Map([["report.webhook", hook.url], ["report.secret", secret]]);
    await service().report(PAYLOAD, { get: (key) => settings.get(key) });
    const [{ headers, body }] = hook.got as [Got];
    assert.deepEqual(JSON.parse(body), PAYLOAD);
    assert.equal(headers.get("content-type"), "application/json");
    assert.equal(headers.get("x-svc-event"), "job.run.completed");
    assert.match(headers.get("x-svc-delivery")!, /^[0-9a-f-]{36}$/);
    const expected = secret === ""
      ? null
      : `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
    assert.equal(headers.get("x-svc-signature"), expected);
    assert.ok(secret === "" || !JSON.stringify([...headers]).includes(secret));
  }
});

Deno.test("a run that waits for approval and a digest are posted to the webhook, other events are not [6.1]", async () => {
  await using hook = receiver(204);
  const settings = new Map([["report.webhook", hook.url], ["report.secret", "s"]]);
  const config = { get: (key: string) => settings.get(key) };
  const about = { job: "a", timestamp: "", worktree: "", session: "", attempt: 0, reason: "" };
  for (const event of ["job.will_run", "job.waiting_approval", "job.failed"] as const) {
    await service().job_event!({ event, ...about }, config);
  }
  await service().digest!({ event: "jobs.digest" } as JobsDigest, config);
  assert.deepEqual(
    hook.got.map(({ body, headers }) => [
      JSON.parse(body).event,
      headers.get("x-svc-event"),
      headers.get("x-svc-signature")?.slice(0, 7),
    ]),
    [
      ["job.waiting_approval", "job.waiting_approval", "sha256="],
      ["jobs.digest", "jobs.digest", "sha256="],
    ],
  );
});

Deno.test("with an empty report.webhook nothing is sent [2.13, 6.1]", async () => {
  const asked: string[] = [];
  const get = (key: string) => {
    asked.push(key);
    return "";
  };
  await assert.doesNotReject(async () => await service().report(PAYLOAD, { get }));
  assert.deepEqual(
    asked,
    ["report.webhook"],
    "it wants no secret either: nothing is made to be sent",
  );
});

Deno.test("the webhook retries temporary failures with growing waits, as the same delivery [6.1]", async () => {
  slept.length = 0;
  await using hook = receiver(503, 429, 200);
  await deliver(hook.url, PAYLOAD, "", { sleep });
  assert.deepEqual(slept, [500, 1500]);
  assert.equal(hook.got.length, 3);
  assert.equal(new Set(hook.got.map(({ headers }) => headers.get("x-svc-delivery"))).size, 1);
});

Deno.test("a lasting failure of the webhook is an error that names only the host [6.1]", async () => {
  const failure = async (url: string, limit?: number) => {
    slept.length = 0;
    const said = await deliver(url, PAYLOAD, "s", { sleep, limit })
      .then(() => "nothing", (error) => error.message.replace(/:\d+/, ""));
    return [said, slept.length];
  };
  await using down = receiver(500);
  assert.deepEqual(await failure(down.url), [
    "the webhook at 127.0.0.1 answers 500, after 4 attempts",
    3,
  ]);
  await using gone = receiver(410);
  assert.deepEqual(await failure(gone.url), ["the webhook at 127.0.0.1 answers 410", 0]);
  await using silent = receiver((signal) =>
    new Promise((answer) => signal.addEventListener("abort", () => answer(new Response())))
  );
  assert.deepEqual(await failure(silent.url, 20), [
    "the webhook at 127.0.0.1 gave no answer in 0.02 seconds, after 4 attempts",
    3,
  ]);
  assert.deepEqual(await failure("http://127.0.0.1:1/key"), [
    "the webhook at 127.0.0.1 cannot be reached, after 4 attempts",
    3,
  ]);
  assert.deepEqual(await failure("file:///etc/passwd"), [
    "report.webhook is no http or https address",
    0,
  ]);
});

Deno.test("a redirect is not followed", async () => {
  await using elsewhere = receiver(200);
  await using hook = receiver(() =>
    Promise.resolve(new Response(null, { status: 307, headers: { location: elsewhere.url } }))
  );
  await assert.rejects(deliver(hook.url, PAYLOAD, "s", { sleep }), /a redirect \(307\)/);
  assert.deepEqual([hook.got.length, elsewhere.got.length], [1, 0]);
});

Deno.test("an endless answer is not read, and a broken connection is retried", async () => {
  const ended = Promise.withResolvers<void>();
  const endless = () =>
    Promise.resolve(
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(1000)),
          cancel: () => ended.resolve(),
        }),
      ),
    );
  await using hook = receiver(endless);
  await deliver(hook.url, PAYLOAD, "", { sleep });
  assert.equal(hook.got.length, 1);
  await ended.promise;

  slept.length = 0;
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const breaking = (async () => {
    for await (const connection of listener) {
      await connection.read(new Uint8Array(4096));
      await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-le"));
      connection.close();
    }
  })();
  await assert.rejects(
    deliver(`http://127.0.0.1:${listener.addr.port}/key`, PAYLOAD, "", { sleep }),
    (error: Error) => /^the webhook at \S+ cannot be reached, after 4/.test(error.message),
  );
  assert.deepEqual(slept, [500, 1500, 4000]);
  listener.close();
  await breaking;
});
