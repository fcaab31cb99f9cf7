import { type Command, pathOption, textOption, trustOption } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { logOption } from "../commands/log.ts";
import type { WorkerValues } from "./worker.ts";
import { nameOf } from "../commands/names.ts";
import {
  argument,
  choice,
  command,
  type InferValue,
  integer,
  option,
  optional,
} from "../commands/options.ts";

const listen = command("listen", {
  action: "listen",
  host: textOption(
    "--host",
    "HOST",
    "The address to listen on. Default: SVC_HOST, or 127.0.0.1.",
  ),
  port: optional(
    option(
      "--port",
      integer("PORT", 0, 65535),
      "The port; 0 takes a free one. Default: SVC_PORT, or 8787.",
    ),
  ),
  insecure: option("--insecure", "Listen beyond this machine without asking for tokens."),
  no_work: option("--no-work", "Leave accepted runs to svc worker, with a store."),
  console: optional(
    option(
      "--console/--no-console",
      "Serve the console at /console wherever the server listens, or nowhere.",
    ),
  ),
  log: logOption,
  trust: trustOption,
  path: pathOption,
}, "Serve until interrupted (the default).");

const roleOption = optional(
  option(
    "--role",
    choice(["read", "answer", "operate"], "ROLE"),
    "What its holder may do: read; answer asks, too; or operate, which is everything (the default).",
  ),
);

const token = command(
  "token",
  { action: "token", role: roleOption, path: pathOption },
  "Make a bearer token for the server, and print it.",
);

const hook = command(
  "hook",
  { action: "hook", job: argument(nameOf("jobs"), "The job."), path: pathOption },
  "Make the secret with which other programs start a job by POST /hooks/JOB, and print it.",
);

const parser = command(
  "serve",
  [token, hook, listen],
  "Serve the agent of a worktree over HTTP until interrupted.",
);

const consoleParser = command("console", {
  action: "console",
  role: roleOption,
  url: textOption(
    "--url",
    "URL",
    "The address of the server in the link; default: that of the last svc serve on the worktree.",
  ),
  path: pathOption,
}, "Print a link that opens the console of a running server, once.");

type ServeValues =
  | InferValue<typeof parser>
  | InferValue<typeof consoleParser>
  | WorkerValues
  | { action: "fleet"; host: string; port: number; console: true; path: string };

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
