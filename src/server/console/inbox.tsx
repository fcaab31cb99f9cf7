import type { JSX } from "hono/jsx/jsx-runtime";
import type { Ask } from "../../asks/store.ts";
import { visible } from "../../platform/terminal.ts";
import type { ConsoleContext } from "../console.ts";
import { Empty, Form, Section, Time } from "./components.tsx";
import type { ConsolePart } from "./page.ts";
import type { Viewer } from "./sign_in.ts";

/** What waits for a person. */
export function inboxPart({ workspace: { asks } }: ConsoleContext): ConsolePart {
  return {
    pages: [{
      path: "/console",
      nav: "Inbox",
      show: ({ viewer }) => ({
        title: "Inbox",
        body: <Asks asks={asks.list("pending")} viewer={viewer} />,
      }),
    }],
    forms: [{
      path: "/console/asks/:id",
      role: "answer",
      async submit(form, { params }) {
        await asks.answer(Number(params.id), form.get("answer") ?? "");
        return "/console";
      },
    }],
  };
}

function Asks({ asks, viewer }: { asks: Ask[]; viewer: Viewer }): JSX.Element {
  return (
    <Section id="asks" title="Questions" count={asks.length} live={["asks"]}>
      {asks.length === 0
        ? <Empty>No agent waits for an answer.</Empty>
        : <ul class="cards">{asks.map((ask) => <AskCard ask={ask} viewer={viewer} />)}</ul>}
    </Section>
  );
}

function AskCard({ ask, viewer }: { ask: Ask; viewer: Viewer }): JSX.Element {
  const field = `answer-${ask.id}`;
  return (
    <li class="card">
      <div class="head">
        <h3>
          {visible(ask.question)}
        </h3>
        <Time at={ask.created_at} />
      </div>
      <Form viewer={viewer} role="answer" action={`/console/asks/${ask.id}`} class="stack">
        <label for={field}>Answer</label>
        <textarea id={field} name="answer" required></textarea>
        <button type="submit" class="primary">Answer</button>
      </Form>
    </li>
  );
}
