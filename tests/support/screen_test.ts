import assert from "node:assert/strict";
import { Screen } from "./screen.ts";

Deno.test("a screen wraps at the right edge only when the next character comes", () => {
  const screen = new Screen(4, 3);
  screen.write("abcd");
  assert.deepEqual(screen.cursor, { row: 0, column: 3 });
  screen.write("\r\nx");
  assert.deepEqual(screen.lines(), ["abcd", "x", ""]);
  screen.write("\r\x1b[1Aabcde");
  assert.deepEqual(screen.lines(), ["abcd", "e", ""]);
});

Deno.test("a screen scrolls, and keeps what scrolled off", () => {
  const screen = new Screen(10, 2);
  screen.write("one\r\ntwo\r\nthree");
  assert.deepEqual(screen.lines(), ["two", "three"]);
  assert.deepEqual(screen.scrollback, ["one"]);
  assert.equal(screen.all(), "one\ntwo\nthree");
});

Deno.test("a screen gives wide characters two cells and combining ones none", () => {
  const screen = new Screen(5, 2);
  screen.write("日本e\u0301語");
  assert.deepEqual(screen.lines(), ["日本e\u0301", "語"]);
  assert.deepEqual(screen.cursor, { row: 1, column: 2 });
});

Deno.test("a screen moves, erases and ignores colours, also when sequences come in pieces", () => {
  const screen = new Screen(10, 3);
  screen.write("\x1b[31mhello\x1b[0m\r\nworld\x1b[");
  screen.write("1A\x1b[2D\x1b[K\x1b[?2004h\x1b[?25l");
  assert.deepEqual(screen.lines(), ["hel", "world", ""]);
  assert.deepEqual([...screen.modes], [2004]);
  screen.write("\x1b[H\x1b[2J");
  assert.equal(screen.text(), "");
  assert.deepEqual(screen.unknown, []);
});

Deno.test("a screen that is resized breaks its own wraps anew and keeps the program's", () => {
  const screen = new Screen(6, 4);
  screen.write("abcdefgh\r\nxy");
  screen.resize(4, 4);
  assert.deepEqual(screen.lines(), ["abcd", "efgh", "xy", ""]);
  assert.deepEqual(screen.cursor, { row: 2, column: 2 });
  screen.resize(10, 4);
  assert.deepEqual(screen.lines(), ["abcdefgh", "xy", "", ""]);
});
