import assert from "node:assert/strict";
import fc from "fast-check";
import {
  begin,
  clear,
  type Edited,
  insert,
  moveLine,
  press,
} from "../../../src/repl/input/editor.ts";
import { boundary, graphemes } from "../../../src/repl/input/text.ts";

/** Presses keys on a text whose cursor is `|`; text in quotes is typed. */
function edit(text: string, ...keys: string[]): string {
  const cursor = text.indexOf("|");
  let state: Edited = { ...begin(text.replace("|", "")), cursor };
  for (const key of keys) state = step(state, key);
  return state.text.slice(0, state.cursor) + "|" + state.text.slice(state.cursor);
}

function step(state: Edited, key: string): Edited {
  if (key.startsWith("'")) return insert(state, key.slice(1));
  if (key === "up" || key === "down") return moveLine(state, key === "up" ? -1 : 1) ?? state;
  return press(state, key) ?? state;
}

Deno.test("the cursor moves by characters, words and lines", () => {
  assert.equal(edit("ab|c", "left"), "a|bc");
  assert.equal(edit("ab|c", "ctrl-f", "right"), "abc|");
  assert.equal(edit("one\ntw|o\nthree", "home"), "one\n|two\nthree");
  assert.equal(edit("one\ntw|o\nthree", "ctrl-e"), "one\ntwo|\nthree");
  assert.equal(edit("one, two.th|", "alt-b"), "one, two.|th");
  assert.equal(edit("one, two.|th", "ctrl-left"), "one, |two.th");
  assert.equal(edit("|one, two", "alt-f", "alt-right"), "one, two|");
  assert.equal(edit("日本 語|", "alt-b", "alt-b"), "|日本 語");
});

Deno.test("the cursor moves up and down in a text of several lines, and says where it cannot", () => {
  assert.equal(edit("abcd\ne\u0301f\nghij|", "up"), "abcd\ne\u0301f|\nghij");
  assert.equal(edit("abc|d\n日\nghij", "down"), "abcd\n日|\nghij");
  assert.equal(moveLine(begin("one line"), -1), undefined);
  assert.equal(moveLine(begin("two\nlines"), 1), undefined);
});

Deno.test("characters go as a person sees them", () => {
  assert.equal(edit("ae\u0301|", "backspace"), "a|");
  assert.equal(edit("x👩‍👩‍👧‍👦|🇫🇷", "backspace", "delete"), "x|");
  assert.equal(edit("|각나", "delete"), "|나");
  assert.equal(edit("a\n|b", "backspace"), "a|b");
  assert.equal(edit("|", "backspace", "delete", "left", "right"), "|");
});

Deno.test("what is cut can be put back, joined where it was cut in one go", () => {
  assert.equal(edit("one two three|", "ctrl-w", "ctrl-w", "ctrl-y"), "one two three|");
  assert.equal(edit("one| two", "ctrl-u", "ctrl-k", "ctrl-y"), "one two|");
  assert.equal(edit("src/repl/in|", "alt-backspace"), "src/repl/|");
  assert.equal(edit("|one two", "alt-d", "alt-d", "end", "ctrl-y"), "one two|");
  assert.equal(edit("one|\ntwo", "ctrl-k"), "one|two");
  assert.equal(edit("a b|", "ctrl-w", "left", "ctrl-k", "'x", "ctrl-y", "alt-y"), "axb|");
  assert.equal(edit("a|", "ctrl-y", "alt-y"), "a|");
  assert.equal(step(clear(begin("all of it")), "ctrl-y").text, "all of it");
});

Deno.test("Ctrl-T swaps two characters", () => {
  assert.equal(edit("ab|", "ctrl-t"), "ba|");
  assert.equal(edit("a|b", "ctrl-t"), "ba|");
  assert.equal(edit("x日|e\u0301", "ctrl-t"), "xe\u0301日|");
  assert.equal(edit("|ab", "ctrl-t"), "|ab");
});

Deno.test("Alt-Enter puts a line feed", () => {
  assert.equal(edit("a|b", "alt-enter", "shift-enter"), "a\n\n|b");
});

const TYPED = ["a", "b", " ", "_", "日", "e\u0301", "👩‍💻", "🇫🇷", "\n"];
const KEYS = [
  "left",
  "right",
  "home",
  "end",
  "backspace",
  "delete",
  "ctrl-u",
  "ctrl-k",
  "ctrl-w",
  "ctrl-y",
  "up",
  "down",
];

Deno.test("random keys edit the text as they edit a list of characters", () => {
  const commands = fc.array(
    fc.oneof(
      fc.constantFrom(...TYPED).map((text) => `'${text}`),
      fc.constantFrom(...KEYS),
    ),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(commands, (commands) => {
      let state = begin();
      const model = new Model();
      for (const command of commands) {
        state = step(state, command);
        model.step(command);
        assert.equal(state.text, model.characters.join(""));
        assert.equal(state.cursor, model.characters.slice(0, model.at).join("").length);
      }
    }),
    { numRuns: 300 },
  );
});

Deno.test("the cursor stays between characters whatever is typed, and no character is torn", () => {
  const typed = fc.string({ unit: "grapheme-composite", maxLength: 4 }).map((text) => `'${text}`);
  const marks = fc.constantFrom("'\u0301", "'\u200d", "'\ufe0f", "'🇫", "'🏽", "'\n");
  const keys = fc.constantFrom(...KEYS, "alt-b", "alt-f", "alt-d", "ctrl-t", "alt-y");
  fc.assert(
    fc.property(fc.array(fc.oneof(typed, marks, keys), { maxLength: 40 }), (commands) => {
      let state = begin();
      for (const command of commands) {
        state = step(state, command);
        assert.equal(boundary(state.text, state.cursor), state.cursor);
        assert.ok(state.text.isWellFormed());
        assert.ok(state.cursor >= 0 && state.cursor <= state.text.length);
      }
    }),
    { numRuns: 300 },
  );
});

/** The editor as one would write it without a thought about bytes or speed. */
class Model {
  characters: string[] = [];
  at = 0;
  #cut: string[] = [];
  #cutting = false;

  step(command: string): void {
    const before = this.#cutting;
    this.#cutting = false;
    const { characters, at } = this;
    if (command.startsWith("'")) this.#replace(at, at, [command.slice(1)]);
    else if (command === "left") this.at = Math.max(0, at - 1);
    else if (command === "right") this.at = Math.min(characters.length, at + 1);
    else if (command === "home") this.at = this.#start(at);
    else if (command === "end") this.at = this.#end(at);
    else if (command === "backspace") this.#replace(Math.max(0, at - 1), at, []);
    else if (command === "delete") this.#replace(at, Math.min(characters.length, at + 1), []);
    else if (command === "ctrl-y") this.#replace(at, at, this.#cut);
    else if (command === "ctrl-u") this.#kill(this.#start(at), at, before);
    else if (command === "ctrl-k") {
      const end = this.#end(at);
      this.#kill(at, end === at ? Math.min(characters.length, at + 1) : end, before);
    } else if (command === "ctrl-w") this.#kill(this.#blank(at), at, before);
    else this.#vertical(command);
  }

  #vertical(command: string): void {
    const column = this.at - this.#start(this.at);
    if (command === "up" && this.#start(this.at) > 0) {
      const start = this.#start(this.#start(this.at) - 1);
      this.at = Math.min(start + column, this.#end(start));
    }
    if (command === "down" && this.#end(this.at) < this.characters.length) {
      const start = this.#end(this.at) + 1;
      this.at = Math.min(start + column, this.#end(start));
    }
  }

  #kill(from: number, to: number, joined: boolean): void {
    this.#cutting = joined;
    if (from === to) return;
    const cut = this.characters.slice(from, to);
    const older = joined ? this.#cut : [];
    this.#cut = to === this.at && from < to && from !== this.at
      ? [...cut, ...older]
      : [...older, ...cut];
    this.#cutting = true;
    this.#replace(from, to, []);
  }

  #replace(from: number, to: number, by: string[]): void {
    this.characters.splice(from, to - from, ...by);
    this.at = from + by.length;
  }

  #start(at: number): number {
    while (at > 0 && this.characters[at - 1] !== "\n") at--;
    return at;
  }

  #end(at: number): number {
    while (at < this.characters.length && this.characters[at] !== "\n") at++;
    return at;
  }

  #blank(at: number): number {
    while (at > 0 && /\s/.test(this.characters[at - 1]!)) at--;
    while (at > 0 && !/\s/.test(this.characters[at - 1]!)) at--;
    return at;
  }
}

Deno.test("plain text is split into the same characters as by Intl.Segmenter", () => {
  const plain = Array.from(
    { length: 0x380 },
    (_, i) => String.fromCharCode(i < 0x300 ? i : i + 0x1d00),
  );
  const segmenter = new Intl.Segmenter();
  for (const one of plain) {
    for (const other of ["a", "›", "é", "\u0301", "\u200d", "\ufe0f"]) {
      const text = one + other;
      const segments = Array.from(segmenter.segment(text), ({ segment }) => segment);
      assert.deepEqual(graphemes(text), segments);
    }
  }
});
