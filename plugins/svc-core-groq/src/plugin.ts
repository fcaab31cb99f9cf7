import type { ProviderRegistrar } from "../../../src/plugins/api.ts";

/** Registers `groq`. */
export function register_providers(providers: ProviderRegistrar): void {
  class Groq extends providers.OpenAICompatibleProvider {
    static readonly DEFAULT_BASE_URL = "https://api.groq.com/openai/v1";
    static readonly DEFAULT_MODEL = "llama-3.3-70b-versatile";
    static readonly HOST_PATTERNS = ["api.groq.com"];
    static readonly PLAIN_TOOL_NAMES = true;
  }
  providers.register("groq", Groq);
}
