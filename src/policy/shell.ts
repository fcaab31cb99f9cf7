/** A word of a simple command, without its quotes and escapes. */
export interface Word {
  value: string;
  /** True when the shell expands nothing in the word, so that its result is exactly `value`. */
  literal: boolean;
}

/** A command line as its chained simple commands, or why it cannot be split. */
export type ShellLine =
  | { parts: Word[][] }
  | {
    /** The end of a sentence. */
    problem: string;
    /** True for a here-document or a line break. */
    lines: boolean;
  };

/**
 * Splits a command line at `&&`, `||`, `;`, `|`, `|&` and `&` as POSIX sh and bash do. It accepts only
 * lines that run exactly the commands they show. Substitutions, redirections, groups, comments, history
 * references, code in expansions and everything that sh may read differently are reported as problems.
 */
export function splitShellLine(line: string): ShellLine {
  try {
    return { parts: new Reader(line).parts() };
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message, lines: error.lines };
    throw error;
  }
}

class Problem extends Error {
  readonly lines: boolean;
  constructor(message: string, lines = false) {
    super(message);
    this.lines = lines;
  }
}

const PLAIN_EXPANSION = /\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})/y;

class Reader {
  readonly #line: string;
  #at = 0;

  constructor(line: string) {
    if (/[\n\r]/.test(line)) throw new Problem("it spans several lines", true);
    // Tab and space are the only blanks. Other spaces, controls and zero-width characters can hide text.
    const invisible = /(?![ \t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u;
    if (invisible.test(line)) throw new Problem("it holds invisible characters");
    this.#line = line;
  }

  parts(): Word[][] {
    const parts: Word[][] = [];
    for (let optional = false;;) {
      const words = this.#words();
      if (words.length > 0) parts.push(words);
      else if (!optional) throw new Problem("a command in it is empty");
      const operator = this.#operator();
      if (operator === "") return parts;
      // These two may end the line.
      optional = (operator === ";" || operator === "&") && this.#restIsBlank();
    }
  }

  /** The words up to an operator or the end. */
  #words(): Word[] {
    const words: Word[] = [];
    while (true) {
      while (this.#peek === " " || this.#peek === "\t") this.#at++;
      if (this.#peek === "" || "&|;".includes(this.#peek)) return words;
      words.push(this.#word());
    }
  }

  #operator(): string {
    for (const operator of ["&&", "||", "|&", "&", "|", ";"]) {
      if (this.#take(operator)) return operator;
    }
    return "";
  }

  #word(): Word {
    const word: Word = { value: "", literal: true };
    if (this.#peek === "#") throw new Problem("it holds a comment");
    if (this.#peek === "~") word.literal = false;
    while (this.#peek !== "" && !" \t&|;".includes(this.#peek)) {
      if (this.#take("'")) word.value += this.#until("'");
      else if (this.#take('"')) this.#quoted(word);
      else if (this.#take("\\")) word.value += this.#escaped();
      else this.#bare(word);
    }
    // A single bracket is the name of a command.
    if (word.value === "[") word.literal = true;
    return word;
  }

  /** One unquoted character, or expansion. */
  #bare(word: Word): void {
    if (this.#peek === "$") return this.#expansion(word);
    if (this.#take("<<")) throw new Problem("it holds a here-document", true);
    const character = this.#next();
    if ("<>".includes(character)) throw new Problem("it holds a redirection");
    if ("()".includes(character)) throw new Problem("it holds a subshell or a function");
    if (character === "`") throw new Problem("it holds a command substitution");
    if (character === "!" && !" \t=".includes(this.#peek)) throw historyProblem();
    if ("{}*?[".includes(character)) word.literal = false;
    word.value += character;
  }

  /** The rest of a double-quoted string. */
  #quoted(word: Word): void {
    while (!this.#take('"')) {
      if (this.#peek === "$") {
        this.#quotedDollar(word);
        continue;
      }
      const character = this.#next();
      if (character === "`") throw new Problem("it holds a command substitution");
      if (character === "!" && !' \t="'.includes(this.#peek)) throw historyProblem();
      const escapes = character === "\\" && /[$`"\\]/.test(this.#peek);
      word.value += escapes ? this.#next() : character;
    }
  }

  /** Inside double quotes, a dollar before a blank or the closing quote is literal. */
  #quotedDollar(word: Word): void {
    if (!/^\$[ \t"]/.test(this.#line.slice(this.#at, this.#at + 2))) return this.#expansion(word);
    word.value += this.#next();
  }

  /** `$name` or `${name}`. Other forms may run code, or mean different things to different shells. */
  #expansion(word: Word): void {
    PLAIN_EXPANSION.lastIndex = this.#at;
    const match = PLAIN_EXPANSION.exec(this.#line);
    if (match === null) throw new Problem("it holds an expansion that may run code");
    this.#at += match[0].length;
    word.value += match[0];
    word.literal = false;
  }

  #escaped(): string {
    if (this.#peek === "") throw new Problem("it ends in a backslash");
    return this.#next();
  }

  #until(quote: string): string {
    const end = this.#line.indexOf(quote, this.#at);
    if (end < 0) throw new Problem("a quote in it is not closed");
    const text = this.#line.slice(this.#at, end);
    this.#at = end + 1;
    return text;
  }

  #restIsBlank(): boolean {
    return this.#line.slice(this.#at).trim() === "";
  }

  /** The character ahead; empty at the end. */
  get #peek(): string {
    return this.#line.charAt(this.#at);
  }

  #next(): string {
    if (this.#peek === "") throw new Problem("a quote in it is not closed");
    return this.#line.charAt(this.#at++);
  }

  #take(text: string): boolean {
    if (!this.#line.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}

/** Only interactive shells expand history, but the command may be passed to one. */
function historyProblem(): Problem {
  return new Problem("it refers to the shell's history");
}
