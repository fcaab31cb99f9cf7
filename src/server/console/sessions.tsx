import * as z from "zod/mini";
import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import { stripControl } from "../../platform/terminal.ts";
import type { SessionSummary } from "../../sessions/look.ts";
import type { ConsoleContext } from "../console.ts";
import { writtenDuration } from "../http.ts";
import { Badge, Count, Pager, Section, Table, Time } from "./components.tsx";
import type { ConsolePart, Page, PageRequest } from "./page.ts";

/** Sessions on a page. */
const PAGE = 50;
/** The beginnings of the names of sessions, and the times since their last change, that the page offers. */
const KINDS = { "": "All", ses_: "Own", job_: "Of jobs", sub_: "Of sub-agents" };
const TIMES = { "": "Any time", "24h": "24 hours", "7d": "7 days", "30d": "30 days" };

/** The sessions, the newest first. */
export function sessionsPart({ workspace: { sessions, clock } }: ConsoleContext): ConsolePart {
  async function list({ query }: PageRequest): Promise<Page> {
    const prefix = query.get("prefix") ?? "";
    const { data: seconds } = z.safeParse(writtenDuration, query.get("since"));
    const since = seconds === undefined ? undefined : clock.now() - seconds * 1000;
    const page = (at: number) =>
      sessions.index({ prefix, since, offset: (at - 1) * PAGE, limit: PAGE });
    const asked = pageNumber(query, Infinity);
    let found = await page(asked);
    const pages = Math.max(1, Math.ceil(found.total / PAGE));
    const at = Math.min(asked, pages);
    if (at !== asked) found = await page(at);
    const shown = await found.summaries();
    return {
      title: "Sessions",
      body: (
        <>
          <form method="get" class="row">
            <Choice name="prefix" label="Show" options={KINDS} chosen={prefix} />
            <Choice
              name="since"
              label="Changed within"
              options={TIMES}
              chosen={query.get("since") ?? ""}
            />
            <button type="submit">Filter</button>
          </form>
          <Section id="sessions" title="Newest first" count={found.total} live={["sessions"]}>
            <Table
              caption="Sessions"
              columns={[
                { head: "Session" },
                { head: "State" },
                { head: "Role", wide: true },
                { head: "Turns", number: true },
                { head: "Size", number: true, wide: true },
                { head: "Changed", number: true },
              ]}
              rows={shown.map(sessionRow)}
              empty="There is no such session."
            />
            <Pager path="/console/sessions" query={query} at={at} pages={pages} />
          </Section>
        </>
      ),
    };
  }
  return { pages: [{ path: "/console/sessions", nav: "Sessions", show: list }] };
}

/** The number of the page that a query asks for, from 1. Default: `otherwise`, or the first. */
export function pageNumber(query: URLSearchParams, pages: number, otherwise = 1): number {
  const asked = Math.trunc(Number(query.get("page") ?? otherwise));
  return Math.min(Math.max(1, asked || 1), pages);
}

export function sessionPath(name: string): string {
  return `/console/sessions/${encodeURIComponent(name)}`;
}

export function SessionLink({ name }: { name: string }): JSX.Element {
  return <a href={sessionPath(name)}>{stripControl(name)}</a>;
}

function sessionRow(session: SessionSummary): Child[] {
  const { name, first_prompt, running, worker = "", role, turns, bytes, updated_at } = session;
  return [
    <>
      <SessionLink name={name} />
      <div class="quiet small clamp">{stripControl(first_prompt)}</div>
    </>,
    running
      ? (
        <>
          <Badge>running</Badge> <span class="quiet small">{stripControl(worker)}</span>
        </>
      )
      : <span class="quiet">ended</span>,
    stripControl(role),
    <Count of={turns} />,
    <Size bytes={bytes} />,
    <Time at={updated_at} />,
  ];
}

/** A size in a unit that needs few digits. */
export function Size({ bytes }: { bytes: number }): JSX.Element {
  const [size, unit] = bytes < 1e6 ? [bytes / 1e3, "kB"] : [bytes / 1e6, "MB"];
  return <span class="number">{size.toFixed(size < 10 ? 1 : 0)} {unit}</span>;
}

function Choice({ name, label, options, chosen }: {
  name: string;
  label: string;
  options: Record<string, string>;
  chosen: string;
}): JSX.Element {
  return (
    <label>
      {label}{" "}
      <select name={name}>
        {Object.entries(options).map(([value, text]) => (
          <option value={value} selected={value === chosen}>{text}</option>
        ))}
      </select>
    </label>
  );
}
