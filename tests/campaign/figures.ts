import { budgetOf, LANES, LASTING, type Month, START, type Step } from "./month.ts";
import { DAY, type Exchange, HOUR } from "./vendor.ts";

/** Hours of a step after which it hangs. */
const LONGEST = 12;
/** Sessions on the disk at most. */
const SESSIONS = 400;

/** A condition that a month must meet. */
export interface Gate {
  name: string;
  met: boolean;
  figure: string;
}

export function gates(month: Month): Gate[] {
  const { options, options: { days }, steps, exchanges, hung, recalled, served, sessions } = month;
  const day = (time: number) => Math.floor((time - START) / DAY);
  const ok = (lane: string) => steps.filter((step) => step.lane === lane && step.status === "ok");
  const gate = (name: string, met: boolean, ...figures: unknown[]): Gate => ({
    name,
    met,
    figure: figures.join(" "),
  });
  const none = (name: string, wrong: unknown[]) => gate(name, wrong.length === 0, ...wrong);

  const slow = steps.filter(({ from, to }) => to - from > LONGEST * HOUR).map(({ lane }) => lane);
  const refuted = steps.filter((step) => step.refuted);
  const verified = steps.filter((step) => step.verified);
  const avoidable = exchanges.filter((each) => each.avoidable);
  const idle = served.flatMap((hours, number) => {
    const ran = ["fresh-a", "last-a"].every((job) => ok(job).some(({ to }) => day(to) === number));
    return hours >= 12 && !ran ? [number + 1] : [];
  });
  const spent = steps.filter(({ lane }) => LANES[lane]!.schedule).map(({ lane, from, to }) =>
    sum(
      exchanges.filter((each) =>
        each.lane === lane && each.outcome === "answered" && from <= each.at && each.at <= to
      ),
      ({ tokens, output }) => tokens + output,
    )
  );
  const known = share(exchanges, ...LASTING);
  return [
    none(
      "no lane is dead",
      Object.keys(LANES).filter((lane) =>
        !ok(lane).some(({ to }) => to > START + (days - 1.5) * DAY)
      ),
    ),
    none("no run hangs", [...hung, ...slow]),
    gate(
      "no result is verified that its check refutes",
      refuted.length === 0 && verified.length > 0,
      `${refuted.length} of ${verified.length}`,
    ),
    gate(
      "under 5 % of the requests could be avoided",
      avoidable.length < exchanges.length / 20,
      percent(avoidable.length, exchanges.length),
    ),
    none("jobs run on every day on which the vendor answers", idle),
    gate(
      "the tokens of a job's run are within its budget",
      Math.max(...spent) <= budgetOf(options),
      `${Math.max(...spent)} of ${budgetOf(options)}`,
    ),
    gate("90 % of the prompts of lasting lanes is known", known >= 0.9, percent(known, 1)),
    none(
      "the code words of the first day are known",
      LASTING.filter((lane) => !recalled.get(lane)),
    ),
    gate("the disk is bounded", sessions <= SESSIONS, `${sessions} sessions`),
  ];
}

/** The figures of a month as text. */
export function table(month: Month): string {
  const { steps, exchanges, killed, megabytes } = month;
  const rows = Object.keys(LANES).map((lane) => {
    const own = steps.filter((step) => step.lane === lane);
    const sent = exchanges.filter((each) => each.lane === lane);
    const last = own.findLast(({ status }) => status === "ok")?.to ?? START;
    return [
      lane,
      own.length,
      own.filter(({ status }) => status === "ok").length,
      own.filter((step) => step.verified).length,
      own.filter((step) => step.refuted).length,
      sent.length,
      sent.filter(({ outcome }) => outcome !== "answered").length,
      sent.filter((each) => each.avoidable).length,
      Math.round(sum(sent, ({ tokens }) => tokens) / 1000),
      percent(share(exchanges, lane), 1),
      ((last - START) / DAY).toFixed(1),
    ];
  });
  const head = "lane steps ok verified refuted requests failed avoidable ktokens prefix last-ok";
  const columns = head.split(" ");
  const outcomes = [...Map.groupBy(exchanges, ({ outcome }) => outcome)];
  const reasons = [...Map.groupBy(steps.filter(({ status }) => status !== "ok"), reasonOf)];
  return [
    ...[columns, ...rows].map((row) =>
      row.map((cell, place) => `${cell}`.padStart(Math.max(8, columns[place]!.length))).join(" ")
    ),
    outcomes.map(([outcome, { length }]) => `${outcome} ${length}`).join(", "),
    `${exchanges.length} requests, ${killed} kills, ${megabytes.toFixed(1)} MB`,
    ...gates(month).map(({ name, met, figure }) =>
      `${met ? "ok    " : "FAILED"} ${name}: ${figure}`
    ),
    ...reasons.sort(([, one], [, other]) => other.length - one.length).slice(0, 15)
      .map(([reason, { length }]) => `${length} x ${reason}`),
  ].join("\n");
}

function reasonOf({ status, reason }: Step): string {
  return `${status} ${reason.replace(/\d+/g, "N").slice(0, 120)}`;
}

/** The part of the prompts of lanes that the vendor has seen just before. */
function share(exchanges: Exchange[], ...lanes: string[]): number {
  const own = exchanges.filter(({ lane, output }) => output > 0 && lanes.includes(lane));
  return sum(own, ({ cached }) => cached) / sum(own, ({ tokens }) => tokens);
}

function sum<T>(list: T[], of: (each: T) => number): number {
  return list.reduce((total, each) => total + of(each), 0);
}

function percent(part: number, whole: number): string {
  return `${(100 * part / Math.max(1, whole)).toFixed(1)} %`;
}
