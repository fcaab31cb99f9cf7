import type { SourceHost, ToolDefinition, ToolSource } from "./api.ts";
import { reasonOf } from "./reason.ts";

/** Milliseconds that a source has for an answer. */
const LIMIT = 10_000;

/** Somebody else's source of tools: when it throws, hangs or answers with something else, it has none. */
export class GuardedSource<S extends ToolSource> implements ToolSource {
  readonly source: S;
  readonly permission: string;
  readonly #owner: string;
  readonly #host: SourceHost;

  /** @throws when it is no source */
  constructor(source: S, owner: string, host: SourceHost) {
    const { permission, tools, close } = Object(source) as Partial<ToolSource>;
    if (
      typeof permission !== "string" || typeof tools !== "function" || typeof close !== "function"
    ) {
      throw new Error("a source of tools has a permission, a function tools and a function close");
    }
    this.source = source;
    this.permission = permission;
    this.#owner = owner;
    this.#host = host;
  }

  async tools(signal: AbortSignal): Promise<ToolDefinition[]> {
    return await this.#within(async () => {
      const tools: unknown = await this.source.tools(signal);
      if (!Array.isArray(tools)) throw new Error("it did not answer with a list of tools");
      return tools.filter((tool) => isJson(tool?.parameters));
    }) ?? [];
  }

  async close(): Promise<void> {
    await this.#within(async () => await this.source.close());
  }

  async #within<T>(ask: () => Promise<T>): Promise<T | undefined> {
    const settled = new AbortController();
    const expired = this.#host.sleep(LIMIT, settled.signal).then(() => {
      throw new Error(`it took longer than ${LIMIT / 1000} seconds`);
    });
    expired.catch(() => {});
    try {
      return await Promise.race([ask(), expired]);
    } catch (error) {
      this.#host.warn(`The tools of the plugin ${this.#owner} failed: ${reasonOf(error)}.`);
      return undefined;
    } finally {
      settled.abort();
    }
  }
}

/** Whether a value can be sent to a model. */
export function isJson(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}
