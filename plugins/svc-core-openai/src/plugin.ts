import type {
  ChatMessage,
  ChatOptions,
  EventTranslator,
  ProviderRegistrar,
  Reasoning,
  ReplyPiece,
} from "../../../src/plugins/api.ts";

/** Registers `openai`: chat completions, or with `wire: native` the Responses protocol. */
export function register_providers(providers: ProviderRegistrar): void {
  class OpenAI extends providers.OpenAICompatibleProvider {
    static readonly DEFAULT_BASE_URL = "https://api.openai.com/v1";
    static readonly DEFAULT_MODEL = "gpt-4o-mini";
    static readonly HOST_PATTERNS = ["api.openai.com"];
    static readonly PLAIN_TOOL_NAMES = true;

    get #native(): boolean {
      return this.options.wire === "native";
    }

    protected replyPath(): string {
      return this.#native ? "/responses" : super.replyPath();
    }

    protected async translator(): Promise<EventTranslator | undefined> {
      return this.#native ? (await import("./responses.ts")).responsesTranslator() : undefined;
    }

    /** Models without reasoning reject the parameter; the request is then sent again without it. */
    protected reasoningParameters(reasoning: Reasoning): Record<string, unknown> {
      if (reasoning === "off") return {};
      const effort = reasoning === "on" || reasoning === "auto" ? "medium" : reasoning;
      return this.#native
        ? { reasoning: { effort, summary: "auto" } }
        : { reasoning_effort: effort };
    }

    protected async payload(
      messages: ChatMessage[],
      options: ChatOptions,
    ): Promise<Record<string, unknown>> {
      if (!this.#native) return super.payload(messages, options);
      const { requestFields } = await import("./responses.ts");
      const { temperature, reasoning } = this.options;
      const max_output_tokens = options.max_tokens ?? this.options.max_tokens;
      const { thinks, plain } = kindOf(this.model);
      return {
        model: this.model,
        ...requestFields(
          messages,
          options,
          (message: ChatMessage): ReplyPiece[] => this.pieces(message),
        ),
        ...!thinks && { temperature },
        ...max_output_tokens > 0 && { max_output_tokens },
        ...!plain && {
          ...this.reasoningParameters(reasoning),
          include: ["reasoning.encrypted_content"],
        },
        store: false,
        stream: options.stream ?? true,
      };
    }
  }
  providers.register("openai", OpenAI);
}

/**
 * Whether a model is known to reason, which takes no temperature, or known not to. Others are sent everything, and again
 * without what they refuse.
 */
function kindOf(model: string): { thinks: boolean; plain: boolean } {
  return {
    thinks: /(^|\/)(o\d|gpt-[5-9]|codex)/.test(model),
    plain: /(^|\/)(gpt-[34]|chatgpt)/.test(model),
  };
}
