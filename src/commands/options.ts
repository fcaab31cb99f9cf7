import type { NameKind } from "./names.ts";

/** A word of a command line that stands for a value, and what completes it. */
export interface Value<T> {
  /** Its name in help pages and errors. */
  readonly metavar: string;
  /** Throws an Error whose message is a sentence about the word. */
  parse(word: string): T;
  /** The only words that it accepts. */
  readonly choices?: readonly string[];
  /** The kind of names that completion offers. */
  readonly names?: NameKind;
  /** What paths completion offers. */
  readonly files?: "file" | "directory" | "any";
}

/** An option or an argument of a command. */
export interface Term<T> {
  /** Such as `-n` and `--lines`, or `--log` and, for false, `--no-log`; an argument has none. */
  readonly names: readonly string[];
  readonly description: string;
  /** Left out: the option is a flag. */
  readonly value?: Value<unknown>;
  /** The value when it is not passed; left out: it must be passed. */
  readonly absent?: { readonly value: T };
  /** Whether it may be repeated. Its value is then a list. */
  readonly many?: boolean;
  /** The value of an option that none of its choices follows; left out: one must follow. */
  readonly implied?: string;
}

/** The terms of a command by the name of their value, constants, and groups of these. */
export type Fields = Readonly<Record<string, unknown>>;

/** A command or subcommand: what may follow its name. */
export interface Parser<T> {
  readonly name: string;
  readonly description: string;
  /** Left out: a subcommand must follow. */
  readonly fields?: Fields;
  readonly commands: readonly Parser<unknown>[];
  /** Carries the type of the values alone. */
  readonly values?: T;
}

/** The values that a command is called with. */
export type InferValue<G> = G extends Parser<infer T> ? T : never;
export type ValuesOf<F> = { -readonly [K in keyof F]: ValueOf<F[K]> };
type ValueOf<V> = V extends Term<infer T> ? T : V extends Fields ? ValuesOf<V> : V;

/** A command with subcommands, or one with fields. */
export function command<G extends Parser<unknown>>(
  name: string,
  commands: readonly G[],
  description: string,
): Parser<InferValue<G>>;
export function command<const F extends Fields>(
  name: string,
  fields: F,
  description: string,
): Parser<ValuesOf<F>>;
export function command<const F extends Fields, G extends Parser<unknown>>(
  name: string,
  fields: F,
  description: string,
  commands: readonly G[],
): Parser<ValuesOf<F> | InferValue<G>>;
export function command(
  name: string,
  fields: Fields | readonly Parser<unknown>[],
  description: string,
  commands: readonly Parser<unknown>[] = [],
): Parser<unknown> {
  return Array.isArray(fields)
    ? { name, description, commands: fields }
    : { name, description, fields: fields as Fields, commands };
}

/** An option with a value, or a flag. */
export function option(names: string, description: string): Term<boolean>;
export function option<T>(names: string, value: Value<T>, description: string): Term<T>;
export function option<T>(names: string, value: Value<T> | string, description = ""): Term<T> {
  const all = { names: names.split("/") };
  return typeof value === "string"
    ? { ...all, description: value, absent: { value: false as T } }
    : { ...all, description, value };
}

export function argument<T>(value: Value<T>, description = ""): Term<T> {
  return { names: [], description, value };
}

export function withDefault<T, const D>(term: Term<T>, value: D): Term<T | D> {
  return { ...term, absent: { value } };
}

export function optional<T>(term: Term<T>): Term<T | undefined> {
  return withDefault(term, undefined);
}

export function multiple<T>(term: Term<T>): Term<readonly T[]> {
  return { ...term, many: true, absent: { value: [] } };
}

/** Any text, or one that matches a pattern. */
export function string(metavar: string, pattern = /^/): Value<string> {
  return {
    metavar,
    parse(word) {
      if (pattern.test(word)) return word;
      throw new Error(`Expected a string matching pattern ${pattern.source}, but got "${word}".`);
    },
  };
}

export function choice<const T extends string>(
  choices: readonly T[],
  metavar = "TYPE",
): Value<T> {
  return {
    metavar,
    choices,
    parse(word) {
      const found = choices.find((each) => each === word);
      if (found !== undefined) return found;
      const quoted = choices.map((each) => `"${each}"`);
      const last = quoted.pop();
      const comma = quoted.length > 1 ? "," : "";
      const all = quoted.length === 0 ? last : `${quoted.join(", ")}${comma} and ${last}`;
      throw new Error(`Expected one of ${all}, but got "${word}".`);
    },
  };
}

export function integer(
  metavar: string,
  min = Number.MIN_SAFE_INTEGER,
  max = Number.MAX_SAFE_INTEGER,
): Value<number> {
  return numeric(metavar, /^-?\d+$/, "integer", min, max);
}

export function float(metavar: string, min = -Infinity): Value<number> {
  return numeric(metavar, /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i, "number", min, Infinity);
}

function numeric(
  metavar: string,
  pattern: RegExp,
  kind: string,
  min: number,
  max: number,
): Value<number> {
  return {
    metavar,
    parse(word) {
      const fault = (expected: string) =>
        new Error(`Expected a ${expected}, but got ${JSON.stringify(word)}.`);
      if (!pattern.test(word)) throw fault(`valid ${kind}`);
      const number = Number(word);
      if (number < min) throw fault(`value greater than or equal to ${min}`);
      if (number > max) throw fault(`value less than or equal to ${max}`);
      return number;
    },
  };
}

/** The options and arguments of a command. */
export function termsOf({ fields = {} }: { fields?: Fields }): Term<unknown>[] {
  return Object.values(fields).flatMap((field) =>
    isTerm(field) ? [field] : isGroup(field) ? termsOf({ fields: field }) : []
  );
}

function isGroup(field: unknown): field is Fields {
  return typeof field === "object" && field !== null;
}

function isTerm(field: unknown): field is Term<unknown> {
  return isGroup(field) && "names" in field;
}

/** How a term is named in errors. */
export function labelOf({ names, value }: Term<unknown>): string {
  return names.map((name) => `\`${name}\``).join("/") || `\`${value!.metavar}\``;
}

/** The subcommand that the first of the words names, or the command itself, and the words after that name. */
export function descend(
  parser: Parser<unknown>,
  words: readonly string[],
): [Parser<unknown>, readonly string[]] {
  const [first, ...rest] = words;
  const found = parser.commands.find(({ name }) => name === first);
  return found === undefined ? [parser, words] : descend(found, rest);
}

/** The words of a command line by the term that they belong to. */
interface Reading {
  given: Map<Term<unknown>, string[]>;
  /** The option at the end, whose value is missing, and its name. */
  open?: { term: Term<unknown>; name: string };
  /** Whether `--` ended the options. */
  ended: boolean;
}

/** A word that belongs to no term of a command. */
export class UnexpectedWord extends Error {
  /**
   * @param word of an option its name
   * @param inGroup whether a subcommand was expected
   */
  constructor(given: string, readonly word: string, readonly inGroup: boolean) {
    super(`Unexpected option or ${inGroup ? "subcommand" : "argument"}: \`${given}\`.`);
  }
}

/** Throws an Error for a word that belongs to no term, and for an option that is passed wrongly. */
export function readWords(parser: Parser<unknown>, words: readonly string[]): Reading {
  const terms = termsOf(parser);
  const read: Reading = { given: new Map(), ended: false };
  for (const word of words) {
    const { given, open } = read;
    if (open !== undefined) {
      delete read.open;
      const { term: { implied, value }, term } = open;
      if (implied === undefined || value!.choices!.includes(word)) {
        given.get(term)!.push(word);
        continue;
      }
      given.get(term)!.push(implied);
    }
    if (word === "--" && !read.ended) {
      read.ended = true;
      continue;
    }
    const isOption = !read.ended && /^-[^\d]/.test(word); // a negative number is an argument
    const [, name = word, attached] = (isOption && /^(--[^=]+)=(.*)$/s.exec(word)) || [];
    const term = terms.find((each) =>
      isOption
        ? each.names.includes(name)
        : each.names.length === 0 && (each.many || !given.has(each))
    );
    if (term === undefined) throw new UnexpectedWord(word, name, parser.commands.length > 0);
    if (given.has(term) && !term.many) {
      throw new Error(`\`${name}\` cannot be used multiple times.`);
    }
    const values = given.get(term) ?? [];
    given.set(term, values);
    if (!isOption) values.push(word);
    else if (attached !== undefined) {
      if (term.value === undefined) {
        throw new Error(`Option \`${name}\` is a Boolean flag, but got a value: "${attached}".`);
      }
      values.push(attached);
    } else if (term.value !== undefined) read.open = { term, name };
    else values.push(name);
  }
  return read;
}

/**
 * The values that the words after a command's name give to its fields.
 *
 * @throws Error with a sentence for the user
 */
export function parseWords<T>(parser: Parser<T>, words: readonly string[]): T {
  const [found, rest] = descend(parser, words);
  const { given, open } = readWords(found, rest);
  if (open !== undefined) {
    const { term: { implied, value }, term, name } = open;
    if (implied === undefined) throw new Error(`\`${name}\` requires \`${value!.metavar}\`.`);
    given.get(term)!.push(implied);
  }
  if (found.fields === undefined) throw new Error("A subcommand is missing.");
  return valuesOf(found.fields, given) as T;
}

function valuesOf(fields: Fields, given: Reading["given"]): Record<string, unknown> {
  const values = Object.entries(fields).map(([key, field]) => {
    if (isTerm(field)) return [key, valueOf(field, given.get(field))];
    return [key, isGroup(field) ? valuesOf(field, given) : field];
  });
  return Object.fromEntries(values);
}

function valueOf(term: Term<unknown>, words: readonly string[] | undefined): unknown {
  const { value, absent, many, names } = term;
  if (words === undefined) {
    if (absent !== undefined) return absent.value;
    throw new Error(
      names.length > 0 ? `Missing option ${labelOf(term)}.` : `${value!.metavar} is missing.`,
    );
  }
  if (value === undefined) return names.length === 1 || !words[0]!.startsWith("--no-");
  try {
    const values = words.map((word) => value.parse(word));
    return many ? values : values[0];
  } catch (error) {
    throw new Error(`${labelOf(term)}: ${(error as Error).message}`);
  }
}
