import { usageError } from "../platform/error.ts";
import type { ProviderClass, ProviderOptions } from "../plugins/api.ts";
import type { ConnectionStore } from "./connections.ts";
import { placeOf } from "./place.ts";
import { GENERIC_PROVIDER, isProviderName, type ProviderRegistry } from "./registry.ts";
import { customName, keyFor, unknownProvider } from "./resolve.ts";
import { canonicalBase, endpointUrl } from "./url.ts";

/** A provider that can be picked. */
export interface ConnectChoice {
  name: string;
  /** An address, or `built in`. */
  place: string;
  has_key: boolean;
}

/** What connecting asks a person. Undefined answers end it without any change. */
export interface ConnectPrompts {
  /** Shows the choices numbered from 1. The answer is a number, a name, or the URL of another backend. */
  choose(choices: ConnectChoice[]): Promise<string | undefined>;
  /** Takes the key without showing it; an empty one keeps the stored key, or means that none is needed. */
  key(provider: string, has_key: boolean): Promise<string | undefined>;
  /** `Save anyway?` after a probe that failed with `problem`. */
  saveAnyway(problem: string): Promise<boolean>;
}

export interface ConnectRequest {
  /** A provider's name or a URL; empty: the operator chooses. */
  target: string;
  /** Name for the provider at a URL; empty: the known one of that host, else a name made of the host. */
  name: string;
  /** Whether to probe before saving: the config key `connect_check`. */
  check: boolean;
  registry: ProviderRegistry;
  connections: ConnectionStore;
  prompts: ConnectPrompts;
  /** What a provider needs for the probe beside its address and key. */
  options: Omit<ProviderOptions, "name" | "base_url" | "api_key">;
  /** Begins the probe, which the signal cancels; nothing is saved then. */
  onInterrupt?(): { signal: AbortSignal; release(): void };
}

/** What the configuration is to say after connecting; the model stays as it is. */
export interface Connected {
  provider: string;
  base_url: string;
  /** What the probe found; empty when it was left out or its failure ignored. */
  found: string;
}

/**
 * Connects a provider (specification 4.10): settles on its name and address, takes a key, probes, and
 * stores key and custom address in `providers.json`. Undefined when the operator gave up.
 *
 * @throws SvcError (exit 2) for an unknown provider, a bad URL or name, or a key that cannot be sent.
 */
export async function connectProvider(request: ConnectRequest): Promise<Connected | undefined> {
  const { registry, connections, prompts } = request;
  const target = request.target || await choose(request);
  if (target === undefined) return undefined;
  if (request.name !== "" && !isUrl(target)) {
    throw usageError(
      "bad_base_url",
      `A name of its own goes with a URL, and ${JSON.stringify(target)} is none.`,
      "Write `svc connect <url> <name>`, the URL with its scheme.",
    );
  }
  const { provider, base_url } = isUrl(target)
    ? placeOfUrl(target, request.name, registry, connections)
    : placeOfName(target, registry, connections);
  const cls = registry.get(provider) ?? registry.get(GENERIC_PROVIDER)!;

  const stored = connections.get(provider);
  const kept = keyFor(base_url, stored?.base_url || cls.DEFAULT_BASE_URL, stored);
  const builtIn = cls.BUILT_IN === true && base_url === cls.DEFAULT_BASE_URL;
  const entered = builtIn ? "" : (await prompts.key(provider, kept !== ""))?.trim();
  if (entered === undefined) return undefined;

  const found = request.check
    ? await probe(cls, { provider, base_url, api_key: entered || kept }, request)
    : "";
  if (found === undefined) return undefined;
  const custom = canonicalBase(base_url) !== canonicalBase(cls.DEFAULT_BASE_URL);
  await connections.save(provider, {
    base_url: custom ? base_url : "",
    // A key stored for another host must not follow the provider to this one.
    api_key: entered || (kept === "" ? null : ""),
  });
  return { provider, base_url, found };
}

/** The providers that can be picked: registered ones with an address, then custom ones. */
export function connectChoices(
  registry: ProviderRegistry,
  connections: ConnectionStore,
): ConnectChoice[] {
  const stored = connections.list();
  const custom = [...stored.keys()].filter((name) => registry.get(name) === undefined);
  return [...registry.names(), ...custom].map((name) => {
    const cls = registry.get(name);
    const base_url = stored.get(name)?.base_url || cls?.DEFAULT_BASE_URL || "";
    return {
      name,
      place: placeOf(cls, base_url),
      has_key: (stored.get(name)?.api_key ?? "") !== "",
    };
  }).filter(({ place }) => place !== "");
}

async function choose(request: ConnectRequest): Promise<string | undefined> {
  const choices = connectChoices(request.registry, request.connections);
  const answer = (await request.prompts.choose(choices))?.trim();
  if (answer === undefined || answer === "") return undefined;
  if (!/^\d+$/.test(answer)) return answer;
  const choice = choices[Number(answer) - 1];
  if (choice !== undefined) return choice.name;
  throw usageError("bad_choice", `There is no choice ${answer}.`, `Choose 1 to ${choices.length}.`);
}

interface Place {
  provider: string;
  base_url: string;
}

function placeOfName(
  name: string,
  registry: ProviderRegistry,
  connections: ConnectionStore,
): Place {
  const base_url = connections.get(name)?.base_url || registry.get(name)?.DEFAULT_BASE_URL;
  if (base_url) return { provider: name, base_url };
  if (registry.get(name) === undefined) throw unknownProvider(name, registry);
  throw usageError(
    "no_base_url",
    `The provider ${name} has no address of its own.`,
    "Pass the base URL: `svc connect <url> [name]`.",
  );
}

function placeOfUrl(
  base_url: string,
  name: string,
  registry: ProviderRegistry,
  connections: ConnectionStore,
): Place {
  endpointUrl(base_url, ""); // a bad address fails before anything is asked
  if (name !== "") {
    if (isProviderName(name) && name !== GENERIC_PROVIDER) return { provider: name, base_url };
    throw usageError(
      "bad_provider",
      `${JSON.stringify(name)} cannot name a connection.`,
      "Take letters, digits, dots, dashes and underscores.",
    );
  }
  const known = customName(base_url, registry, connections.list()) ?? registry.detect(base_url);
  const provider = known === GENERIC_PROVIDER ? nameOfHost(base_url, registry, connections) : known;
  return { provider, base_url };
}

/** The host as a name that neither a provider nor another connection has. */
function nameOfHost(
  base_url: string,
  registry: ProviderRegistry,
  connections: ConnectionStore,
): string {
  const { hostname, port } = new URL(base_url);
  const host = hostname.replace(/^(www|api)\.(?=.*\.)/, "").replace(/[^\w.-]+/g, "-");
  const name = (port === "" ? host : `${host}-${port}`).replace(/^-+/, "");
  const stored = connections.list();
  for (let n = 1;; n++) {
    const candidate = n === 1 ? name : `${name}-${n}`;
    if (registry.get(candidate) === undefined && !stored.has(candidate)) return candidate;
  }
}

/** What the probe found; empty when it failed and is saved anyway, undefined when it is not. */
async function probe(
  cls: ProviderClass,
  { provider, base_url, api_key }: Place & { api_key: string },
  { options, prompts, onInterrupt }: ConnectRequest,
): Promise<string | undefined> {
  const client = new cls({ ...options, name: provider, base_url, api_key });
  const interrupt = onInterrupt?.();
  try {
    const { ok, message } = await client.check_connection(interrupt?.signal);
    interrupt?.release();
    if (ok) return message;
    return await prompts.saveAnyway(message) ? "" : undefined;
  } catch (error) {
    if (interrupt?.signal.aborted) return undefined;
    throw error;
  } finally {
    interrupt?.release();
    await client.close?.();
  }
}

function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}
