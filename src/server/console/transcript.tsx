import type { JSX } from "hono/jsx/jsx-runtime";
import { changedLines } from "../../commands/changes.ts";
import { shortened } from "../../commands/format.ts";
import type { ChangedTurn } from "../../engine/undo.ts";
import { stripControl } from "../../platform/terminal.ts";
import type { Part, Turn } from "../../sessions/schema.ts";
import type { PartialPart } from "../run_events.ts";
import { Action, Badge, Block, Count, Duration, Money, Time } from "./components.tsx";
import { Diff } from "./night.tsx";
import type { Viewer } from "./sign_in.ts";

/** Parts of a turn on a page, the last ones. */
const PARTS = 200;
/** Characters of a text, an input or an output on a page. The rest is a link away. */
const TEXT = 20_000;
const OUTPUT = 4000;
/** Characters of the names of changed files. */
const TITLE = 500;
/** Characters of an edit of which a diff is made. */
const EDIT = 20_000;

/** A turn with its parts; calls of tools are folded. */
export function TurnView({ turn, path, describe, changed, viewer }: {
  turn: Turn;
  path: string;
  describe: (tool: string, input: Record<string, unknown>) => string;
  changed: ChangedTurn | undefined;
  viewer: Viewer;
}): JSX.Element {
  const { index, status, started_at, ended_at, model, usage, cost, parts } = turn;
  const skipped = Math.max(0, parts.length - PARTS);
  const seconds = (Date.parse(ended_at) - Date.parse(started_at)) / 1000;
  const tokens = usage?.total_tokens;
  return (
    <article class="turn" id={`turn-${index}`} aria-labelledby={`turn-${index}-title`}>
      <header>
        <h3 id={`turn-${index}-title`}>Turn {index}</h3>
        <Badge>{status}</Badge>
        <Time at={started_at} />
        <span class="quiet small">
          {Number.isFinite(seconds) && <Duration seconds={seconds} />} {stripControl(model)}
          {tokens !== undefined && (
            <>
              , <Count of={tokens} /> tokens
            </>
          )}
          {cost !== undefined && (
            <>
              , <Money cost={cost} />
            </>
          )}
        </span>
      </header>
      {skipped > 0 && (
        <p class="quiet">
          {skipped} earlier parts of this turn are left out. See them with <code>svc export</code>.
        </p>
      )}
      {parts.slice(skipped).map((part, offset) => (
        <PartView
          part={part}
          id={`part-${index}-${skipped + offset}`}
          link={`${path}/text?turn=${index}&part=${skipped + offset}`}
          describe={describe}
        />
      ))}
      {changed !== undefined && (
        <div class="actions">
          <a
            href={`${path}/changes?turn=${index}`}
            title={stripControl(shortened(changed.paths.join(", "), TITLE))}
          >
            {changed.paths.length === 1
              ? "1 changed file"
              : `${changed.paths.length} changed files`}
          </a>
          {changed.undone && <span class="quiet">taken back</span>}
          <UndoButton path={path} turn={index} undone={changed.undone} viewer={viewer} />
        </div>
      )}
    </article>
  );
}

/** What a running turn writes, before it is in the log. */
export function Partial({ parts }: { parts: PartialPart[] }): JSX.Element {
  return (
    <>
      {parts.map(({ type, text, event, printed = "" }) => {
        if (event?.type === "tool_call") {
          return (
            <>
              <p>
                <code>{stripControl(event.name)}</code> <Badge>running</Badge>
              </p>
              {printed !== "" && <Block>{printed}</Block>}
            </>
          );
        }
        // The end of a long text is what is new.
        const shown = text.length > TEXT ? `…${text.slice(-TEXT).toWellFormed()}` : text;
        return (
          <div class={`part prose${type === "thinking" ? " quiet" : ""}`}>
            {stripControl(shown)}
          </div>
        );
      })}
    </>
  );
}

/** Takes back what a turn changed, or makes it again. */
export function UndoButton({ path, turn, undone, viewer }: {
  path: string;
  turn: number;
  undone: boolean;
  viewer: Viewer;
}): JSX.Element {
  const fields = { turn: String(turn), redo: String(undone) };
  return (
    <Action viewer={viewer} role="operate" action={`${path}/undo`} fields={fields}>
      {undone ? "Make the changes again" : "Take the changes back"}
    </Action>
  );
}

function PartView({ part, id, link, describe }: {
  part: Part;
  id: string;
  link: string;
  describe: (tool: string, input: Record<string, unknown>) => string;
}): JSX.Element {
  switch (part.type) {
    case "tool": {
      const { name, input, output, is_error, analysis } = part;
      const diff = sizeOf(input) <= EDIT ? changedLines(input) : [];
      const written = JSON.stringify(input, null, 2);
      return (
        <details class="tool" id={id} open={name === "plan"}>
          <summary>
            <code>{stripControl(describe(name, input))}</code>
            {is_error && <Badge>error</Badge>}
          </summary>
          {diff.length > 0
            ? <Diff lines={diff} path={stripControl(String(input.path ?? ""))} />
            : written !== "{}" && name !== "plan" && (
              <Bounded text={written} most={OUTPUT} link={`${link}&of=input`} label="Input" />
            )}
          {output !== "" && <Bounded text={output} most={OUTPUT} link={link} label="Output" />}
          {analysis !== undefined && <p class="quiet">{stripControl(analysis)}</p>}
        </details>
      );
    }
    case "thinking":
      return (
        <details class="thinking" id={id}>
          <summary class="quiet">Thinking</summary>
          <Prose text={part.text} link={link} />
        </details>
      );
    case "command":
      return (
        <details class="thinking" id={id}>
          <summary class="quiet">{stripControl(part.text.slice(0, 200)) || "Compaction"}</summary>
          <Prose text={part.summary ?? part.text} link={link} />
        </details>
      );
    default:
      return (
        <div class={`part ${part.type}`}>
          {part.type !== "text" && <p class="who">{part.type === "user" ? "User" : "svc"}</p>}
          <Prose text={part.text} link={link} />
          {part.type === "user" &&
            part.attachments?.map(({ name, bytes }) => (
              <p class="quiet">Attached: {stripControl(name)}, {bytes} bytes</p>
            ))}
        </div>
      );
  }
}

/** The characters of the texts that a diff would compare. */
function sizeOf(input: Record<string, unknown>): number {
  return [input.old, input.new, input.content]
    .reduce<number>((sum, text) => sum + (typeof text === "string" ? text.length : 0), 0);
}

/** A text as it was written: what it says is never markup, and its addresses are no links. */
function Prose({ text, link }: { text: string; link: string }): JSX.Element {
  return (
    <>
      <div class="prose">{stripControl(cut(text, TEXT))}</div>
      {text.length > TEXT && <ShowAll text={text} link={link} />}
    </>
  );
}

function Bounded({ text, most, link, label }: {
  text: string;
  most: number;
  link: string;
  label: string;
}): JSX.Element {
  return (
    <>
      <p class="quiet small">{label}</p>
      <Block>{cut(text, most)}</Block>
      {text.length > most && <ShowAll text={text} link={link} />}
    </>
  );
}

function ShowAll({ text, link }: { text: string; link: string }): JSX.Element {
  return (
    <p class="small">
      <a href={link}>
        Show all <Count of={text.length} /> characters
      </a>
    </p>
  );
}

/** The beginning of a text. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`;
}
