import type { ProviderRegistrar } from "../../../src/plugins/api.ts";

/** Registers `opencode` (Zen) and `opencode-go`: one gateway, two price lists. */
export function register_providers(providers: ProviderRegistrar): void {
  class OpenCode extends providers.OpenAICompatibleProvider {
    static readonly DEFAULT_BASE_URL: string = "https://opencode.ai/zen/v1";
    static readonly DEFAULT_MODEL: string = "kimi-k3";
    static readonly HOST_PATTERNS: readonly string[] = ["opencode.ai/zen"];
    static readonly ECHO_REASONING = true;
    static readonly PLAIN_TOOL_NAMES: boolean = true;

    /** The gateway routes a session to one machine. */
    protected headers(): Record<string, string> {
      const session = encodeURIComponent(this.session_id);
      return { ...super.headers(), ...(session && { "x-opencode-session": session }) };
    }
  }

  class OpenCodeGo extends OpenCode {
    static override readonly DEFAULT_BASE_URL = "https://opencode.ai/zen/go/v1";
    static override readonly DEFAULT_MODEL = "deepseek-v4-flash";
    static override readonly HOST_PATTERNS = ["opencode.ai/zen/go"];
  }
  providers.register("opencode", OpenCode);
  providers.register("opencode-go", OpenCodeGo);
}
