import type { RolePrompt } from "../catalog/catalog.ts";
import type { ConfigView } from "../plugins/api.ts";
import type { WorktreeGuard } from "../policy/paths.ts";

/** What an agent's role brings to its system prompt. Any of it may be empty. */
export interface AgentPrompt extends RolePrompt {
  /** What the role remembers of earlier runs. */
  memory: string;
}

/**
 * The system prompt of a turn, never stored in the log (specification 2.2): who the agent is (the
 * role's prompt, else the configured one, else ours), the role's skills, where the agent works, the
 * project's instructions, what the role remembers, who can work for it, the mode's instruction, and what will
 * be refused without asking.
 */
export function systemPrompt(request: {
  worktree: string;
  guard: WorktreeGuard;
  config: ConfigView;
  mode: string;
  role: AgentPrompt;
  /** What a job says, between its role and the mode's instruction (specification 2.6). */
  job?: string[];
  /** Who can work for it; empty when nobody can. */
  others: string;
  /** Categories whose calls are refused because nobody is there to approve them. */
  refused: string[];
  /** Categories that the agent can ask leave for. */
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
  if (request.refused.length > 0) {
    sections.push(
      "Nobody is there to approve calls in this run. Tools of these categories are refused: " +
        `${
          request.refused.join(", ")
        }. Do not retry a refused call; find another way or say what is missing.`,
    );
  }
  if (request.obtainable.length > 0) {
    sections.push(
      "For calls of these categories you can ask leave, one call at a time, with the tool ask " +
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

/** A huge file would fill the memory for the sake of its first characters. */
function beginning(path: string): string {
  using file = Deno.openSync(path);
  const bytes = new Uint8Array(Math.min(file.statSync().size, MAX_INSTRUCTIONS));
  let read = 0;
  for (let more: number | null = 1; more && read < bytes.length; read += more ?? 0) {
    more = file.readSync(bytes.subarray(read));
  }
  return new TextDecoder().decode(bytes.subarray(0, read));
}
