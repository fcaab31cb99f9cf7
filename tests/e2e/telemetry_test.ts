import assert from "node:assert/strict";
import { startSpan, traceHeaders } from "../../src/platform/trace.ts";
import { as, call, httpError, say, startBackend, usage } from "../support/backend.ts";
import { commandLine, processOptions, startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER = { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` };

interface ExportedSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId: string;
  kind: number;
  status: { code?: number };
  attributes: Record<string, unknown>;
}

/** Receives what OpenTelemetry's exporter sends as JSON. */
function startCollector() {
  const spans: ExportedSpan[] = [];
  const metrics = new Set<string>();
  const logs: string[] = [];
  const server = Deno.serve({ port: 0, onListen: () => {} }, async (request) => {
    const body = await request.json();
    for (const { scopeSpans } of body.resourceSpans ?? []) {
      for (const { scope, spans: some } of scopeSpans) {
        if (scope.name !== "svc") continue;
        for (const span of some) {
          const attributes = Object.fromEntries(
            span.attributes.map(({ key, value }: { key: string; value: object }) => {
              const [kind, of] = Object.entries(value)[0]!;
              return [key, kind === "intValue" ? Number(of) : of];
            }),
          );
          spans.push({ ...span, attributes });
        }
      }
    }
    for (const { scopeMetrics } of body.resourceMetrics ?? []) {
      for (const { metrics: some } of scopeMetrics) {
        for (const { name } of some) metrics.add(name);
      }
    }
    for (const { scopeLogs } of body.resourceLogs ?? []) {
      for (const { logRecords } of scopeLogs) {
        for (const { body } of logRecords) logs.push(body.stringValue);
      }
    }
    return Response.json({});
  });
  const address = `http://127.0.0.1:${server.addr.port}`;
  return {
    spans,
    metrics,
    logs,
    named: (name: string) => spans.filter((span) => span.name === name),
    env: {
      OTEL_DENO: "true",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: address,
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function settings(url: string, more: Record<string, unknown> = {}): string {
  return JSON.stringify({ base_url: url, model: "test", memory_enabled: false, ...more });
}

Deno.test("a turn, its requests, tool calls and sub-agents are spans of one trace, without content", async () => {
  await using collector = startCollector();
  await using backend = startBackend([
    as("YOU LEAD", call("delegate", { role: "smith", task: "secret task" }, usage(100, 7))),
    as("YOU FORGE", call("file_read", { path: "note.txt" })),
    as("YOU FORGE", say("secret answer")),
    as("YOU LEAD", call("file_read", { path: "none.txt" })),
    as("YOU LEAD", say("secret end")),
  ]);
  await using place = await project({
    "note.txt": "secret file",
    ".svc/config.json": settings(backend.url),
    ".svc/roles.json": JSON.stringify({
      chief: { system_prompt: "YOU LEAD" },
      smith: { system_prompt: "YOU FORGE" },
    }),
  });
  const args = ["run", "--role", "chief", "--session-id", "story", "secret prompt"];
  const { code, stderr } = await svc(args, { cwd: place.path, env: collector.env });
  assert.equal(code, 0, stderr);

  const [lead] = collector.named("invoke_agent chief");
  const [delegate] = collector.named("execute_tool delegate");
  const [smith] = collector.named("invoke_agent smith");
  const [read, failed] = collector.named("execute_tool file_read");
  assert.deepEqual(
    [lead!.parentSpanId, delegate!.parentSpanId, smith!.parentSpanId, read!.parentSpanId],
    ["", lead!.spanId, delegate!.spanId, smith!.spanId],
  );
  const chats = collector.named("chat test");
  assert.deepEqual(
    chats.map((chat) => chat.parentSpanId).sort(),
    [lead, lead, lead, smith, smith].map((span) => span!.spanId).sort(),
  );
  assert.deepEqual(new Set(collector.spans.map((span) => span.traceId)), new Set([lead!.traceId]));
  // Each request to the backend continues the trace.
  for (const { headers } of backend.requests.filter(({ path }) => path.endsWith("completions"))) {
    assert.equal(headers.traceparent!.split("-")[1], lead!.traceId);
  }
  assert.equal(lead!.attributes["gen_ai.operation.name"], "invoke_agent");
  assert.equal(lead!.attributes["gen_ai.conversation.id"], "story");
  assert.equal(lead!.attributes["svc.status"], "ok");
  const counted = chats.find((chat) => chat.attributes["gen_ai.usage.input_tokens"] === 100)!;
  assert.equal(counted.attributes["gen_ai.usage.output_tokens"], 7);
  assert.equal(counted.attributes["gen_ai.request.model"], "test");
  assert.equal(counted.kind, 3); // client
  assert.equal(read!.attributes["error.type"], undefined);
  assert.deepEqual([failed!.attributes["error.type"], failed!.status.code], ["error", 2]);
  assert.ok(!JSON.stringify(collector.spans).includes("secret"));
});

Deno.test("content is exported when its variable asks for it, and a failed turn says why", async () => {
  await using collector = startCollector();
  await using backend = startBackend([say("an answer"), httpError(401)]);
  await using place = await project({ ".svc/config.json": settings(backend.url) });
  const env = { ...collector.env, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true" };
  await svc(["run", "a question"], { cwd: place.path, env });
  const [turn] = collector.named("invoke_agent svc");
  const { attributes } = turn!;
  assert.equal(attributes["gen_ai.input.messages"], '[{"role":"user","content":"a question"}]');
  assert.equal(
    attributes["gen_ai.output.messages"],
    '[{"role":"assistant","content":"an answer"}]',
  );
  assert.match(
    String(collector.named("chat test")[0]!.attributes["gen_ai.input.messages"]),
    /a question/,
  );
  await svc(["run", "again"], { cwd: place.path, env });
  const failed = collector.named("invoke_agent svc")[1]!;
  assert.deepEqual([failed.status.code, failed.attributes["svc.status"]], [2, "error"]);
  assert.equal(collector.named("chat test")[1]!.attributes["error.type"], "permanent");
});

Deno.test("the trace of an HTTP request goes on in the turn that it starts, and to the backend", async () => {
  await using collector = startCollector();
  await using backend = startBackend([say("one"), say("two")]);
  await using place = await project({ ".svc/config.json": settings(backend.url) });
  const child = startSvc(["serve", "--port", "0"], { cwd: place.path, env: collector.env });
  const url = await listening(child);
  const body = JSON.stringify({ prompt: "go" });
  const answer = await fetch(`${url}/chat`, { method: "POST", body, headers: CALLER });
  assert.equal((await answer.json()).content, "one");
  child.kill("SIGTERM");
  await child.status;
  assert.equal(collector.named("invoke_agent svc")[0]!.traceId, TRACE);
  assert.equal(backend.requests.at(-1)!.headers.traceparent!.split("-")[1], TRACE);
});

Deno.test("the metrics and logs of a server are those that docs/opentelemetry.md names", async () => {
  await using collector = startCollector();
  await using backend = startBackend([say("one")]);
  await using place = await project({
    ".svc/config.json": settings(backend.url, { plugins: [] }),
    ".svc/plugins/talk/manifest.json": JSON.stringify({ name: "talk", entry: "plugin.js" }),
    ".svc/plugins/talk/plugin.js": "export function register_tools() { console.log('hello'); }",
  });
  const child = startSvc(["serve", "--port", "0"], { cwd: place.path, env: collector.env });
  const url = await listening(child);
  const body = JSON.stringify({ prompt: "go" });
  await (await fetch(`${url}/chat`, { method: "POST", body })).json();
  child.kill("SIGTERM");
  await child.status;
  const page = Deno.readTextFileSync(new URL("../../docs/opentelemetry.md", import.meta.url));
  const named = Array.from(page.matchAll(/^\| `((?:http|v8js)\.[\w.]+)`/gm), ([, name]) => name!);
  assert.deepEqual([...collector.metrics].filter((name) => !named.includes(name)), []);
  const served = named.filter((name) => name.startsWith("http."));
  assert.deepEqual(served.filter((name) => collector.metrics.has(name)), served);
  assert.deepEqual([served.length, collector.logs], [4, ["hello\n"]]);
});

Deno.test("the trace goes on through MCP, in both directions", async () => {
  await using collector = startCollector();
  await using backend = startBackend([
    call("mcp_connect"),
    call("other.file_read", { path: "note.txt" }),
    say("done"),
  ]);
  await using place = await project({ "note.txt": "text" });
  const [command, ...args] = commandLine(["mcp", "--path", place.path]);
  const { env } = processOptions({ cwd: place.path, env: collector.env });
  const server = { name: "other", command, args, env };
  await place.write(
    ".svc/config.json",
    settings(backend.url, { "mcp.servers": [server], tool_permission: { mcp: "allow" } }),
  );
  const { code, stderr } = await svc(["run", "go"], { cwd: place.path, env: collector.env });
  assert.equal(code, 0, stderr);
  const [call_] = collector.named("execute_tool other.file_read");
  const [served] = collector.named("tools/call file_read");
  assert.deepEqual([served!.parentSpanId, served!.traceId], [call_!.spanId, call_!.traceId]);
});

Deno.test("a run of a job is a span with the job's name", async () => {
  await using collector = startCollector();
  await using backend = startBackend([say("done")]);
  await using place = await project({ ".svc/config.json": settings(backend.url) });
  const at = { cwd: place.path, env: collector.env };
  await svc(["jobs", "add", "--interval", "3600", "--prompt", "go", "nightly"], at);
  const { code, stderr } = await svc(["jobs", "run", "nightly"], at);
  assert.equal(code, 0, stderr);
  const [job] = collector.named("job nightly");
  const [turn] = collector.named("invoke_agent svc");
  assert.equal(job!.attributes["svc.job.attempt"], 1);
  assert.equal(turn!.parentSpanId, job!.spanId);
});

Deno.test("where nothing is exported there is no span and no header", () => {
  assert.equal(startSpan("x", {}), undefined);
  assert.deepEqual(traceHeaders(), {});
});

async function listening(child: Deno.ChildProcess): Promise<string> {
  let text = "";
  for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text);
    if (found !== null) return found[0];
  }
  throw new Error(text);
}
