import type { Catalog, RolePrompt } from "../catalog/catalog.ts";
import type { Entry } from "../catalog/layers.ts";
import type { ChatMessage, ConfigView } from "../plugins/api.ts";
import type { WorktreeGuard } from "../policy/paths.ts";
import type { Policy } from "../policy/policy.ts";
import type { Part, Turn } from "../sessions/schema.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import type { AgentScope } from "./scope.ts";
import { coreTool } from "./tools/core.ts";

const NO_ROLE: AgentPrompt = { identity: "", skills: "", memory: "" };

/** What is sent to the provider of one agent: the system prompt and the conversation so far (specification 2.1). */
export class ProviderContext {
  readonly #agent: AgentScope;
  readonly #policy: Policy;
  /** The conversation up to and including turn `#known`, so that it is not read again every turn. */
  #messages: ChatMessage[] = [];
  #known = 0;

  constructor(agent: AgentScope, policy: Policy) {
    this.#agent = agent;
    this.#policy = policy;
  }

  /** The messages of a turn's first request; the system prompt is always the first. */
  async messages(
    prompt: string,
    index: number,
    tools: ToolRegistry,
    warn: (message: string) => void,
  ): Promise<ChatMessage[]> {
    if (index !== this.#known + 1) {
      const turns = await this.#agent.session.turns();
      this.#messages = historyMessages(turns.filter((turn) => turn.index < index));
    }
    return [
      { role: "system", content: await this.#systemPrompt(tools, warn) },
      ...this.#messages,
      { role: "user", content: prompt },
    ];
  }

  /** Keeps the messages of a turn for the next one. */
  keep(messages: ChatMessage[], index: number): void {
    this.#messages = messages.slice(1);
    this.#known = index;
  }

  async #systemPrompt(tools: ToolRegistry, warn: (message: string) => void): Promise<string> {
    const { prompt, rights: { settings, guard, headless }, links, config } = this.#agent;
    const { worktree, role = NO_ROLE, job } = prompt;
    const offered = tools.list().filter((tool) => this.#policy.offers(tool));
    const refused = headless ? this.#policy.refusedWithoutApproval(offered) : [];
    const obtains = offered.some((tool) => coreTool(tool)?.obtains_grants);
    const obtainable = obtains
      ? links.obtainable(tools.list().map(({ permission }) => permission))
      : [];
    const listed = new Set(
      offered.filter(({ permission }) => !refused.includes(permission))
        .map((tool) => coreTool(tool)?.lists),
    );
    const others = await links.directory({ role: listed.has("role"), team: listed.has("team") });
    const { mode } = settings;
    return systemPrompt({
      worktree,
      guard,
      config,
      mode,
      role,
      job,
      others,
      denied: this.#policy.deniedCategories(tools.list()),
      refused,
      obtainable,
      warn,
    });
  }
}

/** A role's part of the system prompt. Any of it may be empty. */
export interface AgentPrompt extends RolePrompt {
  /** The role's memory of earlier runs. */
  memory: string;
}

/**
 * The system prompt of a turn, never stored in the log (specification 2.2): who the agent is (the
 * role's prompt, else the configured one, else ours), the role's skills, where the agent works, the
 * project's instructions, the role's memory, the roles and teams that can work for it, the mode's instruction,
 * and the categories that will be refused.
 */
function systemPrompt(request: {
  worktree: string;
  guard: WorktreeGuard;
  config: ConfigView;
  mode: string;
  role: AgentPrompt;
  /** A job's sections, between the role and the mode's instruction (specification 2.6). */
  job?: string[];
  /** The section of {@linkcode directory}; may be empty. */
  others: string;
  /** Categories in which every call is denied. */
  denied: string[];
  /** Categories whose calls are refused because no one can approve them. */
  refused: string[];
  /** Categories that the agent can request permission for. */
  obtainable: string[];
  warn: (message: string) => void;
}): string {
  const { worktree, config, mode, role, job } = request;
  const own = job === undefined ? config.get("system_prompt") || DEFAULT_PROMPT : "";
  const sections = [
    ...[role.identity || own, role.skills, ...job ?? []].filter((section) => section !== ""),
    `Your worktree is ${worktree}; relative paths start there.`,
  ];
  const instructions = projectInstructions(request.guard, config, request.warn);
  if (instructions !== "") sections.push(`## Project instructions\n\n${instructions}`);
  if (role.memory !== "") sections.push(role.memory);
  if (request.others !== "") sections.push(request.others);
  const modeText = modeInstruction(config, mode);
  if (modeText !== "") sections.push(modeText);
  const refused = [...request.denied, ...request.refused];
  if (refused.length > 0) {
    const why = request.refused.length > 0 ? "No one can approve calls in this run. " : "";
    sections.push(
      `${why}Tools of these categories are refused: ${refused.join(", ")}. ` +
        "Do not retry a refused call; find another way or say what is missing.",
    );
  }
  if (request.obtainable.length > 0) {
    sections.push(
      "For calls of these categories you can request permission, one call at a time, with the tool ask " +
        `(kind permission): ${request.obtainable.join(", ")}.`,
    );
  }
  return sections.join("\n\n");
}

const DEFAULT_PROMPT = "You are a careful agent that works in a project directory with the tools " +
  "you are given. Look before you change anything, do what was asked and nothing else, check your " +
  "work with the tools, and answer in few words with what you found or did.";

const PLAN = "You are in plan mode: read, search and think, and change nothing. Tools that edit " +
  "files or run commands are denied. Answer with a plan that another run can carry out.";

function modeInstruction(config: ConfigView, mode: string): string {
  const custom = config.get("modes")?.[mode]?.system_prompt;
  if (typeof custom === "string" && custom !== "") return custom;
  return mode === "plan" ? PLAN : "";
}

/** Bytes of an instructions file that are read at most. */
const MAX_INSTRUCTIONS = 4 * 1024 * 1024;

/** The project's instructions file (`project_instructions`), cut at its cap; links out are ignored. */
function projectInstructions(
  guard: WorktreeGuard,
  config: ConfigView,
  warn: (message: string) => void,
): string {
  const name: string = config.get("project_instructions");
  if (name === "") return "";
  const cap: number = config.get("project_instructions_max_chars");
  try {
    const { real, inside, protected: guarded } = guard.locate(name);
    if (!inside || guarded === "read") {
      warn(
        `${name} leads out of the worktree, or to keys, and is not read as project instructions.`,
      );
      return "";
    }
    const info = Deno.statSync(real);
    if (!info.isFile) throw new Error("it is no file"); // a pipe would block
    const text = beginning(real).trim();
    if (text.includes("\0")) throw new Error("it is no text");
    const whole = info.size <= MAX_INSTRUCTIONS;
    if (whole && text.length <= cap) return text;
    const size = whole ? `${text.length} characters` : `${info.size} bytes`;
    warn(`${name} has ${size}; only the first ${cap} characters are given to the model.`);
    return text.slice(0, cap) + "\n... (truncated)";
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) warn(`${name} cannot be read and is left out.`);
    return "";
  }
}

/** The first bytes of a file, so that a huge one does not fill the memory. */
function beginning(path: string): string {
  using file = Deno.openSync(path);
  const bytes = new Uint8Array(Math.min(file.statSync().size, MAX_INSTRUCTIONS));
  let read = 0;
  for (let more: number | null = 1; more && read < bytes.length; read += more ?? 0) {
    more = file.readSync(bytes.subarray(read));
  }
  return new TextDecoder().decode(bytes.subarray(0, read));
}

/** Lines of one kind, and characters of one line, that a prompt gets at most. */
const MOST = 40;
const LONGEST = 120;

/**
 * The roles and teams that can work for an agent, a line each, as a section of its system prompt. Broken entries
 * are left out. Empty when there are none.
 *
 * @param listed the kinds of entries that the agent has a tool for
 */
export function directory(
  catalog: Catalog,
  listed: { role: boolean; team: boolean },
): string {
  const sections = [
    ...listed.role ? lines("Roles, for delegate:", catalog.list("role")) : [],
    ...listed.team ? lines("Teams, for team:", catalog.list("team")) : [],
  ];
  return sections.length === 0 ? "" : `## Who can work for you\n\n${sections.join("\n\n")}`;
}

function lines(heading: string, entries: Entry<{ description: string }>[]): string[] {
  const usable = entries.filter(({ broken }) => broken === undefined);
  if (usable.length === 0) return [];
  const shown = usable.slice(0, MOST).map(({ name, value: { description } }) =>
    `- ${name}${description === "" ? "" : `: ${short(description)}`}`
  );
  const rest = usable.length - shown.length;
  return [[heading, ...shown, ...rest > 0 ? [`- and ${rest} more`] : []].join("\n")];
}

function short(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST).toWellFormed()}...`;
}

/**
 * The provider's messages for a conversation so far. From the newest compaction record on, earlier
 * turns are replaced by its summary (specification 2.2: `command` parts with `compact_from`).
 *
 * The log does not keep the backend's call ids, so each tool part gets one made of its position: nine
 * letters and digits, which every backend accepts.
 */
export function historyMessages(turns: readonly Turn[]): ChatMessage[] {
  const { summary, from } = newestCompaction(turns);
  const messages: ChatMessage[] = [];
  if (summary !== "") {
    messages.push({ role: "user", content: `Summary of the conversation so far:\n\n${summary}` });
  }
  for (const turn of turns) {
    if (turn.index >= from) messages.push(...turnMessages(turn));
  }
  return messages;
}

/** The newest summary in a log, and the index of the turn from which on turns are sent as they are. */
export function newestCompaction(turns: readonly Turn[]): { summary: string; from: number } {
  for (const { index, parts } of turns.toReversed()) {
    for (const part of parts) {
      if (part.type !== "command" || part.summary === undefined) continue;
      // A record cannot summarise later turns.
      return { summary: part.summary, from: Math.min(part.compact_from ?? index, index) };
    }
  }
  return { summary: "", from: 0 };
}

/** The provider's messages for one turn. Every tool call is followed by its result. */
export function turnMessages(turn: Turn): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let command = "";
  let assistant: ChatMessage | undefined;
  let results: ChatMessage[] = [];
  const flush = () => {
    if (assistant !== undefined) messages.push(assistant, ...results);
    assistant = undefined;
    results = [];
  };
  const open = () => assistant ??= { role: "assistant", content: null };
  turn.parts.forEach((part: Part, place) => {
    switch (part.type) {
      case "user":
        flush();
        messages.push({ role: "user", content: part.text });
        break;
      case "system":
        flush();
        messages.push({ role: "system", content: part.text });
        break;
      case "thinking":
        flush();
        open().reasoning_content = part.text;
        break;
      case "text":
        if (results.length > 0) flush();
        // The answer of a command needs a question before it.
        if (command !== "" && messages.length === 0 && assistant === undefined) {
          messages.push({ role: "user", content: command });
        }
        open().content = (assistant?.content ?? "") + part.text;
        break;
      case "tool": {
        const id = `c${base36(turn.index)}${base36(place)}`;
        const message = open();
        message.tool_calls ??= [];
        message.tool_calls.push({
          id,
          type: "function",
          function: { name: part.name, arguments: JSON.stringify(part.input) },
        });
        results.push({ role: "tool", tool_call_id: id, content: part.output });
        break;
      }
      case "command":
        command = part.text;
        break;
    }
  });
  flush();
  // Backends reject a message of thinking alone.
  return messages.filter((message) =>
    message.role !== "assistant" || message.content !== null || message.tool_calls !== undefined
  );
}

function base36(n: number): string {
  return n.toString(36).padStart(4, "0");
}
