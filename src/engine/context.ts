import { stripControl } from "../platform/terminal.ts";
import type { Catalog, RolePrompt } from "../catalog/catalog.ts";
import type { Entry } from "../catalog/layers.ts";
import { exists } from "../platform/files.ts";
import type { ChatMessage, ConfigView, Provider, WireTool } from "../plugins/api.ts";
import type { WorktreeGuard } from "../policy/paths.ts";
import type { Policy } from "../policy/policy.ts";
import type { Turn } from "../sessions/schema.ts";
import type { TurnLog } from "../sessions/session.ts";
import { charsOf, type ToolRegistry } from "../tools/registry.ts";
import { Conversation, LoggedTurn, type ReadAttachment } from "./conversation.ts";
import { environmentBlock } from "./environment.ts";
import type { AgentScope } from "./scope.ts";
import { coreTool } from "./tools/core.ts";
import { ContextWindow } from "./window.ts";

const NO_ROLE: AgentPrompt = { identity: "", skills: "", memory: "" };

/** Turns of a log that are added to a conversation before other work gets its turn. */
const BATCH = 200;

/** Size of a log with its conversation, which stays in memory while the session stays open. */
const MOST_KEPT = 256 * 1024;

/**
 * What is sent to the provider of one agent (specification 2.1): the system prompt and the conversation so far. The
 * messages of a request are those of the one before it and more, unless the conversation was compacted.
 */
export class ProviderContext {
  readonly #agent: AgentScope;
  readonly #policy: Policy;
  #conversation: Conversation;
  readonly #windows = new Map<Provider, ContextWindow>();
  /** The system prompt of the turn with these notes in it. */
  #prompt: (notes: string) => string = (notes) => notes;

  readonly #attached: ReadAttachment;

  /** The turns that `load` has read. */
  #turns: Turn[] | undefined;

  constructor(agent: AgentScope, policy: Policy) {
    const { name: provider, model } = agent.provider;
    this.#agent = agent;
    this.#policy = policy;
    const { attachments, kept } = agent.session;
    this.#attached = (each, origin) => (origin === "user" ? attachments : kept).read(each);
    this.#conversation = new Conversation([], { provider, model }, this.#attached);
  }

  get conversation(): Conversation {
    return this.#conversation;
  }

  /** The context window of a model of the turn. */
  window(provider: Provider): ContextWindow {
    let window = this.#windows.get(provider);
    if (window === undefined) {
      window = new ContextWindow(provider, this.#agent.config, this.#agent.windows);
      this.#windows.set(provider, window);
    }
    if (provider === this.#agent.provider) window.recall(this.#conversation.window);
    return window;
  }

  /** The system prompt, with the notes that the conversation begins with. */
  prompt(): string {
    return this.#prompt(this.#conversation.preface);
  }

  /** The characters of the system prompt and these tools. */
  fixed(tools: WireTool[]): number {
    return tools.reduce((sum, tool) => sum + 1 + charsOf(tool), this.prompt().length + 1);
  }

  /** The messages of a request to a provider. The first is the system prompt. */
  messages({ name: provider, model }: Provider = this.#agent.provider): ChatMessage[] {
    const conversation = this.#conversation.messages({ provider, model });
    return [{ role: "system", content: this.prompt() }, ...conversation];
  }

  /**
   * Reads the log of a session that another engine has written, before the first turn begins.
   *
   * @throws SvcError `session_unreadable` (exit 2) for a damaged log, to which nothing may be appended
   */
  async load(): Promise<void> {
    const { session, provider: { name, model } } = this.#agent;
    if (this.#conversation.turn > 0 || session.created) return;
    const { known } = session.opened;
    if (known instanceof Conversation && known.isFor({ provider: name, model })) {
      this.#conversation = known;
    } else this.#turns ??= await session.turns();
  }

  /** Where the session works, for the head of the turn that begins; undefined where an earlier turn has it. */
  async environment(signal: AbortSignal): Promise<string | undefined> {
    const { opened } = this.#agent.session;
    const known = this.#conversation.environment ?? opened.environment ??
      this.#turns?.find(({ environment }) => environment !== undefined);
    if (known !== undefined || !this.#agent.config.get("environment")) return undefined;
    return opened.environment = await environmentBlock(this.#agent, signal);
  }

  /** Leaves the conversation to the next engine of the session, unless it is large. */
  close(): void {
    const { session } = this.#agent;
    const size = this.#conversation.entries.reduce(
      (sum, { message: { content, images } }) => sum + (images ? Infinity : content?.length ?? 0),
      session.bytes,
    );
    const kept = size <= MOST_KEPT && this.#conversation.turn > 0;
    session.opened.known = kept ? this.#conversation : undefined;
  }

  /**
   * Begins a turn. The log is read again only when another engine has appended to it.
   *
   * Memories change from run to run. They follow the conversation as notes, since in the system prompt, in front of
   * it, each change would cost the backend's cache of all of it. Only the notes that a conversation begins with
   * are in the system prompt.
   */
  async begin(log: TurnLog, environment?: string): Promise<LoggedTurn> {
    const { session, provider, prompt: { role, memory = "" }, pace } = this.#agent;
    const { name, model } = provider;
    const { index } = log;
    if (index !== this.#conversation.turn + 1) {
      const last = this.#turns?.at(-1);
      // A turn that ran when they were read has ended since.
      const known = last?.index === index - 1 && last.status !== "running"
        ? this.#turns
        : undefined;
      const turns = (known ?? await session.turns()).filter((turn) => turn.index < index);
      this.#conversation = new Conversation([], { provider: name, model }, this.#attached);
      const leftOut = session.results.read();
      for (const [i, turn] of turns.entries()) {
        if (i % BATCH === BATCH - 1) await pace.turn();
        this.#conversation.add(turn, leftOut);
      }
    }
    this.#turns = undefined;
    this.#conversation.begin({ index, provider: name, model, environment });
    const turn = new LoggedTurn(log, this.#conversation, session.results);
    for (const text of [role?.memory ?? "", memory]) {
      if (text !== "" && !this.#conversation.knows(text)) turn.append({ type: "system", text });
    }
    return turn;
  }

  /** Composes the system prompt of the turn that has begun. */
  async compose(tools: ToolRegistry, warn: (message: string) => void): Promise<void> {
    const sections = await this.#sections(tools, warn);
    this.#prompt = (notes) => sections(notes).filter((section) => section !== "").join("\n\n");
  }

  async #sections(
    tools: ToolRegistry,
    warn: (message: string) => void,
  ): Promise<(notes: string) => string[]> {
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
    const reads = offered.some(({ name, permission }) =>
      name === "file_read" && !refused.includes(permission)
    );
    const others = await links.directory({
      role: listed.has("role"),
      team: listed.has("team"),
      skill: reads,
    });
    const { mode } = settings;
    return systemPrompt({
      worktree,
      environment: config.get("environment") && this.#conversation.environment || "",
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
 * The sections of a turn's system prompt, never stored in the log (specification 2.2): who the agent is (the role's
 * prompt, else the configured one, else ours), the role's skills, a job's sections, the notes of memories, where the
 * agent works, the project's instructions, the roles and teams that can work for it, the mode's instruction, the
 * categories that will be refused, and the environment. A section may be empty.
 */
function systemPrompt(request: {
  worktree: string;
  /** See {@linkcode environmentBlock}; may be empty. */
  environment: string;
  guard: WorktreeGuard;
  config: ConfigView;
  mode: string;
  role: AgentPrompt;
  /** A job's sections, after the role (specification 2.6). */
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
}): (notes: string) => string[] {
  const { worktree, config, mode, role, job, others, obtainable } = request;
  const own = job === undefined ? config.get("system_prompt") || DEFAULT_PROMPT : "";
  const instructions = projectInstructions(request.guard, config, request.warn);
  const refused = [...request.denied, ...request.refused];
  const why = request.refused.length > 0 ? "No one can approve calls in this run. " : "";
  const rest = [
    `Your worktree is ${worktree}; relative paths start there.`,
    instructions && `## Project instructions\n\n${instructions}`,
    others,
    modeInstruction(config, mode),
    refused.length === 0
      ? ""
      : `${why}Tools of these categories are refused: ${refused.join(", ")}. ` +
        "Do not retry a refused call; find another way or say what is missing.",
    obtainable.length === 0
      ? ""
      : "For calls of these categories you can request permission, one call at a time, with the tool ask " +
        `(kind permission): ${obtainable.join(", ")}.`,
    request.environment, // last, since what stands before it is the same for all sessions
  ];
  return (notes) => [role.identity || own, role.skills, ...job ?? [], notes, ...rest];
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
/** Characters of all instructions that one turn finds in folders. */
const MAX_NESTED = 100_000;

/**
 * Finds the instructions files in the folders of the files that a turn touches. Each is given to the model once, as
 * long as the conversation still has it.
 */
export class NestedInstructions {
  readonly #agent: AgentScope;
  readonly #conversation: Conversation;
  /** The folders that this turn has looked at, relative to the worktree. */
  readonly #seen = new Set<string>();
  #left = MAX_NESTED;

  constructor(agent: AgentScope, conversation: Conversation) {
    this.#agent = agent;
    this.#conversation = conversation;
  }

  /** Notes for the model after calls with these paths. A file of the worktree itself has none. */
  notes(paths: unknown[]): { notes: string[]; warnings: string[] } {
    const { rights: { guard }, config } = this.#agent;
    const name: string = config.get("project_instructions");
    const notes: string[] = [];
    const warnings: string[] = [];
    if (!/^[\w.-]+$/.test(name)) return { notes, warnings };
    const warn = (message: string) => void warnings.push(message);
    for (const path of paths) {
      if (typeof path !== "string" || !path.includes("/")) continue;
      for (const folder of this.#foldersOf(path)) {
        const file = `${folder}/${name}`;
        const heading = `Instructions of ${file}, for the files in ${folder}:\n`;
        if (this.#conversation.entries.some(({ message }) => startsWith(message, heading))) {
          continue;
        }
        const text = projectInstructions(guard, config, warn, file);
        if (text.length > this.#left) warn(`${file} is left out: the turn has found too many.`);
        else if (text !== "") {
          this.#left -= text.length;
          notes.push(`${heading}\n${text}`);
        }
      }
    }
    return { notes, warnings };
  }

  /** The folders from the worktree to a file that were not looked at before, the outermost first. */
  #foldersOf(path: string): string[] {
    const { guard } = this.#agent.rights;
    try {
      const { real, inside } = guard.locate(path);
      if (!inside) return [];
      const names = real.slice(guard.worktree.length + 1).split("/").slice(0, -1);
      const folders = names.map((_, i) => names.slice(0, i + 1).join("/"))
        .filter((folder) => !this.#seen.has(folder));
      for (const folder of folders) this.#seen.add(folder);
      return folders;
    } catch {
      return []; // the call has failed with the reason
    }
  }
}

function startsWith({ role, content }: ChatMessage, heading: string): boolean {
  return role === "user" && typeof content === "string" && content.startsWith(heading);
}

/** An instructions file (`project_instructions`), cut at its cap; links out are ignored. */
function projectInstructions(
  guard: WorktreeGuard,
  config: ConfigView,
  warn: (message: string) => void,
  name: string = config.get("project_instructions"),
): string {
  if (name === "") return "";
  // Most worktrees have no such file, and a link that leads out is none of these names.
  if (/^[\w./-]+$/.test(name) && !exists(`${guard.worktree}/${name}`)) return "";
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
 * The roles and teams that can work for an agent, and the skills that it can read, a line each, as sections of its
 * system prompt. Broken entries are left out. Empty when there are none.
 *
 * @param listed the kinds of entries that the agent has a tool for
 */
export function directory(
  catalog: Catalog,
  { role, team, skill }: { role: boolean; team: boolean; skill: boolean },
  worktree: string,
): string {
  const workers = [
    ...role ? lines("Roles, for delegate:", catalog.list("role")) : [],
    ...team ? lines("Teams, for team:", catalog.list("team")) : [],
  ];
  return [
    ...workers.length === 0 ? [] : [`## Who can work for you\n\n${workers.join("\n\n")}`],
    ...skill ? skillLines(catalog, worktree) : [],
  ].join("\n\n");
}

/** Characters of all lines about skills, and of the description of one. */
const MOST_SKILLS = 12_000;
const LONGEST_SKILL = 1024;

/** The skills that are folders: their texts are read when they are needed. */
function skillLines(catalog: Catalog, worktree: string): string[] {
  const skills = catalog.list("skill").filter(({ value }) => value.folder !== "" && !value.hidden);
  if (skills.length === 0) return [];
  let size = 0;
  const shown = skills.map(({ name, value: { description, folder } }) => {
    const at = folder.startsWith(`${worktree}/`) ? folder.slice(worktree.length + 1) : folder;
    return `- ${name}: ${short(description, LONGEST_SKILL)} (${at}/SKILL.md)`;
  }).filter((line) => (size += line.length) <= MOST_SKILLS);
  const rest = skills.length - shown.length;
  const heading =
    "## Skills to read\n\nWhen a task is what one of these is for, first read its file and " +
    "follow it. Paths in it start at its folder.";
  return [[heading, "", ...shown, ...rest > 0 ? [`- and ${rest} more`] : []].join("\n")];
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

function short(text: string, most = LONGEST): string {
  const line = stripControl(text).replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most).toWellFormed()}...`;
}
