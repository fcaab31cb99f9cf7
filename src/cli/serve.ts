import { object, or } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import type { InferValue } from "@optique/core/parser";
import { command, constant, option } from "@optique/core/primitives";
import { integer } from "@optique/core/valueparser";
import { type Command, pathOption, text, textOption, trustOption } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { logOption } from "../commands/log.ts";

const listen = command(
  "listen",
  object({
    action: constant("listen"),
    host: textOption(
      "--host",
      "HOST",
      "The address to listen on. Default: SVC_HOST, or 127.0.0.1.",
    ),
    port: optional(option("--port", integer({ min: 0, max: 65535, metavar: "PORT" }), {
      description: text("The port; 0 takes a free one. Default: SVC_PORT, or 8787."),
    })),
    insecure: option("--insecure", {
      description: text("Listen beyond this machine without asking for tokens."),
    }),
    log: logOption,
    trust: trustOption,
    path: pathOption,
  }),
  { description: text("Serve until interrupted (the default).") },
);

const token = command("token", object({ action: constant("token"), path: pathOption }), {
  description: text("Make a bearer token for the server, and print it."),
});

const parser = command("serve", or(token, listen), {
  description: text("Serve the agent of a worktree over HTTP until interrupted."),
});

type ServeValues = InferValue<typeof parser>;

/** Loads the HTTP server of `src/server/`. */
export type LoadServe = () => Promise<(values: ServeValues, io: Io) => Promise<number>>;

/** `svc serve` (specification 4.1): the HTTP API. */
export function serveCommand(load?: LoadServe): Command<ServeValues> {
  return {
    parser,
    bare: "listen",
    examples: [
      "svc serve",
      "svc serve --port 0 --path ~/notes",
      "svc serve token",
      "svc serve --host 0.0.0.0",
    ],
    async run(values, io) {
      const serve = await load!(); // main.ts always passes it
      return await serve(values, io);
    },
  };
}
