import { object, or } from "@optique/core/constructs";
import { map, optional } from "@optique/core/modifiers";
import type { InferValue } from "@optique/core/parser";
import { command, constant, option } from "@optique/core/primitives";
import { choice, integer } from "@optique/core/valueparser";
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
    console: optional(or(
      option("--console", {
        description: text("Serve the console at /console, wherever the server listens."),
      }),
      map(option("--no-console", { description: text("Serve no console.") }), () => false),
    )),
    log: logOption,
    trust: trustOption,
    path: pathOption,
  }),
  { description: text("Serve until interrupted (the default).") },
);

const roleOption = optional(
  option("--role", choice(["read", "answer", "operate"], { metavar: "ROLE" }), {
    description: text(
      "What its holder may do: read; answer asks, too; or operate, which is everything (the default).",
    ),
  }),
);

const token = command(
  "token",
  object({ action: constant("token"), role: roleOption, path: pathOption }),
  { description: text("Make a bearer token for the server, and print it.") },
);

const parser = command("serve", or(token, listen), {
  description: text("Serve the agent of a worktree over HTTP until interrupted."),
});

const consoleParser = command(
  "console",
  object({
    action: constant("console"),
    role: roleOption,
    url: textOption(
      "--url",
      "URL",
      "The address of the server in the link; default: that of the last svc serve on the worktree.",
    ),
    path: pathOption,
  }),
  { description: text("Print a link that opens the console of a running server, once.") },
);

type ServeValues = InferValue<typeof parser> | InferValue<typeof consoleParser>;

/** Loads the HTTP server of `src/server/`. */
export type LoadServe = () => Promise<(values: ServeValues, io: Io) => Promise<number>>;

/** `svc serve` (specification 4.1): the HTTP API. */
export function serveCommand(load?: LoadServe): Command<InferValue<typeof parser>> {
  return {
    parser,
    bare: "listen",
    examples: [
      "svc serve",
      "svc serve --port 0 --path ~/notes",
      "svc serve token --role read",
      "svc serve --host 0.0.0.0",
    ],
    async run(values, io) {
      const serve = await load!(); // main.ts always passes it
      return await serve(values, io);
    },
  };
}

/** `svc console`: a one-time link to the console of `svc serve`. */
export function consoleCommand(load?: LoadServe): Command<InferValue<typeof consoleParser>> {
  return {
    parser: consoleParser,
    examples: ["svc console", "svc console --role answer --url https://svc.example.org"],
    async run(values, io) {
      return await (await load!())(values, io);
    },
  };
}
