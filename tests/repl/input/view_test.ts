import assert from "node:assert/strict";
import fc from "fast-check";
import { layOut, rowsOf, View } from "../../../src/repl/input/view.ts";
import { menuRows } from "../../../src/repl/input/completion.ts";
import { Widths } from "../../../src/repl/input/text.ts";
import { Screen } from "../../support/screen.ts";

const PROMPT = "\x1b[1;32msvc\x1b[0m > ";
const CONTINUATION = "\x1b[2m. \x1b[0m";

async function loaded(): Promise<Widths> {
  const widths = new Widths();
  await widths.ready("日");
  return widths;
}

Deno.test("a line breaks at the right edge, wide characters as a whole", async () => {
  const widths = await loaded();
  const laid = { prompt: "> ", continuation: ". ", columns: 6, widths };
  assert.deepEqual(layOut({ ...laid, text: "abcd", cursor: 4 }), {
    rows: [{ text: "> abcd", width: 6 }, { text: "", width: 0 }],
    cursor: { row: 1, column: 0 },
  });
  assert.deepEqual(layOut({ ...laid, text: "a日本語\n\tx", cursor: 2 }), {
    rows: [
      { text: "> a日", width: 5 },
      { text: "本語", width: 4 },
      { text: ".     ", width: 6 },
      { text: "x", width: 1 },
    ],
    cursor: { row: 1, column: 0 },
  });
});

Deno.test("colours of a prompt go on over a break, and other sequences are left out", async () => {
  assert.deepEqual(rowsOf("\x1b[1m\x1b[31mabc\x1b[2Jdef\x1b[0mg\x07", 4, await loaded()), [
    { text: "\x1b[1m\x1b[31mabcd\x1b[0m", width: 4 },
    { text: "\x1b[1m\x1b[31mef\x1b[0mg", width: 3 },
  ]);
});

Deno.test("a terminal of a single column loses nothing and ends", async () => {
  const { rows } = layOut({
    prompt: ">",
    continuation: ".",
    text: "日a",
    cursor: 0,
    columns: 1,
    widths: await loaded(),
  });
  assert.deepEqual(rows.map(({ text }) => text), [">", "日", "a"]);
});

Deno.test("a typed character is all that is written for it", async () => {
  const widths = await loaded();
  const view = new View(widths);
  const frame = (text: string, cursor = text.length) =>
    layOut({ prompt: PROMPT, continuation: "", text, cursor, columns: 40, widths });
  view.draw(frame("hell"), 10);
  assert.equal(view.draw(frame("hello"), 10), "o");
  assert.equal(view.draw(frame("hello"), 10), "");
  assert.equal(view.draw(frame("hello", 4), 10), "\r\x1b[10C");
});

Deno.test("candidates fill columns downwards, with a page of those that do not fit", async () => {
  const widths = await loaded();
  const candidates = ["alpha", "beta", "gamma", "日本", "delta"].map((text) => ({ text }));
  const texts = (chosen: number | undefined, columns: number, height: number) =>
    menuRows(candidates, chosen, columns, height, widths).map(({ text }) => text.trimEnd());
  assert.deepEqual(texts(undefined, 22, 5), ["alpha  gamma  delta", "beta   日本"]);
  assert.deepEqual(texts(1, 10, 3), ["alpha", "\x1b[7mbeta\x1b[0m", "\x1b[2m… 3 more\x1b[0m"]);
  assert.deepEqual(texts(3, 10, 3), ["gamma", "\x1b[7m日本\x1b[0m", "\x1b[2m… 3 more\x1b[0m"]);
  assert.deepEqual(texts(3, 10, 0), []);
});

interface Step {
  text: string;
  cursor: number;
  listed: number;
  announced: boolean;
}

const TEXT = fc.array(
  fc.constantFrom("a", "bc", "word ", "日", "e\u0301", "👩‍💻", "🇫🇷", "\n", "\t", "ー"),
  { maxLength: 40 },
).map((pieces) => pieces.join(""));

/** Texts change as texts do: at times by a character, at times altogether. */
const STEPS: fc.Arbitrary<Step[]> = fc.array(
  fc.tuple(TEXT, fc.constantFrom("x", "日", "\n", ""), fc.nat(), fc.nat(5), fc.nat(9)),
  { minLength: 1, maxLength: 12 },
).map((steps) => {
  let last = "";
  return steps.map(([text, typed, at, listed, kind]) => {
    last = kind < 5 ? last + typed : text;
    const cursors = boundaries(last);
    const cursor = kind < 3 ? last.length : cursors[at % cursors.length]!;
    return { text: last, cursor, listed: listed < 3 ? 0 : listed, announced: kind === 9 };
  });
});

Deno.test("after any earlier frame the screen shows the new frame and the output above it", async () => {
  const widths = await loaded();
  fc.assert(fc.property(STEPS, fc.integer({ min: 8, max: 24 }), fc.integer({ min: 3, max: 9 }), (
    steps,
    columns,
    height,
  ) => {
    const screen = new Screen(columns, height);
    const above = ["one", "two"];
    screen.write("one\r\ntwo\r\n");
    const view = new View(widths);
    for (const step of steps) {
      if (step.announced) {
        screen.write(view.erase() + "news\r\n");
        above.push("news");
      }
      const frame = frameOf(step, columns, widths);
      screen.write(view.draw(frame, height));
      // The cursor says which part of a frame that is too high is in sight.
      const below = frame.below.slice(0, Math.max(0, height - 1));
      const room = Math.max(1, height - frame.below.length);
      const top = frame.rows.length <= room ? 0 : topOf(screen, frame, above.length);
      const seen = [...frame.rows.slice(top, top + room), ...below].slice(0, height);
      const expected = [...above, ...seen.map(({ text }) => plain(text))].join("\n").trimEnd();
      assert.equal(screen.all(), expected);
      const row = above.length + frame.cursor.row - top - screen.scrollback.length;
      assert.deepEqual(screen.cursor, { row, column: frame.cursor.column });
      assert.deepEqual(screen.unknown, []);
      assert.ok(screen.modes.has(25));
    }
  }));
});

Deno.test("after a window was resized the screen shows the frame once and nothing of the old one", async () => {
  const widths = await loaded();
  const sizes = fc.array(fc.integer({ min: 4, max: 30 }), { minLength: 1, maxLength: 6 });
  fc.assert(fc.property(STEPS, sizes, (steps, sizes) => {
    const screen = new Screen(20, 200);
    screen.write("one\r\ntwo\r\n");
    const view = new View(widths);
    let columns = 20;
    for (const [index, step] of steps.entries()) {
      screen.write(view.draw(frameOf(step, columns, widths), 200));
      columns = sizes[index % sizes.length]!;
      screen.resize(columns, 200);
      const frame = frameOf(step, columns, widths);
      screen.write(view.eraseResized(columns) + view.draw(frame, 200));
      const rows = [...frame.rows, ...frame.below].map(({ text }) => plain(text));
      assert.equal(screen.text(), ["one", "two", ...rows].join("\n").trimEnd());
      assert.deepEqual(screen.cursor, { ...frame.cursor, row: frame.cursor.row + 2 });
    }
  }));
});

function frameOf({ text, cursor, listed }: Step, columns: number, widths: Widths) {
  const frame = layOut({
    prompt: PROMPT,
    continuation: CONTINUATION,
    text,
    cursor,
    columns,
    widths,
  });
  const candidates = Array.from({ length: listed }, (_, n) => ({ text: `candidate${n}` }));
  return { ...frame, below: menuRows(candidates, undefined, columns, 3, widths) };
}

/** The first row in sight, told by where the cursor stands. */
function topOf(screen: Screen, frame: ReturnType<typeof layOut>, above: number): number {
  const first = above - screen.scrollback.length; // row of the screen where the frame begins
  return frame.cursor.row - (screen.cursor.row - first);
}

function boundaries(text: string): number[] {
  return [...Array.from(new Intl.Segmenter().segment(text), ({ index }) => index), text.length];
}

/** As a screen's rows are compared. */
function plain(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/\x1b\[[\d;]*m/g, "").trimEnd();
}
