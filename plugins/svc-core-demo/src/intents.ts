import { edit, run, write } from "./change_rules.ts";
import { count, list, read } from "./file_rules.ts";
import type { Intent, Rule } from "./intent.ts";
import { Masked } from "./masked.ts";
import { find, glob } from "./search_rules.ts";

/**
 * What a request in plain English asks for, step by step. Quoted stretches are taken as they are; the
 * rules are tried in order, the most telling ones first.
 */
export function parseRequest(text: string): Intent[] {
  if (text.length > LONGEST) return [{ kind: "unknown" }];
  const masked = new Masked(text.trim());
  if (masked.text.length > LONGEST_UNQUOTED) return [{ kind: "unknown" }];
  const clauses = masked.text.split(NEXT_STEP).filter((clause) => clause.trim() !== "");
  const intents = clauses.map((clause) => parseClause(polished(clause), masked));
  // A remark beside a request, such as a greeting, needs no answer of its own.
  const steps = intents.filter(({ kind }) => !ASIDES.has(kind));
  return steps.length > 0 ? steps : [intents[0] ?? { kind: "unknown" }];
}

/** Most characters of a request, and of its part outside quotes. No sentence is as long. */
const LONGEST = 50_000;
const LONGEST_UNQUOTED = 2000;

const ASIDES: ReadonlySet<Intent["kind"]> = new Set(["hello", "thanks", "help", "unknown"]);

const VERBS = "read|show|display|list|count|run|execute|write|create|append|find|search|grep|" +
  "replace|change|tell me|give me|open|print|how many|what";
const NEXT_STEP = new RegExp(
  `(?:[,;.!]\\s+|\\s+)(?:and\\s+)?(?:then|afterwards|after that|finally),?\\s+|` +
    `[!.?;]\\s+(?=(?:${VERBS}|please|can you|could you)\\b)|` +
    `,?\\s+and\\s+(?=(?:${VERBS})\\b(?!\\s+to\\b))|\\n+(?=(?:${VERBS})\\b)`,
  "iu",
);

/** A clause without the words that only make it polite. */
function polished(clause: string): string {
  let text = clause.trim();
  for (let before = ""; before !== text;) {
    before = text;
    text = text.replace(POLITE_START, "").replace(POLITE_END, "").trim();
  }
  return text;
}

const POLITE_START =
  /^(?:please|kindly|now|so|well|ok(?:ay)?,|hey,?(?= \w+ \w)|hi,|hello,|hi there,|first,?|(?:can|could|would|will) you(?: please)?(?: tell me| show me(?= (?:how|where|what|which)))?|i (?:want|need|would like) (?:you )?to|i'd like (?:you )?to|i'd like|let's|go ahead and|(?:do you know|tell me|show me|find out|check)(?= (?:how|where|what|which|whether)\b))\s+/iu;
const POLITE_END = /(?:,?\s+(?:please|for me|thanks|thank you|if you can))?[\s?!。？！]*$/iu;

function parseClause(clause: string, masked: Masked): Intent {
  for (const rule of RULES) {
    const intent = rule(clause, masked);
    if (intent !== undefined) return intent;
  }
  return { kind: "unknown" };
}

const talk: Rule = (clause) => {
  if (
    /\b(?:what (?:can|do|could) you (?:do|understand|know|help)|who are you|what are you|how do(?:es)? (?:this|you|it) work|help me|your (?:abilities|capabilities|skills))\b|^(?:help|usage|commands)\b/iu
      .test(clause)
  ) {
    return { kind: "help" };
  }
  if (
    /^(?:thanks|thank you|thx|cheers|great|nice|cool|perfect|good job|well done|bye|goodbye)\b/iu
      .test(clause)
  ) {
    return { kind: "thanks" };
  }
  return /^(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|day|evening|afternoon)|moin|salut|hola)\b/iu
      .test(clause)
    ? { kind: "hello" }
    : undefined;
};

const RULES: readonly Rule[] = [run, count, edit, write, glob, find, list, read, talk];
