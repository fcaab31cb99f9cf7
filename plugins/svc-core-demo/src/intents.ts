import { fileName, filesOf, IT, looksLikeFile, Masked, searchPath, words } from "./operands.ts";

/** The meaning of one step of a request. */
export type Intent =
  | { kind: "list"; path: string; deep: boolean }
  | { kind: "read"; paths: string[]; offset?: number; limit?: number }
  | { kind: "count"; paths: string[] }
  | { kind: "find"; text: string; path: string; regex: boolean }
  | { kind: "glob"; pattern: string; path: string }
  | { kind: "write"; path: string; content: string; append: boolean }
  | { kind: "edit"; path: string; old: string; new: string; all: boolean }
  | { kind: "run"; command: string; cwd: string }
  | { kind: "hello" | "thanks" | "help" | "unknown" }
  /** Understood, but an operand is missing. */
  | { kind: "unclear"; question: string };

/** Parses one clause of a request; undefined when the rule does not apply. */
type Rule = (clause: string, masked: Masked) => Intent | undefined;

/**
 * Parses a request in plain English into steps. Quoted parts are used unchanged. Rules are tried in order,
 * the most specific ones first.
 */
export function parseRequest(text: string): Intent[] {
  if (text.length > LONGEST) return [{ kind: "unknown" }];
  const masked = new Masked(text.trim());
  if (masked.text.length > LONGEST_UNQUOTED) return [{ kind: "unknown" }];
  const clauses = masked.text.split(NEXT_STEP).filter((clause) => clause.trim() !== "");
  const intents = clauses.map((clause) => parseClause(withoutPoliteness(clause), masked));
  // A remark such as a greeting needs no answer when there is a request.
  const steps = intents.filter(({ kind }) => !ASIDES.has(kind));
  return steps.length > 0 ? steps : [intents[0] ?? { kind: "unknown" }];
}

/** Maximum characters of a request, and of its part outside quotes. */
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

/** A clause without polite words. */
function withoutPoliteness(clause: string): string {
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

/** Lists a folder. */
function list(clause: string, masked: Masked): Intent | undefined {
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
  return { kind: "list", path: searchPath(where, masked), deep };
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
function read(clause: string, masked: Masked): Intent | undefined {
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
function count(clause: string, masked: Masked): Intent | undefined {
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

/** Runs a command. */
function run(clause: string, masked: Masked): Intent | undefined {
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
function edit(clause: string, masked: Masked): Intent | undefined {
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
function write(clause: string, masked: Masked): Intent | undefined {
  for (const [pattern, order] of WRITE) {
    const match = pattern.exec(clause);
    if (match === null) continue;
    const [name, content] = order === "file, content"
      ? [match[1]!, match[2]]
      : [match[2]!, match[1]];
    const before = clause.slice(0, clause.indexOf(name));
    // "write hello" and "add salt to the soup" name no file.
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

/** Finds files by name. */
function glob(clause: string, masked: Masked): Intent | undefined {
  const pattern = words(clause).map((word) => masked.name(word)).find((word) =>
    /\*/.test(word) && !/^\*+$/.test(word)
  );
  if (pattern !== undefined && !/^(?:find|search|grep|look) for\b/iu.test(clause)) {
    return { kind: "glob", pattern: pattern.includes("/") ? pattern : `**/${pattern}`, path: "." };
  }
  const match =
    /^(?:find|locate|where(?: is|'s|’s| are| can i find))(?: (?:me|the|a|any|all|every))* (?:files? )?(?:called |named )?(\S+)(?: file)?$/iu
      .exec(clause);
  if (match === null) return undefined;
  const name = masked.name(match[1]!);
  const sought = looksLikeFile(name) || /\b(?:called|named)\b/iu.test(clause);
  return sought ? { kind: "glob", pattern: `**/${name}`, path: "." } : undefined;
}

/** Finds text in files. */
function find(clause: string, masked: Masked): Intent | undefined {
  if (
    /^how many (?:files|folders|directories|entries|things|items)\b(?! (?:contain|mention|use|have|match))/iu
      .test(clause)
  ) {
    return undefined;
  }
  for (const pattern of FIND) {
    const match = pattern.exec(clause);
    if (match === null) continue;
    const what = match.groups?.what ?? match[1]!;
    const where = match.groups?.where ?? match[2];
    const asRegex = /^(?:the )?(?:regex|regexp|pattern|regular expression) (.+)$/iu.exec(what);
    if (asRegex !== null) {
      return {
        kind: "find",
        text: masked.operand(asRegex[1]!),
        path: searchPath(where, masked),
        regex: true,
      };
    }
    const plain = masked.operand(
      what.replace(
        /^(?:(?:the|a|an|any|all|every)\s+)?(?:(?:word|text|string|phrase|term|name|function|class|variable|symbol|comment)s?\s+)?/iu,
        "",
      ),
    );
    const text = /^[\p{Lu}]{2,}s$/u.test(plain) ? plain.slice(0, -1) : plain;
    if (text === "") return { kind: "unclear", question: "What text should I look for?" };
    return { kind: "find", text, path: searchPath(where, masked), regex: false };
  }
  return undefined;
}

/** Patterns for finding text: the text and, after it, the folder or file. */
const FIND = [
  /\b(?:where|in (?:which|what) files?) (?:is|are|do|does|did|can i find|have)(?: (?:we|i|you|it))? (.+?)(?: (?:being |get )?(?:mentioned|used?|defined|declared|referenced|called|found|occur|appear|come up|written|set))+(?: (?:in|under|inside|within|across) (.+))?$/isu,
  /\b(?:which|what|list|show me|find)(?: (?:all|the|me|every|any))* (?:files?|lines?|places?|code)(?: that| which)? (?:contain|mention|use|have|reference|include|define|call|match)(?:s|es|ing)? (.+?)(?: (?:in|under|inside|within) (.+))?$/isu,
  /\bhow (?:many (?:times|lines|files)|often) (?:does|do|is|are|did|contain|mention|have|match)s? (.+?)(?: (?:appear|occur|mentioned|used|come up|found|show up)s?)?(?: (?:in|under|inside|within) (.+))?$/isu,
  /\bhow many (.+?) (?:are|do)(?: there| we have| you see| you find)?(?: (?:in|under|inside|within) (.+))?$/isu,
  /^(?:search|grep|look)(?: in| through| inside)? (?:the )?(?<where>.+?) for (?<what>.+)$/isu,
  /^(?:grep|rg) (?<what>(?!for )\S+) (?<where>\S+)$/isu,
  /^(?:does|do|is|are) (?<where>\S+) (?:contain|mention|include|have|mentioning)s? (?<what>.+)$/isu,
  /^(?:does|do|is|are)(?: there)?(?: any| an?)? (.+?)(?: (?:appear|occur|mentioned|used|defined|exist)s?)?(?: (?:anywhere )?(?:in|under|inside|within|anywhere in) (.+))$/isu,
  /^(?:find|search(?: for)?|grep(?: for)?|look for|locate|look up|rg|spot)(?: me)? (?:(?:all|the|every|any|each) )*(?:(?:occurrences?|mentions?|uses?|usages?|references?|instances?|places?|lines?|files?) (?:of|to|with|containing|mentioning|that (?:mention|contain|say)s?) )?(.+?)(?:,? (?:in|under|inside|within|across|through) (.+))?$/isu,
];

const RULES: readonly Rule[] = [run, count, edit, write, glob, find, list, read, talk];
