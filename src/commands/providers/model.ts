import { argument, command, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { string } from "@optique/core/valueparser";
import type { Workspace } from "../../engine/workspace.ts";
import { usageError } from "../../platform/error.ts";
import { approveModels } from "../../providers/approvals.ts";
import { parseModelRef } from "../../providers/refs.ts";
import { placeOf } from "../../providers/place.ts";
import { defineCommand, says } from "../command.ts";
import { toJson } from "../io.ts";
import { outputOption, pathOption } from "../options.ts";
import { requested } from "./provider.ts";
import { openWorkspace } from "../workspace.ts";

/** `svc model`: show the model, or choose another (specification 4.7, 5.2). */
export const model = defineCommand({
  parser: command(
    "model",
    object({
      ref: optional(argument(string({ metavar: "REF" }), {
        description: says("A model of the active provider, or <provider>/<model>."),
      })),
      global: option("--global", {
        description: says("Choose it for all worktrees; default: this worktree only."),
      }),
      output: outputOption,
      path: pathOption,
    }),
    { description: says("Show the model in use, or choose another. A ref is approved by that.") },
  ),
  examples: ["svc model", "svc model llama-3.3-70b-versatile", "svc model openai/gpt-4o-mini"],
  async run({ ref: given, global, output, path }, io) {
    const workspace = openWorkspace(path, io);
    await workspace.load({ providers: "all" });
    const { config, providers, connections } = workspace;
    if (given !== undefined) {
      if (given.trim() === "") throw usageError("usage", "A model has a name.");
      assertUsable(given, workspace); // nothing is written that leads nowhere
      const ref = parseModelRef(given, providers, connections);
      if (ref.provider !== "") {
        await approveModels([ref], workspace.models, {
          granted: !io.isTerminal("in"),
          ask: () => io.confirm(`Approve ${ref.provider}/${ref.model} for use from now on?`),
        });
      }
      await config.set(global ? "global" : "local", "model", given);
      for (const key of ["model", "provider"] as const) config.release(key);
      // In a session that goes on the choice also counts over the model of its role.
      if (io.live !== undefined) config.override("model", given);
    }
    const { provider, base_url, api_key, cls, ...chosen } = requested(workspace, undefined);
    const model = chosen.model || cls.DEFAULT_MODEL || "";
    io.out(
      output === "json"
        ? toJson({ provider, model, base_url, has_key: api_key !== "" }, 2) + "\n"
        : `${provider}/${model || "none"} (${placeOf(cls, base_url)})\n`,
    );
    if (api_key === "" && base_url.startsWith("https:")) {
      io.note(`No key is stored for ${provider}; connect it with: svc connect ${provider}`);
    }
    return 0;
  },
});

/** @throws SvcError (exit 2) when there is no provider that a model could be asked of */
function assertUsable(model: string, workspace: Workspace): void {
  const { config } = workspace;
  const before = config.origin("model") === "override" ? config.get("model") : undefined;
  config.override("model", model);
  try {
    requested(workspace, undefined);
  } finally {
    if (before === undefined) config.release("model");
    else config.override("model", before);
  }
}
