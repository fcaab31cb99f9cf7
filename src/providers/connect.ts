import { usageError } from "../platform/error.ts";
import type { ProviderClass } from "../plugins/api.ts";
import { GENERIC_PROVIDER } from "./chat_completions.ts";
import { isProviderName } from "./registry.ts";
import {
  checkProvider,
  detectProvider,
  displayAddress,
  keyFor,
  type KnownProviders,
  type SharedOptions,
} from "./resolve.ts";
import { canonicalBase, endpointUrl } from "./url.ts";

/** A provider that can be chosen. */
export interface ConnectChoice {
  name: string;
  /** See {@linkcode displayAddress}. */
  address: string;
  has_key: boolean;
}

/** The questions to the operator. An undefined answer ends connecting without a change. */
export interface ConnectPrompts {
  /** Shows the choices numbered from 1. The answer is a number, a name, or the URL of another backend. */
  choose(choices: ConnectChoice[]): Promise<string | undefined>;
  /** Reads the key without echo. An empty answer keeps the stored key, or means that none is needed. */
  key(provider: string, has_key: boolean): Promise<string | undefined>;
  /** `Save anyway?` after a failed probe. */
  saveAnyway(problem: string): Promise<boolean>;
}

export interface ConnectRequest extends KnownProviders {
  /** A provider's name or a URL; empty: the operator chooses. */
  target: string;
  /** Name for the provider at a URL; empty: the one that is detected, else a name made of the host. */
  name: string;
  /** Whether to probe before saving: the config key `connect_check`. */
  check: boolean;
  prompts: ConnectPrompts;
  /** Options of the provider that probes. */
  options: SharedOptions;
  /** Starts listening for an interrupt, which cancels the probe; then nothing is saved. */
  onInterrupt?(): { signal: AbortSignal; release(): void };
}

/** The settings to write after connecting; the model stays as it is. */
export interface Connected {
  provider: string;
  base_url: string;
  /** The result of the probe; empty when it was skipped, or failed and the operator saved anyway. */
  found: string;
}

/**
 * Connects a provider (specification 4.10): determines its name and address, asks for a key, probes, and
 * stores key and custom address in `providers.json`. Undefined when the operator cancelled.
 *
 * @throws SvcError (exit 2) for an unknown provider, a bad URL or name, or a key that cannot be sent.
 */
export async function connectProvider(request: ConnectRequest): Promise<Connected | undefined> {
  const { providers, connections, prompts } = request;
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
    ? connectionToUrl(target, request.name, request)
    : connectionByName(target, request);
  const cls = providers.get(provider) ?? providers.get(GENERIC_PROVIDER)!;

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

/** The providers that can be chosen: registered ones with an address, then custom ones. */
export function connectChoices({ providers, connections }: KnownProviders): ConnectChoice[] {
  const stored = connections.list();
  const custom = [...stored.keys()].filter((name) => providers.get(name) === undefined);
  return [...providers.names(), ...custom].map((name) => {
    const cls = providers.get(name);
    const base_url = stored.get(name)?.base_url || cls?.DEFAULT_BASE_URL || "";
    return {
      name,
      address: displayAddress(cls, base_url),
      has_key: (stored.get(name)?.api_key ?? "") !== "",
    };
  }).filter(({ address }) => address !== "");
}

async function choose(request: ConnectRequest): Promise<string | undefined> {
  const choices = connectChoices(request);
  const answer = (await request.prompts.choose(choices))?.trim();
  if (answer === undefined || answer === "") return undefined;
  if (!/^\d+$/.test(answer)) return answer;
  const choice = choices[Number(answer) - 1];
  if (choice !== undefined) return choice.name;
  throw usageError("bad_choice", `There is no choice ${answer}.`, `Choose 1 to ${choices.length}.`);
}

/** A provider and its address. */
interface Connection {
  provider: string;
  base_url: string;
}

function connectionByName(name: string, known: KnownProviders): Connection {
  const { providers, connections } = known;
  const base_url = connections.get(name)?.base_url || providers.get(name)?.DEFAULT_BASE_URL;
  if (base_url) return { provider: name, base_url };
  checkProvider(name, known);
  throw usageError(
    "no_base_url",
    `The provider ${name} has no address of its own.`,
    "Pass the base URL: `svc connect <url> [name]`.",
  );
}

function connectionToUrl(base_url: string, name: string, known: KnownProviders): Connection {
  endpointUrl(base_url, ""); // throws for a bad address before the operator is asked for a key
  if (name !== "") {
    if (isProviderName(name) && name !== GENERIC_PROVIDER) return { provider: name, base_url };
    throw usageError(
      "bad_provider",
      `${JSON.stringify(name)} cannot name a connection.`,
      "Take letters, digits, dots, dashes and underscores.",
    );
  }
  const detected = detectProvider(base_url, known);
  const provider = detected === GENERIC_PROVIDER ? nameOfHost(base_url, known) : detected;
  return { provider, base_url };
}

/** The host as a name that neither a provider nor another connection has. */
function nameOfHost(base_url: string, { providers, connections }: KnownProviders): string {
  const { hostname, port } = new URL(base_url);
  const host = hostname.replace(/^(www|api)\.(?=.*\.)/, "").replace(/[^\w.-]+/g, "-");
  const name = (port === "" ? host : `${host}-${port}`).replace(/^-+/, "");
  const stored = connections.list();
  for (let n = 1;; n++) {
    const candidate = n === 1 ? name : `${name}-${n}`;
    if (providers.get(candidate) === undefined && !stored.has(candidate)) return candidate;
  }
}

/** The message of the probe; empty when it failed and the operator saves anyway, else undefined. */
async function probe(
  cls: ProviderClass,
  { provider, base_url, api_key }: Connection & { api_key: string },
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
