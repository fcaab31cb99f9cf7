import type { Child } from "hono/jsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { Tone } from "./components.tsx";

/** A bar of a chart. Its label is shown while the pointer rests on it. */
export interface Bar {
  value: number;
  label: string;
  tone?: Tone;
}

/** Width of a bar with its gap, in units of a drawing that is stretched to its place; the height is 100. */
const STEP = 10;
const WIDTH = 8;
/** Height of a bar that is hardly more than nothing. */
const LEAST = 3;
/** Bars for which a small chart has room at least, so that a few do not fill it. */
const FEWEST = 20;

/** A small chart: one bar for each run, the oldest first. */
export function Bars({ bars, label }: { bars: Bar[]; label: string }): JSX.Element {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const places = Math.max(bars.length, FEWEST);
  return (
    <Drawing width={places * STEP} label={label} kind="bars">
      {bars.map(({ value, label, tone }, index) => {
        const height = Math.max(LEAST, 100 * value / most);
        return (
          <rect
            class={tone}
            x={(places - bars.length + index) * STEP}
            y={100 - height}
            width={WIDTH}
            height={height}
          >
            <title>{label}</title>
          </rect>
        );
      })}
    </Drawing>
  );
}

/** A bar of parts, each of which belongs to a series. */
export interface Stack {
  label: string;
  parts: number[];
}

/** Bars of parts on top of each other, such as the tokens of each day by model. */
export function Stacks({ stacks, label }: { stacks: Stack[]; label: string }): JSX.Element {
  const most = Math.max(...stacks.map(({ parts }) => sum(parts)), Number.MIN_VALUE);
  return (
    <Drawing width={stacks.length * STEP} label={label} kind="stacks">
      {stacks.map(({ label, parts }, index) => {
        let top = 100;
        return (
          <g>
            <title>{label}</title>
            {parts.map((part, series) => {
              const height = 100 * part / most;
              top -= height;
              return part > 0 && (
                <rect
                  class={`series-${series}`}
                  x={index * STEP + 1}
                  y={top}
                  width={WIDTH}
                  height={height}
                />
              );
            })}
          </g>
        );
      })}
    </Drawing>
  );
}

/** A span of time on a time line. */
export interface Span {
  /** Milliseconds. */
  from: number;
  to: number;
  label: string;
  tone: Tone;
}

/** Height of a lane of a time line, and the lanes at most. */
const LANE = 10;
const LANES = 12;
const LENGTH = 1000;
/** The shortest span that can be seen. */
const SHORTEST = 4;

/** Spans on one line of time; those at the same time are below each other. */
export function TimeLine({ spans, since, until, label }: {
  spans: Span[];
  since: number;
  until: number;
  label: string;
}): JSX.Element {
  const at = (time: number) =>
    LENGTH * (Math.min(Math.max(time, since), until) - since) / (until - since);
  const ends: number[] = [];
  const bars = spans.toSorted((one, other) => one.from - other.from).map(
    ({ from, to, label, tone }) => {
      const x = Math.min(at(from), LENGTH - SHORTEST);
      const width = Math.max(SHORTEST, at(to) - x);
      const free = ends.findIndex((end) => end < x);
      const lane = free >= 0 ? free : Math.min(ends.length, LANES - 1);
      ends[lane] = x + width + 1;
      return (
        <rect class={tone} x={x} y={lane * LANE + 1} width={width} height={LANE - 2}>
          <title>{label}</title>
        </rect>
      );
    },
  );
  const height = Math.max(4, ends.length) * LANE;
  return (
    <Drawing width={LENGTH} height={height} label={label} kind="time-line">
      {[1, 2, 3].map((quarter) => (
        <line x1={quarter * LENGTH / 4} x2={quarter * LENGTH / 4} y1={0} y2={height} />
      ))}
      {bars}
    </Drawing>
  );
}

/** A drawing that takes the width of its place, for those who do not see it a sentence. */
function Drawing({ width, height = 100, label, kind, children }: {
  width: number;
  height?: number;
  label: string;
  kind: string;
  children: Child;
}): JSX.Element {
  return (
    <svg
      class={`drawing ${kind}`}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {children}
    </svg>
  );
}

/** A chart with its title, and the two ends of its axis. */
export function Figure({ title, note, from, to, children }: {
  title: string;
  note?: Child;
  from?: Child;
  to?: Child;
  children: Child;
}): JSX.Element {
  return (
    <figure>
      <figcaption>
        {title} {note !== undefined && <span class="quiet small">{note}</span>}
      </figcaption>
      {children}
      {from !== undefined && (
        <div class="axis">
          <span>{from}</span>
          <span>{to}</span>
        </div>
      )}
    </figure>
  );
}

/** Links to a page with another period. */
export function Periods({ options }: {
  options: { href: string; text: string; current: boolean }[];
}): JSX.Element {
  return (
    <nav class="periods" aria-label="Period">
      {options.map(({ href, text, current }) => (
        <a href={href} aria-current={current ? "true" : undefined}>{text}</a>
      ))}
    </nav>
  );
}

/** Numbers that stand for themselves, each with its name. */
export function Figures({ figures }: { figures: [name: string, value: Child][] }): JSX.Element {
  return (
    <dl class="figures">
      {figures.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function sum(numbers: number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
