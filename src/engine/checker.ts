import { errorMessage } from "../platform/error.ts";
import { stripControl } from "../platform/terminal.ts";
import { runShell } from "./verify.ts";
import type { AgentScope } from "./scope.ts";

/** Characters of complaints, and complaints, that the model is told of at once. */
const MAX_NOTE = 4000;
const MAX_TOLD = 20;
/** Characters of the checker's output that are compared. */
const MAX_OUTPUT = 400_000;
/** Exit codes of a shell for a program that may not be run, and for one that does not exist. */
const NOT_RUN = [126, 127];
/** Keeps programs from colouring their output. */
const PLAIN = { CI: "true", NO_COLOR: "1" };

/** One run of the checker: its complaints, or undefined when it could not be run to its end. */
type Run = Promise<Complaint[] | undefined>;

/**
 * The project's own checker (`dev.check_cmd`) in one turn. It runs before the turn's first change, and after each
 * round that may have changed files, next to the model's next reply. The model is told of the complaints that the
 * first run did not have. svc runs the command itself, in the sandbox and with the authority of the person who
 * configured it; the policy is not asked.
 */
export class Checker {
  readonly #agent: AgentScope;
  readonly #signal: AbortSignal;
  readonly #tell: (message: string) => void;
  readonly #command: string;
  readonly #limit: number;
  #before?: Run;
  #changed = false;
  /** The newest run. */
  #run?: { complaints: Run; stop: AbortController; ended: boolean };
  /** What the newest report had, by text. */
  #told = new Map<string, number>();

  /** @param tell receives a warning when the checker cannot be run */
  constructor(agent: AgentScope, signal: AbortSignal, tell: (message: string) => void) {
    this.#agent = agent;
    this.#signal = signal;
    this.#tell = tell;
    this.#command = agent.config.get("dev.check_cmd").trim();
    this.#limit = agent.config.get("dev.check_timeout");
  }

  /** Has the checker run for the state before the turn, when the first calls of the turn begin. */
  begin(): void {
    this.#before ??= this.#start(this.#signal);
  }

  /** Waits for that run. Called before each call that may change files. */
  async beforeChange(): Promise<void> {
    this.begin();
    this.#changed = await this.#before !== undefined;
  }

  /**
   * Runs the checker anew after a round that may have changed files.
   *
   * @returns a message for the model, when a run for an earlier round has ended meanwhile and found something new
   */
  async endRound(): Promise<string> {
    const note = this.#run?.ended === true ? await this.lastNote() : "";
    if (!this.#changed) return note;
    this.#changed = false;
    this.#run?.stop.abort(); // its state is past
    const stop = new AbortController();
    const complaints = this.#start(AbortSignal.any([this.#signal, stop.signal]));
    const run = { complaints, stop, ended: false };
    complaints.then(() => run.ended = true);
    this.#run = run;
    return note;
  }

  /** Waits for the newest run. Returns a message for the model, or an empty text when there is nothing new. */
  async lastNote(): Promise<string> {
    const run = this.#run;
    if (run === undefined) return "";
    this.#run = undefined;
    const [before, after] = await Promise.all([this.#before, run.complaints]);
    this.#signal.throwIfAborted();
    if (after === undefined) return "";
    const fresh = newComplaints(before!, after);
    const untold = newOf(fresh, this.#told);
    this.#told = counts(fresh);
    return untold.length === 0 ? "" : this.#message(untold);
  }

  /** Resolves once nothing runs any more, after the signal has aborted. */
  async ended(): Promise<void> {
    await Promise.all([this.#before, this.#run?.complaints]);
  }

  async #start(signal: AbortSignal): Run {
    const { changes, session, sandbox, prompt: { worktree }, mask } = this.#agent;
    try {
      await changes.scan(session.name);
      const ended = await runShell(sandbox, this.#command, {
        cwd: worktree,
        env: PLAIN,
        timeout: this.#limit,
        max_output: MAX_OUTPUT,
      }, signal);
      if (ended.cancelled) return undefined;
      const { timed_out, code } = ended;
      const missing = NOT_RUN.includes(code);
      if (!timed_out && !missing) return code === 0 ? [] : complaintsOf(mask(ended.output));
      this.#tell(
        missing
          ? `The checker cannot be run: ${this.#command}: exit code ${code}: ${
            mask(ended.output).trim().split("\n").at(-1)
          }`
          : `The checker did not end within ${this.#limit} seconds (dev.check_timeout): ${this.#command}`,
      );
    } catch (error) {
      if (signal.aborted) return undefined;
      this.#tell(`The checker cannot be run: ${this.#command}: ${mask(errorMessage(error))}`);
    }
    return undefined;
  }

  #message(complaints: Complaint[]): string {
    const lines: string[] = [];
    let length = 0;
    let heading = "";
    for (const { head, text } of complaints.slice(0, MAX_TOLD)) {
      const shown = head === "" || head === heading ? text : `${head}\n${text}`;
      const room = MAX_NOTE - length;
      if (room <= 0) break;
      lines.push(shown.length <= room ? shown : `${shown.slice(0, room).toWellFormed()}...`);
      length += shown.length;
      heading = head;
    }
    const more = complaints.length - lines.length;
    return `After your changes, the project's checker (${this.#command}) has complaints that it did not have ` +
      `before:\n\n${lines.join("\n")}\n${more > 0 ? `... and ${more} more\n` : ""}\n` +
      "Correct what your changes broke, unless you are about to. Older complaints are left out.";
  }
}

/** Characters of a head: it is compared with each complaint that has it. */
const LONGEST_HEAD = 500;

/** One complaint of a checker. */
export interface Complaint {
  /** The lines that it shares with others, such as the name of a file; empty when there are none. */
  head: string;
  text: string;
}

/** A place in a file: `a.ts:3:5`, `a.ts(3,5)`, `line 3`, or `3:5` at the beginning of a line. */
const PLACE =
  /(?<=[\w/\])}>"'.-]):\d+(?::\d+)?(?:-\d+(?::\d+)?)?|\(\d+(?:,\d+)*\)(?=:)|\b[Ll]ine \d+(?:[,:] ?(?:col(?:umn)? )?\d+)?|^[ \t]*\d+:\d+(?=\s)/;
const PLACES = new RegExp(PLACE.source, "gm");
/** The line number in front of a quoted line. */
const GUTTER = /^[ \t]*\d+(?=[ \t]*[|│])/gm;
/** A line that says how far the checker is, or how much it has found. */
const PROGRESS = /^\s*(?:Check|Compil|Download|Finish|Updat|Install|Runn)(?:ed|e|ing)?\b/;
const SUMMARY =
  /\b\d+ (?:\w+ )?(?:errors?|warnings?|problems?|issues?|failures?|violations?|diagnostics?)\b/i;

/**
 * The complaints in the output of a checker. A paragraph with one place is one complaint. In one with several, each
 * begins with the line of its place, and has the indented lines that follow. Paragraphs without a place count when
 * there is no place at all.
 */
export function complaintsOf(output: string): Complaint[] {
  const paragraphs = stripControl(output).split(/\n[ \t]*(?:\n[ \t]*)+/).map((paragraph) =>
    paragraph.split("\n").map((line) => line.trimEnd()).filter((line) =>
      line !== "" && (PLACE.test(line) || !(PROGRESS.test(line) || SUMMARY.test(line)))
    )
  ).filter((lines) => lines.length > 0);
  const placed = paragraphs.filter((lines) => lines.some((line) => PLACE.test(line)));
  if (placed.length === 0) return paragraphs.map((lines) => ({ head: "", text: lines.join("\n") }));
  return placed.flatMap((lines) => {
    const starts = lines.flatMap((line, i) => PLACE.test(line) ? [i] : []);
    if (starts.length === 1) return [{ head: "", text: lines.join("\n") }];
    const head = lines.slice(0, starts[0]).join("\n").slice(-LONGEST_HEAD);
    return starts.map((from, i) => {
      const [first, ...rest] = lines.slice(from, starts[i + 1]);
      return { head, text: [first, ...rest.filter((line) => /^\s/.test(line))].join("\n") };
    });
  });
}

/** The complaints that a run has and an earlier one had not. Shifted lines are no difference. */
export function newComplaints(before: Complaint[], after: Complaint[]): Complaint[] {
  return newOf(after, counts(before));
}

function newOf(complaints: Complaint[], known: Map<string, number>): Complaint[] {
  const left = new Map(known);
  return complaints.filter((complaint) => {
    const key = keyOf(complaint);
    const count = left.get(key) ?? 0;
    left.set(key, count - 1);
    return count <= 0;
  });
}

function counts(complaints: Complaint[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const key of complaints.map(keyOf)) found.set(key, (found.get(key) ?? 0) + 1);
  return found;
}

/** The text without line numbers; one that names no place may be a summary, and counts without any number. */
function keyOf({ head, text }: Complaint): string {
  const whole = head === "" ? text : `${head}\n${text}`;
  if (!PLACE.test(whole)) return whole.replace(/\b\d+(?:\.\d+)?(?=\b|m?s\b)/g, "#");
  return whole.replace(PLACES, "").replace(GUTTER, "").replace(/[ \t~^-]+/g, " ");
}
