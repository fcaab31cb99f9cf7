import * as acp from "@agentclientprotocol/sdk";
import schema from "@agentclientprotocol/sdk/schema/v1/schema.json" with { type: "json" };
import { type Schema, Validator } from "@cfworker/json-schema";
import assert from "node:assert/strict";
import { type ProgramOptions, startSvc } from "../support/program.ts";

/** How the editor of a test answers, and what it can do. */
export interface EditorOptions extends Partial<ProgramOptions> {
  args?: string[];
  capabilities?: acp.ClientCapabilities;
  /** The answer to a question, by its options. Default: the first one. */
  permission?(
    request: acp.RequestPermissionRequest,
    signal: AbortSignal,
  ): Promise<acp.RequestPermissionOutcome> | acp.RequestPermissionOutcome;
  elicitation?(request: acp.CreateElicitationRequest): acp.CreateElicitationResponse;
}

/** An editor: the SDK's client, which speaks with the real program through pipes. */
export interface Editor extends AsyncDisposable {
  readonly agent: acp.ClientContext;
  readonly child: Deno.ChildProcess;
  readonly initialized: acp.InitializeResponse;
  /** All updates so far, in the order of their arrival. */
  readonly updates: acp.SessionNotification[];
  readonly asked: acp.RequestPermissionRequest[];
  /** Standard error, after the end. */
  readonly stderr: Promise<string>;
  /** The first update of a kind, as soon as it has come. */
  update<K extends acp.SessionUpdate["sessionUpdate"]>(
    kind: K,
    accepts?: (update: acp.SessionUpdate & { sessionUpdate: K }) => boolean,
  ): Promise<acp.SessionUpdate & { sessionUpdate: K }>;
  /** A new session. */
  session(cwd: string, more?: Partial<acp.NewSessionRequest>): Promise<acp.NewSessionResponse>;
  /** Sends a text, and returns how the turn ended. */
  prompt(sessionId: string, prompt: string | acp.ContentBlock[]): Promise<acp.StopReason>;
  /** The text of the answers in a session. */
  said(sessionId: string): string;
  /** Closes standard input, as an editor that ends; resolves to the exit code. */
  leave(): Promise<number>;
}

/** Starts `svc acp` and connects an editor. */
export async function startEditor(cwd: string, options: EditorOptions = {}): Promise<Editor> {
  const { args = [], capabilities = {}, permission, elicitation } = options;
  const child = startSvc(["acp", ...args], { cwd, stdin: "", ...options });
  const stderr = new Response(child.stderr).text();
  const updates: acp.SessionNotification[] = [];
  const asked: acp.RequestPermissionRequest[] = [];
  let wake = Promise.withResolvers<void>();
  const app = acp.client({ name: "test" })
    .onNotification("session/update", ({ params }) => {
      updates.push(params);
      wake.resolve();
      wake = Promise.withResolvers();
    })
    .onRequest("session/request_permission", async ({ params, signal }) => {
      asked.push(params);
      const [first] = params.options;
      const outcome = await permission?.(params, signal) ??
        { outcome: "selected" as const, optionId: first!.optionId };
      return { outcome };
    })
    .onRequest("elicitation/create", ({ params }) => elicitation?.(params) ?? { action: "cancel" });
  const [output, copy] = child.stdout.tee();
  const { readable: input, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const [sent, asks] = input.tee();
  const piped = sent.pipeTo(child.stdin).catch(() => {});
  const written = Promise.all([asks, copy].map((each) => new Response(each).text()));
  const connection = app.connect(acp.ndJsonStream(writable, output));
  const { agent } = connection;
  const initialized = await agent.request("initialize", {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: capabilities,
  });
  const editor: Editor = {
    agent,
    child,
    initialized,
    updates,
    asked,
    stderr,
    async update(kind, accepts = () => true) {
      for (let at = 0;; at++) {
        while (at >= updates.length) await wake.promise;
        const { update } = updates[at]!;
        if (update.sessionUpdate !== kind) continue;
        const found = update as acp.SessionUpdate & { sessionUpdate: typeof kind };
        if (accepts(found)) return found;
      }
    },
    session: (cwd, more) => agent.request("session/new", { cwd, mcpServers: [], ...more }),
    async prompt(sessionId, prompt) {
      const blocks = typeof prompt === "string"
        ? [{ type: "text" as const, text: prompt }]
        : prompt;
      return (await agent.request("session/prompt", { sessionId, prompt: blocks })).stopReason;
    },
    said: (sessionId) =>
      updates.filter((each) => each.sessionId === sessionId).map(({ update }) =>
        update.sessionUpdate === "agent_message_chunk" && update.content.type === "text"
          ? update.content.text
          : ""
      ).join(""),
    async leave() {
      connection.close();
      await writable.close().catch(() => {});
      await piped;
      return (await child.status).code;
    },
    async [Symbol.asyncDispose]() {
      await editor.leave();
      await stderr;
      const [requests, answers] = await written;
      checkMessages(messages(requests!), messages(answers!));
    },
  };
  return editor;
}

interface Message {
  id?: number;
  method?: string;
  params?: unknown;
  result?: unknown;
}

function messages(lines: string): Message[] {
  return lines.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

/** Checks every message of the agent by the JSON Schema of the protocol. The SDK's client ignores what is wrong in some. */
function checkMessages(requests: Message[], found: Message[]): void {
  const definitions = schema.$defs as Record<string, { "x-method"?: string; "x-side"?: string }>;
  const named = (method: string, side: string, kind: RegExp) =>
    Object.keys(definitions).find((name) =>
      definitions[name]!["x-method"] === method && definitions[name]!["x-side"] === side &&
      kind.test(name)
    );
  for (const { id, method, params, result } of found) {
    const asked = requests.find((each) => each.id === id && each.method !== undefined)?.method;
    const name = method === undefined
      ? named(asked ?? "", "agent", /Response$/)
      : named(method, "client", /Request$|Notification$/);
    const value = method === undefined ? result : params;
    if (value === undefined || method?.startsWith("$/")) continue; // an error, or of JSON-RPC
    assert.ok(name, `the protocol has no ${method ?? asked}`);
    const validator = new Validator(
      { ...schema, anyOf: undefined, $ref: `#/$defs/${name}` } as unknown as Schema,
      "2020-12",
    );
    const { valid, errors } = validator.validate(value);
    assert.ok(valid, `${name}: ${JSON.stringify([value, errors.slice(0, 5)])}`);
  }
}

/** The settings of a worktree whose agent asks a scripted backend. */
export function backendConfig(
  url: string,
  settings: Record<string, unknown> = {},
): Record<string, string> {
  const config = { provider: "", base_url: url, model: "scripted", ...settings };
  return { ".svc/config.json": JSON.stringify(config) };
}
