import { type SvcError, usageError } from "../platform/error.ts";
import { nearest } from "../platform/nearest.ts";
import type { ProviderClass } from "../plugins/api.ts";
import type { Connection, ConnectionStore } from "./connections.ts";
import { GENERIC_PROVIDER, type ProviderRegistry } from "./registry.ts";
import { canonicalBase, originOf } from "./url.ts";

/** What a provider is to be made of. */
export interface Backend {
  provider: string;
  cls: ProviderClass;
  base_url: string;
  model: string;
  /** Empty when none is stored for this address. */
  api_key: string;
}

/** The effective configuration and flags; empty strings where nothing is set. */
export interface BackendRequest {
  provider: string;
  base_url: string;
  model: string;
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
  const addressless = own === "" && cls === registry.get(GENERIC_PROVIDER);
  const foreign = !addressless && isOthers(request.base_url, provider, registry, stored);
  const base_url = foreign ? own : request.base_url || own;
  if (addressless && base_url === "") {
    throw usageError(
      "no_base_url",
      `The provider ${provider} needs a base URL.`,
      "Pass it with --base-url, or connect it with `svc connect <url>`.",
    );
  }
  const { model } = request;
  return { provider, cls, base_url, model, api_key: keyFor(base_url, own, connection) };
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

/**
 * Whether an address is the very one of another provider. The configuration names provider and address
 * together; a flag or a model ref that changes the provider leaves the former one's address behind.
 */
function isOthers(
  base_url: string,
  provider: string,
  registry: ProviderRegistry,
  stored: Map<string, Connection>,
): boolean {
  const base = canonicalBase(base_url);
  const is = (address: string | undefined) => address && canonicalBase(address) === base;
  const owners = [
    ...registry.names().filter((name) => is(registry.get(name)?.DEFAULT_BASE_URL)),
    ...[...stored].filter(([, connection]) => is(connection.base_url)).map(([name]) => name),
  ];
  return owners.length > 0 && !owners.includes(provider);
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
