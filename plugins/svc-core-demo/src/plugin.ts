import type {
  ChatMessage,
  ChatOptions,
  ProviderRegistrar,
  ServiceRegistrar,
  StreamEvent,
} from "../../../src/plugins/api.ts";
import type { Script } from "./script.ts";
import type { DemoServer } from "./server.ts";

/** The address of the built-in server: nothing can listen on port 0. */
const DEFAULT_BASE_URL = "http://127.0.0.1:0";

export function register_providers(providers: ProviderRegistrar): void {
  /**
   * The demo model behind the chat-completions client. Its server starts on a free loopback port with the
   * first request, does not keep the process alive, and stops with `close`. Another base URL is used as
   * given.
   */
  class DemoProvider extends providers.OpenAICompatibleProvider {
    static readonly DEFAULT_BASE_URL = DEFAULT_BASE_URL;
    static readonly DEFAULT_MODEL = "demo";
    static readonly HOST_PATTERNS: readonly string[] = [];
    static readonly BUILT_IN = true;
    #server: DemoServer | undefined;

    protected endpoint(path: string): string {
      if (this.base_url !== DEFAULT_BASE_URL) return super.endpoint(path);
      return this.#server!.url + path;
    }

    async *chat(messages: ChatMessage[], options: ChatOptions): AsyncGenerator<StreamEvent> {
      await this.#start();
      yield* super.chat(messages, options);
    }

    async list_models(signal?: AbortSignal): Promise<string[]> {
      await this.#start();
      return await super.list_models(signal);
    }

    async context_window(signal?: AbortSignal): Promise<number | undefined> {
      await this.#start();
      return await super.context_window(signal);
    }

    async #start(): Promise<void> {
      if (this.base_url !== DEFAULT_BASE_URL || this.#server !== undefined) return;
      const { startDemoServer } = await import("./server.ts");
      this.#server ??= startDemoServer();
      this.#server.unref();
    }

    async close(): Promise<void> {
      const server = this.#server;
      this.#server = undefined;
      await server?.close();
    }
  }
  // deno-lint-ignore no-explicit-any
  providers.register("demo", DemoProvider as any);
}

export function register_services(services: ServiceRegistrar): void {
  services.register("demo-model", { serve });
}

/**
 * Serves the demo model, or a script, until `close`.
 *
 * @throws UsageError (`exit` 2) when the script cannot be read or is not valid, or the port is not free.
 */
async function serve(options: { port?: number; script_file?: string }): Promise<DemoServer> {
  const { port, script_file } = options;
  const { UsageError } = await import("./script.ts");
  const { startDemoServer } = await import("./server.ts");
  const script = script_file === undefined ? undefined : await readScript(script_file);
  try {
    return startDemoServer({ port, script });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const reason = error instanceof Deno.errors.AddrInUse
      ? "it is taken"
      : (error as Error).message;
    throw new UsageError(
      "no_port",
      `The demo model cannot listen on port ${port} of 127.0.0.1: ${reason}.`,
      "Choose another with --port, or leave it out for a free one.",
    );
  }
}

async function readScript(file: string): Promise<Script> {
  const { parseScript, ScriptError } = await import("./script.ts");
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    throw new ScriptError(`The script ${file} cannot be read: ${(error as Error).message}.`);
  }
  return parseScript(text);
}
