import assert from "node:assert/strict";
import fc from "fast-check";
import { type Key, KeyDecoder } from "../../../src/repl/input/keys.ts";

/** Keys of what came in these reads, "…" for a pause: names in brackets, text as it is, pastes in quotes. */
function keys(...reads: (string | Uint8Array)[]): string {
  const decoder = new KeyDecoder();
  const encoder = new TextEncoder();
  return [...reads, "…"].flatMap((read) =>
    read === "…" ? decoder.flush() : decoder.feed(
      typeof read === "string" ? encoder.encode(read) : read,
    )
  ).map(show).join("");
}

function show(key: Key): string {
  if (key.type === "key") return `[${key.name}]`;
  return key.type === "text" ? key.text : JSON.stringify(key.text);
}

Deno.test("a key has one name for all terminal encodings", () => {
  const sent: Record<string, string[]> = {
    up: ["\x1b[A", "\x1bOA"],
    left: ["\x1b[D", "\x1bOD"],
    home: ["\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"],
    end: ["\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~"],
    delete: ["\x1b[3~"],
    backspace: ["\x7f", "\x08", "\x1b[127u"],
    enter: ["\r", "\n", "\x1bOM", "\x1b[13u"],
    tab: ["\t"],
    "shift-tab": ["\x1b[Z"],
    "ctrl-right": ["\x1b[1;5C"],
    "alt-left": ["\x1b[1;3D"],
    "ctrl-alt-up": ["\x1b[1;7A"],
    "alt-b": ["\x1bb", "\x1bB"],
    "alt-backspace": ["\x1b\x7f"],
    "alt-enter": ["\x1b\r", "\x1b\n", "\x1b[13;3u"],
    "shift-enter": ["\x1b[13;2u", "\x1b[27;2;13~"],
    "ctrl-a": ["\x01"],
    "ctrl-c": ["\x03", "\x1b[99;5u"],
    "ctrl-_": ["\x1f"],
    escape: ["\x1b", "\x1b[27u"],
  };
  for (const [name, sequences] of Object.entries(sent)) {
    for (const sequence of sequences) assert.equal(keys(sequence), `[${name}]`);
  }
});

Deno.test("several keys in one read are taken apart", () => {
  assert.equal(
    keys("ab\x1b[Dc\x7f\x1b\x1b[A\tx\r"),
    "ab[left]c[backspace][escape][up][tab]x[enter]",
  );
});

Deno.test("Escape is a key when nothing follows it, and no key when the rest of a sequence does", () => {
  assert.equal(keys("\x1b", "[A"), "[up]");
  assert.equal(keys("\x1b", "[1;5C"), "[ctrl-right]");
  assert.equal(keys("\x1b", "x"), "[alt-x]");
  assert.equal(keys("\x1b\x1b"), "[escape][escape]");
  assert.equal(keys("\x1b", "…", "x"), "[escape]x");
  assert.equal(keys("\x1b", "…", "["), "[escape][");
  assert.equal(keys("\x1b", "…", "[A"), "[escape][up]", "a rest that comes late is no text");
});

Deno.test("sequences that mean nothing, answers of the terminal and stray controls are no text", () => {
  assert.equal(keys("a\x1b[99~\x1b[?62;c\x1b]11;rgb:0/0/0\x07\x1bP1+r\x1b\\\x1b[I\x00\x1cb"), "ab");
  assert.equal(keys("\x1b]11;rgb", ":0/0/0\x1b", "\\b"), "b");
  assert.equal(keys("a\x85\u202eb\ufdd0"), "ab");
});

Deno.test("a bracketed paste is one key, cleaned of whatever could harm", () => {
  assert.equal(keys("\x1b[200~a\r\nb\rc\n\x1b[2Jd\x03\x1b[201~e"), '"a\\nb\\nc\\nd"e');
  assert.equal(keys("\x1b[200~x\x1b[20", "1~y"), '"x"y');
  assert.equal(keys("\x1b[20", "0~x", "", "\r", "y\x1b[201~\r"), '"x\\ny"[enter]');
  assert.equal(keys("\x1b[200~\x1b[201~"), "");
});

Deno.test("lines that come in one read are a paste; a single line and its Enter are not", () => {
  assert.equal(keys("one\ntwo\n"), '"one\\ntwo"');
  assert.equal(keys("one\r\n\ttwo\r\n"), '"one\\n\\ttwo"');
  assert.equal(keys("one\r"), "one[enter]");
  assert.equal(keys("\r\r"), "[enter][enter]");
  assert.equal(keys("a\rb\x1b[A"), "a[enter]b[up]");
});

Deno.test("bytes may be split anywhere", () => {
  const pieces = fc.constantFrom(
    "a",
    "é",
    "日本",
    "👩‍💻",
    "\x1b[A",
    "\x1b[1;5D",
    "\x1bOH",
    "\x1b[3~",
    "\x01",
    "\t",
    "\x7f",
    "\x1b[200~one\r\ntwo\x1b[31m\x1b[201~",
    "\x1b]0;title\x07",
  );
  const cut = fc.tuple(pieces, fc.nat(40), fc.nat(40));
  fc.assert(fc.property(fc.array(cut), (cuts) => {
    const reads = cuts.flatMap(([piece, ...places]) => split(piece, places));
    const whole = cuts.map(([piece]) => piece).join("");
    assert.equal(keys(...reads), keys(whole));
  }));
});

function split(piece: string, places: number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(piece);
  const ordered = places.map((place) => place % bytes.length).sort((a, b) => a - b);
  return [0, ...ordered].map((from, index) => bytes.slice(from, ordered[index]));
}
