import { object } from "@optique/core/constructs";
import { formatDocPage } from "@optique/core/doc";
import { formatMessage } from "@optique/core/message";
import { optional } from "@optique/core/modifiers";
import { getDocPage, type InferValue, parse } from "@optique/core/parser";
import { option } from "@optique/core/primitives";
import { string } from "@optique/core/valueparser";
import { text } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { pathOption } from "../commands/command.ts";
import { usageError } from "../platform/error.ts";

const parser = object({
  session: optional(option("--session-id", string({ metavar: "NAME" }), {
    description: text("Load this session and go on in it, or create it with the first message."),
  })),
  resume: option("-c", "--continue", { description: text("Go on in the newest session.") }),
  model: optional(option("--model", string({ metavar: "REF" }), {
    description: text("A model, or <provider>/<model>, for this process."),
  })),
  provider: optional(option("--provider", string({ metavar: "NAME" }), {
    description: text("The provider for this process."),
  })),
  mode: optional(option("--mode", string({ metavar: "MODE" }), {
    description: text("build, plan, or a mode of your configuration."),
  })),
  role: optional(option("--role", string({ metavar: "NAME" }), {
    description: text("Run as this role of the catalog; see `svc roles list`."),
  })),
  unattended: option("--unattended", {
    description: text("Nobody will answer: confirmations are denied, questions are parked."),
  }),
  path: pathOption,
});

/** Parses what stands behind `svc`; undefined when its help was asked for and shown. */
export function parseReplOptions(
  args: string[],
  io: Io,
): InferValue<typeof parser> | undefined {
  if (args.includes("--help") || args.includes("-h")) {
    const page = getDocPage(parser);
    if (page) io.out(formatDocPage("svc", page, { colors: false, maxWidth: 100 }) + "\n");
    return undefined;
  }
  const parsed = parse(parser, args);
  if (parsed.success) return parsed.value;
  const message = formatMessage(parsed.error, { colors: false, quotes: true });
  throw usageError(
    "usage",
    message.replace(/\s*\n\s*/g, " ").trim(),
    'For one turn: svc run -p "..."; the options of a session: svc --continue --help',
  );
}
