import type { ProviderRegistrar, Reasoning } from "../../../src/plugins/api.ts";

/** Registers `openai`. */
export function register_providers(providers: ProviderRegistrar): void {
  class OpenAI extends providers.OpenAICompatibleProvider {
    static readonly DEFAULT_BASE_URL = "https://api.openai.com/v1";
    static readonly DEFAULT_MODEL = "gpt-4o-mini";
    static readonly HOST_PATTERNS = ["api.openai.com"];
    static readonly PLAIN_TOOL_NAMES = true;

    /** Models without reasoning reject the parameter; the request is then sent again without it. */
    protected reasoningParameters(reasoning: Reasoning): Record<string, unknown> {
      switch (reasoning) {
        case "off":
          return {};
        case "on":
        case "auto":
          return { reasoning_effort: "medium" };
        default:
          return { reasoning_effort: reasoning };
      }
    }
  }
  providers.register("openai", OpenAI);
}
