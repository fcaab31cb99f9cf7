import type { Workspace } from "../engine/workspace.ts";
import { nearest, SvcError, usageError } from "../platform/error.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import type { ConnectChoice, ConnectPrompts } from "../providers/connect.ts";
import { approveModels } from "../providers/model_approval.ts";
import {
  type Backend,
  displayAddress,
  type NamedBackend,
  parseModelRef,
  resolveConnection,
} from "../providers/resolve.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { type Io, toJson } from "./io.ts";
import { nameOf } from "./names.ts";
import { openWorkspace } from "./workspace.ts";
import { argument, choice, command, option, optional, string } from "./options.ts";

/** `svc connect` (specification 4.10): store a provider's key and address, and choose it. */
export const connect = defineCommand({
  parser: command(
    "connect",
    {
      target: optional(
        argument(
          nameOf("providers", "PROVIDER|URL"),
          "A provider's name, or the base URL of a backend.",
        ),
      ),
      name: optional(argument(string("NAME"), "A name for the backend at a URL.")),
      noKey: option("--no-key", "The backend needs no key; ask for none."),
      force: option("--force", "Save even if the backend cannot be reached."),
      keyOnly: option(
        "--key-only",
        "Store the key without trying it, and leave the chosen provider as it is; for the key of a " +
          "search engine.",
      ),
      local: option(
        "--local",
        "Choose the provider for this worktree only; the key is stored per user.",
      ),
      path: pathOption,
    },
    "Connect a model provider: its key is asked for without showing it, or read from standard " +
      "input, the connection is tried, then saved. The model stays as it is.",
  ),
  examples: [
    "svc connect",
    "svc connect groq < key.txt",
    "svc connect http://127.0.0.1:11434 local --no-key",
    "svc connect --key-only https://api.search.brave.com brave < key.txt",
  ],
  async run({ target, name, noKey, force, keyOnly, local, path }, io) {
    const interactive = io.isTerminal("in");
    if (target === undefined && !interactive) {
      throw usageError(
        "no_target",
        "No provider is named.",
        "Name it: svc connect groq, or svc connect https://host/v1.",
      );
    }
    const workspace = openWorkspace(path, io);
    await workspace.load({ providers: "all" });
    const { config, providers, connections } = workspace;
    if (!local && !keyOnly) warnOfLocal(workspace, io);
    const { connectProvider } = await import("../providers/connect.ts");
    let interrupt: ReturnType<Io["onInterrupt"]> | undefined;
    let left = false; // a question was left with Ctrl-C or Ctrl-D
    const onLeave = () => left = true;
    const connected = await connectProvider({
      target: target ?? "",
      name: name ?? "",
      check: config.get("connect_check") && !keyOnly,
      providers,
      connections,
      prompts: prompts(io, { interactive, noKey, force, onLeave }),
      options: workspace.providerOptions(""),
      onInterrupt: () => interrupt = io.onInterrupt(),
    });
    if (connected === undefined && interactive) {
      io.note("Nothing was saved.");
      return left || interrupt?.signal.aborted ? 130 : 0;
    }
    if (connected === undefined) {
      const hint = "Pass --force to save a connection that cannot be reached.";
      throw new SvcError("not_connected", "Nothing was saved.", { hint });
    }
    const { provider, base_url, found } = connected;
    if (keyOnly) {
      io.note(`Stored the key of ${provider} (${base_url})`);
      return 0;
    }
    const scope = local || !await switchesAll(provider, config, io) ? "local" : "global";
    await workspace.set(scope, { provider, base_url });
    config.release("provider");
    config.release("base_url");
    if (scope === "global" && isHidden(workspace, provider, base_url)) {
      io.note(`Switch here too with: svc provider ${provider}`);
    }
    const where = displayAddress(providers.get(provider), base_url);
    io.note(`Connected ${provider} (${where})${found === "" ? "" : `: ${found}`}`);
    const offered = found === "" ? [] : await offeredBy(workspace, io);
    const { ref, ...chosen } = workspace.backendRequest();
    const model = ref
      ? `${ref.provider}/${ref.model}`
      : chosen.model || providers.get(provider)?.DEFAULT_MODEL;
    const [only, ...more] = offered;
    if (!model && only !== undefined && more.length === 0) {
      await workspace.set(config.origin("model") === "local" ? "local" : scope, { model: only });
      io.note(`Model: ${only}, the only one on offer`);
    } else {io.note(
        model
          ? `Model: ${model}`
          : `Choose one of them with: svc model ${provider}/NAME; they are listed by: svc models list`,
      );}
    if (chosen.model !== "" && offered.length > 0 && !offered.includes(chosen.model)) {
      io.note(`warning: the backend does not list ${chosen.model}; choose one of: svc models list`);
    }
    return 0;
  },
});

/** Whether the connected provider becomes that of all worktrees in place of another one, or of this worktree only. */
async function switchesAll(
  provider: string,
  config: Workspace["config"],
  io: Io,
): Promise<boolean> {
  const before = config.getFrom("global", "provider");
  if (!before || before === provider) return true;
  if (io.isTerminal("in")) {
    return await io.confirm(
      `Switch every worktree from ${before} to ${provider}? No: this one only.`,
    );
  }
  io.note(
    `Every worktree now uses ${provider} in place of ${before}; --local switches this one only.`,
  );
  return true;
}

/** The models of the backend in use; none when it cannot be asked. */
async function offeredBy(workspace: Workspace, io: Io): Promise<string[]> {
  try {
    return await advertised(workspace, undefined, io) ?? [];
  } catch {
    return [];
  }
}

const BACKEND = ["provider", "base_url"] as const;

/** Warns, before a key is asked for, that settings of the worktree override the choice for all worktrees. */
function warnOfLocal({ config }: Workspace, io: Io): void {
  const kept = BACKEND.filter((key) => config.origin(key) === "local");
  if (kept.length === 0) return;
  const settings = kept.map((key) => `${key} ${JSON.stringify(config.get(key))}`).join(" and ");
  io.note(`warning: this worktree's own settings say ${settings}, which wins here.`);
  io.note("What is connected now takes effect in other worktrees; --local connects it here.");
}

/** Whether settings of the worktree name another backend than the global ones. */
function isHidden({ config }: Workspace, provider: string, base_url: string): boolean {
  const wanted = { provider, base_url };
  return BACKEND.some((key) => config.origin(key) === "local" && config.get(key) !== wanted[key]);
}

/** `svc disconnect`: remove a provider's key and address, and choose it no longer. */
export const disconnect = defineCommand({
  parser: command("disconnect", {
    name: argument(nameOf("connections", "PROVIDER")),
    path: pathOption,
  }, "Remove the stored key and address of a provider."),
  examples: ["svc disconnect groq"],
  async run({ name, path }, io) {
    const workspace = openWorkspace(path, io);
    const { config, connections } = workspace;
    if (!await connections.remove(name)) {
      const guess = nearest(name, [...connections.list().keys()]);
      throw usageError(
        "not_connected",
        `${JSON.stringify(name)} is not connected.`,
        guess === undefined ? "See: svc models" : `Did you mean ${guess}?`,
      );
    }
    io.note(`Removed the key and the address of ${name}`);
    for (const scope of ["global", "local"] as const) {
      if (config.getFrom(scope, "provider") !== name) continue;
      for (const key of ["provider", "base_url", "model"] as const) await config.unset(scope, key);
      io.note(`The ${scope} settings name no provider now; choose one with: svc connect`);
    }
    return 0;
  },
});

function prompts(
  io: Io,
  options: { interactive: boolean; noKey: boolean; force: boolean; onLeave: () => void },
): ConnectPrompts {
  const { interactive, noKey, force, onLeave } = options;
  const answered = async (answer: Promise<string | undefined>) => {
    if (await answer === undefined) onLeave();
    return answer;
  };
  return {
    choose(choices) {
      for (const [index, choice] of choices.entries()) io.note(choiceLine(choice, index));
      return answered(io.readLine("Provider (number, name or URL):"));
    },
    async key(provider, has_key) {
      if (noKey) return "";
      if (!interactive) return await io.readInput();
      const kept = has_key ? "empty keeps the stored one" : "empty for none";
      return await answered(io.readHidden(`Key for ${stripControl(provider)} (${kept}): `));
    },
    saveAnyway(problem) {
      io.note(`The connection could not be made: ${problem}`);
      if (force || !interactive) return Promise.resolve(force);
      return io.confirm("Save anyway?");
    },
  };
}

function choiceLine({ name, address, has_key }: ConnectChoice, index: number): string {
  return `${String(index + 1).padStart(3)}  ${name.padEnd(20)}${address}${
    has_key ? "  (key stored)" : ""
  }`;
}

/** `svc model`: show the model, or choose another (specification 4.7, 5.2). */
export const model = defineCommand({
  parser: command("model", {
    ref: optional(
      argument(nameOf("models", "REF"), "A model of the active provider, or <provider>/<model>."),
    ),
    global: option("--global", "Choose it for all worktrees; default: this worktree only."),
    output: outputOption,
    path: pathOption,
  }, "Show the model in use, or choose another. Choosing a ref approves it."),
  examples: ["svc model", "svc model llama-3.3-70b-versatile", "svc model openai/gpt-4o-mini"],
  async run({ ref: given, global, output, path }, io) {
    const workspace = openWorkspace(path, io);
    await workspace.load({ providers: "all" });
    const { config } = workspace;
    if (given !== undefined) {
      if (given.trim() === "") throw usageError("usage", "A model has a name.");
      requested(workspace, { model: given }); // nothing is written when it cannot be used
      const ref = parseModelRef(given, workspace);
      if (ref.provider !== "") {
        try {
          await approveModels([ref], workspace.models, {
            granted: !io.isTerminal("in"),
            ask: () => io.confirm(`Approve ${ref.provider}/${ref.model} for use from now on?`),
          });
        } catch (error) {
          if (!(error instanceof SvcError) || error.code !== "model_not_approved") throw error;
          io.note("The model stays as it is."); // it was declined
          return 0;
        }
      }
      await workspace.set(global ? "global" : "local", { model: given });
      for (const key of ["model", "provider"] as const) config.release(key);
      // In a terminal session, the choice also overrides the model of its role.
      if (io.live !== undefined) config.override("model", given);
    }
    const { provider, base_url, api_key, cls, ...chosen } = requested(workspace);
    const model = chosen.model || cls.DEFAULT_MODEL || "";
    io.out(
      output === "json"
        ? toJson({ provider, model, base_url, has_key: api_key !== "" }, 2) + "\n"
        : `${oneLine(`${provider}/${model || "none"} (${displayAddress(cls, base_url)})`)}\n`,
    );
    if (api_key === "" && base_url.startsWith("https:")) {
      io.note(`No key is stored for ${provider}; connect it with: svc connect ${provider}`);
    }
    return 0;
  },
});

/** `svc models` (specification 4.4): the models in use, and those a provider offers. */
export const models = defineCommand({
  parser: command(
    "models",
    {
      action: optional(
        argument(
          choice(["list"], "ACTION"),
          "Ask a provider (default: the active one) which models it offers.",
        ),
      ),
      provider: optional(argument(nameOf("providers", "PROVIDER"))),
      output: outputOption,
      path: pathOption,
    },
    "Show the approved and configured models by provider: * is the active one, (key) means that " +
      "a key is stored.",
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
  const provider = workspace.connect(requested(workspace, { provider: name }), "");
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
  // An address without a provider names a backend too.
  const active = request.provider === "" && request.base_url !== ""
    ? { ...request, provider: requested(workspace).provider }
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

/** `svc provider`: show the active provider, or switch to another (specification 4.7). */
export const provider = defineCommand({
  parser: command("provider", {
    name: optional(argument(nameOf("providers", "PROVIDER"))),
    global: option("--global", "Switch for all worktrees; default: this worktree only."),
    output: outputOption,
    path: pathOption,
  }, "Show the active provider and its model, or switch to another."),
  examples: ["svc provider", "svc provider groq --global"],
  async run({ name, global, output, path }, io) {
    const workspace = openWorkspace(path, io);
    await workspace.load({ providers: "all" });
    const { config } = workspace;
    const backend = requested(workspace, { provider: name });
    const { provider, base_url, api_key } = backend;
    if (name !== undefined) {
      const scope = global ? "global" : "local";
      if (!await replaces(workspace, scope, base_url, io)) return 1;
      await workspace.set(scope, { provider, base_url, model: backend.model });
      // Overrides of this process would hide the switch in a terminal session.
      for (const key of ["provider", "base_url", "model"] as const) config.release(key);
    }
    const model = backend.model || backend.cls.DEFAULT_MODEL || "";
    io.out(
      output === "json"
        ? toJson({ provider, model, base_url, has_key: api_key !== "" }, 2) + "\n"
        : `${
          oneLine(
            `${provider} (${displayAddress(backend.cls, base_url)}), model ${model || "none"}`,
          )
        }\n`,
    );
    if (config.get("connect_check") && name !== undefined) {
      const client = workspace.connect(backend, "");
      const interrupt = io.onInterrupt();
      try {
        const { ok, message } = await client.check_connection(interrupt.signal);
        if (!ok) io.note(`warning: ${message}`);
      } catch (error) {
        if (!interrupt.signal.aborted) throw error; // it is switched anyway
      } finally {
        interrupt.release();
        await client.close?.();
      }
    }
    if (name !== undefined && api_key === "" && base_url.startsWith("https:")) {
      io.note(`No key is stored for ${provider}; connect it with: svc connect ${provider}`);
    }
    return 0;
  },
});

/**
 * Whether an address in the settings of a scope may be replaced: nothing else has one that no connection and no provider
 * has.
 *
 * @throws SvcError `own_address` (exit 2) where no one can be asked
 */
async function replaces(
  { config, connections, providers }: Workspace,
  scope: "global" | "local",
  base_url: string,
  io: Io,
): Promise<boolean> {
  const own = config.getFrom(scope, "base_url");
  if (typeof own !== "string" || own === "" || own === base_url) return true;
  const known = [
    ...[...connections.list().values()].map((connection) => connection.base_url),
    ...providers.names().map((name) => providers.get(name)?.DEFAULT_BASE_URL),
  ];
  if (known.includes(own)) return true;
  const sentence = `The ${scope} settings name the address ${own}, which nothing else has`;
  if (io.isTerminal("in")) return await io.confirm(`${sentence}. Replace it?`);
  throw usageError(
    "own_address",
    `${sentence}.`,
    `Keep it with: svc connect ${own} NAME; or remove it: svc config unset base_url`,
  );
}

/** The connection that the configuration and `asked` name. */
export function requested(workspace: Workspace, asked?: NamedBackend): Backend {
  return resolveConnection(workspace.backendRequest(asked), workspace);
}
