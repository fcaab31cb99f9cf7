import { SvcError } from "../platform/error.ts";
import type { ProviderClass } from "../plugins/api.ts";
import { GENERIC_PROVIDER, OpenAICompatibleProvider } from "./chat_completions.ts";

/** The provider classes of one workspace by name (specification 4.10). */
export class ProviderRegistry {
  readonly #entries = new Map<string, { cls: ProviderClass; bundled: boolean }>([
    [GENERIC_PROVIDER, { cls: OpenAICompatibleProvider, bundled: true }],
  ]);

  /**
   * Adds a provider. A bundled one replaces another with its name; among the others the later wins.
   *
   * @throws SvcError for a name that cannot be part of a model ref, for a value that is no provider class,
   * and for a bundled name from a plugin that is not bundled.
   */
  register(name: string, cls: ProviderClass, options: { bundled: boolean; owner: string }): void {
    const { bundled, owner } = options;
    if (!isProviderName(name)) {
      throw new SvcError(
        "bad_provider",
        `Plugin ${owner}: ${JSON.stringify(name)} is no provider name.`,
        {
          hint: "A provider name has letters, digits, dots, dashes and underscores.",
        },
      );
    }
    if (!isProviderClass(cls)) {
      throw new SvcError(
        "bad_provider",
        `Plugin ${owner}: the provider ${name} is no provider class.`,
        {
          hint:
            "Extend providers.OpenAICompatibleProvider, or define all of its static attributes.",
        },
      );
    }
    if (this.#entries.get(name)?.bundled && !bundled) {
      throw new SvcError(
        "provider_taken",
        `Plugin ${owner}: the provider name ${name} belongs to a bundled provider.`,
        { hint: "Register it under another name." },
      );
    }
    this.#entries.set(name, { cls, bundled });
  }

  /** Registered names in alphabetical order. */
  names(): string[] {
    return [...this.#entries.keys()].sort();
  }

  get(name: string): ProviderClass | undefined {
    return this.#entries.get(name)?.cls;
  }
}

/** Whether a name can stand before the slash of a model ref. */
export function isProviderName(name: string): boolean {
  return /^[\w.-]+$/.test(name);
}

function isProviderClass(cls: ProviderClass): boolean {
  return typeof cls === "function" && typeof cls.DEFAULT_BASE_URL === "string" &&
    typeof cls.DEFAULT_MODEL === "string" && Array.isArray(cls.HOST_PATTERNS) &&
    cls.HOST_PATTERNS.every((pattern) => typeof pattern === "string" && pattern !== "") &&
    typeof cls.ECHO_REASONING === "boolean";
}
