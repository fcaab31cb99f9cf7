import type { ProviderRegistrar, Reasoning } from "../../../src/plugins/api.ts";

/** Registers `ollama`: the hosted service, and local servers by their base URL. */
export function register_providers(providers: ProviderRegistrar): void {
  class Ollama extends providers.OpenAICompatibleProvider {
    static readonly DEFAULT_BASE_URL = "https://api.ollama.com";
    static readonly DEFAULT_MODEL = "llama3.2";
    static readonly HOST_PATTERNS = ["ollama.com", ":11434"];

    /** Models of several vendors: the switch has two names, and there are no levels. */
    protected reasoningParameters(reasoning: Reasoning): Record<string, unknown> {
      switch (reasoning) {
        case "off":
          return { enable_thinking: false };
        case "on":
        case "auto":
          return { enable_thinking: true };
        default:
          return { enable_thinking: true, chat_template_kwargs: { thinking: true } };
      }
    }
  }
  providers.register("ollama", Ollama);
}
