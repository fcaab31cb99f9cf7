import { resolve } from "node:path";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { defineCommand, textOption } from "../commands/command.ts";
import { openWorkspace } from "../commands/workspace.ts";
import { pathOf } from "../commands/names.ts";
import { command, integer, option, withDefault } from "../commands/options.ts";

/** `svc demo-model`: the rule-based demo model, or a scripted backend, on a loopback port. */
export const demoModel = defineCommand({
  parser: command(
    "demo-model",
    {
      port: withDefault(
        option("--port", integer("PORT", 0, 65535), "Port on 127.0.0.1; 0 takes a free one."),
        0,
      ),
      script: textOption(
        "--script",
        pathOf("FILE"),
        "A JSON file of replies to play instead of the built-in rules.",
      ),
    },
    "Serve the demo model over the chat-completions protocol until interrupted. It follows a " +
      "handful of rules and is no language model.",
  ),
  examples: ["svc demo-model --port 9090", "svc demo-model --script scenario.json"],
  async run({ port, script }, io) {
    const workspace = openWorkspace("", io, { plugins: ["svc-core-demo"] });
    const { services } = await workspace.load({ services: ["demo-model"] });
    const service = services.get("demo-model")?.[0] as DemoModelService | undefined;
    if (service === undefined) {
      throw new SvcError("no_demo_model", "The plugin svc-core-demo is not loaded.", { exit: 2 });
    }
    const file = script === undefined ? undefined : resolve(io.environment.cwd, script);
    const server = await serve(service, { port, script_file: file });
    const interrupt = io.onInterrupt();
    io.out(`${server.url}\n`);
    io.note(`Serving ${script ?? "the demo model"}; Ctrl-C stops it.`);
    await new Promise((stopped) => interrupt.signal.addEventListener("abort", stopped));
    interrupt.release();
    await server.close();
    return 0;
  },
});

interface DemoModelService {
  serve(options: ServeOptions): DemoModelServer | Promise<DemoModelServer>;
}

interface ServeOptions {
  port: number;
  script_file?: string;
}

interface DemoModelServer {
  url: string;
  close(): Promise<void>;
}

/** Starts the server; an invalid script or a port in use is a usage error. */
async function serve(service: DemoModelService, options: ServeOptions): Promise<DemoModelServer> {
  try {
    return await service.serve(options);
  } catch (error) {
    const { code = "demo_model", hint = "" } = error as { code?: string; hint?: string };
    throw usageError(code, errorMessage(error), hint);
  }
}
