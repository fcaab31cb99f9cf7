import { reasonOf } from "./modules.ts";
import { isOwnCommand } from "./command_names.ts";
import type {
  CatalogRegistrar,
  CommandDefinition,
  CommandRegistrar,
  FixtureRegistrar,
  PluginModule,
  ProviderClass,
  ProviderRegistrar,
  ServiceRegistrar,
  SourceHost,
  ToolDefinition,
  ToolRegistrar,
  ToolSource,
} from "./api.ts";

/** The kinds of registrations, in the order in which their hooks are called (specification 4.9). */
export const KINDS = [
  "tools",
  "providers",
  "commands",
  "services",
  "roles",
  "teams",
  "skills",
  "fixtures",
] as const;

export type Kind = typeof KINDS[number];

/** An entry of a role, team or skill registry. */
export type CatalogEntry = { name: string } & Record<string, unknown>;
export type Fixture = { id: string } & Record<string, unknown>;

/** What plugins registered, except tools. `owner` is the plugin's name. */
export interface Registered {
  providers: { owner: string; name: string }[];
  /** The owners of the services. */
  served: { owner: string; name: string }[];
  commands: { owner: string; definition: CommandDefinition }[];
  services: Map<string, Record<string, unknown>[]>;
  roles: { owner: string; entry: CatalogEntry }[];
  teams: { owner: string; entry: CatalogEntry }[];
  skills: { owner: string; entry: CatalogEntry }[];
  fixtures: { owner: string; fixture: Fixture }[];
}

/** The registries of tools and providers, which check definitions and names. */
export interface Registries {
  tools: {
    /** @throws when the definition is invalid or a name is taken. */
    register(definition: ToolDefinition, owner: string): void;
    /** Removes all tools of an owner. */
    unregister(owner: string): void;
    /** The source of an owner, which `make` creates on the first call. */
    source<S extends ToolSource>(owner: string, make: () => S): S;
  };
  providers: {
    /** @throws when it is not a provider class or the name is taken. */
    register(name: string, cls: ProviderClass, by: { owner: string; bundled: boolean }): void;
  };
}

/** The plugin whose hooks are called, and what its registrars need. */
export interface HookRequest extends Registries {
  owner: string;
  bundled: boolean;
  /** Provider names that belong to bundled plugins (specification 4.10). */
  reserved: ReadonlySet<string>;
  OpenAICompatibleProvider: unknown;
  /** The host of tool sources. */
  host: SourceHost;
  into: Registered;
  /** Rejects when the hook takes too long. */
  limit: <T>(work: Promise<T>) => Promise<T>;
}

/**
 * Calls the hooks of a module one after the other. The registrations of a failing hook are dropped; the other
 * hooks still run.
 *
 * @returns a sentence for each hook that failed.
 */
export async function callHooks(module: PluginModule, request: HookRequest): Promise<string[]> {
  const failures: string[] = [];
  for (const kind of KINDS) {
    const name = `register_${kind}` as const;
    const hook = module[name] as ((registrar: unknown) => unknown) | undefined;
    if (hook === undefined) continue;
    const staging = new Staging();
    try {
      demand(typeof hook === "function", "it is not a function");
      await request.limit(Promise.resolve(hook(registrar(kind, request, staging))));
      staging.commit();
    } catch (error) {
      if (kind === "tools") request.tools.unregister(request.owner);
      failures.push(`hook ${name} failed: ${reasonOf(error)}`);
    } finally {
      staging.close();
    }
  }
  return failures;
}

/** Applies the registrations of a hook after it has succeeded, and rejects registrations after its end. */
class Staging {
  #open = true;
  readonly #changes: (() => void)[] = [];

  add(change: () => void): void {
    this.check();
    this.#changes.push(change);
  }

  check(): void {
    if (!this.#open) throw new Error("the registration is over: register before the hook returns");
  }

  commit(): void {
    for (const change of this.#changes) change();
  }

  close(): void {
    this.#open = false;
  }
}

function registrar(kind: Kind, request: HookRequest, staging: Staging): unknown {
  const { owner, bundled, into } = request;
  switch (kind) {
    case "tools":
      return {
        register(definition) {
          staging.check();
          demand(
            bundled || isJson(definition?.parameters),
            `the parameters of the tool "${definition?.name}" cannot be written as JSON`,
          );
          request.tools.register(definition, owner);
        },
        source(make) {
          staging.check();
          if (bundled) return request.tools.source(owner, () => make(request.host));
          const external = request.tools.source(
            owner,
            () => new ExternalSource(make(request.host), owner, request.host),
          );
          return external.source;
        },
      } satisfies ToolRegistrar;
    case "providers":
      return {
        register(name, cls) {
          demand(
            bundled || !request.reserved.has(name),
            `"${name}" is the name of a bundled provider`,
          );
          staging.add(() => {
            request.providers.register(name, cls as ProviderClass, { owner, bundled });
            into.providers.push({ owner, name });
          });
        },
        OpenAICompatibleProvider: request.OpenAICompatibleProvider,
      } satisfies ProviderRegistrar;
    case "commands":
      return {
        register(definition) {
          demand(isName(definition?.name), "a command needs a name");
          demand(
            typeof definition.run === "function",
            `the command "${definition.name}" has no run function`,
          );
          const { name: commandName, description = "", usage, aliases = [] } = definition;
          demand(
            Array.isArray(aliases) &&
              [description, usage ?? ""].every((text) => typeof text === "string"),
            `the command "${commandName}" has a description, a usage or aliases of a wrong type`,
          );
          for (const name of [commandName, ...aliases]) {
            demand(
              /^[a-z][\w-]*$/.test(name),
              `"${name}" is no name of a command: it begins with a lower case letter`,
            );
            demand(!isOwnCommand(name), `/${name} is a command of svc itself`);
            const taken = into.commands.find((other) =>
              [other.definition.name, ...other.definition.aliases ?? []].includes(name)
            );
            demand(taken === undefined, `/${name} is a command of ${taken?.owner} already`);
          }
          const command: CommandDefinition = {
            name: commandName,
            description,
            aliases,
            usage,
            run: (args, context) => definition.run(args, context),
          };
          staging.add(() => into.commands.push({ owner, definition: command }));
        },
      } satisfies CommandRegistrar;
    case "services":
      return {
        register(name, service) {
          demand(isName(name), "a service needs a name");
          demand(isObject(service), `the service "${name}" is not an object`);
          staging.add(() => {
            into.services.set(name, [...into.services.get(name) ?? [], service]);
            into.served.push({ owner, name });
          });
        },
      } satisfies ServiceRegistrar;
    case "fixtures":
      return {
        register(given) {
          const fixture = data(given);
          demand(isName(fixture?.id), "a fixture needs an id");
          staging.add(() => into.fixtures.push({ owner, fixture }));
        },
      } satisfies FixtureRegistrar;
    default:
      return {
        add_plugin(given) {
          const entry = data(given);
          demand(isName(entry?.name), `an entry of ${kind} needs a name`);
          staging.add(() => into[kind].push({ owner, entry }));
        },
      } satisfies CatalogRegistrar;
  }
}

/** A copy as JSON data, which the plugin cannot change later. */
function data<T>(given: T): T {
  return given === undefined ? given : JSON.parse(JSON.stringify(given));
}

function demand(condition: boolean, problem: string): void {
  if (!condition) throw new Error(problem);
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** Milliseconds that an external source has for an answer. */
const SOURCE_LIMIT = 10_000;

/** The source of an external plugin. When it throws, hangs or returns anything but tools, it has no tools. */
class ExternalSource<S extends ToolSource> implements ToolSource {
  readonly source: S;
  readonly permission: string;
  readonly #owner: string;
  readonly #host: SourceHost;

  /** @throws when it is no source */
  constructor(source: S, owner: string, host: SourceHost) {
    const { permission, tools, close } = Object(source) as Partial<ToolSource>;
    demand(
      typeof permission === "string" && typeof tools === "function" && typeof close === "function",
      "a source of tools has a permission, a function tools and a function close",
    );
    this.source = source;
    this.permission = permission!;
    this.#owner = owner;
    this.#host = host;
  }

  async tools(signal: AbortSignal): Promise<ToolDefinition[]> {
    return await this.#within(async () => {
      const tools: unknown = await this.source.tools(signal);
      demand(Array.isArray(tools), "it did not answer with a list of tools");
      return (tools as ToolDefinition[]).filter((tool) => isJson(tool?.parameters));
    }) ?? [];
  }

  async close(): Promise<void> {
    await this.#within(async () => await this.source.close());
  }

  async #within<T>(ask: () => Promise<T>): Promise<T | undefined> {
    const settled = new AbortController();
    const expired = this.#host.sleep(SOURCE_LIMIT, settled.signal).then(() => {
      throw new Error(`it took longer than ${SOURCE_LIMIT / 1000} seconds`);
    });
    expired.catch(() => {});
    try {
      return await Promise.race([ask(), expired]);
    } catch (error) {
      this.#host.warn(`The tools of the plugin ${this.#owner} failed: ${reasonOf(error)}.`);
      return undefined;
    } finally {
      settled.abort();
    }
  }
}

/** Whether a value can be sent to a model. */
function isJson(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}
