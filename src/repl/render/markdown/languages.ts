/** What of a programming language is worth a colour. */
export interface Language {
  keywords: Set<string>;
  ignoreCase?: boolean;
  /** What begins a comment that ends with its line. */
  comments: string[];
  /** What may span lines: its beginning, its end, what it is. */
  spans?: [begin: string, end: string, kind: "comment" | "string"][];
  /** Quotes of strings that end in their line. */
  strings: string[];
  /** Source of a pattern, where words are not made of letters, digits and underscores. */
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
