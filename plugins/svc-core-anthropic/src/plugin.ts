import type {
  ChatMessage,
  ChatOptions,
  EventTranslator,
  ProviderRegistrar,
  Reasoning,
  ReplyPiece,
} from "../../../src/plugins/api.ts";

/** Registers `anthropic`: the Messages protocol, or with `wire: chat` its chat-completions endpoint. */
export function register_providers(providers: ProviderRegistrar): void {
  class Anthropic extends providers.OpenAICompatibleProvider {
    static readonly DEFAULT_BASE_URL = "https://api.anthropic.com/v1";
    static readonly DEFAULT_MODEL = "claude-sonnet-4-20250514";
    static readonly HOST_PATTERNS = ["api.anthropic.com"];
    static readonly PLAIN_TOOL_NAMES = true;

    get #native(): boolean {
      return this.options.wire !== "chat";
    }

    /** The Messages protocol requires the vendor's own header; chat completions accept both. */
    protected headers(): Record<string, string> {
      const { api_key } = this.options;
      const key = api_key === "" ? {} : { "x-api-key": api_key };
      return { ...super.headers(), ...key, "anthropic-version": "2023-06-01" };
    }

    protected replyPath(): string {
      return this.#native ? "/messages" : super.replyPath();
    }

    protected async translator(): Promise<EventTranslator | undefined> {
      return this.#native ? (await import("./messages.ts")).messagesTranslator() : undefined;
    }

    protected reasoningParameters(reasoning: Reasoning): Record<string, unknown> {
      if (reasoning === "off") return { thinking: { type: "disabled" } };
      if (this.#native && isAdaptive(this.model)) {
        const effort = reasoning === "on" || reasoning === "auto" ? "medium" : reasoning;
        return { thinking: { type: "adaptive" }, output_config: { effort } };
      }
      return { thinking: { type: "enabled", budget_tokens: BUDGETS[reasoning] } };
    }

    protected async payload(
      messages: ChatMessage[],
      options: ChatOptions,
    ): Promise<Record<string, unknown>> {
      return this.#native ? await this.#request(messages, options) : this.#chat(messages, options);
    }

    async #request(
      given: ChatMessage[],
      { tools, stream = true, ...options }: ChatOptions,
    ): Promise<Record<string, unknown>> {
      const { requestFields, mayThink } = await import("./messages.ts");
      const pieces = (message: ChatMessage): ReplyPiece[] => this.pieces(message);
      const { messages, ...fields } = requestFields(given, tools, pieces);
      const parameters: Record<string, unknown> = this.reasoningParameters(this.options.reasoning);
      const { type, budget_tokens: budget = 0 } = parameters.thinking as Thinking;
      const thinks = type === "adaptive" || (type === "enabled" && mayThink(messages));
      const max_tokens = (options.max_tokens ?? this.options.max_tokens) || MAX_TOKENS;
      return {
        model: this.model,
        max_tokens: thinks && max_tokens <= budget ? budget + max_tokens : max_tokens,
        ...fields,
        messages,
        // Thinking takes no other temperature than its own.
        ...!thinks && { temperature: Math.min(this.options.temperature, 1) },
        ...(thinks || type === "disabled") && parameters,
        stream,
      };
    }

    /** While thinking, the vendor accepts only temperature 1, and a limit above the budget. */
    #chat(messages: ChatMessage[], options: ChatOptions): Record<string, unknown> {
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

interface Thinking {
  type: "disabled" | "enabled" | "adaptive";
  budget_tokens?: number;
}

/** Thinking tokens. */
const BUDGETS = { low: 1024, medium: 2048, high: 4096, on: 2048, auto: 2048 };

/** Tokens of a reply without the setting `max_tokens`: the Messages protocol requires the field. */
const MAX_TOKENS = 8192;

/** Models from version 4.6 on think as they see fit, and later ones refuse a budget. */
function isAdaptive(model: string): boolean {
  const [, major = 0, minor = 0] = /claude-[a-z]+-(\d+)(?:[-.](\d{1,2})(?!\d))?/.exec(model) ?? [];
  return Number(major) > 4 || (Number(major) === 4 && Number(minor) >= 6);
}
