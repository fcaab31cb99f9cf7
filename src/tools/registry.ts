import { SvcError } from "../platform/error.ts";
import { isObject } from "../platform/files.ts";
import { stripControl } from "../platform/terminal.ts";
import type {
  ParameterSchema,
  ToolArguments,
  ToolDefinition,
  ToolSource,
  WireTool,
} from "../plugins/api.ts";

interface Entry {
  tool: ToolDefinition;
  owner: string;
  /** What models are told of the tool; made when it is first offered. */
  wire?: WireTool;
}

/** The tools of one workspace, by canonical name and alias (specification 4.8, 4.9). */
export class ToolRegistry {
  readonly #entries = new Map<string, Entry>();
  readonly #names = new Map<string, Entry>();
  readonly #sources = new Map<string, ToolSource>();

  /**
   * Adds a tool. An owner that registers a name again replaces its own tool.
   *
   * @param owner the plugin, or another source of tools, that errors name.
   * @throws SvcError `bad_tool` for a definition that cannot work, `tool_clash` when a name or an alias
   * is taken by another tool; the registry is then unchanged.
   */
  register(tool: ToolDefinition, owner: string): void {
    validate(tool, owner);
    const names = [tool.name, ...tool.aliases ?? []];
    const former = this.#entries.get(tool.name);
    const replaced = former?.owner === owner ? former : undefined;
    for (const name of names) {
      const taken = this.#names.get(name);
      if (taken !== undefined && taken !== replaced) throw clash(name, tool, owner, taken);
    }
    const entry = { tool, owner };
    if (replaced !== undefined) this.#forget(replaced);
    this.#entries.set(tool.name, entry);
    for (const name of names) this.#names.set(name, entry);
  }

  /** Removes all tools of an owner, and its source. */
  unregister(owner: string): void {
    void this.#sources.get(owner)?.close();
    this.#sources.delete(owner);
    for (const entry of [...this.#entries.values()]) {
      if (entry.owner !== owner) continue;
      this.#forget(entry);
      this.#entries.delete(entry.tool.name);
    }
  }

  /** The source of an owner (specification 4.3); made when there is none yet. */
  source<S extends ToolSource>(owner: string, make: () => S): S {
    const source = this.#sources.get(owner) ?? make();
    this.#sources.set(owner, source);
    return source as S;
  }

  /** The source of an owner, if it has one. */
  sourceOf(owner: string): ToolSource | undefined {
    return this.#sources.get(owner);
  }

  /** How the source of an owner is doing, for programs; empty when it has none, or says nothing. */
  async stateOf(owner: string): Promise<object[]> {
    return await this.sourceOf(owner)?.state?.() ?? [];
  }

  /**
   * The tools as one turn has them. The sources of the categories that are open are asked what they have now,
   * which replaces what they had; what changes after that is for the next turn.
   *
   * @returns a registry of its own, or this one when there are no sources
   */
  async forTurn(open: (category: string) => boolean, signal: AbortSignal): Promise<ToolRegistry> {
    if (this.#sources.size === 0) return this;
    const asked = [...this.#sources].filter(([, { permission }]) => open(permission));
    await Promise.all(asked.map(async ([owner, source]) => {
      const tools = await source.tools(signal);
      this.unregister(`${owner} imports`);
      for (const tool of tools) {
        if (flaw(tool) === "" && !this.#isTaken(tool)) this.register(tool, `${owner} imports`);
      }
    }));
    const copy = new ToolRegistry();
    for (const [name, entry] of this.#entries) copy.#entries.set(name, entry);
    for (const [name, entry] of this.#names) copy.#names.set(name, entry);
    return copy;
  }

  /** A copy with one more tool, which takes the place of others with its name. */
  with(tool: ToolDefinition, owner: string): ToolRegistry {
    const copy = new ToolRegistry();
    copy.register(tool, owner);
    for (const each of this.#entries.values()) {
      if (!copy.#isTaken(each.tool)) copy.register(each.tool, each.owner);
    }
    return copy;
  }

  /** Closes the sources. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#sources.values(), (source) => source.close()));
  }

  /** The tool of a canonical name or an alias. */
  find(name: string): ToolDefinition | undefined {
    return this.#names.get(name)?.tool;
  }

  /** All tools in the order they were registered. */
  list(): ToolDefinition[] {
    return Array.from(this.#entries.values(), (entry) => entry.tool);
  }

  /** Who registered a tool; empty for an unknown name. */
  owner(name: string): string {
    return this.#names.get(name)?.owner ?? "";
  }

  /** What the model is told of the offered tools: canonical names only, and never `_config`. */
  schema(offered: (tool: ToolDefinition) => boolean): WireTool[] {
    const entries = Array.from(this.#entries.values()).filter(({ tool }) => offered(tool));
    return entries.map((entry) => entry.wire ??= wireTool(entry.tool));
  }

  #isTaken({ name, aliases = [] }: ToolDefinition): boolean {
    return [name, ...aliases].some((each) => this.#names.has(each));
  }

  #forget(entry: Entry): void {
    for (const [name, holder] of this.#names) if (holder === entry) this.#names.delete(name);
  }
}

const CHARS = new WeakMap<WireTool, number>();

/** The characters of a tool in a request. They are counted once. */
export function charsOf(tool: WireTool): number {
  let chars = CHARS.get(tool);
  if (chars === undefined) CHARS.set(tool, chars = JSON.stringify(tool).length);
  return chars;
}

/** The configuration parameter of the specification: handlers get it, models neither see nor set it. */
export const CONFIG_PARAMETER = "_config";

function wireTool({ name, description, parameters }: ToolDefinition): WireTool {
  return { type: "function", function: { name, description, parameters: advertised(parameters) } };
}

function advertised(parameters: ParameterSchema): ParameterSchema {
  if (!Object.hasOwn(parameters.properties, CONFIG_PARAMETER)) return parameters;
  const { [CONFIG_PARAMETER]: _, ...properties } = parameters.properties;
  const required = parameters.required?.filter((name) => name !== CONFIG_PARAMETER);
  return { ...parameters, properties, ...(required && { required }) };
}

// The dot separates an MCP server's prefix from its tool's name (specification 4.3).
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;

function validate(tool: ToolDefinition, owner: string): void {
  const problem = flaw(tool);
  if (problem === "") return;
  const name = typeof tool?.name === "string" ? tool.name : "?";
  throw new SvcError("bad_tool", `The tool "${name}" of ${owner} cannot be used: ${problem}.`);
}

function flaw(tool: ToolDefinition): string {
  if (!isObject(tool)) return "its definition is not an object";
  if (tool.aliases !== undefined && !Array.isArray(tool.aliases)) return "its aliases are no list";
  for (const name of [tool.name, ...tool.aliases ?? []]) {
    if (typeof name !== "string" || !NAME.test(name)) {
      return `the name ${JSON.stringify(name)} is not made of letters, digits, "_", "-" and "."`;
    }
  }
  if (typeof tool.handler !== "function") return "it has no handler function";
  if (typeof tool.description !== "string") return "it has no description";
  if (typeof tool.permission !== "string" || tool.permission === "") {
    return "it has no permission category";
  }
  const { parameters } = tool;
  if (!isObject(parameters) || parameters.type !== "object" || !isObject(parameters.properties)) {
    return "its parameters are not a JSON Schema object with properties";
  }
  const declared = (name: string) => Object.hasOwn(parameters.properties, name);
  const named = [
    ...parameters.required ?? [],
    ...[tool.path_arg ?? []].flat(),
    ...[tool.key_arg ?? []].flat(),
    ...Object.values(tool.param_aliases ?? {}),
  ];
  const missing = named.find((name) => !declared(name));
  if (missing !== undefined) return `it names the parameter "${missing}" without declaring it`;
  const shadowed = Object.keys(tool.param_aliases ?? {}).find(declared);
  if (shadowed !== undefined) return `"${shadowed}" is both a parameter and an alias of one`;
  return "";
}

function clash(name: string, tool: ToolDefinition, owner: string, taken: Entry): SvcError {
  const what = name === tool.name ? `tool "${name}"` : `alias "${name}" of the tool "${tool.name}"`;
  return new SvcError(
    "tool_clash",
    `The ${what} of ${owner} clashes with the tool "${taken.tool.name}" of ${taken.owner}.`,
    { hint: `Disable one of the two plugins, ${owner} or ${taken.owner}.` },
  );
}

const MAX_LINE = 160;

/** One printable line that says what a call does: the tool's own `status`, or its name and key argument. */
export function activityLine(tool: ToolDefinition, args: ToolArguments): string {
  const line = stripControl(statusOf(tool, args)).replace(/\s+/g, " ").trim();
  if (line.length <= MAX_LINE) return line;
  return line.slice(0, MAX_LINE - 1).toWellFormed() + "…";
}

/** The parameter that activity lines show: `key_arg`, or the first required one, or empty. */
export function keyArgument(tool: ToolDefinition): string {
  return tool.key_arg ?? tool.parameters.required?.[0] ?? "";
}

function statusOf(tool: ToolDefinition, args: ToolArguments): string {
  try {
    const status: unknown = tool.status?.(args);
    if (typeof status === "string" && status !== "") return status;
  } catch {
    // a tool that cannot describe its call is described for it
  }
  const value = args[keyArgument(tool)];
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return `${tool.name} ${text}`;
}
