/** MCP servers that misbehave, one a name: `deno run bad_server.ts <name> [file]`. */

const [kind = "", file = ""] = Deno.args;
let changed = false;
/** The id of a call that waits for the answer of the client. */
let pending: Message["id"];
const withdrawal = { method: "notifications/cancelled", params: { requestId: "e1" } };
const encoder = new TextEncoder();

interface Message {
  id?: number | string;
  method?: string;
  // deno-lint-ignore no-explicit-any
  params?: any;
  result?: unknown;
}

function send(message: unknown): void {
  write(JSON.stringify({ jsonrpc: "2.0", ...message as object }) + "\n");
}

function write(text: string): void {
  const bytes = encoder.encode(text);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}

function note(line: string): void {
  if (file !== "") Deno.writeTextFileSync(file, `${line}\n`, { append: true });
}

const tool = (name: string, more = {}) => ({
  name,
  description: name,
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
  ...more,
});

const ESC = "\x1b";
const LISTS: Record<string, unknown[]> = {
  many: Array.from({ length: 3000 }, (_, n) => tool(`t${n}`)),
  hostile: [
    tool("fine", {
      description: `${ESC}[31mred${ESC}]0;title\x07 \u202eevil\u202c ${"x".repeat(5000)}`,
    }),
    tool("fine", { description: "again" }),
    tool(`bad${ESC}[2Jname`),
    tool("has space"),
    tool("../../etc"),
    tool("x".repeat(300)),
    tool("huge", {
      inputSchema: { type: "object", properties: { a: { enum: ["y".repeat(40_000)] } } },
    }),
    tool("loose", { inputSchema: { type: "object", required: ["ghost"] } }),
    tool("proto", {
      inputSchema: JSON.parse(
        '{"type":"object","properties":{"__proto__":{"type":"string"},"a":3}}',
      ),
    }),
  ],
};

/** The servers that speak the newest revision. */
const MODERN = ["asks", "late"];

function answer({ id, method, params, result }: Message): void {
  note(method ?? "answer");
  if (id === "e1" || (kind === "elicits" && method === "notifications/cancelled")) {
    const content = [{ type: "text", text: JSON.stringify(result ?? params) }];
    return send({ id: pending, result: { content } });
  }
  if (kind === "hang") return;
  if (kind === "late" && method === "initialize") {
    return send({ id, error: { code: -32602, message: "this server speaks 2026-07-28" } });
  }
  if (method === "server/discover") {
    if (kind === "dies-at-probe") Deno.exit(3);
    if (MODERN.includes(kind)) {
      const capabilities = { tools: {} };
      const serverInfo = { name: kind, version: "1" };
      const meta = { "io.modelcontextprotocol/serverInfo": serverInfo };
      const result = { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities };
      return send({ id, result: { ...result, ttlMs: 0, cacheScope: "private", _meta: meta } });
    }
    return send({ id, error: { code: -32601, message: "Method not found" } });
  }
  if (method === "initialize") {
    const capabilities = { tools: { listChanged: true } };
    const { protocolVersion } = params;
    send({
      id,
      result: { protocolVersion, capabilities, serverInfo: { name: kind, version: "1" } },
    });
    if (kind === "floods") flood();
    return;
  }
  if (method === "tools/list") {
    if (kind === "nonsense") {
      write('oops\n{"jsonrpc": "2.0", "id": 99, "result": {}}\n[1,2]\nnull\n');
    }
    const tools = LISTS[kind] ?? [tool("run"), tool(changed ? "new" : "other")];
    const more = kind === "endless" ? { nextCursor: "again" } : {};
    const modern = MODERN.includes(kind)
      ? { resultType: "complete", ttlMs: 0, cacheScope: "private" }
      : {};
    return send({ id, result: { tools, ...more, ...modern } });
  }
  if (method === "tools/call") return call(id, params);
  if (id !== undefined && method !== undefined) {
    send({ id, error: { code: -32601, message: "no" } });
  }
}

function call(
  id: Message["id"],
  params: {
    arguments?: { text?: string };
    _meta?: { progressToken?: unknown };
    inputResponses?: { a: unknown };
    requestState?: string;
  },
): void {
  const modern = MODERN.includes(kind) ? { resultType: "complete" } : {};
  const result = (text: string) =>
    send({ id, result: { ...modern, content: [{ type: "text", text }] } });
  switch (kind) {
    case "dies":
      Deno.stderr.writeSync(encoder.encode(`${ESC}[31mout of cheese\n`));
      return Deno.exit(1);
    case "changes":
      changed = true;
      send({ method: "notifications/tools/list_changed" });
      return result("changed");
    case "slow":
      return; // forever
    case "progresses": {
      const { progressToken } = params._meta ?? {};
      const made = { progressToken, progress: 1, total: 3, message: `${ESC}[2Jreading` };
      send({ method: "notifications/progress", params: made });
      return void opened().then(() => result("read"));
    }
    case "huge":
      return result("z".repeat(20 * 1024 * 1024));
    case "tells":
      Deno.stderr.writeSync(encoder.encode(`cannot log in with ${Deno.env.get("API_KEY")}\n`));
      return Deno.exit(1);
    case "large":
      return result("line\n".repeat(100_000));
    case "env":
      return result(JSON.stringify({ cwd: Deno.cwd(), ...Deno.env.toObject() }));
    case "wrong":
      return send({ id, result: { content: "no list" } });
    case "refuses":
      return send({ id, error: { code: -32000, message: `${ESC}[2Jno\nno` } });
    case "asks":
      if (params.inputResponses) {
        const { a } = params.inputResponses;
        return result(JSON.stringify([a, params.requestState]));
      }
      return send({
        id,
        result: {
          resultType: "input_required",
          requestState: "state",
          inputRequests: {
            a: { method: "elicitation/create", params: JSON.parse(params.arguments!.text!) },
          },
        },
      });
    case "elicits":
      pending = id;
      send({
        id: "e1",
        method: "elicitation/create",
        params: JSON.parse(params.arguments!.text!),
      });
      if (file !== "") {
        void opened().then(() => send(withdrawal)).then(() => result("withdrawn"));
      }
      return;
    case "sends":
      if (changed) return result("sent");
      changed = true;
      return send({
        id,
        error: {
          code: -32042,
          message: "open it first",
          data: {
            elicitations: [{
              mode: "url",
              message: "Log in",
              url: "https://a.test/x",
              elicitationId: "1",
            }],
          },
        },
      });
    default:
      return result(`said ${params.arguments?.text ?? "nothing"}`);
  }
}

/** Waits until the test makes the file `<file>.open`. */
async function opened(): Promise<void> {
  while (!await Deno.stat(`${file}.open`).catch(() => undefined)) {
    await new Promise((done) => setTimeout(done, 5));
  }
}

function flood(): never {
  const params = { level: "info", data: "x".repeat(60_000) };
  while (true) send({ method: "notifications/message", params });
}

if (kind === "stays") Deno.addSignalListener("SIGTERM", () => note("SIGTERM"));
let started = Promise.resolve();
let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  rest += text;
  const lines = rest.split("\n");
  rest = lines.pop()!;
  for (const line of lines) {
    const message: Message = JSON.parse(line);
    if (kind !== "late") answer(message);
    else {
      note(`received ${message.method}`);
      started = started.then(opened).then(() => answer(message));
    }
  }
}
await started;
note("end of input");
if (kind === "stays" || kind === "hang") {
  await new Promise((done) => setTimeout(done, 600_000));
}
