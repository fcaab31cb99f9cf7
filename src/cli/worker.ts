import { type Command, pathOption, textOption, trustOption } from "../commands/command.ts";
import { logOption } from "../commands/log.ts";
import {
  command,
  type InferValue,
  integer,
  multiple,
  option,
  optional,
  string,
} from "../commands/options.ts";
import type { LoadServe } from "./serve.ts";

const parser = command("worker", {
  action: "worker",
  label: multiple(
    option("--label", string("LABEL"), "Take jobs with this label, too; may be repeated."),
  ),
  concurrency: optional(
    option(
      "--concurrency",
      integer("N", 1),
      "Jobs and runs at the same time at most. Default: jobs.concurrency (1).",
    ),
  ),
  host: textOption(
    "--host",
    "HOST",
    "The address of /health, /ready and /metrics. Default: SVC_HOST, or 127.0.0.1.",
  ),
  port: optional(
    option(
      "--port",
      integer("PORT", 0, 65535),
      "Their port. Default: SVC_PORT, or 8787; a free one where that is taken.",
    ),
  ),
  quiet: option("--quiet", "Print failures only."),
  log: logOption,
  trust: trustOption,
  path: pathOption,
}, "Run the jobs and accepted runs of the project's store, until interrupted.");

export type WorkerValues = InferValue<typeof parser>;

/** `svc worker`: takes what is due from the queue that several machines share. */
export function workerCommand(load?: LoadServe): Command<WorkerValues> {
  return {
    parser,
    examples: ["svc worker", "svc worker --label gpu --concurrency 4"],
    async run(values, io) {
      return await (await load!())(values, io); // main.ts always passes it
    },
  };
}
