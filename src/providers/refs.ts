import type { ConnectionStore } from "./connections.ts";
import type { ProviderRegistry } from "./registry.ts";

/** A model as a person names it, taken apart. */
export interface ModelRef {
  /** Empty when the text was a bare model id. */
  provider: string;
  model: string;
}

/**
 * Unfolds `<provider>/<model>` when the provider has an address of its own: a registered one with a
 * default base URL, or a custom one that was connected. Any other text is a bare model id, slashes and all
 * (specification 4.10).
 */
export function parseModelRef(
  text: string,
  registry: ProviderRegistry,
  connections?: ConnectionStore,
): ModelRef {
  const slash = text.indexOf("/");
  const provider = text.slice(0, Math.max(slash, 0));
  const model = text.slice(slash + 1);
  const unfolds = provider !== "" && model !== "" &&
    (registry.get(provider)?.DEFAULT_BASE_URL || connections?.get(provider)?.base_url);
  return unfolds ? { provider, model } : { provider: "", model: text };
}
