import { argument, command, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { string } from "@optique/core/valueparser";
import { SvcError, usageError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import { placeOf } from "../../providers/place.ts";
import {
  type ConnectChoice,
  type ConnectPrompts,
  connectProvider,
} from "../../providers/connect.ts";
import { defineCommand, says } from "../command.ts";
import type { Workspace } from "../../engine/workspace.ts";
import type { Io } from "../io.ts";
import { pathOption } from "../options.ts";
import { openWorkspace } from "../workspace.ts";

/** `svc connect` (specification 4.10): store a provider's key and address, and choose it. */
export const connect = defineCommand({
  parser: command(
    "connect",
    object({
      target: optional(argument(string({ metavar: "PROVIDER|URL" }), {
        description: says("A provider's name, or the base URL of a backend."),
      })),
      name: optional(argument(string({ metavar: "NAME" }), {
        description: says("A name for the backend at a URL."),
      })),
      noKey: option("--no-key", { description: says("The backend needs no key; ask for none.") }),
      force: option("--force", {
        description: says("Save even if the backend cannot be reached."),
      }),
      keyOnly: option("--key-only", {
        description: says(
          "Store the key without trying it, and leave the chosen provider as it is; for the key of a " +
            "search engine.",
        ),
      }),
      local: option("--local", {
        description: says(
          "Choose the provider for this worktree only; the key is stored per user.",
        ),
      }),
      path: pathOption,
    }),
    {
      description: says(
        "Connect a model provider: its key is asked for without showing it, or read from standard " +
          "input, the connection is tried, then saved. The model stays as it is.",
      ),
    },
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
        "Which provider to connect is not said.",
        "Name it: svc connect groq, or svc connect https://host/v1.",
      );
    }
    const workspace = openWorkspace(path, io);
    await workspace.load({ providers: "all" });
    const { config, providers: registry, connections } = workspace;
    const connected = await connectProvider({
      target: target ?? "",
      name: name ?? "",
      check: config.get("connect_check") && !keyOnly,
      registry,
      connections,
      prompts: prompts(io, { interactive, noKey, force }),
      options: workspace.providerOptions(""),
      onInterrupt: () => io.onInterrupt(),
    });
    if (connected === undefined) {
      throw new SvcError("not_connected", "Nothing was saved.", {
        hint: interactive ? "" : "Pass --force to save a connection that cannot be reached.",
      });
    }
    const scope = local ? "local" : "global";
    const { provider, base_url, found } = connected;
    if (keyOnly) {
      io.note(`Stored the key of ${provider} (${base_url})`);
      return 0;
    }
    await config.set(scope, "provider", provider);
    await config.set(scope, "base_url", base_url);
    config.release("provider");
    config.release("base_url");
    if (!local) warnOfLocal(workspace, provider, base_url, io);
    const where = placeOf(registry.get(provider), base_url);
    io.note(`Connected ${provider} (${where})${found === "" ? "" : `: ${found}`}`);
    const model = config.get("model") || registry.get(provider)?.DEFAULT_MODEL;
    io.note(model ? `Model: ${model}` : `Choose a model: svc models list ${provider}`);
    return 0;
  },
});

/** What the worktree itself says wins over what is set for all of them. */
function warnOfLocal(
  { config }: Workspace,
  provider: string,
  base_url: string,
  io: Io,
): void {
  const wanted = { provider, base_url };
  const kept = (["provider", "base_url"] as const).filter((key) =>
    config.origin(key) === "local" && config.get(key) !== wanted[key]
  );
  if (kept.length === 0) return;
  const said = kept.map((key) => `${key} ${JSON.stringify(config.get(key))}`).join(" and ");
  io.note(`warning: this worktree's own settings say ${said}, which wins here.`);
  io.note(`Switch here too with: svc provider ${provider}`);
}

function prompts(
  io: Io,
  options: { interactive: boolean; noKey: boolean; force: boolean },
): ConnectPrompts {
  const { interactive, noKey, force } = options;
  return {
    choose(choices) {
      for (const [index, choice] of choices.entries()) io.note(choiceLine(choice, index));
      return io.readLine("Provider (number, name or URL):");
    },
    async key(provider, has_key) {
      if (noKey) return "";
      if (!interactive) return await io.readInput();
      const kept = has_key ? "empty keeps the stored one" : "empty for none";
      return io.readHidden(`Key for ${stripControl(provider)} (${kept}): `);
    },
    saveAnyway(problem) {
      io.note(`The connection could not be made: ${problem}`);
      if (force || !interactive) return Promise.resolve(force);
      return io.confirm("Save anyway?");
    },
  };
}

function choiceLine({ name, place, has_key }: ConnectChoice, index: number): string {
  return `${String(index + 1).padStart(3)}  ${name.padEnd(20)}${place}${
    has_key ? "  (key stored)" : ""
  }`;
}
