import { argument, command } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { choice, string } from "@optique/core/valueparser";
import { defineCommand, says } from "../command.ts";
import { type Io, toJson } from "../io.ts";
import { outputOption, pathOption } from "../options.ts";
import { requested } from "./provider.ts";
import { openWorkspace } from "../workspace.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { stripControl } from "../../platform/terminal.ts";

/** `svc models` (specification 4.4): the models in use, and those a provider offers. */
export const models = defineCommand({
  parser: command(
    "models",
    object({
      action: optional(argument(choice(["list"], { metavar: "ACTION" }), {
        description: says("Ask a provider (default: the active one) which models it offers."),
      })),
      provider: optional(argument(string({ metavar: "PROVIDER" }))),
      output: outputOption,
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
    if (values.action === "list") {
      const offered = await advertised(workspace, values.provider, io);
      if (offered === undefined) return 130;
      print(offered, (model) => [model], "The provider offers no models.", values.output, io);
    } else {
      const none = `No provider is connected; see: ${io.program}connect --help`;
      print(configured(workspace), groupLines, none, values.output, io);
    }
    return 0;
  },
});

function print<T>(
  found: T[],
  lines: (each: T) => string[],
  none: string,
  output: "text" | "json",
  io: Io,
): void {
  if (output === "json") return io.out(toJson(found, 2) + "\n");
  for (const line of found.flatMap(lines)) io.out(stripControl(line) + "\n");
  if (found.length === 0) io.note(none);
}

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

/** A provider with its approved models and the active one. */
interface Group {
  provider: string;
  has_key: boolean;
  models: { model: string; active: boolean }[];
}

/** The approved models and the active one, grouped by provider. */
function configured(workspace: Workspace): Group[] {
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
  return Array.from(groups, ([provider, names]) => ({
    provider,
    has_key: Boolean(connections.get(provider)?.api_key),
    models: Array.from(names, (model) => ({
      model,
      active: provider === active.provider && model === activeModel,
    })),
  }));
}

function groupLines({ provider, has_key, models }: Group): string[] {
  return [
    `${provider}${has_key ? " (key)" : ""}`,
    ...models.map(({ model, active }) => `  ${active ? "*" : " "} ${provider}/${model}`),
  ];
}
