import { argument, command, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { string } from "@optique/core/valueparser";
import type { Workspace } from "../../engine/workspace.ts";
import { type Backend, resolveConnection } from "../../providers/resolve.ts";
import { placeOf } from "../../providers/place.ts";
import { defineCommand, says } from "../command.ts";
import { toJson } from "../io.ts";
import { outputOption, pathOption } from "../options.ts";
import { openWorkspace } from "../workspace.ts";

/** `svc provider`: show the active provider, or switch to another (specification 4.7). */
export const provider = defineCommand({
  parser: command(
    "provider",
    object({
      name: optional(argument(string({ metavar: "PROVIDER" }))),
      global: option("--global", {
        description: says("Switch for all worktrees; default: this worktree only."),
      }),
      output: outputOption,
      path: pathOption,
    }),
    { description: says("Show the active provider and its model, or switch to another.") },
  ),
  examples: ["svc provider", "svc provider groq --global"],
  async run({ name, global, output, path }, io) {
    const workspace = openWorkspace(path, io);
    await workspace.load({ providers: "all" });
    const { config } = workspace;
    const backend = requested(workspace, name);
    const { provider, base_url, api_key } = backend;
    if (name !== undefined) {
      const scope = global ? "global" : "local";
      await config.set(scope, "provider", provider);
      await config.set(scope, "base_url", base_url);
      await config.set(scope, "model", backend.model);
      // What was said for this process alone would hide the switch in a session that goes on.
      for (const key of ["provider", "base_url", "model"] as const) config.release(key);
    }
    const model = backend.model || backend.cls.DEFAULT_MODEL || "";
    io.out(
      output === "json"
        ? toJson({ provider, model, base_url, has_key: api_key !== "" }, 2) + "\n"
        : `${provider} (${placeOf(backend.cls, base_url)}), model ${model || "none"}\n`,
    );
    if (config.get("connect_check") && name !== undefined) {
      const client = workspace.connect(backend, "");
      const interrupt = io.onInterrupt();
      try {
        const { ok, message } = await client.check_connection(interrupt.signal);
        if (!ok) io.note(`warning: ${message}`);
      } catch (error) {
        if (!interrupt.signal.aborted) throw error; // it is switched all the same
      } finally {
        interrupt.release();
        await client.close?.();
      }
    }
    if (name !== undefined && api_key === "" && base_url.startsWith("https:")) {
      io.note(`No key is stored for ${provider}; connect it with: svc connect ${provider}`);
    }
    return 0;
  },
});

/** The connection of the provider that is named, or of the active one. */
export function requested(workspace: Workspace, name: string | undefined): Backend {
  const { config, providers, connections } = workspace;
  const before = config.origin("provider") === "override" ? config.get("provider") : undefined;
  if (name !== undefined) config.override("provider", name);
  try {
    return resolveConnection(workspace.backendRequest(), providers, connections);
  } finally {
    if (before === undefined) config.release("provider");
    else config.override("provider", before);
  }
}
