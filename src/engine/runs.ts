import { stripControl } from "../platform/terminal.ts";
import type { TurnStatus } from "../sessions/schema.ts";
import type { Session } from "../sessions/session.ts";
import { ROOT_RUN, type TurnEvent } from "./events.ts";

/** One agent at work in this process (specification 2.5). */
export interface Run {
  /** Counted from 1, which is the root; the handle is `#<id>`. */
  readonly id: number;
  /** 0 for the root. */
  readonly parent: number;
  readonly children: readonly number[];
  /** Empty when it runs without one. */
  readonly role: string;
  /** Name of the session. */
  readonly session: string;
  /** Empty for a session whose name a user chose. */
  readonly session_id: string;
  readonly task: string;
  /** `paused` after a handoff, until its next turn. */
  readonly status: TurnStatus | "paused";
  /** The stage of a team that it is, if it is one. */
  readonly stage?: RunStage;
}

/** A stage of a team at work. */
export interface RunStage {
  team: string;
  /** Narrows what the stage may do; empty: nothing does. */
  mode: string;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

interface Entry {
  run: Writable<Run> & { children: number[] };
  line: Run[];
  /** The last line is still being written when `open` is set. */
  lines: string[];
  open: boolean;
}

/** The runs of one root agent and all that it started: a tree, and a log in the order of creation. */
export class RunRegistry {
  readonly #entries: Entry[] = [];
  readonly #maxLines: number;

  /** @param maxLines how many lines of a run's output are kept (`run_buffer_max_lines`) */
  constructor(maxLines: number) {
    this.#maxLines = maxLines;
  }

  /** Registers a run that starts now; the first is the root. */
  start(
    { parent, role, session, task, stage }:
      & Pick<Run, "parent" | "role" | "task" | "stage">
      & { session: Pick<Session, "name" | "id"> },
  ): Run {
    const run: Entry["run"] = {
      id: this.#entries.length + 1,
      parent,
      children: [],
      role,
      session: session.name,
      session_id: session.id,
      task,
      status: "running",
      ...stage === undefined ? {} : { stage },
    };
    const line = this.#lineFrom(parent);
    this.#entries[parent - 1]?.run.children.push(run.id);
    this.#entries.push({ run, line, lines: [], open: false });
    return run;
  }

  /**
   * Has a run go on with another task, as the role that it is given now, if any (specification 3.6).
   *
   * @param by the run that has it go on; left out for a person, who takes it as it stands
   */
  resume(id: number, change: Partial<Pick<Run, "role" | "task" | "stage">>, by?: number): Run {
    const entry = this.#entries[id - 1]!;
    if (by !== undefined) entry.line = this.#lineFrom(by);
    return Object.assign(entry.run, change, { status: "running" });
  }

  /**
   * The runs that a run works under, the root first, as they were when the last of them had it start or go on.
   * That one need not be its parent: any agent of the tree may resume it, with less rights than its parent's.
   */
  line(id: number): readonly Run[] {
    return this.#entries[id - 1]?.line ?? [];
  }

  /** Notes how a run ended; only the first status counts, until it is resumed. */
  finish(id: number, status: Exclude<Run["status"], "running">): void {
    const { run } = this.#entries[id - 1]!;
    if (run.status === "running") run.status = status;
  }

  /** All runs in the order of their creation. */
  list(): Run[] {
    return this.#entries.map(({ run }) => run);
  }

  /** The run that `root`, `#<run>`, `#<id>`, `session:<name>` or a session's name or id stands for. */
  resolve(target: string): Run | undefined {
    if (target === "root") return this.#entries[ROOT_RUN - 1]?.run;
    const handle = target.replace(/^#/, "");
    const number = /^[1-9]\d*$/.test(handle) ? this.#entries[Number(handle) - 1] : undefined;
    if (number !== undefined) return number.run;
    const name = target.replace(/^session:/, "");
    return this.#entries.findLast(({ run }) =>
      run.session === name || (run.session_id !== "" && run.session_id === handle)
    )?.run;
  }

  /** A run with those that it works under, as they are now. */
  #lineFrom(id: number): Run[] {
    const entry = this.#entries[id - 1];
    return entry === undefined ? [] : [...entry.line, { ...entry.run }];
  }

  /** Adds what an event says to the output of its run. */
  record(event: TurnEvent): void {
    const entry = this.#entries[event.run - 1];
    if (entry === undefined) return;
    if (event.type === "token") {
      const [first, ...others] = stripControl(event.content).split("\n") as [string, ...string[]];
      // A line without an end is continued on the next one, so that it does not grow for ever.
      const last = entry.open ? entry.lines.at(-1) ?? "" : undefined;
      if (last === undefined || last.length >= LONGEST_LINE) entry.lines.push(first);
      else entry.lines.splice(-1, 1, last + first);
      entry.lines.push(...others);
      entry.open = true;
    } else {
      if (entry.open && entry.lines.at(-1) === "") entry.lines.pop();
      entry.open = false;
      const line = lineOf(event);
      if (line !== "") entry.lines.push(...stripControl(line).split("\n"));
    }
    const excess = entry.lines.length - this.#maxLines;
    if (excess > 0) entry.lines.splice(0, excess);
  }

  /** The newest lines of a run's output as plain text. */
  output(id: number): string[] {
    return [...this.#entries[id - 1]?.lines ?? []];
  }
}

/** Characters after which a line of a run's output ends. */
const LONGEST_LINE = 1000;

function lineOf(event: TurnEvent): string {
  switch (event.type) {
    case "tool_call":
      return `> ${event.status || event.name}`;
    case "tool_result":
      return event.is_error ? event.output.split("\n", 1)[0]! : event.note;
    case "notice":
      return event.message;
    case "ask":
      return `Ask #${event.id}: ${event.question}`;
    case "ask_routed":
      return `Asks ${event.to === "human" ? "the operator" : `#${event.to}`}: ${event.question}`;
    case "handoff":
      return event.target === "done" ? "Done" : `Handed over to #${event.target}`;
    default:
      return "";
  }
}

/**
 * The run that a target means, seen from a run (specification 3.6): `root`, `#<run>`, `#<id>`,
 * `session:<name>` or a name as {@linkcode RunRegistry.resolve} knows them, or a step through the tree.
 * `child` is the newest one; `sibling` the next of the same parent, after the last the first; `next` and
 * `prev` go through all runs in the order of their creation.
 */
export function targetRun(runs: RunRegistry, from: number, target: string): Run | undefined {
  const at = (id: number | undefined) => id === undefined ? undefined : runs.resolve(`#${id}`);
  const here = at(from);
  switch (target) {
    case "parent":
      return at(here?.parent || undefined);
    case "child":
      return at(here?.children.at(-1));
    case "sibling": {
      const siblings = at(here?.parent || undefined)?.children ?? [];
      const next = siblings[(siblings.indexOf(from) + 1) % siblings.length];
      return next === from ? undefined : at(next);
    }
    case "next":
      return at(from + 1);
    case "prev":
      return from > 1 ? at(from - 1) : undefined;
    default:
      return runs.resolve(target);
  }
}
