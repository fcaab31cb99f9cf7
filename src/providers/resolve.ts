import type { Config, ConfigScope } from "../config/config.ts";
import { nearest, type SvcError, usageError } from "../platform/error.ts";
import { VERSION } from "../platform/environment.ts";
import type { ConfigView, ProviderClass, ProviderOptions } from "../plugins/api.ts";
import { GENERIC_PROVIDER } from "./chat_completions.ts";
import type { Connection, ConnectionStore } from "./connections.ts";
import type { ProviderRegistry } from "./registry.ts";
import { canonicalBase, originOf } from "./url.ts";

/** The backend of a run: a provider, its address, key and model. */
export interface Backend {
  provider: string;
  cls: ProviderClass;
  base_url: string;
  model: string;
  /** Empty when no key is stored for this address. */
  api_key: string;
  /** The ref that named the model; such a model needs approval (specification 5.2). */
  ref?: ModelRef;
}

/** A backend before it is resolved; empty strings for parts that no layer names. */
export type BackendRequest = Pick<Backend, "provider" | "base_url" | "model" | "ref">;

/** The parts of a backend that one layer names, such as a configuration file or the flags. */
export interface NamedBackend {
  provider?: string;
  base_url?: string;
  /** A model id, or a ref, which names the provider too. */
  model?: string;
}

/** A model as `<provider>/<model>`, split. */
export interface ModelRef {
  /** Empty for a bare model id. */
  provider: string;
  model: string;
}

/** The known providers: their classes, and how the user connected them. */
export interface KnownProviders {
  providers: ProviderRegistry;
  connections: ConnectionStore;
}

/**
 * The backend that a run requests. Layers from weak to strong: the user's file, the worktree's file, the
 * flags, `asked`. Provider, address and model are each taken from the strongest layer that names them. A
 * layer that names another provider than the weaker layers discards their address and model.
 *
 * @param asked a command's layer above the flags. `role_model` counts as `--model` when that
 * flag is not set; a role model of another provider than `--provider` is ignored.
 */
export function requestBackend(
  known: KnownProviders & { config: Config },
  { role_model = "", ...asked }: NamedBackend & { role_model?: string } = {},
): BackendRequest {
  const { config } = known;
  const file = (scope: ConfigScope) => {
    const named = (key: string) => config.getFrom(scope, key) as string | undefined;
    return { provider: named("provider"), base_url: named("base_url"), model: named("model") };
  };
  const flag = (key: "provider" | "base_url" | "model") =>
    config.origin(key) === "override" && config.get(key) || undefined;
  const flags = { provider: flag("provider"), base_url: flag("base_url"), model: flag("model") };
  return combine([
    split(file("global"), known),
    split(file("local"), known),
    flags.model === undefined && role_model !== ""
      ? withRoleModel(flags, role_model, known)
      : splitTyped(flags, known),
    splitTyped(asked, known),
  ]);
}

/**
 * The backend for a role's model under the agent that starts the role. The caller's backend serves a bare
 * model, and a role without a model.
 *
 * @throws SvcError (exit 2), see `resolveBackend`
 */
export function roleBackend(model: string, caller: Backend, known: KnownProviders): Backend {
  if (model === "") return { ...caller, ref: undefined };
  const { provider, base_url } = caller;
  return resolveBackend(combine([{ provider, base_url }, split({ model }, known)]), known);
}

/**
 * Looks up class, address, key and default model of a requested backend. A provider without a requested
 * address has the one that the user connected, else its default. Without a provider, the address selects
 * it; see `detectProvider`.
 *
 * @throws SvcError (exit 2) `no_provider`, `unknown_provider`, `no_base_url`, `no_model`.
 */
export function resolveBackend(request: BackendRequest, known: KnownProviders): Backend {
  const backend = resolveConnection(request, known);
  const model = backend.model || backend.cls.DEFAULT_MODEL;
  if (model === "") {
    throw usageError(
      "no_model",
      `No model is chosen for ${backend.provider}.`,
      `\`svc models list ${backend.provider}\` names those on offer; choose one with \`svc model NAME\`, or --model.`,
    );
  }
  return { ...backend, model };
}

/** Like `resolveBackend` for requests that need no model, such as listing models. */
export function resolveConnection(request: BackendRequest, known: KnownProviders): Backend {
  const { providers, connections } = known;
  const { model, ref } = request;
  if (request.provider === "" && request.base_url === "") {
    throw usageError(
      "no_provider",
      "No model provider is connected.",
      "Connect one with `svc connect`, or try the built-in stand-in with `--provider demo`.",
    );
  }
  const provider = request.provider || detectProvider(request.base_url, known);
  checkProvider(provider, known);
  const connection = connections.get(provider);
  const cls = providers.get(provider) ?? providers.get(GENERIC_PROVIDER)!;
  const own = connection?.base_url || cls.DEFAULT_BASE_URL;
  const base_url = request.base_url || own;
  if (base_url === "" && cls === providers.get(GENERIC_PROVIDER)) {
    throw usageError(
      "no_base_url",
      `The provider ${provider} needs a base URL.`,
      "Pass it with --base-url, or connect it with `svc connect <url>`.",
    );
  }
  return { provider, cls, base_url, model, ref, api_key: keyFor(base_url, own, connection) };
}

/**
 * Host detection (specification 4.10): the provider at a base URL. A custom connection to this address
 * wins, then the provider whose default it is, then the longest matching host pattern; else
 * `generic-compatible`.
 */
export function detectProvider(
  base_url: string,
  { providers, connections }: { providers: ProviderRegistry; connections?: ConnectionStore },
): string {
  const base = canonicalBase(base_url);
  if (base === "") return GENERIC_PROVIDER;
  for (const [name, connection] of connections?.list() ?? []) {
    const custom = providers.get(name) === undefined;
    if (custom && canonicalBase(connection.base_url) === base) return name;
  }
  const names = providers.names();
  const { hostname } = new URL(base);
  const isDefault = (name: string) => {
    const { DEFAULT_BASE_URL: own } = providers.get(name)!;
    return own.toLowerCase().includes(hostname) && canonicalBase(own) === base;
  };
  const [host] = base.split("?") as [string];
  const patterns = names
    .flatMap((name) => providers.get(name)!.HOST_PATTERNS.map((pattern) => ({ name, pattern })))
    .filter(({ pattern }) => host.includes(pattern.toLowerCase()))
    .sort((a, b) => b.pattern.length - a.pattern.length);
  return names.find(isDefault) ?? patterns[0]?.name ?? GENERIC_PROVIDER;
}

/**
 * Splits `<provider>/<model>` when the provider has an address: a registered one with a default base URL,
 * or a connected custom one. Any other text is a bare model id, slashes included (specification 4.10).
 */
export function parseModelRef(text: string, known: KnownProviders): ModelRef {
  const slash = text.indexOf("/");
  const provider = text.slice(0, Math.max(slash, 0));
  const model = text.slice(slash + 1);
  const isRef = provider !== "" && model !== "" && ownAddress(provider, known) !== "";
  return isRef ? { provider, model } : { provider: "", model: text };
}

/**
 * The stored key, if it was stored for this address. A base URL can come from a project's own
 * configuration, and a key must not follow it to another host.
 */
export function keyFor(base_url: string, own: string, connection: Connection | undefined): string {
  const origin = originOf(base_url);
  return origin !== "" && origin === originOf(own) ? connection?.api_key ?? "" : "";
}

/** The options that every provider gets from the configuration, whatever its backend. */
export type SharedOptions = Omit<ProviderOptions, "name" | "base_url" | "api_key">;

/** Sampling, time limits and identification of a provider; `model` stays empty. */
export function sharedOptions(config: ConfigView, session_id: string): SharedOptions {
  const reasoning = config.get("reasoning");
  return {
    model: "",
    session_id,
    user_agent: `svc/${VERSION}`,
    temperature: config.get("temperature"),
    max_tokens: config.get("max_tokens"),
    wire: config.get("wire"),
    reasoning: reasoning === false ? "off" : reasoning === true ? "on" : reasoning,
    idle_timeout: config.get("idle_timeout"),
    content_timeout: config.get("content_timeout"),
    retry_budget: config.get("retry_budget"),
  };
}

/**
 * Rejects a provider name that is neither registered nor connected.
 *
 * @throws SvcError `unknown_provider` (exit 2)
 */
export function checkProvider(name: string, known: KnownProviders): void {
  const { providers, connections } = known;
  if (providers.get(name) === undefined && !connections.get(name)?.base_url) {
    throw unknownProvider(name, known);
  }
}

/** The error for a provider name that is neither registered nor connected. */
function unknownProvider(
  provider: string,
  { providers, connections }: KnownProviders,
): SvcError {
  const own = Array.from(connections.list()).filter(([, { base_url }]) => base_url !== "")
    .map(([name]) => name);
  const known = [...new Set([...providers.names(), ...own])];
  const close = nearest(provider, known);
  return usageError(
    "unknown_provider",
    `There is no provider ${JSON.stringify(provider)}.`,
    close === undefined
      ? `Known: ${known.join(", ")}. Connect another with \`svc connect <url>\`.`
      : `Did you mean ${close}?`,
  );
}

/** The address of a backend for display: `built in` for one that the program serves itself. */
export function displayAddress(cls: ProviderClass | undefined, base_url: string): string {
  return cls?.BUILT_IN && base_url === cls.DEFAULT_BASE_URL ? "built in" : base_url;
}

/** A layer whose model ref is split into provider and model. */
type Layer = NamedBackend & { ref?: ModelRef };

/** Combines layers, from weak to strong. */
function combine(layers: Layer[]): BackendRequest {
  let request: BackendRequest = { provider: "", base_url: "", model: "" };
  for (const { provider, base_url, model, ref } of layers) {
    const named = request.provider !== "" || request.base_url !== "";
    if (named && provider && provider !== request.provider) {
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

/** Splits the model ref of a configuration file. Its provider replaces the key `provider`. */
function split(named: NamedBackend, known: KnownProviders): Layer {
  const ref = parseModelRef(named.model ?? "", known);
  if (ref.provider === "") return named;
  const { provider = ref.provider, base_url = "" } = named;
  // `svc connect` writes a provider with its own address, which is not meant for a ref's provider.
  const ofOther = provider !== ref.provider &&
    canonicalBase(base_url) === canonicalBase(ownAddress(provider, known));
  return { ...ref, base_url: ofOther ? undefined : named.base_url, ref };
}

/** Splits the model ref of flags or a command. Next to a provider, a model is a bare id. */
function splitTyped(named: NamedBackend, known: KnownProviders): Layer {
  return named.provider === undefined ? split(named, known) : named;
}

/** The flags, with a role's model instead of `--model` unless it is another provider's. */
function withRoleModel(flags: NamedBackend, role_model: string, known: KnownProviders): Layer {
  const { provider = flags.provider, model, ref } = split({ model: role_model }, known);
  if (flags.provider !== undefined && flags.provider !== provider) return flags;
  return { provider, base_url: flags.base_url, model, ref };
}

/** The address of a provider when none is requested; empty when it has none. */
function ownAddress(name: string, { providers, connections }: KnownProviders): string {
  return connections.get(name)?.base_url || providers.get(name)?.DEFAULT_BASE_URL || "";
}
