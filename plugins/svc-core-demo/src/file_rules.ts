import type { Intent } from "./intent.ts";
import type { Masked } from "./masked.ts";
import { filesOf, IT, place, words } from "./operands.ts";

/** Lists a folder. */
export function list(clause: string, masked: Masked): Intent | undefined {
  const asked = LISTING.some((pattern) => pattern.test(clause)) ||
    SHOWN_THINGS.test(clause) && filesOf(clause, masked).length === 0;
  if (!asked) return undefined;
  const deep = /\b(?:recursive(?:ly)?|tree|sub-?folders?|sub-?director(?:y|ies)|nested|levels)\b/iu
    .test(clause);
  const where =
    /\b(?:in|inside|under|within|from|at|of) (?:(?:the|this|my|our) )*(?:(?:folder|directory|dir|contents of) )?(\S+)(?: (?:folder|directory|dir))?(?: recursively)?$/iu
      .exec(clause)?.[1] ??
      /^(?:ls|dir|tree|list|show|open|read|look (?:at|in|into))(?: me)?(?: (?:the|directory|folder|-\w+))* (\S+)(?: (?:folder|directory|dir))?$/iu
        .exec(clause)?.[1];
  return { kind: "list", path: place(where, masked), deep };
}

const THINGS = "(?:files?|folders?|director(?:y|ies)|contents?|entries|everything|things|items)";
const SHOWN_THINGS = new RegExp(
  `^(?:show|give|display|print|see|get|view)\\b.*\\b${THINGS}\\b`,
  "iu",
);
const LISTING = [
  /^(?:ls|dir|tree|list|enumerate)\b/iu,
  new RegExp(`\\b(?:what|which|how many)(?: other| kind of)? ${THINGS}\\b`, "iu"),
  /\b(?:what|anything)(?:'s|’s| is| do (?:we|i|you) have| else is| can you see)?(?: there)? (?:here|(?:in|inside|under) (?:(?:the|this|my|our) )?(?:current |working )?(?:folder|directory|dir|project|repo|repository|worktree|workspace|\S+\/|(?:folder|directory) \S+|\S+ (?:folder|directory)))$/iu,
  /^(?:show|open|read|look (?:at|in|into))\b.*\S+\/$/iu,
  /\b(?:folder|directory) (?:structure|tree|listing)\b/iu,
];

/** Shows files, or a window of their lines. */
export function read(clause: string, masked: Masked): Intent | undefined {
  if (ABOUT_PROJECT.test(clause)) return { kind: "read", paths: ["README.md"] };
  const files = filesOf(clause, masked);
  const asked =
    /^(?:read|show|display|print|open|cat|view|see|look at|give|get|output|type|head|quote|summari[sz]e|explain|describe|review|check|tell me (?:about|what)|lines?|the (?:first|contents?))\b/iu
      .test(clause);
  const whatIs =
    /\bwhat(?:'s|’s| is| are| does| do)\b.*\b(?:in|inside|say|says|contain|contains|look like|about|of)\b/iu
      .test(clause);
  const bareNames = words(clause).length <= 2 * files.length - 1 && files[0] !== IT;
  if (!asked && !whatIs && !bareNames) return undefined;
  if (files.length === 0 && !/^(?:read|open|cat|view|show)\b/iu.test(clause)) return undefined;
  const lines = /\blines? (\d+)(?:\s*(?:-|–|to|through|until|and)\s*(?:line )?(\d+))?/iu.exec(
    clause,
  );
  const first = /\bfirst (\d+ )?lines?\b/iu.exec(clause);
  const window = lines
    ? {
      offset: Number(lines[1]),
      limit: Math.max(1, Number(lines[2] ?? lines[1]) - Number(lines[1]) + 1),
    }
    : first
    ? { offset: 1, limit: Number(first[1] ?? 1) }
    : {};
  const intent = withFiles("read", files, "Which file should I read?");
  return intent.kind === "read" ? { ...intent, ...window } : intent;
}

const ABOUT_PROJECT =
  /^(?:what (?:does|is)|explain|describe|tell me about|summari[sz]e) (?:this|the) (?:project|repo(?:sitory)?|codebase)\b/iu;

/** Counts the lines of files. */
export function count(clause: string, masked: Masked): Intent | undefined {
  const asked =
    /\bhow (?:many (?:text )?(?:lines|characters|chars|letters)|long)\b/iu.test(clause) ||
    /\b(?:count|number of|amount of)\b.*\b(?:lines|characters|chars)\b/iu.test(clause) ||
    /\bline ?count\b|^wc\b/iu.test(clause);
  if (!asked || /\b(?:mention|contain|match|include|with the (?:word|text))/iu.test(clause)) {
    return undefined;
  }
  return withFiles("count", filesOf(clause, masked), "Which file's lines should I count?");
}

function withFiles(
  kind: "read" | "count",
  paths: string[],
  question: string,
): Intent {
  return paths.length > 0 ? { kind, paths } : { kind: "unclear", question };
}
