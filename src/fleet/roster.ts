import { findNodeAtLocation, getNodeValue, type Node } from "jsonc-parser";
import { dirname, join, resolve } from "node:path";
import * as z from "zod/mini";
import { isCatalogName, NAME_RULE } from "../catalog/schema.ts";
import { changeConfigFile, parseObject, readConfigFile } from "../config/file.ts";
import { appendItem, removeItem, replaceValue } from "../config/items.ts";
import { type Opening, openingOf } from "../policy/openings.ts";
import type { Trust } from "../policy/trust.ts";
import { errorMessage, nearest, usageError } from "../platform/error.ts";
import { fileStamp, statIfExists } from "../platform/files.ts";

/** Names of logs that svc itself writes. */
const RESERVED = ["fleet", "jobs", "all"];

/** Whether a name is valid for an agent; its files are named after it. */
export function isAgentName(name: string): boolean {
  return isCatalogName(name) && !RESERVED.includes(name);
}

/** The rule of `isAgentName`, for messages. */
export const NAME_OF_AGENT = `${NAME_RULE}; not ${RESERVED.join(", ")}`;

const port = z.int().check(z.gte(1), z.lte(65535));

/** An agent of the roster (specification 2.8). */
const definition = z.object({
  name: z.string().check(z.refine(isAgentName, { error: `must be ${NAME_OF_AGENT}` })),
  /** The agent's worktree; relative to the fleet's. */
  dir: z.string().check(z.minLength(1)),
  enabled: z._default(z.boolean(), true),
  prefer_port: z.optional(port),
  /** 0: no limit. */
  max_restarts: z._default(z.int().check(z.gte(0)), 10),
  /** Program and arguments instead of `svc serve`; `{port}` and `{dir}` are replaced. */
  command: z.optional(z.union([
    z.string().check(z.minLength(1)),
    z.array(z.string()).check(z.minLength(1)),
  ])),
});
export type Definition = z.infer<typeof definition> & {
  /** Whether its command is not trusted; then it counts as disabled. */
  untrusted?: true;
};

/** Why an agent with an untrusted command is not started. */
export const UNTRUSTED_COMMAND = "its command is not trusted; see svc trust";

/** The opening of an agent: the command that the supervisor would start. */
export function agentOpening({ name, dir, command }: Definition): Opening {
  const line = JSON.stringify([command].flat().join(" ").slice(0, 80));
  return openingOf(`fleet:${name}`, `starts the program ${line} as an agent`, { dir, command });
}

/** The content of the roster. */
export interface Listing {
  agents: Definition[];
  /** Names of invalid entries. Their agents stay as they are. */
  broken: string[];
}

/** `.svc/fleet.json`: the agents of a fleet. Users edit it too, and it may have comments. */
export class Roster {
  readonly path: string;
  readonly #warn: (message: string) => void;
  readonly #trust: Pick<Trust, "accepts">;
  #seen: { stamp: string; listing: Listing | undefined } | undefined;
  #warned = "";

  /** @param trust decides which agents with a command of their own may be started */
  constructor(state: string, trust: Pick<Trust, "accepts">, warn: (message: string) => void) {
    this.path = join(state, "fleet.json");
    this.#trust = trust;
    this.#warn = warn;
  }

  /**
   * Reads all agents. An invalid entry or file is warned about once until it changes, and is not modified.
   *
   * @returns undefined when the file cannot be read at all
   */
  read(): Listing | undefined {
    const stamp = fileStamp(this.path);
    if (this.#seen?.stamp !== stamp) this.#seen = { stamp, listing: this.#read() };
    const { listing } = this.#seen;
    return listing && { ...listing, agents: listing.agents.map((agent) => this.#checked(agent)) };
  }

  #checked(agent: Definition): Definition {
    if (agent.command === undefined || this.#trust.accepts(agentOpening(agent))) return agent;
    return { ...agent, enabled: false, untrusted: true };
  }

  /**
   * The definition of an agent.
   *
   * @throws SvcError `unknown_agent` (exit 2) with the nearest name
   */
  need(name: string): Definition {
    const agents = this.read()?.agents ?? [];
    const found = agents.find((agent) => agent.name === name);
    if (found !== undefined) return found;
    const guess = nearest(name, agents.map((agent) => agent.name));
    throw usageError(
      "unknown_agent",
      `There is no agent ${JSON.stringify(name)} in the fleet.`,
      guess === undefined ? "svc fleet status lists them." : `Did you mean "${guess}"?`,
    );
  }

  /**
   * Appends agents.
   *
   * @throws SvcError (exit 2) `agent_exists`, or `config_syntax` when the file is broken
   */
  async add(agents: Partial<Definition>[]): Promise<void> {
    if (agents.length === 0) return;
    await changeConfigFile(this.path, (text) => {
      if (text === undefined) return `${JSON.stringify({ agents }, null, 2)}\n`;
      const names = entriesOf(parseObject(text, this.path)).map(nameOf);
      for (const agent of agents) {
        if (names.includes(agent.name)) {
          throw usageError("agent_exists", `There is an agent "${agent.name}" already.`);
        }
        text = appendItem(text, this.#list(text), { value: agent });
      }
      return text;
    });
    this.#seen = undefined;
  }

  /** Removes an agent's entry. Its folder stays. */
  async remove(name: string): Promise<void> {
    await this.#edit(name, (text, entry) => removeItem(text, entry));
  }

  /** Sets an agent's `enabled`. */
  async enable(name: string, enabled: boolean): Promise<void> {
    await this.#edit(name, (text, entry) => {
      const value = findNodeAtLocation(entry, ["enabled"]);
      return value === undefined
        ? appendItem(text, entry, { name: "enabled", value: enabled })
        : replaceValue(text, value.parent!, value, enabled);
    });
  }

  async #edit(name: string, edit: (text: string, entry: Node) => string): Promise<void> {
    this.#seen = undefined;
    await changeConfigFile(this.path, (text) => {
      const entries = text === undefined ? [] : entriesOf(parseObject(text, this.path));
      const entry = entries.find((each) => nameOf(each) === name);
      if (entry === undefined) this.need(name);
      return edit(text!, entry!);
    });
    this.#seen = undefined;
  }

  /** The node of the list `agents`. */
  #list(text: string): Node {
    const list = findNodeAtLocation(parseObject(text, this.path), ["agents"]);
    if (list?.type === "array") return list;
    throw usageError("roster", `${this.path} has no list "agents".`, 'Write: {"agents": []}');
  }

  #read(): Listing | undefined {
    try {
      const text = readConfigFile(this.path);
      if (text === undefined) return { agents: [], broken: [] };
      const list = findNodeAtLocation(parseObject(text, this.path), ["agents"]);
      if (list !== undefined && list.type !== "array") {
        this.#warnOnce(`${this.path}: "agents" must be a list; nothing in it is used.`);
        return undefined;
      }
      return this.#accept(list === undefined ? [] : getNodeValue(list) as unknown[]);
    } catch (error) {
      this.#warnOnce(`The roster is left as it is: ${errorMessage(error)}`);
      return undefined;
    }
  }

  #accept(entries: unknown[]): Listing {
    const agents: Definition[] = [];
    const broken: string[] = [];
    const problems: string[] = [];
    for (const [index, entry] of entries.entries()) {
      const { agent, fault: invalid } = checkAgent(entry);
      const twice = agents.some(({ name }) => name === agent?.name);
      if (agent !== undefined && !twice) {
        agents.push(agent);
        continue;
      }
      const name = (entry as { name?: unknown } | null)?.name;
      if (!twice && typeof name === "string") broken.push(name);
      const fault = twice ? "has the name of another" : invalid;
      problems.push(`agents[${index}] (${JSON.stringify(name)}): ${fault}`);
    }
    const warnings = [
      ...problems.length === 0
        ? []
        : [`${this.path} has entries that are left alone: ${problems.join("; ")}.`],
      ...sharedFolders(agents, dirname(dirname(this.path))),
    ];
    if (warnings.length > 0) this.#warnOnce(warnings.join(" "));
    return { agents, broken };
  }

  #warnOnce(message: string): void {
    if (message !== this.#warned) this.#warn(message);
    this.#warned = message;
  }
}

/** The agent of an entry; without one, what is wrong with the entry. */
export function checkAgent(entry: unknown): { agent?: Definition; fault?: string } {
  const { data, error } = definition.safeParse(fieldsOf(entry));
  const issue = error?.issues[0];
  return issue ? { fault: `${issue.path.join(".")} ${issue.message}` } : { agent: data };
}

/** Warnings about agents that share a folder, directly or through links. */
function sharedFolders(agents: Definition[], worktree: string): string[] {
  const byFolder = Map.groupBy(agents, ({ dir }) => realPath(resolve(worktree, dir)));
  return [...byFolder].filter(([, agents]) => agents.length > 1).map(([folder, agents]) =>
    `${agents.map(({ name }) => name).join(" and ")} have one folder, ${folder}: ` +
    "they share its settings, sessions and jobs."
  );
}

function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path;
  }
}

function entriesOf(root: Node): Node[] {
  return findNodeAtLocation(root, ["agents"])?.children ?? [];
}

function nameOf(entry: Node): unknown {
  return findNodeAtLocation(entry, ["name"])?.value;
}

/** The fields of an entry that say something: null says nothing, nor does the port 0 of other programs. */
function fieldsOf(entry: unknown): unknown {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry)) return entry;
  return Object.fromEntries(
    Object.entries(entry).filter(([name, value]) =>
      value !== null && !(name === "prefer_port" && value === 0)
    ),
  );
}

/** Levels of folders below the worktree that are searched. */
const DEPTH = 4;

/**
 * The folders below a worktree that contain `.svc/config.json`, as sorted relative paths (specification 4.6).
 * Hidden folders, `node_modules`, links and the content of found folders are not searched.
 */
export function scanForAgents(worktree: string): string[] {
  const found: string[] = [];
  visit("", 0);
  return found;

  function visit(folder: string, depth: number): void {
    if (depth > 0 && statIfExists(join(worktree, folder, ".svc", "config.json"))?.isFile) {
      found.push(folder);
      return;
    }
    if (depth === DEPTH) return;
    for (const name of foldersIn(join(worktree, folder))) visit(join(folder, name), depth + 1);
  }
}

/** A free name for the agent of a folder, made from the folder's path; undefined when there is none. */
export function nameFor(folder: string, taken: ReadonlySet<string>): string | undefined {
  const parts = folder.split("/");
  for (let length = 1; length <= parts.length; length++) {
    const name = parts.slice(-length).join("-").replaceAll(/[^\p{L}\p{M}\p{N}._-]+/gu, "-");
    if (isCatalogName(name) && !taken.has(name)) return name;
  }
  return undefined;
}

function foldersIn(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)]
      .filter(({ name, isDirectory }) =>
        isDirectory && !name.startsWith(".") && name !== "node_modules"
      )
      .map(({ name }) => name).sort();
  } catch (error) {
    if (error instanceof Deno.errors.PermissionDenied) return [];
    throw error;
  }
}
