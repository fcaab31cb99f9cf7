import assert from "node:assert/strict";
import { Output } from "../../../src/repl/render/output.ts";
import { style } from "../../../src/platform/style.ts";
import { Widths } from "../../../src/repl/input/text.ts";
import { layOut } from "../../../src/repl/input/view.ts";
import { Screen } from "../../support/screen.ts";

Deno.test("the status line stays below what is printed, and goes without a trace", () => {
  const { screen, output } = terminal(20, 6);
  output.status("working");
  assert.equal(screen.text(), "working");
  output.print("Hello");
  assert.equal(screen.text(), "Hello\nworking");
  output.print(" world\nand");
  assert.equal(screen.text(), "Hello world\nand\nworking");
  output.status("still working");
  output.print(" you\n");
  assert.equal(screen.text(), "Hello world\nand you\nstill working");
  output.status(undefined);
  assert.equal(screen.text(), "Hello world\nand you");
  assert.deepEqual(screen.cursor, { row: 2, column: 0 });
});

Deno.test("the status line is never wider than the terminal, and one line", () => {
  const { screen, output } = terminal(10, 4);
  output.status("one two\nthree four five");
  assert.equal(screen.text(), "one two …");
  output.status("漢字漢字漢字漢字");
  assert.equal(screen.text(), "漢字漢字…");
});

Deno.test("several status lines stay below what is printed, and go without a trace", () => {
  const { screen, output } = terminal(20, 5);
  output.print("Hello");
  output.status(["one", "  two", "working"]);
  assert.equal(screen.text(), "Hello\none\n  two\nworking");
  output.print(" world\nand");
  assert.equal(screen.text(), "Hello world\nand\none\n  two\nworking");
  output.status(["three", "working"]);
  output.print(" more\nthat scrolls\n");
  assert.equal(screen.all(), "Hello world\nand more\nthat scrolls\nthree\nworking");
  output.status(undefined);
  output.print("end");
  assert.equal(screen.all(), "Hello world\nand more\nthat scrolls\nend");
});

Deno.test("text that fills the line, wraps, is wide or scrolls goes on where it stood", () => {
  const { screen, output } = terminal(6, 3);
  output.status("s");
  for (const piece of ["abc", "def", "gh", "i漢", "字x", "\n", "e\u0301e\u0301", "\tq", "r"]) {
    output.print(piece);
  }
  output.status(undefined);
  output.print("!");
  assert.equal(screen.all(), "abcdef\nghi漢\n字x\ne\u0301e\u0301   q\nr!");
});

Deno.test("a full line is ended once, with a status line below it or without", () => {
  const { screen, output } = terminal(3, 9);
  output.print("abc\n");
  output.status("s");
  output.print("def");
  output.status("t");
  output.print("\nghi");
  output.fresh();
  output.print("\njkl");
  output.status(undefined);
  output.line("m");
  assert.equal(screen.all(), "abc\ndef\nghi\n\njkl\nm");
});

Deno.test("output is held while a question is open, and printed afterwards", () => {
  const { screen, output } = terminal(20, 6);
  output.print("one");
  output.status("working");
  output.hold();
  assert.equal(screen.text(), "one");
  assert.deepEqual(screen.cursor, { row: 1, column: 0 });
  output.print("two");
  output.status("still");
  output.line("three");
  assert.equal(screen.text(), "one");
  output.release();
  output.status("again");
  assert.equal(screen.text(), "one\ntwo\nthree\nagain");
});

Deno.test("a message that is edited stays below the status line, and text is printed above both", () => {
  const { screen, output } = terminal(12, 5);
  const widths = new Widths();
  const message = (text: string) =>
    layOut({ prompt: "> ", continuation: "", text, cursor: text.length, columns: 12, widths });
  output.print("one");
  output.edited(message("hi"));
  output.status("working");
  assert.equal(screen.text(), "one\nworking\n> hi");
  assert.deepEqual(screen.cursor, { row: 2, column: 4 });
  output.print(" two\nthree\nfour");
  output.edited(message("hi, a longer one"));
  assert.equal(screen.text(), "three\nfour\nworking\n> hi, a long\ner one");
  output.print(" five");
  output.status(undefined);
  assert.equal(screen.text(), "three\nfour five\n> hi, a long\ner one");
  output.hold();
  assert.equal(screen.text(), "three\nfour five");
  output.release();
  output.edited(undefined);
  assert.equal(screen.all(), "one two\nthree\nfour five");
});

Deno.test("what is below the text is drawn anew when the window becomes narrower", () => {
  const { screen, output, port } = terminal(30, 8);
  output.print("a line of text");
  output.status("a status of many words");
  screen.resize(10, 8);
  port.columns = 10;
  output.print("!");
  assert.equal(screen.text(), "a line of\ntext!\na status…");
});

Deno.test("without a terminal there is no status line", () => {
  let written = "";
  const port = { write: (text: string) => void (written += text), columns: () => 80 };
  const output = new Output({ ...port, isTerminal: false }, style({ enabled: false }));
  output.status("working");
  output.line("one");
  output.print("two");
  output.line("three");
  assert.equal(written, "one\ntwo\nthree\n");
});

Deno.test("no control sequence but a colour gets through", () => {
  const { screen, output, written } = terminal(20, 3);
  output.print("a\x1b[2Jb\x1b]0;title\x07c\x9b1md\x1b[31mred\x1b[39m\r\b");
  assert.equal(written(), "a[2Jb]0;titlec1md\x1b[31mred\x1b[39m");
  assert.equal(screen.unknown.length, 0);
});

function terminal(columns: number, height: number) {
  const screen = new Screen(columns, height);
  let all = "";
  const write = (text: string) => {
    all += text;
    screen.write(text.replaceAll("\n", "\r\n")); // as a terminal in its usual mode does
  };
  const port = { columns };
  const output = new Output(
    { write, columns: () => port.columns, rows: () => height, isTerminal: true },
    style({ enabled: true }),
  );
  return { screen, output, port, written: () => all };
}
