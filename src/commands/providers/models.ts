import { argument, command } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { choice, string } from "@optique/core/valueparser";
import { defineCommand, says } from "../command.ts";
import type { Io } from "../io.ts";
import { pathOption } from "../options.ts";
import { requested } from "./provider.ts";
import { openWorkspace } from "../workspace.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { stripControl } from "../../platform/terminal.ts";

/** `svc models` (specification 4.4): the models in use, and those a provider offers. */
export const models = defineCommand({
  parser: command(
    "models",
    object({
      action: optional(argument(choice(["list"]), {
        description: says("Ask a provider (default: the active one) which models it offers."),
      })),
      provider: optional(argument(string({ metavar: "PROVIDER" }))),
      path: pathOption,
    }),
    {
      description: says(
        "Show the approved and configured models by provider: * is the active one, (key) means that " +
          "a key is stored.",
      ),
    },
  ),
  examples: ["svc models", "svc models list", "svc models list groq"],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    await workspace.load({ providers: "all" });
    const lines = values.action === "list"
      ? await advertised(workspace, values.provider, io)
      : configured(workspace);
    if (lines === undefined) return 130;
    if (lines.length === 0) {
      io.note(
        values.action === "list"
          ? "The provider offers no models."
          : `No provider is connected; see: ${io.program}connect --help`,
      );
    }
    for (const line of lines) io.out(stripControl(line) + "\n");
    return 0;
  },
});

/** Undefined when it was interrupted. */
async function advertised(
  workspace: Workspace,
  name: string | undefined,
  io: Io,
): Promise<string[] | undefined> {
  const provider = workspace.connect(requested(workspace, name), "");
  const interrupt = io.onInterrupt();
  try {
    return await provider.list_models(interrupt.signal);
  } catch (error) {
    if (!interrupt.signal.aborted) throw error;
    io.note("Cancelled.");
    return undefined;
  } finally {
    interrupt.release();
    await provider.close?.();
  }
}

/** The approved models and the active one, grouped by provider. */
function configured(workspace: Workspace): string[] {
  const { providers, connections } = workspace;
  const request = workspace.backendRequest();
  // An address alone is a backend too: the provider that is known to be there, or any.
  const active = request.provider === "" && request.base_url !== ""
    ? { ...request, provider: requested(workspace, undefined).provider }
    : request;
  const activeModel = active.model || providers.get(active.provider)?.DEFAULT_MODEL || "";
  const groups = new Map<string, Set<string>>();
  const add = (provider: string, model: string) => {
    const group = groups.get(provider) ?? new Set();
    if (model !== "") group.add(model);
    groups.set(provider, group);
  };
  for (const name of connections.list().keys()) add(name, "");
  for (const { provider, model } of workspace.models.list()) add(provider, model);
  if (active.provider !== "") add(active.provider, activeModel);
  return [...groups].flatMap(([provider, names]) => {
    const key = connections.get(provider)?.api_key ? " (key)" : "";
    return [
      `${provider}${key}`,
      ...[...names].map((model) => {
        const marker = provider === active.provider && model === activeModel ? "*" : " ";
        return `  ${marker} ${provider}/${model}`;
      }),
    ];
  });
}
