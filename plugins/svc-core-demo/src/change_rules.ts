import type { Intent } from "./intent.ts";
import type { Masked } from "./masked.ts";
import { looksLikeFile } from "./names.ts";
import { fileName } from "./operands.ts";

/** Runs a command. */
export function run(clause: string, masked: Masked): Intent | undefined {
  const match =
    /^(?:run|execute|exec|launch)\b(?:(?: the)?(?: shell| bash)? (?:command|program))?:?\s+(.+)$/isu
      .exec(clause) ??
      /^what (?:does|is the output of|happens (?:when|if) (?:i|you|we) run) (⟦\d+⟧)(?: (?:print|say|output|return|do|show)s?)?$/isu
        .exec(clause);
  if (match === null) return undefined;
  const quoted =
    /^(⟦\d+⟧)(?: (?:command ?)?(?:in|inside|from) (?:the )?(\S+?)(?: (?:folder|directory))?)?[.!]?$/iu
      .exec(match[1]!.trim());
  if (quoted !== null) {
    const cwd = quoted[2] === undefined ? "" : masked.name(quoted[2]);
    return { kind: "run", command: masked.inner(quoted[1]!).trim(), cwd };
  }
  const command = masked.plain(match[1]!).trim().replace(/(?<=[\p{L}\p{N}])\.$/u, "");
  if (/^(?:the|my|all|it|this|that|some|your|a)\b/iu.test(command)) {
    return { kind: "unclear", question: "Which command should I run? Put it in `backticks`." };
  }
  return { kind: "run", command, cwd: "" };
}

/** Replaces text in a file. */
export function edit(clause: string, masked: Masked): Intent | undefined {
  const late = EDIT.exec(clause);
  const early = late === null ? EDIT_IN.exec(clause) : null;
  if (late === null && early === null) {
    return /^(?:replace|change|substitute|swap|rename)\b/iu.test(clause)
      ? { kind: "unclear", question: 'Say it like this: replace "old" with "new" in notes.txt.' }
      : undefined;
  }
  const [all, old, fresh, file] = late
    ? [late[1] ?? late[5], late[2], late[3], late[4]]
    : [early![2], early![3], early![4], early![1]];
  return {
    kind: "edit",
    path: fileName(file!, masked),
    old: masked.operand(old!),
    new: masked.operand(fresh!),
    all: all !== undefined,
  };
}

const REPLACE = "(?:replace|change|substitute|swap|rename) (all |every |each )?" +
  "(?:(?:the )?(?:occurrences?|instances?) of )?(.+?) (?:with|by|to|for|into)";
const EDIT = new RegExp(
  `^${REPLACE} (.+) (?:in|inside|within) (?:the )?(?:file )?(\\S+)( everywhere)?$`,
  "isu",
);
const EDIT_IN = new RegExp(`^(?:in|inside) (?:the )?(?:file )?(\\S+?),? ${REPLACE} (.+)$`, "isu");

/** Writes a file, or appends to it. */
export function write(clause: string, masked: Masked): Intent | undefined {
  for (const [pattern, order] of WRITE) {
    const match = pattern.exec(clause);
    if (match === null) continue;
    const [name, content] = order === "file, content"
      ? [match[1]!, match[2]]
      : [match[2]!, match[1]];
    const before = clause.slice(0, clause.indexOf(name));
    // "write hello" and "add salt to the soup" are about no file.
    const certain = masked.isQuoted(name) || looksLikeFile(masked.name(name)) ||
      /\bfile\b/iu.test(before) || /^(?:write|save|append)\b.*\bto\b/isu.test(before);
    if (!certain) continue;
    return {
      kind: "write",
      path: fileName(name, masked),
      content: content === undefined ? "" : masked.content(content.replace(LABEL, "")),
      append: /^(?:(?:in|to|into) \S+,? )?(?:append|add)\b(?! (?:(?:a|an|the|new|empty) )*file\b)/iu
        .test(clause),
    };
  }
  return /^(?:write|append|create)\b/iu.test(clause)
    ? { kind: "unclear", question: 'Say it like this: write "hello" to notes.txt.' }
    : undefined;
}

const LABEL = /^(?:the )?(?:text|words?|line|phrase|string|content) (?=⟦)/iu;
const FILE = "(?:(?:a|an|the|my|new|text|empty) )*(?:file )?(?:called |named )?(\\S+?)";
const WRITE: readonly [RegExp, "file, content" | "content, file"][] = [
  [
    new RegExp(
      `^(?:write|save|put|store)(?: the following| this)? (?:to|into|in) ${FILE}:\\s*(.*)$`,
      "isu",
    ),
    "file, content",
  ],
  [
    new RegExp(
      `^(?:write|save|put|store|append|add)\\s+(.+)\\s+(?:to|into|in|as|at the end of) ${FILE}$`,
      "isu",
    ),
    "content, file",
  ],
  [
    new RegExp(`^(?:in|to|into) ${FILE},? (?:write|put|append|add|save) (.+)$`, "isu"),
    "file, content",
  ],
  [
    new RegExp(
      `^(?:create|make|write|add|generate|touch)(?: me)? ${FILE}(?:,?\\s+(?:with|containing|` +
        "that (?:says|contains|reads)|saying|which (?:says|contains)|and (?:write|put))(?: the)?" +
        "(?: (?:text|contents?|words?|line))?:?\\s+(.+?)(?: (?:in|inside|to) it)?)?$",
      "isu",
    ),
    "file, content",
  ],
];
