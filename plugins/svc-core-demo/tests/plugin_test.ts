import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  ChatMessage,
  Provider,
  ProviderClass,
  ProviderOptions,
  StreamEvent,
} from "../../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../../src/providers/chat_completions.ts";
import { register_providers, register_services } from "../src/plugin.ts";
import { FOOTER } from "../src/rules.ts";
import { startDemoServer } from "../src/server.ts";

function demoClass(): ProviderClass {
  const classes: Record<string, ProviderClass> = {};
  register_providers({
    register: (name, cls) => void (classes[name] = cls as ProviderClass),
    OpenAICompatibleProvider,
  });
  return classes["demo"]!;
}

function demo(options: Partial<ProviderOptions> = {}): Provider & AsyncDisposable {
  const provider = new (demoClass())({
    name: "demo",
    base_url: "",
    api_key: "",
    model: "",
    session_id: "abc123",
    user_agent: "svc/0",
    temperature: 0,
    max_tokens: 100,
    reasoning: "auto",
    idle_timeout: 60,
    content_timeout: 300,
    retry_budget: 0,
    ...options,
  });
  return Object.assign(provider, { [Symbol.asyncDispose]: () => provider.close!() });
}

async function chat(provider: Provider, messages: ChatMessage[]): Promise<StreamEvent[]> {
  const parameters = { type: "object" as const, properties: {} };
  const tools = [{
    type: "function" as const,
    function: { name: "file_read", description: "", parameters },
  }];
  return await Array.fromAsync(provider.chat(messages, { tools }));
}

const user: ChatMessage = { role: "user", content: "how many lines does README.md have?" };

Deno.test("the demo provider sends requests to its own server and streams the answer", async () => {
  await using provider = demo();
  assert.equal(provider.model, "demo");
  const [call, done] = await chat(provider, [user]);
  assert.ok(call?.type === "tool_calls" && done?.type === "done");
  assert.equal(done.reason, "tool_calls");
  assert.ok(done.usage.total_tokens! > 0);
  const [wire] = call.tool_calls;
  const events = await chat(provider, [
    user,
    { role: "assistant", content: null, tool_calls: call.tool_calls },
    { role: "tool", tool_call_id: wire!.id, content: "# README.md - 7 lines, 99 chars" },
  ]);
  const tokens = events.flatMap((event) => event.type === "token" ? [event.content] : []);
  assert.ok(tokens.length > 5, "the answer comes in pieces");
  assert.equal(tokens.join(""), `README.md has 7 lines (99 characters).\n\n${FOOTER}`);
});

Deno.test("list_models, check_connection and chat_nonstreaming use the same server", async () => {
  await using provider = demo();
  assert.deepEqual(await provider.list_models(), ["demo"]);
  assert.equal((await provider.check_connection()).ok, true);
  assert.match(await provider.chat_nonstreaming([{ role: "user", content: "hello" }]), /^Hello!/);
});

Deno.test("a closed provider starts a new server when it is used again; close can be called twice", async () => {
  const provider = demo();
  assert.deepEqual(await provider.list_models(), ["demo"]);
  await provider.close!();
  await provider.close!();
  assert.deepEqual(await provider.list_models(), ["demo"]);
  await provider.close!();
});

Deno.test("another base URL is used as given", async () => {
  const server = startDemoServer({ script: { replies: [], models: ["mine"] } });
  await using provider = demo({ base_url: `http://127.0.0.1:${server.port}` });
  assert.deepEqual(await provider.list_models(), ["mine"]);
  await server.close();
});

Deno.test("no host is detected as the demo model, and nothing can listen at its address", () => {
  const { HOST_PATTERNS, DEFAULT_BASE_URL } = demoClass();
  assert.deepEqual(HOST_PATTERNS, []);
  assert.equal(new URL(DEFAULT_BASE_URL).port, "0");
});

Deno.test("a provider that is not closed does not keep the process alive", async () => {
  const root = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const program = `
    import { register_providers } from ${root("../src/plugin.ts")};
    import { OpenAICompatibleProvider } from ${root("../../../src/providers/chat_completions.ts")};
    register_providers({
      OpenAICompatibleProvider,
      async register(name, Demo) {
        const provider = new Demo({ name, base_url: "", api_key: "", model: "", idle_timeout: 5 });
        console.log(await provider.list_models());
      },
    });`;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--allow-net=127.0.0.1", "--allow-read", "--ext=ts", "-"],
    cwd: fileURLToPath(new URL("../../..", import.meta.url)),
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(program));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  assert.equal(new TextDecoder().decode(stdout), '[ "demo" ]\n', new TextDecoder().decode(stderr));
  assert.equal(code, 0);
});

interface Service {
  serve(
    options: { port?: number; script_file?: string },
  ): Promise<{ url: string; port: number; close(): Promise<void> }>;
}

function service(): Service {
  const services: Record<string, unknown> = {};
  register_services({ register: (name, service) => void (services[name] = service) });
  return services["demo-model"] as Service;
}

Deno.test("the service serves the rules or a script", async () => {
  const rules = await service().serve({});
  const scripted = await service().serve({
    script_file: fileURLToPath(new URL("../scripts/one-turn.json", import.meta.url)),
  });
  const said = await Promise.all([rules, scripted].map(async ({ url }) => {
    const body = JSON.stringify({ messages: [{ role: "user", content: "hello" }] });
    const response = await fetch(`${url}/chat/completions`, { method: "POST", body });
    return (await response.json()).choices[0].message.content;
  }));
  assert.match(said[0], /^Hello!/);
  assert.match(said[1], /tide tables/);
  await rules.close();
  await scripted.close();
});

Deno.test("a missing or invalid script and a used port are errors before serving", async () => {
  const folder = await Deno.makeTempDir();
  const script_file = join(folder, "script.json");
  await assert.rejects(service().serve({ script_file }), (error: Error & { exit?: number }) => {
    assert.match(error.message, /^The script .*script\.json cannot be read: /);
    return error.exit === 2;
  });
  await Deno.writeTextFile(script_file, '{"replies": 1}');
  await assert.rejects(service().serve({ script_file }), /replies must be a list/);
  await Deno.remove(folder, { recursive: true });
  const { port, close } = await service().serve({});
  await assert.rejects(service().serve({ port }), {
    name: "UsageError",
    exit: 2,
    message: `The demo model cannot listen on port ${port} of 127.0.0.1: it is taken.`,
  });
  await close();
});
