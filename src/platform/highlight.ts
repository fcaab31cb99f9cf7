import type { Style } from "./style.ts";

/**
 * Highlights the lines of a program in order and tracks comments and strings that span lines.
 *
 * @param unknown how lines of an unknown language are shown; default: as they are
 */
export function highlighter(
  name: string,
  style: Style,
  unknown = (line: string) => line,
): (line: string) => string {
  if (name === "diff" || name === "patch") return (line) => diffLine(line, style);
  const language = languageOf(name);
  if (language === undefined || !style.enabled) return unknown;
  const tokens = new RegExp(pattern(language), "gu");
  /** The open multi-line token; `begun` is the length of its opening delimiter. */
  let open: { end: string; begun: number; paint: (text: string) => string } | undefined;
  const paints = { comment: style.dim, string: style.green };
  return (line) => {
    let shown = "";
    let at = 0;
    while (at < line.length) {
      if (open !== undefined) {
        const end = line.indexOf(open.end, at + open.begun);
        open.begun = 0;
        const stop = end < 0 ? line.length : end + open.end.length;
        shown += open.paint(line.slice(at, stop));
        if (end >= 0) open = undefined;
        at = stop;
        continue;
      }
      tokens.lastIndex = at;
      const match = tokens.exec(line);
      if (match === null) return shown + line.slice(at);
      shown += line.slice(at, match.index);
      const [text] = match;
      at = match.index + text.length;
      const { comment, begin, string, number, word } = match.groups!;
      if (comment !== undefined) {
        shown += style.dim(line.slice(match.index));
        at = line.length;
      } else if (begin !== undefined) {
        const [, end, kind] = language.spans!.find(([start]) => start === begin)!;
        open = { end, begun: text.length, paint: paints[kind] };
        at = match.index;
      } else if (string !== undefined) shown += style.green(text);
      else if (number !== undefined) shown += style.yellow(text);
      else shown += isKeyword(language, word!) ? style.magenta(text) : text;
    }
    return shown;
  };
}

/** Colours one line of a unified diff. */
export function diffLine(line: string, style: Style): string {
  if (/^(\+\+\+|---) /.test(line)) return style.bold(line);
  if (line.startsWith("+")) return style.green(line);
  if (line.startsWith("-")) return style.red(line);
  return line.startsWith("@@") ? style.cyan(line) : line;
}

/** The name by which {@linkcode highlighter} knows the language of a file: its extension, or its name. */
export function languageName(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name.slice(name.lastIndexOf(".") + 1);
}

function isKeyword({ keywords, ignoreCase }: Language, word: string): boolean {
  return keywords.has(ignoreCase ? word.toLowerCase() : word);
}

function pattern({ comments, spans = [], strings, word }: Language): string {
  const groups = [
    ["comment", comments.map(escape).join("|")],
    ["begin", spans.map(([start]) => escape(start)).join("|")],
    ["string", strings.map((quote) => `${quote}(?:[^\\\\${quote}]|\\\\.)*${quote}`).join("|")],
    ["number", "(?<![\\p{L}_\\d])\\d[\\d_]*(?:\\.\\d[\\w.]*|[\\w]*)"],
    ["word", word ?? "[\\p{L}_$][\\p{L}\\p{N}_$]*"],
  ];
  return groups.filter(([, text]) => text !== "").map(([name, text]) => `(?<${name}>${text})`)
    .join("|");
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** The tokens of a programming language that are highlighted. */
export interface Language {
  keywords: Set<string>;
  ignoreCase?: boolean;
  /** Line comment openers. */
  comments: string[];
  /** Multi-line tokens: opener, closer and kind. */
  spans?: [begin: string, end: string, kind: "comment" | "string"][];
  /** Quotes of single-line strings. */
  strings: string[];
  /** Regular expression source for words that are not letters, digits and underscores. */
  word?: string;
}

/** The language that a fence names, or undefined. */
export function languageOf(name: string): Language | undefined {
  const found = FAMILIES.find(({ names }) => names.split(" ").includes(name.toLowerCase()));
  if (found === undefined) return undefined;
  const { keywords, ...language } = found;
  return { ...language, keywords: new Set(keywords.split(" ")) };
}

const C_COMMENT: [string, string, "comment"] = ["/*", "*/", "comment"];
const C_LIKE = { comments: ["//"], strings: ['"', "'"] };

const FAMILIES: (Omit<Language, "keywords"> & { names: string; keywords: string })[] = [
  {
    names: "ts tsx js jsx javascript typescript mjs cjs mts",
    keywords:
      "abstract any as async await boolean break case catch class const continue debugger " +
      "declare default delete do else enum export extends false finally for from function get if " +
      "implements import in infer instanceof interface keyof let namespace never new null number of " +
      "override private protected public readonly return satisfies set static string super switch " +
      "this throw true try type typeof undefined unknown var void while with yield",
    ...C_LIKE,
    spans: [C_COMMENT, ["`", "`", "string"]],
  },
  {
    names: "json jsonc json5",
    keywords: "true false null",
    ...C_LIKE,
    spans: [C_COMMENT],
  },
  {
    names: "py python",
    keywords:
      "and as assert async await break case class continue def del elif else except False " +
      "finally for from global if import in is lambda match None nonlocal not or pass raise return " +
      "self True try while with yield",
    comments: ["#"],
    spans: [['"""', '"""', "string"], ["'''", "'''", "string"]],
    strings: ['"', "'"],
  },
  {
    names: "sh bash zsh shell console fish",
    keywords: "if then else elif fi for while until do done case esac in function return local " +
      "export set unset readonly declare source exit break continue eval exec trap shift",
    comments: ["# ", "#!"],
    strings: ['"', "'"],
  },
  {
    names: "go golang",
    keywords: "break case chan const continue default defer else fallthrough for func go goto if " +
      "import interface map package range return select struct switch type var true false nil iota " +
      "string int int64 bool byte error any",
    ...C_LIKE,
    spans: [C_COMMENT, ["`", "`", "string"]],
  },
  {
    names: "rs rust",
    keywords:
      "as async await break const continue crate dyn else enum extern false fn for if impl " +
      "in let loop match mod move mut pub ref return self Self static struct super trait true type " +
      "unsafe use where while",
    comments: ["//"],
    spans: [C_COMMENT],
    strings: ['"'],
  },
  {
    names: "c h cpp c++ cc hpp cs csharp java kotlin kt swift scala php dart zig",
    keywords:
      "abstract auto bool boolean break byte case catch char class const constexpr continue " +
      "default delete do double else enum explicit extends extern false final finally float for " +
      "foreach fun func function goto if implements import include inline instanceof int interface " +
      "internal let long namespace new null nullptr object operator override package private " +
      "protected public return short signed sizeof static string String struct super switch template " +
      "this throw throws true try typedef typename union unsigned using val var virtual void volatile " +
      "when while",
    ...C_LIKE,
    spans: [C_COMMENT],
  },
  {
    names: "rb ruby",
    keywords:
      "alias and begin break case class def defined do else elsif end ensure false for if in " +
      "module next nil not or redo require rescue retry return self super then true undef unless " +
      "until when while yield",
    comments: ["#"],
    strings: ['"', "'"],
  },
  {
    names: "yaml yml toml ini conf properties dockerfile make makefile",
    keywords:
      "true false null yes no on off FROM RUN COPY ADD CMD ENTRYPOINT ENV ARG WORKDIR EXPOSE",
    comments: ["#"],
    strings: ['"', "'"],
  },
  {
    names: "sql sqlite postgresql mysql",
    keywords:
      "add all alter and as asc begin between by case check column commit constraint count " +
      "create cross default delete desc distinct drop else end exists foreign from full group having " +
      "if in index inner insert into is join key left like limit not null offset on or order outer " +
      "primary references returning right rollback select set table then transaction union unique " +
      "update using values view when where with",
    ignoreCase: true,
    comments: ["--"],
    spans: [C_COMMENT],
    strings: ["'", '"'],
  },
  {
    names: "html xml svg vue svelte",
    keywords: "",
    comments: [],
    spans: [["<!--", "-->", "comment"]],
    strings: ['"', "'"],
    word: "</?[\\w-]+|/?>",
  },
  {
    names: "css scss less",
    keywords: "important media import keyframes supports root hover auto none inherit",
    comments: [],
    spans: [C_COMMENT],
    strings: ['"', "'"],
  },
];
