import type { SessionDocument, Turn } from "../sessions/schema.ts";
import { type Agents, outcome, type StepEnd } from "./agents.ts";

/** Characters of a stage's result that the stages after it are shown. */
const MAX_RESULT = 4000;

/** The result of a stage of a team. */
export interface StageResult {
  /** Counted from 1. */
  number: number;
  session: string;
  text: string;
  /** It is from the previous round of the loop. */
  stale: boolean;
}

/** What the prompt of a stage is composed of. */
interface Brief {
  team: string;
  number: number;
  stages: number;
  task: string;
  /** The results of the stages before it, in their order. */
  results: StageResult[];
  /** The findings of the review; left out in the first round. */
  findings?: StageResult;
  handoff_note: string;
  /** The team's memory with its heading; empty when there is none. */
  memory: string;
  task_hint: string;
}

/** The prompt of a stage: the task, the results so far, and this stage's part in it. */
export function stageBrief(brief: Brief): string {
  const { team, number, stages, task, results, findings, handoff_note, memory, task_hint } = brief;
  const section = (heading: string, text: string) =>
    text === "" ? [] : [`## ${heading}\n\n${text}`];
  return [
    task.trim(),
    ...results.flatMap((each) =>
      section(
        `Stage ${each.number} result (${each.session})`,
        `${each.stale ? "(of the round before)\n\n" : ""}${shortened(each)}`,
      )
    ),
    ...findings === undefined
      ? []
      : section("Findings from the previous review", shortened(findings)),
    ...section("Handoff note", handoff_note.trim()),
    ...memory === "" ? [] : [memory],
    ...section("Your part", [part(number, stages, team), task_hint.trim()].join("\n\n").trim()),
  ].join("\n\n");
}

/** The stage of a team that a session belongs to, as its prompt says; undefined when it is none. */
export function stageOf(document: SessionDocument, team: string): number | undefined {
  const first = firstPrompt(document);
  // The task and the results precede it, and may contain such a line too.
  const [, number, of] = [...first.matchAll(PART)].at(-1) ?? [];
  return of === team ? Number(number) : undefined;
}

/** The sessions of earlier stages that a stage's brief names, by their numbers. */
export function earlierSessions(document: SessionDocument): Map<number, string> {
  const headings = firstPrompt(document).matchAll(/^## Stage (\d+) result \((sub_\w+)\)$/gm);
  return new Map(Array.from(headings, ([, number, session]) => [Number(number), session!]));
}

/** {@linkcode stageOf} recognises a session by the first line of this. */
function part(number: number, stages: number, team: string): string {
  const readers = number === stages
    ? "Whoever gave the task reads your answer and nothing else: begin with what was made, and where."
    : `The stages after you see the first ${MAX_RESULT} characters of your answer, and of your work what ` +
      "it leaves in the project.";
  return `You are stage ${number} of ${stages} of the team ${team}.\n${readers}`;
}

const PART = /^You are stage (\d+) of \d+ of the team (\S+)\.$/gm;

function firstPrompt({ turns }: SessionDocument): string {
  return turns[0]?.parts.find((part) => part.type === "user")?.text ?? "";
}

function shortened({ text, session }: StageResult): string {
  const whole = text.trim();
  if (whole.length <= MAX_RESULT) return whole;
  const rest = `\n... (cut from ${whole.length} characters; the whole is in ` +
    `.svc/sessions/${session}.json)`;
  return whole.slice(0, MAX_RESULT - rest.length).toWellFormed() + rest;
}

/**
 * Whether a reviewer's answer passes the work: its last `mark`, at the start of a line or after a sentence, is
 * followed by `pass`. Case and Markdown around the words do not count, and further words may follow; an answer
 * without a mark is no pass, and neither is one that only passes under a condition.
 *
 * @param mark what the verdict starts with (`loop.verdict` of a team)
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * assert(passes("All is well.\n\n**Verdict:** PASS.", "VERDICT:"));
 * assert(!passes("VERDICT: pass or fail?", "VERDICT:"));
 * ```
 */
export function passes(answer: string, mark: string): boolean {
  const start = plain(mark);
  const lines = answer.split(/\r\n|[\n\r\u2028\u2029]/).map(plain).filter((line) => line !== "");
  const after = RegExp(String.raw`(?:^|[.!?;:)] )${RegExp.escape(start)}`, "gu");
  const at = lines.findLastIndex((line) => line.search(after) >= 0);
  if (at < 0) return false;
  const { index, 0: { length } } = [...lines[at]!.matchAll(after)].at(-1)!;
  // Some reviewers write the word on the line after a heading.
  const said = lines[at]!.slice(index + length).trim() || (lines[at + 1] ?? "");
  const [, rest] = /^[^\p{L}\p{N}]*pass(?:ed|es)?(?![\p{L}\p{N}_])(.*)$/u.exec(said) ?? [];
  return rest !== undefined && !/^\s*[/|]/.test(rest) && !CONDITION.test(rest);
}

/** Words after `pass` that take it back. */
const CONDITION =
  /\b(?:if|unless|until|once|when|after|provided|except|but|or|not|was|were|should|would|could|fail(?:s|ed)?)\b/;

/** A line in lower case, without Markdown and the markers of lists and quotations. */
function plain(line: string): string {
  return line.normalize("NFKC").toLowerCase().replace(/[*_`~#>]/g, "")
    .replace(/\s+/g, " ").replace(/^ ?(?:[-+•] )?/, "").replace(/ :/g, ":").trim();
}

/**
 * Updates the memory of a team with the results of its stages, in the order in which they ran (specification
 * 2.12), in the background. The details of the stages are in their own logs.
 */
export function rememberTeam(
  { name, task, steps }: { name: string; task: string; steps: readonly StepEnd[] },
  agents: Agents,
): void {
  const last = steps.at(-1);
  if (last === undefined || last.result.status === "cancelled") return;
  agents.remember({
    scope: "team",
    name,
    turns: [turn(0, `The team's task:\n\n${task}`, ""), ...steps.map(stage)],
    ended: outcome(last.result),
  });
}

function stage({ run: { role }, result }: StepEnd, place: number): Turn {
  const { ok, text } = outcome(result);
  const how = ok ? "answered" : `ended with status ${result.status}`;
  return turn(place + 1, `The stage of the role ${role} ${how}:`, text);
}

function turn(index: number, said: string, answer: string): Turn {
  const part = (type: "user" | "text", text: string) => ({ type, text, timestamp: "" });
  return {
    index,
    started_at: "",
    ended_at: "",
    status: "ok",
    model: "",
    provider: "",
    mode: "",
    reasoning: "",
    parts: [part("user", said), ...answer === "" ? [] : [part("text", answer)]],
  };
}
