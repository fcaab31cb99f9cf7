import { option } from "@optique/core/primitives";
import { optional, withDefault } from "@optique/core/modifiers";
import { choice, string } from "@optique/core/valueparser";
import { usageError } from "../../platform/error.ts";
import { says } from "../command.ts";
import { pathOption } from "../options.ts";

/** The options of every command that runs agents without a terminal. */
export const turnOptions = {
  session: optional(option("--session-id", string({ metavar: "NAME" }), {
    description: says("Load this session and go on in it, or create it."),
  })),
  model: optional(option("--model", string({ metavar: "REF" }), {
    description: says("A model, or <provider>/<model>."),
  })),
  provider: optional(option("--provider", string({ metavar: "NAME" }), {
    description: says("The provider for this run."),
  })),
  base_url: optional(option("--base-url", string({ metavar: "URL" }), {
    description: says("The backend's address for this run."),
  })),
  mode: optional(option("--mode", string({ metavar: "MODE" }), {
    description: says("build, plan, or a mode of your configuration."),
  })),
  output: withDefault(
    option("--output", choice(["json", "text", "stream-json"]), {
      description: says(
        "json: the whole result. text: the answer as it comes. stream-json: one event per line.",
      ),
    }),
    "json",
  ),
  unattended: option("--unattended", {
    description: says("Nobody will answer: questions are parked, standard input is not used."),
  }),
  approve_model: option("--approve-model", {
    description: says("Approve the models that the configuration and roles refer to."),
  }),
  yes: option("--yes", { description: says("Approve every call that the policy asks about.") }),
  no: option("--no", { description: says("Refuse every such call (the default).") }),
  verbose: option("--verbose", { description: says("Show the activity on standard error.") }),
  path: pathOption,
};

/**
 * The settings that the options make for this run.
 *
 * @throws SvcError `usage` (exit 2) for options that exclude each other
 */
export function turnOverrides(values: {
  yes: boolean;
  no: boolean;
  model?: string;
  provider?: string;
  base_url?: string;
  mode?: string;
  unattended: boolean;
}): Record<string, unknown> {
  if (values.yes && values.no) {
    throw usageError("usage", "--yes and --no exclude each other.", "Pass one of them.");
  }
  const { model, provider, base_url, mode, unattended } = values;
  const given = { model, provider, base_url, mode, unattended: unattended || undefined };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
