import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { relative, span } from "../../commands/format.ts";
import { systemClock } from "../../platform/clock.ts";
import { stripControl } from "../../platform/terminal.ts";
import { amount } from "../../usage/ledger.ts";
import { includesRole, type TokenRole } from "../admission.ts";
import type { Topic } from "./page.ts";
import type { Viewer } from "./sign_in.ts";

/** Text of several lines with its spaces. */
export function Block({ children }: { children: string }): JSX.Element {
  // A keyboard scrolls it only when it takes the focus.
  return (
    <pre class="block" tabindex={0}>{
      stripControl(children)
    }</pre>
  );
}

/** A fact and its name. */
export type Fact = [name: string, value: Child];

/** Facts, a row each. */
export function Facts({ facts, prose }: {
  facts: Fact[];
  /** Keeps the line ends of the values. Default: no. */
  prose?: boolean;
}): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd class={prose ? "prose" : undefined}>{value}</dd>
        </>
      ))}
    </dl>
  );
}

/** A column of a table; numbers are aligned to the right. */
export interface Column {
  head: string;
  number?: boolean;
  /** Whether a phone shows it. Default: yes. */
  wide?: boolean;
}

/** A table, or a sentence when it has no rows. */
export function Table({ caption, columns, rows, empty }: {
  /** Says what is listed, for screen readers. */
  caption: string;
  columns: Column[];
  rows: Child[][];
  empty: string;
}): JSX.Element {
  if (rows.length === 0) return <Empty>{empty}</Empty>;
  const kind = ({ number, wide }: Column) =>
    [number && "number", wide && "wide"].filter(Boolean).join(" ") || undefined;
  return (
    <div class="scroll" tabindex={0} role="region" aria-label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => <th scope="col" class={kind(column)}>{column.head}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>{row.map((cell, index) => <td class={kind(columns[index]!)}>{cell}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Says that a list is empty, and what fills it. */
export function Empty({ children }: { children: Child }): JSX.Element {
  return <p class="empty">{children}</p>;
}

/** A titled part of a page. With `live`, the script fetches it anew when one of the topics changes. */
export function Section({ id, title, count, live, children }: {
  id: string;
  title: string;
  count?: number;
  live?: Topic[];
  children: Child;
}): JSX.Element {
  return (
    <section id={id} aria-labelledby={`${id}-title`} data-live={live?.join(" ")}>
      <h2 id={`${id}-title`}>
        {title}
        {count !== undefined && <span class="count">{count}</span>}
      </h2>
      {children}
    </section>
  );
}

export type Tone = "good" | "bad" | "warn" | "active" | "plain";

const TONES: Record<string, Tone> = {
  ok: "good",
  done: "good",
  verified: "good",
  healthy: "good",
  approved: "good",
  running: "active",
  queued: "active",
  starting: "active",
  waiting: "warn",
  pending: "warn",
  proposed: "warn",
  truncated: "warn",
  paused: "warn",
  error: "bad",
  failed: "bad",
  crashed: "bad",
  unhealthy: "bad",
  timeout: "bad",
};

/** A word of state. Its colour repeats what the word says. */
export function Badge({ children, tone }: { children: string; tone?: Tone }): JSX.Element {
  return (
    <span class={`badge ${tone ?? (Object.hasOwn(TONES, children) ? TONES[children] : "plain")}`}>
      {children}
    </span>
  );
}

const CLOCK: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const DAY: Intl.DateTimeFormatOptions = { day: "numeric", month: "short" };
const formats = {
  clock: new Intl.DateTimeFormat("en-GB", CLOCK),
  day: new Intl.DateTimeFormat("en-GB", { ...DAY, ...CLOCK }),
  year: new Intl.DateTimeFormat("en-GB", { ...DAY, year: "numeric" }),
};

/** A time in the time zone of the server, ISO 8601; nothing for an empty one. Its title has the distance from now. */
export function Time(
  { at, now = systemClock.now() }: { at: string; now?: number },
): JSX.Element | null {
  const time = Date.parse(at);
  if (Number.isNaN(time)) return null;
  const near = Math.abs(time - now) < 12 * 3_600_000;
  const year = Math.abs(time - now) < 180 * 86_400_000;
  const text = formats[near ? "clock" : year ? "day" : "year"].format(time);
  return <time datetime={at} title={`${at}, ${relative(time, now)}`}>{text}</time>;
}

/** A number of seconds. */
export function Duration({ seconds }: { seconds: number }): JSX.Element {
  return (
    <span class="number">
      {seconds < 10 ? `${Math.round(seconds * 10) / 10} s` : span(seconds)}
    </span>
  );
}

/** A cost in the currency of the setting `prices`; null is not known. */
export function Money({ cost }: { cost: number | null }): JSX.Element {
  return cost === null
    ? <span class="quiet" title="A model has no price (setting prices).">unknown</span>
    : <span class="number">{cost < 0.1 ? amount(cost) : cost.toFixed(2)}</span>;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count with its thousands apart. */
export function Count({ of }: { of: number }): JSX.Element {
  return <span class="number">{whole.format(of)}</span>;
}

/** A form that changes something. A viewer whose role does not include `role` does not see it. */
export function Form({ viewer, role, action, class: kind, children }: {
  viewer: Viewer;
  role: TokenRole;
  action: string;
  class?: string;
  children: Child;
}): JSX.Element | null {
  if (!includesRole(viewer.role, role)) return null;
  return (
    <form method="post" action={action} class={kind}>
      <input type="hidden" name="form_token" value={viewer.formToken} />
      {children}
    </form>
  );
}

/** A form of one button. `fields` are sent along. */
export function Action({ viewer, role, action, fields = {}, tone, children }: {
  viewer: Viewer;
  role: TokenRole;
  action: string;
  fields?: Record<string, string>;
  tone?: "primary" | "bad";
  children: Child;
}): JSX.Element {
  return (
    <Form viewer={viewer} role={role} action={action} class="action">
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      <button type="submit" class={tone}>{children}</button>
    </Form>
  );
}

/** Links to the pages around one. `at` and `pages` count from 1. */
export function Pager({ path, query, at, pages }: {
  path: string;
  query: URLSearchParams;
  at: number;
  pages: number;
}): JSX.Element | null {
  if (pages <= 1) return null;
  const link = (page: number) => {
    const changed = new URLSearchParams(query);
    changed.set("page", String(page));
    return `${path}?${changed}`;
  };
  return (
    <nav class="pager" aria-label="Pages">
      {at > 1 && <a href={link(1)}>First</a>}
      {at > 1 && <a href={link(at - 1)} rel="prev">Previous</a>}
      <span>
        Page <Count of={at} /> of <Count of={pages} />
      </span>
      {at < pages && <a href={link(at + 1)} rel="next">Next</a>}
      {at < pages && <a href={link(pages)}>Last</a>}
    </nav>
  );
}
