import type { Reply } from "../../plugins/svc-core-demo/src/script.ts";
import { contentText } from "../../plugins/svc-core-demo/src/completion.ts";
import { Random } from "../support/random.ts";

export interface Message {
  role: string;
  content?: unknown;
}

/** How the model does its work: as asked, not at all, with another result, or with its calls written as text. */
type Mood = "good" | "lying" | "wrong" | "writing";

const DIRECTIVE = /\[([\w-]+)\] (Do|Read|Remember|What|Review|Report)\b/g;
const FACT = /code word of ([\w-]+) is (\w+-\d+)/g;

/**
 * A model that follows a rule: it does what the last prompt of its lane says, or says that it has done it; it
 * knows the code words in its context, and keeps them in a summary.
 */
export class Model {
  #summaries = 0;
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = new Random(random.below(2 ** 31));
  }

  /** The lane that the last prompt belongs to. */
  lane(messages: Message[]): string {
    return last(messages)?.lane ?? "?";
  }

  reply(messages: Message[], tools: unknown[] = []): Reply {
    const found = last(messages);
    if (tools.length === 0 || found === undefined) {
      return { text: summary(messages, ++this.#summaries) };
    }
    const { lane, verb, index } = found;
    switch (verb) {
      case "Remember":
        return { text: "Noted." };
      case "What":
        return { text: recall(messages.slice(0, index), lane) };
      case "Review":
        return { text: `I looked.\n\nVERDICT: ${this.#random.next() < 0.8 ? "pass" : "fail"}` };
      case "Report":
        return { text: JSON.stringify({ lane, done: true }) };
    }
    const tail = messages.slice(index + 1);
    if (verb === "Read" && this.#random.next() < 0.85) {
      return { tool_calls: [{ name: "file_read", arguments: page(tail.length) }] };
    }
    const answered = tail.findLastIndex(({ role }) => role === "assistant");
    const said = tail.slice(answered + 1).some(({ role }) => role === "user" || role === "system");
    if (answered >= 0 && !said) return { text: "Done: the entry is in place." };
    const mood = this.#mood();
    if (mood === "lying") return { text: "Done: the entry is in place." };
    const path = `out/${lane}.txt`;
    const write = { path, content: mood === "wrong" ? "no\n" : "ok\n" };
    if (mood === "writing") {
      const call = JSON.stringify({ name: "file_write", arguments: write });
      return { text: `<tool_call>\n${call}\n</tool_call>` };
    }
    return {
      tool_calls: [
        { name: "file_read", arguments: { path: "data.txt" } },
        { name: "file_write", arguments: write },
      ],
    };
  }

  #mood(): Mood {
    const chance = this.#random.next();
    return chance < 0.75 ? "good" : chance < 0.87 ? "lying" : chance < 0.96 ? "wrong" : "writing";
  }
}

function page(number: number): Record<string, unknown> {
  return { path: "data.txt", offset: number + 1 };
}

function last(
  messages: Message[],
): { lane: string; verb: string; index: number } | undefined {
  for (const [index, { role, content }] of [...messages.entries()].reverse()) {
    const [, lane, verb] = role === "user"
      ? [...contentText(content).matchAll(DIRECTIVE)].at(-1) ?? []
      : [];
    if (lane !== undefined) return { lane, verb: verb!, index };
  }
  return undefined;
}

function facts(messages: Message[]): RegExpExecArray[] {
  return [...messages.map(({ content }) => contentText(content)).join("\n").matchAll(FACT)];
}

function recall(messages: Message[], lane: string): string {
  const known = facts(messages).findLast(([, of]) => of === lane);
  return known === undefined ? "I do not know." : `It is ${known[2]}.`;
}

function summary(messages: Message[], number: number): string {
  const known = new Set(facts(messages).map(([fact]) => `The ${fact}.`));
  return [`Entries were made again and again (${number}).`, ...known].join("\n");
}
