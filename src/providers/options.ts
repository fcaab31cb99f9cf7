import type { ConfigView, ProviderOptions } from "../plugins/api.ts";
import { VERSION } from "../platform/environment.ts";

/** What a provider is made with beside its address and key. */
export type SharedOptions = Omit<ProviderOptions, "name" | "base_url" | "api_key">;

/** What every provider is made with, whatever its backend: no model, and the configuration's sampling. */
export function sharedOptions(config: ConfigView, session_id: string): SharedOptions {
  return {
    model: "",
    session_id,
    user_agent: `svc/${VERSION}`,
    temperature: config.get("temperature"),
    max_tokens: config.get("max_tokens"),
    reasoning: reasoning(config.get("reasoning")),
    idle_timeout: config.get("idle_timeout"),
    retry_budget: config.get("retry_budget"),
  };
}

/** The config key `reasoning` in its one spelling. */
function reasoning(value: string | boolean): ProviderOptions["reasoning"] {
  if (value === false) return "off";
  if (value === true) return "on";
  return value as ProviderOptions["reasoning"];
}
