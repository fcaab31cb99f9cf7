/** Bytes from `start` up to, and without, `end`. */
export interface Span {
  start: number;
  end: number;
}

/** Where an entry of the register lies, and its history inside it. */
export interface EntrySpan extends Span {
  history?: Span;
}

/** Where the entries of a register lie in its text. */
export interface Layout {
  /** The array, brackets included. */
  list: Span;
  entries: EntrySpan[];
}

const QUOTE = 0x22, COMMA = 0x2c, COLON = 0x3a, BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b, CLOSE_LIST = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;

/**
 * Finds the entries of a register, and their histories, without parsing what they hold: these are nearly all
 * of its bytes, and who wants to know what is due needs none of them. What lies between the spans is not
 * checked here.
 *
 * @throws SyntaxError when this is no object with an array `jobs`
 */
export function readLayout(bytes: Uint8Array): Layout {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  let list: Span | undefined;
  const end = eachField(bytes, blanks(bytes, start), (key, value) => {
    if (key === "jobs" && bytes[value.start] === OPEN_LIST) list = value;
  });
  if (blanks(bytes, end) !== bytes.length || list === undefined) throw fault(end);
  return { list, entries: entriesOf(bytes, list.start) };
}

/** Where the history of an entry lies that begins at `start`. */
function readEntry(bytes: Uint8Array, start = 0): EntrySpan {
  if (bytes[start] !== OPEN_OBJECT) return { start, end: valueEnd(bytes, start) };
  let history: Span | undefined;
  const end = eachField(bytes, start, (key, value) => {
    if (key === "history") history = bytes[value.start] === OPEN_LIST ? value : undefined;
  });
  return { start, end, history };
}

/** Where everything lies once an entry is other bytes. */
export function withReplaced(
  { list, entries }: Layout,
  place: number,
  inserted: Uint8Array,
): Layout {
  const { start, end } = entries[place]!;
  const moved = inserted.length - (end - start);
  return {
    list: { start: list.start, end: list.end + moved },
    entries: entries.map((entry, other) => {
      if (other === place) return shifted(readEntry(inserted), start);
      return other < place ? entry : shifted(entry, moved);
    }),
  };
}

function shifted({ start, end, history }: EntrySpan, by: number): EntrySpan {
  return {
    start: start + by,
    end: end + by,
    history: history && { start: history.start + by, end: history.end + by },
  };
}

function entriesOf(bytes: Uint8Array, start: number): EntrySpan[] {
  const entries: EntrySpan[] = [];
  let at = blanks(bytes, start + 1);
  if (bytes[at] === CLOSE_LIST) return entries;
  while (true) {
    const entry = readEntry(bytes, at);
    entries.push(entry);
    at = blanks(bytes, entry.end);
    if (bytes[at] === CLOSE_LIST) return entries;
    if (bytes[at] !== COMMA) throw fault(at);
    at = blanks(bytes, at + 1);
  }
}

/** Tells of each field of the object at `start`; returns where the object ends. */
function eachField(
  bytes: Uint8Array,
  start: number,
  tell: (key: string, value: Span) => void,
): number {
  if (bytes[start] !== OPEN_OBJECT) throw fault(start);
  let at = blanks(bytes, start + 1);
  if (bytes[at] === CLOSE_OBJECT) return at + 1;
  while (true) {
    const key: Span = { start: at, end: stringEnd(bytes, at) };
    at = blanks(bytes, key.end);
    if (bytes[at] !== COLON) throw fault(at);
    at = blanks(bytes, at + 1);
    const value: Span = { start: at, end: valueEnd(bytes, at) };
    tell(JSON.parse(decode(bytes, key)), value);
    at = blanks(bytes, value.end);
    if (bytes[at] === CLOSE_OBJECT) return at + 1;
    if (bytes[at] !== COMMA) throw fault(at);
    at = blanks(bytes, at + 1);
  }
}

function valueEnd(bytes: Uint8Array, start: number): number {
  const first = bytes[start];
  if (first === QUOTE) return stringEnd(bytes, start);
  let at = start;
  if (first !== OPEN_OBJECT && first !== OPEN_LIST) {
    while (at < bytes.length && !isEnd(bytes[at]!)) at++;
    if (at === start) throw fault(at);
    return at;
  }
  for (let depth = 0; at < bytes.length;) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = stringEnd(bytes, at);
      continue;
    }
    at++;
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--;
    if (depth === 0) return at;
  }
  throw fault(at);
}

function stringEnd(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== QUOTE) throw fault(start);
  for (let at = bytes.indexOf(QUOTE, start + 1); at >= 0; at = bytes.indexOf(QUOTE, at + 1)) {
    let slash = at - 1;
    while (bytes[slash] === BACKSLASH) slash--;
    if ((at - slash) % 2 === 1) return at + 1; // an even number of backslashes before it
  }
  throw fault(bytes.length);
}

function isEnd(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_LIST || byte === CLOSE_OBJECT || isBlank(byte);
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function blanks(bytes: Uint8Array, at: number): number {
  while (isBlank(bytes[at])) at++;
  return at;
}

/** The text of a span. */
export function decode(bytes: Uint8Array, { start, end }: Span): string {
  return new TextDecoder().decode(bytes.subarray(start, end));
}

function fault(at: number): SyntaxError {
  return new SyntaxError(`Unexpected text at byte ${at}.`);
}
