import type { Config } from "../config/config.ts";
import type { ConnectionStore } from "./connections.ts";
import { type ModelRef, parseModelRef } from "./refs.ts";
import type { ProviderRegistry } from "./registry.ts";
import type { BackendRequest } from "./resolve.ts";

/** What is known of providers in one worktree. */
interface Known {
  config: Config;
  providers: ProviderRegistry;
  connections: ConnectionStore;
}

/** A backend that is asked for, and the ref that its model came from; such models need approval (5.2). */
export type RequestedBackend = BackendRequest & { ref: ModelRef | undefined };

/**
 * What the configuration says of the backend, model refs unfolded. A provider asked for in this run
 * leaves behind the model and the address that were configured for another, and takes its model as a
 * bare id.
 */
export function requestedBackend({ config, providers, connections }: Known): RequestedBackend {
  const asked = (key: string) => config.origin(key) === "override" ? config.get(key) as string : "";
  const set = (key: string) =>
    (config.getFrom("local", key) ?? config.getFrom("global", key) ?? "") as string;
  const ref = (model: string) => {
    const found = parseModelRef(model, providers, connections);
    return found.provider === "" ? undefined : found;
  };
  const ownRef = ref(set("model"));
  const own = ownRef ?? { provider: set("provider"), model: set("model") };
  const givenRef = asked("provider") === "" ? ref(asked("model")) : undefined;
  const given = givenRef ?? { provider: asked("provider"), model: asked("model") };
  const settled = own.provider !== "" || set("base_url") !== "";
  const other = given.provider !== "" && given.provider !== own.provider && settled;
  return {
    provider: given.provider || own.provider,
    base_url: asked("base_url") || (other ? "" : set("base_url")),
    model: given.model || (other ? "" : own.model),
    ref: given.model !== "" ? givenRef : other ? undefined : ownRef,
  };
}

/**
 * Takes a role's model for this run, in place of the configured one. A model that was asked for stays,
 * and so does a provider, which leaves behind a model of another.
 *
 * @returns the ref that the model came from; such models need approval (specification 5.2).
 */
export function adoptModel(
  model: string,
  { config, providers, connections }: Known,
): ModelRef | undefined {
  const asked = (key: string) => config.origin(key) === "override";
  if (model === "" || asked("model")) return undefined;
  const ref = parseModelRef(model, providers, connections);
  const provider = asked("provider") ? config.get("provider") : "";
  if (provider !== "" && ref.provider !== "" && ref.provider !== provider) return undefined;
  config.override("model", provider === "" ? model : ref.model);
  return ref.provider === "" ? undefined : ref;
}
