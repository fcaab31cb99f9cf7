import { type Clock, NO_REASON, systemClock } from "../platform/clock.ts";
import type { PluginModule, SourceHost } from "./api.ts";
import { BUNDLED } from "./bundled.ts";
import {
  type Candidate,
  discover,
  type DiscoveryRequest,
  type PluginInfo,
  UNTRUSTED,
} from "./discovery.ts";
import { callHooks, type Kind, KINDS, type Registered, type Registries } from "./hooks.ts";
import { missingPackage, prepareModules, reasonOf } from "./modules.ts";

export { discoverPlugins, type PluginInfo } from "./discovery.ts";

/**
 * The registrations that a command needs: all of a kind, or the named ones. Bundled plugins that provide none of
 * them are not imported.
 */
export type Needs = { [kind in Kind]?: true | "all" | string[] };

export interface LoadRequest extends DiscoveryRequest, Registries {
  /** The class handed to `register_providers` for extension. */
  OpenAICompatibleProvider: unknown;
  /** The host of tool sources. */
  host: SourceHost;
  /** Receives one line for every enabled plugin that did not load. */
  warn: (message: string) => void;
  /** Receives one line for every uncaught error of a plugin, while it loads or later. Default: `warn`. */
  warnUncaught?: (message: string) => void;
  /** Called with all plugins before any of their code runs. */
  beforeImport?: (plugins: PluginInfo[]) => void | Promise<void>;
  /** Called once the bundled plugins have registered, before code of any other plugin runs. */
  beforeExternal?: () => void | Promise<void>;
  /** Whether plugins that are not bundled are imported. Default: yes. */
  external?: boolean;
  /** Default: everything. */
  needs?: Needs;
  clock?: Clock;
}

/** What the loaded plugins registered, and the status of each plugin. */
export interface Contributions extends Registered {
  plugins: PluginInfo[];
}

/** Milliseconds that an import or the hooks of a plugin may take. Code that never yields is not interrupted. */
const LIMIT = 10_000;

/**
 * Imports the enabled plugins and calls their hooks (specification 2.9, 3.5, 4.9). The failure of a plugin is
 * reported in its `status` and to `warn`, and does not reject.
 */
export async function loadPlugins(request: LoadRequest): Promise<Contributions> {
  const candidates = await discover(request);
  const plugins = candidates.map(({ info }) => info);
  await request.beforeImport?.(plugins);
  const into: Registered = {
    providers: [],
    served: [],
    commands: [],
    services: new Map(),
    roles: [],
    teams: [],
    skills: [],
    fixtures: [],
  };
  const reserved = new Set(
    (request.bundled ?? BUNDLED).flatMap(({ manifest }) => manifest.provides.providers ?? []),
  );
  const { clock = systemClock, warnUncaught = request.warn } = request;
  const wanted = candidates.filter(({ info }) =>
    info.status === "loaded" &&
    (info.origin !== "bundled" ? request.external !== false : isNeeded(info, request.needs))
  );
  let external = false; // the bundled plugins come first
  const bundled = await importBundled(wanted, clock);
  for (const { info, load } of wanted) {
    // The files may have changed since they were found.
    if (info.origin === "local" && !request.trusts(info)) {
      Object.assign(info, { status: "disabled", reason: UNTRUSTED });
      continue;
    }
    if (info.origin !== "bundled" && !external) {
      external = true;
      await request.beforeExternal?.();
    }
    const imported = bundled.get(info) ?? await importExternal(info, load, warnUncaught, clock);
    using deadline = startDeadline(clock);
    const failures = "error" in imported
      ? [`it could not be imported: ${importFailure(imported.error)}`]
      : await callHooks(imported.module, {
        owner: info.name,
        bundled: info.origin === "bundled",
        reserved,
        OpenAICompatibleProvider: request.OpenAICompatibleProvider,
        host: request.host,
        tools: request.tools,
        providers: request.providers,
        into,
        limit: deadline.limit,
      });
    if (failures.length > 0) {
      info.status = "error";
      info.reason = failures.join("; ");
    }
  }
  for (const warning of warnings(plugins, request)) request.warn(warning);
  return { ...into, plugins };
}

type Imported = { module: PluginModule } | { error: unknown };

/** Imports the bundled plugins concurrently. */
async function importBundled(
  wanted: Candidate[],
  clock: Clock,
): Promise<Map<PluginInfo, Imported>> {
  using deadline = startDeadline(clock);
  const plugins = wanted.filter(({ info }) => info.origin === "bundled");
  const imported = plugins.map(async ({ info, load }): Promise<[PluginInfo, Imported]> => [
    info,
    await imports(load, deadline),
  ]);
  return new Map(await Promise.all(imported));
}

/** Imports an external plugin. One at a time: a failure is then known to be that plugin's. */
async function importExternal(
  { name, path, manifest }: PluginInfo,
  load: Candidate["load"],
  warn: (message: string) => void,
  clock: Clock,
): Promise<Imported> {
  using deadline = startDeadline(clock);
  return await imports(async () => {
    await prepareModules(
      { plugin: name, folder: Deno.realPathSync(path), warn },
      manifest.requires,
    );
    return await load();
  }, deadline);
}

async function imports(
  load: Candidate["load"],
  { limit }: ReturnType<typeof startDeadline>,
): Promise<Imported> {
  try {
    return { module: await limit(load()) };
  } catch (error) {
    return { error };
  }
}

function importFailure(error: unknown): string {
  const missing = missingPackage(error);
  return missing === undefined ? reasonOf(error) : `it ${missing}`;
}

function isNeeded({ manifest }: PluginInfo, needs: Needs | undefined): boolean {
  if (needs === undefined) return true;
  return KINDS.some((kind) => {
    const wanted = needs[kind];
    const provided = manifest.provides[kind] ?? [];
    return Array.isArray(wanted)
      ? wanted.some((name) => provided.includes(name))
      : wanted !== undefined && provided.length > 0;
  });
}

/** Warnings about enabled plugins that did not load, and about replaced bundled plugins. */
function* warnings(plugins: PluginInfo[], request: LoadRequest): Generator<string> {
  const { enabled } = request;
  for (const { name, path, status, reason, origin } of plugins) {
    if (enabled.length > 0 && !enabled.includes(name)) continue;
    const at = path === "" ? "" : ` (${path})`;
    if (status === "error") yield `The plugin ${name}${at} failed: ${reason}.`;
    if (status === "incompatible") yield `The plugin ${name}${at} was skipped: ${reason}.`;
    if (status === "loaded" && origin !== "bundled" && isBundled(name, request)) {
      yield `The plugin ${name}${at} takes the place of the bundled one.`;
    }
  }
  for (const name of enabled) {
    if (plugins.every((plugin) => plugin.name !== name)) {
      yield `The setting plugins names ${name}, and there is no such plugin.`;
    }
  }
}

function isBundled(name: string, request: LoadRequest): boolean {
  return (request.bundled ?? BUNDLED).some(({ manifest }) => manifest.name === name);
}

/** A time limit for any number of promises, which starts now and ends when it is disposed of. */
function startDeadline(
  clock: Clock,
): Disposable & { limit: <T>(work: Promise<T>) => Promise<T> } {
  const settled = new AbortController();
  const expired = clock.sleep(LIMIT, settled.signal).then(() => {
    throw new Error(`it took longer than ${LIMIT / 1000} seconds`);
  });
  expired.catch(() => {}); // without a promise to limit, the rejection is unhandled
  return {
    limit: (work) => Promise.race([work, expired]),
    [Symbol.dispose]: () => settled.abort(NO_REASON),
  };
}
