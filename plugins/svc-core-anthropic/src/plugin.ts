import type {
  ChatMessage,
  ChatOptions,
  ProviderRegistrar,
  Reasoning,
} from "../../../src/plugins/api.ts";

/** Registers `anthropic` with its chat-completions endpoint. */
export function register_providers(providers: ProviderRegistrar): void {
  class Anthropic extends providers.OpenAICompatibleProvider {
    static readonly DEFAULT_BASE_URL = "https://api.anthropic.com/v1";
    static readonly DEFAULT_MODEL = "claude-sonnet-4-20250514";
    static readonly HOST_PATTERNS = ["api.anthropic.com"];
    static readonly PLAIN_TOOL_NAMES = true;

    /** The list of models requires the vendor's own header; completions accept both. */
    protected headers(): Record<string, string> {
      const { api_key } = this.options;
      const key = api_key === "" ? {} : { "x-api-key": api_key };
      return { ...super.headers(), ...key, "anthropic-version": "2023-06-01" };
    }

    protected reasoningParameters(reasoning: Reasoning): Record<string, unknown> {
      if (reasoning === "off") return { thinking: { type: "disabled" } };
      return { thinking: { type: "enabled", budget_tokens: BUDGETS[reasoning] } };
    }

    /** While thinking, the vendor accepts only temperature 1, and a limit above the budget. */
    protected payload(messages: ChatMessage[], options: ChatOptions): Record<string, unknown> {
      const payload = super.payload(messages, options);
      const budget: number | undefined = payload.thinking.budget_tokens;
      if (budget === undefined) {
        return { ...payload, temperature: Math.min(payload.temperature, 1) };
      }
      const { max_tokens } = payload;
      if (max_tokens <= budget) payload.max_tokens = budget + max_tokens;
      return { ...payload, temperature: 1 };
    }
  }
  providers.register("anthropic", Anthropic);
}

/** Thinking tokens. */
const BUDGETS = { low: 1024, medium: 2048, high: 4096, on: 2048, auto: 2048 };
