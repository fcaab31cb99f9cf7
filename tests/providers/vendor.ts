import type {
  ChatMessage,
  PluginModule,
  ProviderClass,
  ProviderOptions,
} from "../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { ProviderRegistry } from "../../src/providers/registry.ts";
import { eventsOf, HELLO, providerOptions, WireServer } from "./support.ts";

/** A registry with the providers of a bundled plugin. */
export function registryOf(plugin: PluginModule): ProviderRegistry {
  const registry = new ProviderRegistry();
  plugin.register_providers?.({
    OpenAICompatibleProvider,
    register: (name: string, cls: ProviderClass) =>
      registry.register(name, cls, { bundled: true, owner: "svc-core-test" }),
  });
  return registry;
}

/** The completion request that a registered provider sends. */
export async function requestOf(
  cls: ProviderClass,
  options: Partial<ProviderOptions>,
  messages: ChatMessage[] = [{ role: "user", content: "hi" }],
  // deno-lint-ignore no-explicit-any
): Promise<{ path: string; headers: Headers; body: any }> {
  await using server = new WireServer((wire) => wire.send(HELLO));
  const provider = new cls(providerOptions({ base_url: server.url, ...options }));
  await eventsOf(provider, {}, messages);
  const { path, headers, body } = server.requests[0]!;
  return { path, headers, body: JSON.parse(body) };
}

/** The reasoning parameters that are sent for each value of the setting `reasoning`. */
export async function reasoningOf(cls: ProviderClass): Promise<Record<string, unknown>> {
  const sent: Record<string, unknown> = {};
  for (const reasoning of ["off", "low", "medium", "high", "on", "auto"] as const) {
    const { body } = await requestOf(cls, { reasoning });
    const others = ["model", "messages", "temperature", "max_tokens", "stream", "stream_options"];
    for (const name of others) delete body[name];
    sent[reasoning] = body;
  }
  return sent;
}

/** The last message that chat completions are sent after a conversation whose reply has reasoning blocks. */
export async function sentWithBlocks(cls: ProviderClass): Promise<ChatMessage> {
  const reply: ChatMessage = {
    role: "assistant",
    content: "hi",
    reasoning_details: [{ type: "x" }],
  };
  const { path, body } = await requestOf(cls, { wire: "chat" }, [reply]);
  if (!path.endsWith("/chat/completions")) throw new Error(path);
  return body.messages[0];
}
