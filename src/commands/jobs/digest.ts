import { digestOf } from "../../jobs/digest.ts";
import type { JobsDigest } from "../../plugins/api.ts";
import { amount } from "../../usage/ledger.ts";
import { outputOption, pathOption } from "../command.ts";
import { moment, table } from "../format.ts";
import type { Io } from "../io.ts";
import { duration } from "../turn.ts";
import type { View } from "./view.ts";
import { command, option, withDefault } from "../options.ts";

/** `jobs digest`. */
export const digestParser = command("digest", {
  action: "digest",
  since: withDefault(
    option("--since", duration, "How far back to look, such as 12h or 7d (default 24h)."),
    86_400,
  ),
  output: outputOption,
  path: pathOption,
}, "Sum up what ran, what it cost, what waits, was refused, or failed.");

/** @param since seconds */
export async function jobsDigest(
  { context, workspace, io }: View,
  { since }: { since: number },
): Promise<{ value: unknown; text: string }> {
  const now = context.clock.now();
  const value = await digestOf(context, workspace.asks.list("pending"), now - since * 1000);
  return { value, text: digestText(value, now, io) };
}

/** A digest for people; parts without anything are left out. */
function digestText(digest: JobsDigest, now: number, { program }: Io): string {
  const { ran, total, failing, blocked, stuck, waiting, asks, denied } = digest;
  const parts: [title: string, rows: string[][]][] = [
    [
      "ran",
      ran.map(({ job, runs, failed, ...spent }) => [
        job,
        `${runs} ${runs === 1 ? "attempt" : "attempts"}${failed === 0 ? "" : `, ${failed} failed`}`,
        ...spentText(spent),
      ]),
    ],
    ["failing", failing.map(({ job, at, reason }) => [job, moment(at, now), reason])],
    ["blocked", blocked.map(({ job, since, reason }) => [job, moment(since, now), reason])],
    ["runs for several of its intervals", stuck.map((job) => [job])],
    [`waits for approval (${program}jobs approve NAME)`, waiting.map((job) => [job])],
    [
      `waits for an answer (${program}asks answer ID TEXT)`,
      asks.map(({ id, job, origin, question }) => [`#${id}`, job || origin, question.trim()]),
    ],
    ["refused", denied.map(({ job, tool, reason, times }) => [job, tool, `${times} x`, reason])],
  ];
  const shown = parts.filter(([, rows]) => rows.length > 0).map(([title, rows]) =>
    `${title}:\n${table(rows.map(([first, ...rest]) => [`  ${first}`, ...rest]))}`
  );
  const spent = `; all requests of this worktree: ${spentText(total).join(", ")}`;
  const head = `jobs since ${moment(digest.since, now)}${
    ran.length === 0 ? ": nothing ran" : spent
  }\n`;
  return [head, ...shown].join("\n");
}

function spentText({ tokens, cost }: { tokens: number; cost: number | null }): string[] {
  return [`${tokens} tokens`, ...(cost ? [`cost ${amount(cost)}`] : [])];
}
