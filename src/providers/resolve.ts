import type { Config, ConfigScope } from "../config/config.ts";
import { nearest, type SvcError, usageError } from "../platform/error.ts";
import type { ProviderClass } from "../plugins/api.ts";
import type { Connection, ConnectionStore } from "./connections.ts";
import { type ModelRef, parseModelRef } from "./refs.ts";
import { GENERIC_PROVIDER, type ProviderRegistry } from "./registry.ts";
import { canonicalBase, originOf } from "./url.ts";

/** The backend of a run: a provider, its address, key and model. */
export interface Backend {
  provider: string;
  cls: ProviderClass;
  base_url: string;
  model: string;
  /** Empty when none is stored for this address. */
  api_key: string;
  /** The ref that the model came from; such a model needs approval (specification 5.2). */
  ref?: ModelRef;
}

/** A backend as it is requested; empty strings for what is not named. */
export type BackendRequest = Pick<Backend, "provider" | "base_url" | "model" | "ref">;

/** What one place, such as a configuration file or the flags, names of a backend. */
export interface NamedBackend {
  provider?: string;
  base_url?: string;
  /** A model id, or a ref, which names the provider too. */
  model?: string;
}

/** The configuration and the registries of one worktree. */
export interface BackendSources {
  config: Config;
  providers: ProviderRegistry;
  connections: ConnectionStore;
}

/**
 * The backend that is requested for a run. Places from weak to strong: the user's file, the worktree's
 * file, the flags, `asked`. Provider, address and model are each taken from the strongest place that
 * names them. A place that names another provider than the weaker ones discards their address and model.
 *
 * @param asked what a command names in addition to the flags. `role_model` counts as `--model` when that
 * flag is not set; a role model of another provider than `--provider` is ignored.
 */
export function requestBackend(
  sources: BackendSources,
  { role_model = "", ...asked }: NamedBackend & { role_model?: string } = {},
): BackendRequest {
  const { config } = sources;
  const file = (scope: ConfigScope) => {
    const setting = (key: string) => config.getFrom(scope, key) as string | undefined;
    return {
      provider: setting("provider"),
      base_url: setting("base_url"),
      model: setting("model"),
    };
  };
  return combine([
    unfold(file("global"), sources),
    unfold(file("local"), sources),
    flagged(role_model, sources),
    explicit(asked, sources),
  ]);
}

/**
 * The backend that serves a role's model, given the backend of the agent that starts it. A bare model and
 * an empty one are served by the caller's backend.
 *
 * @throws SvcError (exit 2), see `resolveBackend`
 */
export function roleBackend(model: string, caller: Backend, sources: BackendSources): Backend {
  if (model === "") return { ...caller, ref: undefined };
  const { provider, base_url } = caller;
  const request = combine([{ provider, base_url }, unfold({ model }, sources)]);
  return resolveBackend(request, sources.providers, sources.connections);
}

/** A `NamedBackend` whose model is a plain id. */
type Place = NamedBackend & { ref?: ModelRef };

/** Puts places together, from weak to strong. */
function combine(places: Place[]): BackendRequest {
  let request: BackendRequest = { provider: "", base_url: "", model: "" };
  for (const { provider, base_url, model, ref } of places) {
    const settled = request.provider !== "" || request.base_url !== "";
    if (provider && provider !== request.provider && settled) {
      request = { provider, base_url: "", model: "" };
    }
    request = {
      provider: provider ?? request.provider,
      base_url: base_url ?? request.base_url,
      model: model ?? request.model,
      ref: model === undefined ? request.ref : ref,
    };
  }
  return request;
}

/** Takes the model of a place apart. A ref names the provider, in place of the key `provider`. */
function unfold(named: NamedBackend, { providers, connections }: BackendSources): Place {
  const ref = parseModelRef(named.model ?? "", providers, connections);
  if (ref.provider === "") return named;
  const { provider = ref.provider, base_url = "" } = named;
  // `svc connect` writes a provider and its own address; a ref of another provider is not for that address.
  const others = provider !== ref.provider &&
    canonicalBase(base_url) === canonicalBase(ownAddress(provider, providers, connections));
  return { ...ref, base_url: others ? undefined : named.base_url, ref };
}

/** Like `unfold` for what a person typed: next to a provider, a model is a plain id, slashes and all. */
function explicit(named: NamedBackend, sources: BackendSources): Place {
  return named.provider === undefined ? unfold(named, sources) : named;
}

/** What the flags name; a role's model counts as one where `--model` is not set. */
function flagged(role_model: string, sources: BackendSources): Place {
  const { config } = sources;
  const flag = (key: "provider" | "base_url" | "model") =>
    config.origin(key) === "override" && config.get(key) || undefined;
  const flags = { provider: flag("provider"), base_url: flag("base_url"), model: flag("model") };
  if (flags.model !== undefined || role_model === "") return explicit(flags, sources);
  const role = unfold({ model: role_model }, sources);
  const foreign = flags.provider !== undefined && role.provider !== undefined &&
    role.provider !== flags.provider;
  if (foreign) return flags;
  return { ...role, base_url: flags.base_url, provider: flags.provider ?? role.provider };
}

/**
 * The backend that a request means, with its default model if the request names none.
 *
 * @throws SvcError (exit 2) `no_provider`, `unknown_provider`, `no_base_url`, `no_model`.
 */
export function resolveBackend(
  request: BackendRequest,
  registry: ProviderRegistry,
  connections: ConnectionStore,
): Backend {
  const backend = resolveConnection(request, registry, connections);
  const model = backend.model || backend.cls.DEFAULT_MODEL;
  if (model === "") {
    throw usageError(
      "no_model",
      `No model is chosen for ${backend.provider}.`,
      `\`svc models list ${backend.provider}\` names those on offer; choose one with --model.`,
    );
  }
  return { ...backend, model };
}

/** Like `resolveBackend` for requests that need no model, such as listing models. */
export function resolveConnection(
  request: BackendRequest,
  registry: ProviderRegistry,
  connections: ConnectionStore,
): Backend {
  const stored = connections.list();
  const provider = request.provider || providerOfAddress(request.base_url, registry, stored);
  const connection = stored.get(provider);
  const cls = registry.get(provider) ?? customClass(provider, registry, connection);
  const own = connection?.base_url || cls.DEFAULT_BASE_URL;
  const base_url = request.base_url || own;
  if (base_url === "" && cls === registry.get(GENERIC_PROVIDER)) {
    throw usageError(
      "no_base_url",
      `The provider ${provider} needs a base URL.`,
      "Pass it with --base-url, or connect it with `svc connect <url>`.",
    );
  }
  const { model, ref } = request;
  return { provider, cls, base_url, model, ref, api_key: keyFor(base_url, own, connection) };
}

/** The address of a provider unless another one is named: the connected one, else its default. */
function ownAddress(name: string, registry: ProviderRegistry, connections: ConnectionStore) {
  return connections.get(name)?.base_url || registry.get(name)?.DEFAULT_BASE_URL || "";
}

/**
 * The stored key, if it was stored for this address. A base URL can come from a project's own
 * configuration, and a key must not follow it to another host.
 */
export function keyFor(base_url: string, own: string, connection: Connection | undefined): string {
  const origin = originOf(base_url);
  return origin !== "" && origin === originOf(own) ? connection?.api_key ?? "" : "";
}

function providerOfAddress(
  base_url: string,
  registry: ProviderRegistry,
  stored: Map<string, Connection>,
): string {
  if (base_url === "") {
    throw usageError(
      "no_provider",
      "No model provider is connected.",
      "Connect one with `svc connect`, or try the built-in stand-in with `--provider demo`.",
    );
  }
  return customName(base_url, registry, stored) ?? registry.detect(base_url);
}

/** The name of the custom connection that was stored for an address. */
export function customName(
  base_url: string,
  registry: ProviderRegistry,
  stored: Map<string, Connection>,
): string | undefined {
  const base = canonicalBase(base_url);
  for (const [name, connection] of stored) {
    const custom = registry.get(name) === undefined && connection.base_url !== "";
    if (custom && canonicalBase(connection.base_url) === base) return name;
  }
  return undefined;
}

function customClass(
  provider: string,
  registry: ProviderRegistry,
  connection: Connection | undefined,
): ProviderClass {
  if (connection !== undefined && connection.base_url !== "") {
    return registry.get(GENERIC_PROVIDER)!;
  }
  throw unknownProvider(provider, registry);
}

/** The error for a provider name that stands for nothing. */
export function unknownProvider(provider: string, registry: ProviderRegistry): SvcError {
  const close = nearest(provider, registry.names());
  return usageError(
    "unknown_provider",
    `There is no provider ${JSON.stringify(provider)}.`,
    close === undefined
      ? `Known: ${registry.names().join(", ")}. Connect another with \`svc connect <url>\`.`
      : `Did you mean ${close}?`,
  );
}
