import { relative } from "../../commands/format.ts";
import { oneLine } from "../../platform/terminal.ts";
import type { SessionSummary } from "../../sessions/look.ts";
import { idOf } from "../../sessions/names.ts";
import { amount } from "../../usage/ledger.ts";
import { usageBySession } from "../../usage/summary.ts";
import type { PickItem } from "../input/picker.ts";
import { fit } from "../../platform/text.ts";
import type { Shell } from "../shell.ts";

/** The newest sessions that are listed. Others are found by their name or handle. */
const MOST = 500;

/**
 * Lets the person choose a saved session from a list. Typing filters it by prompt, name, role and job; a number, a
 * name or a handle (`#<id>`) names one. Tab shows the sessions that one has spawned.
 *
 * @returns its name; undefined when none was chosen
 */
export async function pickSession(shell: Shell): Promise<string | undefined> {
  const { workspace: { sessions, clock, spending }, conversation, input, output, style, io } =
    shell;
  const all = await (await sessions.index({ limit: MOST })).summaries();
  if (all.length === 0) return void io.note("There are no saved sessions.");
  const used = await usageBySession(spending.ledger, all);
  const names = new Set(all.map(({ name }) => name));
  const isRoot = ({ parent_id }: SessionSummary) => !names.has(parent_id);
  const spawned = Map.groupBy(all.filter((each) => !isRoot(each)), ({ parent_id }) => parent_id);
  const numbers = new Map(all.filter(isRoot).map(({ name }, index) => [name, index + 1]));
  const open = new Set<string>();

  const row = (each: SessionSummary, depth: number): PickItem => {
    const { name, first_prompt, turns, running, updated_at, role, job } = each;
    const { cost = null } = used.get(name) ?? {};
    const subs = spawned.get(name)?.length ?? 0;
    const label = `${numbers.get(name) ?? "↳"} `.padStart(3 + 2 * depth);
    const facts = [
      name === conversation.name ? "this one" : "",
      running ? "running" : relative(Date.parse(updated_at), clock.now()),
      subs === 0 ? "" : `+${subs}`,
      turns === 1 ? "1 turn" : `${turns} turns`,
      role,
      job && `job ${job}`,
      cost === null ? "" : amount(cost),
      idOf(name) === "" ? name : `#${idOf(name)}`,
    ];
    const room = Math.max(12, Math.floor(output.columns() / 2) - label.length);
    return {
      value: name,
      text: label + fit(oneLine(first_prompt) || "(no prompt)", room),
      description: facts.filter((fact) => fact !== "").map(oneLine).join(" · "),
    };
  };
  const tree = (each: SessionSummary, depth = 0): PickItem[] => [
    row(each, depth),
    ...open.has(each.name)
      ? spawned.get(each.name)?.flatMap((sub) => tree(sub, depth + 1)) ?? []
      : [],
  ];
  const items = (typed: string): PickItem[] => {
    const wanted = typed.trim().toLowerCase();
    if (wanted === "") return all.filter(isRoot).flatMap((each) => tree(each));
    const named = all.filter(({ name }) =>
      String(numbers.get(name)) === wanted || name === typed.trim() || `#${idOf(name)}` === wanted
    );
    if (named.length > 0) return named.map((each) => row(each, 0));
    const words = wanted.split(/\s+/);
    const found = all.filter(({ name, first_prompt, role, job }) => {
      const text = `${name} ${first_prompt} ${role} ${job}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    if (found.length > 0) return found.map((each) => row(each, 0));
    const older = sessions.withId(wanted);
    return (older.length > 0 ? older : [typed.trim()]).flatMap((name) => {
      const summary = sessions.summary(name);
      return summary === undefined ? [] : [row(summary, 0)];
    });
  };
  return await input.pick({
    prompt: (output.columns() < 60 ? "" : style.dim("session (type to filter, Tab unfolds +1) ")) +
      style.bold("› "),
    items,
    toggle: (name) => void (open.delete(name) || open.add(name)),
  });
}
