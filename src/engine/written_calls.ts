import type { ToolDefinition } from "../plugins/api.ts";
import { CONFIG_PARAMETER } from "../tools/registry.ts";
import { explains, jsonObjectCalls, OPENERS, withoutEnd } from "./text_call.ts";

/** A call that a model wrote as text. `arguments` is JSON. */
export interface WrittenCall {
  name: string;
  arguments: string;
}

/**
 * The calls that a reply consists of, or that it ends with after a marker at the beginning of a line. A call that may be
 * quoted, or is not complete, is none: it stands in a code block, in a text that explains it, or in an earlier message;
 * text follows it; a tool or a parameter is not known, or a required argument is missing.
 *
 * @param options.json whether an unmarked call counts too. False where an answer may be JSON.
 * @param options.earlier the texts of the messages before the reply
 * @returns the calls, and the text before them; undefined when there are none
 */
export function writtenCalls(
  reply: string,
  tools: readonly ToolDefinition[],
  { json = true, earlier = [] }: { json?: boolean; earlier?: readonly string[] } = {},
): { calls: WrittenCall[]; text: string } | undefined {
  if (/^\s*?(?: {4}|\t)/.test(reply)) return undefined; // indented as code
  const whole = withoutEnd(reply).trim();
  const [, fenced = whole] = /^```\w*\n((?:(?!```)[\s\S])*)\n```$/.exec(whole) ?? [];
  const known = new Known(tools);
  const marked = whole.search(MARKER) === 0;
  for (const [text, block] of [["", fenced], ...marked ? [] : blocks(whole)] as const) {
    const calls = readCalls(block, known);
    if (calls === undefined || calls.length === 0) continue;
    const plain = text === "" && !marked;
    if (plain && (!json || calls.length > 1 || !/[{=<]/.test(block))) continue;
    const parts = [block, ...calls.map((call) => call.arguments)];
    if (earlier.map(bare).some((message) => parts.some((part) => stands(part, message)))) {
      return undefined;
    }
    return { calls, text };
  }
  return undefined;
}

/** A marker at the beginning of a line that is not indented as code. */
const MARKER = RegExp(String.raw`^ {0,3}(?:${OPENERS.join("|")})`, "gimu");
/** Characters of the text before a call. */
const MOST_BEFORE = 2000;

/** The ends of a reply that begin with a marker outside of code and quotations, each with the text before it. */
function* blocks(reply: string): Generator<[text: string, block: string]> {
  for (const { index } of reply.matchAll(MARKER)) {
    const before = reply.slice(0, index);
    const text = before.trim();
    const fences = before.match(/^[ \t]*(?:```|~~~)/gm) ?? [];
    const paragraph = before.split(/\n\s*\n/).at(-1)!;
    const code = paragraph.split("`").length % 2 === 0 || fences.length % 2 === 1;
    if (code || text.length > MOST_BEFORE || explains(text, true)) return;
    yield [text, reply.slice(index).trim()];
    if (text === "") return;
  }
}

/**
 * Whether a message has every line of a text, also with other white space and quotation marks, or behind prefixes.
 *
 * @param text the message as `bare` returns it
 */
function stands(part: string, text: string): boolean {
  const lines = part.split("\n").map(bare).filter((line) => line.length >= SHORTEST_LINE);
  if (lines.length > 0) return lines.every((line) => text.includes(line));
  return bare(part).length > 2 && text.includes(bare(part));
}

/** Characters of a line that says something. */
const SHORTEST_LINE = 10;

function bare(text: string): string {
  return text.replace(/\\+[nrt]|[\s\\"'`]/g, "");
}

/** The tools by the names that models call them by. */
class Known {
  readonly #tools = new Map<string, ToolDefinition>();

  constructor(tools: readonly ToolDefinition[]) {
    for (const tool of tools) {
      for (const name of [tool.name, ...tool.aliases ?? []]) this.#tools.set(name, tool);
    }
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }

  /** The call, if it names a tool, only parameters that it has, and all that it requires. */
  call(name: string, args: unknown): WrittenCall | undefined {
    const tool = this.#tools.get(name);
    if (tool === undefined || typeof args !== "object" || args === null || Array.isArray(args)) {
      return undefined;
    }
    const { parameters: { properties, required = [], additionalProperties }, param_aliases = {} } =
      tool;
    const given = Object.keys(args).map((key) =>
      Object.hasOwn(param_aliases, key) ? param_aliases[key]! : key
    );
    const implied = tool.alias_args?.[name] ?? {};
    const known = given.every((key) => Object.hasOwn(properties, key) || additionalProperties);
    const whole = required.every((key) =>
      key === CONFIG_PARAMETER || given.includes(key) || Object.hasOwn(implied, key)
    );
    return known && whole ? { name, arguments: JSON.stringify(args) } : undefined;
  }
}

/** Calls of one reply; a model that repeats itself writes more. */
const MOST_CALLS = 50;

/** Reads a call at the beginning of a text. */
type Reader = (text: string, known: Known) => { calls: WrittenCall[]; length: number } | undefined;

/** The calls of a text that consists of nothing but calls and markers. */
function readCalls(text: string, known: Known): WrittenCall[] | undefined {
  const calls: WrittenCall[] = [];
  for (let rest = text.trim(); rest !== "";) {
    const marker = NOISE.exec(rest)?.[0] ?? "";
    if (marker !== "") {
      rest = rest.slice(marker.length).trimStart();
      continue;
    }
    const read = READERS.values().map((reader) => reader(rest, known)).find((found) => found);
    if (read === undefined || read.length === 0 || calls.length >= MOST_CALLS) return undefined;
    calls.push(...read.calls);
    rest = rest.slice(read.length).trimStart();
  }
  return calls;
}

/** Markers around calls, which say nothing. */
const NOISE = RegExp(
  String.raw`^(?:${
    [
      String
        .raw`<\|?\/?(?:\w+:)?tool_?(?:calls?|code|use)(?:_start|_begin|_end|s?_section_(?:begin|end))?\|?>`,
      String.raw`<\|?\/?(?:\w+:)?(?:function_?calls?|(?:start|end)_function_call)\|?>`,
      String.raw`<\/?tools>|<\/function>|\[\/?TOOL_?CALLS?\]|<\|python_tag\|>`,
      String
        .raw`<\/?[｜|]DSML[｜|](?:function|tool)_calls>|<[｜|]tool[▁_]calls?[▁_](?:begin|end)[｜|]>`,
      String
        .raw`<\|tool_calls?_section_(?:begin|end)\|>|<\|(?:(?:START|END)_ACTION|action_(?:start|end)|plugin|call)\|>`,
      String.raw`functools(?=\s*\[)|tool_calls:?(?=\s*\[)|>>>(?=[\w.-]+\n)|;(?=\s*\{)`,
      String
        .raw`(?:<\|start\|>)?(?:assistant)?(?:<\|channel\|>)?(?:commentary|analysis)?[ \t]*to=(?=[\w.-]+)`,
      String.raw`function(?=<[｜|]tool[▁_]sep)|<[｜|]tool[▁_]sep[｜|]>|Observation:\s*$`,
    ].join("|")
  })`,
  "iu",
);

const NAME = String.raw`(?:functions\.|default_api\.|tools\.)?([A-Za-z_][\w.-]*?)`;
const OPEN = RegExp(
  String
    .raw`^<(?:[｜|]?\w+[｜|:])?(?:function|invoke|tool|tool_call)(?:=|\s+name=)["']?${NAME}["']?>\s*`,
);
const PARAMETER = RegExp(
  String
    .raw`^<((?:[｜|]?\w+[｜|:])?param(?:eter)?)(?:=|\s+name=)["']?([\w.-]+)["']?(?:\s+\w+="[^"]*")*>\n?([\s\S]*?)\n?<\/\1>(?=\s*(?:$|<))\s*`,
);
const CLOSE = /^<\/(?:[｜|]?\w+[｜|:])?(?:function|invoke|tool|tool_call)>/;
const SEPARATORS = RegExp(
  String
    .raw`^(?::\d+)?(?:\s|\[CALL_ID\]\w+|\[ARGS\]|<[｜|]tool[▁_]sep[｜|]>|<\|tool_call_argument_begin\|>|` +
    String
      .raw`<\|channel\|>commentary|<\|constrain\|>|(?:json|code)(?=[\s<{])|<\|message\|>|\x60\x60\x60(?:json)?)*`,
);

const READERS: Reader[] = [
  // <function=name>, <invoke name="name">, with parameters as elements or JSON
  (text, known) => {
    const [head = "", name = ""] = OPEN.exec(text) ?? [];
    if (head === "") return undefined;
    const args: [string, unknown][] = [];
    let at = head.length;
    for (let found; (found = PARAMETER.exec(text.slice(at))); at += found[0].length) {
      args.push([found[2]!, found[3]!]);
    }
    const json = args.length === 0 ? jsonAt(text.slice(at)) : undefined;
    if (json !== undefined) at += json.length;
    const close = CLOSE.exec(text.slice(at).trimStart())?.[0];
    if (close === undefined && json === undefined && text.slice(at) !== "") return undefined;
    if (close !== undefined) at = text.indexOf(close, at) + close.length;
    return made(known.call(name, json?.value ?? unique(args)), at);
  },
  // <name><parameter>value</parameter></name>
  (text, known) => {
    const [, name = ""] = /^<([A-Za-z_][\w.-]*)>/.exec(text) ?? [];
    const end = text.indexOf(`</${name}>`);
    if (!known.has(name) || end < 0) return undefined;
    return made(
      known.call(name, elements(text.slice(name.length + 2, end))),
      end + name.length + 3,
    );
  },
  // <name>name</name><arguments>{}</arguments>
  (text, known) => {
    const [head = "", , name = ""] = RegExp(
      String.raw`^<((?:tool_)?name)>\s*${NAME}\s*<\/\1>\s*<(?:arguments|parameters|input)>\s*`,
    ).exec(text) ?? [];
    const json = head === "" ? undefined : jsonAt(text.slice(head.length));
    if (json === undefined) return undefined;
    const at = head.length + json.length;
    const close = /^\s*<\/(?:arguments|parameters|input)>/.exec(text.slice(at))?.[0];
    return close === undefined ? undefined : made(known.call(name, json.value), at + close.length);
  },
  // name <arg_key>key</arg_key><arg_value>value</arg_value>
  (text, known) => {
    const [whole = "", name = "", pairs = ""] = RegExp(
      String
        .raw`^${NAME}\s*((?:<arg_key>[^<]*<\/arg_key>\s*<arg_value>[\s\S]*?<\/arg_value>\s*)+)`,
    ).exec(text) ?? [];
    const args = pairs.matchAll(
      /<arg_key>([^<]*)<\/arg_key>\s*<arg_value>\n?([\s\S]*?)\n?<\/arg_value>/g,
    );
    return whole === "" ? undefined : made(
      known.call(name, unique(Array.from(args, ([, key, value]) => [key!.trim(), value]))),
      whole.length,
    );
  },
  // Action: name, Action Input: {}
  (text, known) => {
    const [head = "", name = ""] = RegExp(
      String
        .raw`^(?:Action|Tool|Function):\s*${NAME}[ \t]*\n\s*(?:Action Input|Input|Arguments|Args|Parameters):\s*`,
    ).exec(text) ?? [];
    const json = head === "" ? undefined : jsonAt(text.slice(head.length));
    return json && made(known.call(name, json.value), head.length + json.length);
  },
  // call:name{key:<escape>value<escape>}
  (text, known) => {
    const [whole = "", name = "", pairs = "", mark = ""] = RegExp(
      String.raw`^call:${NAME}\{((?:\w+:(<escape>|<\|"\|>)(?:(?!\3)[\s\S])*\3,?)*)\}`,
    ).exec(text) ?? [];
    const args = mark === "" ? [] : pairs.split(RegExp(String.raw`${RegExp.escape(mark)}(?:,|$)`))
      .slice(0, -1).map((pair) => pair.split(`:${mark}`) as [string, string]);
    return whole === "" ? undefined : made(known.call(name, unique(args)), whole.length);
  },
  // JSON
  (text, known) => {
    const json = jsonAt(text);
    const found = json && jsonObjectCalls(json.value);
    const calls = found?.map(({ name, args }) => known.call(name, parsed(args)));
    if (json === undefined || calls === undefined || calls.length === 0) return undefined;
    return calls.includes(undefined)
      ? undefined
      : { calls: calls as WrittenCall[], length: json.length };
  },
  // name {}, name[ARGS]{}, functions.name:0 {}
  (text, known) => {
    const [head = "", name = ""] = RegExp(String.raw`^(?:call:)?${NAME}(?![\w.-])`).exec(text) ??
      [];
    if (!known.has(name)) return undefined;
    const separators = SEPARATORS.exec(text.slice(head.length))![0];
    let at = head.length + separators.length;
    const json = jsonAt(text.slice(at));
    if (json === undefined) return undefined;
    at += json.length;
    if (separators.includes("```")) at += /^(?:\s*```)?/.exec(text.slice(at))![0].length;
    return made(known.call(name, json.value), at);
  },
  // name(key=value), [name(key=value), name(key=value)]
  (text, known) => {
    const list = /^\[\s*(?=[A-Za-z_])/.exec(text)?.[0] ?? "";
    const calls: WrittenCall[] = [];
    let at = list.length;
    do {
      const read = functionCall(text.slice(at), known);
      if (read === undefined) return undefined;
      calls.push(read.call);
      at += read.length;
      const next = list === "" ? "" : /^\s*,\s*/.exec(text.slice(at))?.[0] ?? "";
      at += next.length;
      if (next === "") break;
    } while (at < text.length);
    const end = list === "" ? "" : /^\s*\]/.exec(text.slice(at))?.[0];
    return end === undefined ? undefined : { calls, length: at + end.length };
  },
];

function made(call: WrittenCall | undefined, length: number) {
  return call === undefined ? undefined : { calls: [call], length };
}

/** The arguments of pairs; undefined when a name is there twice. */
function unique(pairs: [string, unknown][]): Record<string, unknown> | undefined {
  const args = Object.fromEntries(pairs);
  return Object.keys(args).length === pairs.length ? args : undefined;
}

function elements(text: string): Record<string, unknown> | undefined {
  const pairs: [string, unknown][] = [];
  let rest = text.trim();
  for (let found; (found = /^<([\w.-]+)>\n?([\s\S]*?)\n?<\/\1>\s*/.exec(rest));) {
    pairs.push([found[1]!, found[2]!]);
    rest = rest.slice(found[0].length);
  }
  return rest === "" ? unique(pairs) : undefined;
}

/** Arguments that are JSON in a string. */
function parsed(args: unknown): unknown {
  if (typeof args !== "string") return args;
  const json = jsonAt(args.trim());
  return json?.length === args.trim().length ? json.value : undefined;
}

/** A call with arguments by name, or with one object of them. */
function functionCall(
  text: string,
  known: Known,
): { call: WrittenCall; length: number } | undefined {
  const [head = "", print, name = ""] = RegExp(String.raw`^(print\()?${NAME}(?:\.call)?\(\s*`)
    .exec(text) ?? [];
  if (!known.has(name)) return undefined;
  let at = head.length;
  let args: unknown;
  const pairs: [string, unknown][] = [];
  const json = jsonAt(text.slice(at));
  if (json !== undefined) {
    args = json.value;
    at += json.length;
  } else {
    for (let key; (key = /^\s*(\w+)\s*=\s*/.exec(text.slice(at)));) {
      const value = valueAt(text.slice(at + key[0].length));
      if (value === undefined) return undefined;
      pairs.push([key[1]!, value.value]);
      at += key[0].length + value.length;
      const comma = /^\s*,\s*/.exec(text.slice(at))?.[0];
      if (comma === undefined) break;
      at += comma.length;
    }
    args = unique(pairs);
  }
  const end = RegExp(String.raw`^\s*\)${print === undefined ? "" : String.raw`\s*\)`}`)
    .exec(text.slice(at))?.[0];
  const call = end === undefined ? undefined : known.call(name, args);
  return call && { call, length: at + end!.length };
}

interface Value {
  value: unknown;
  length: number;
}

const WORDS = new Map([["true", true], ["false", false], ["none", null], ["null", null]]);

/** A value as Python and JavaScript write it. */
function valueAt(text: string): Value | undefined {
  const word = /^(?:true|false|none|null)\b/i.exec(text)?.[0];
  if (word !== undefined) return { value: WORDS.get(word.toLowerCase()), length: word.length };
  const number = /^-?\d+(?:\.\d+)?(?![\w.])/.exec(text)?.[0];
  if (number !== undefined) return { value: Number(number), length: number.length };
  const [long, , inner = ""] = /^("""|''')([\s\S]*?)\1/.exec(text) ?? [];
  if (long !== undefined) return { value: inner, length: long.length };
  const [string, mark = "", body = ""] = /^(["'])((?:(?!\1)[^\\\n]|\\.)*)\1/.exec(text) ?? [];
  if (string === undefined) return jsonAt(text);
  const double = mark === '"' ? body : body.replaceAll("\\'", "'").replaceAll('"', '\\"');
  return withValue(`"${double}"`, string.length);
}

/**
 * The JSON object or array that a text begins with. One bracket may be missing at its end, or be one too many; commas
 * may stand before brackets; quotation marks may be others, or be missing around names.
 */
function jsonAt(text: string): Value | undefined {
  if (!/^[{[]/.test(text)) return undefined;
  const quote = /^[^"]*'/.test(text) ? "'" : /^[^"']*[“”]/.test(text) ? "”" : '"';
  const open: string[] = [];
  let inside = false;
  let end = 0;
  for (; end < text.length; end++) {
    const char = text[end]!;
    const marks = quote === "”" ? "“”" : quote;
    if (inside && char === "\\") end++;
    else if (marks.includes(char)) inside = !inside;
    else if (inside) continue;
    else if (char === "{" || char === "[") open.push(char === "{" ? "}" : "]");
    else if (char === "}" || char === "]") {
      if (open.pop() !== char) return undefined;
      if (open.length === 0) break;
    } else if (char === "<" || char === "`") break;
  }
  if (inside || open.length > 1) return undefined;
  const missing = open.join("");
  const length = missing === "" ? end + 1 : end;
  const body = text.slice(0, length) + missing;
  const surplus = missing === ""
    ? /^\s*[}\]](?=\s*(?:$|<))/.exec(text.slice(length))?.[0] ?? ""
    : "";
  const straight = quote === '"'
    ? body
    : body.includes('"')
    ? undefined
    : body.replace(/['“”]/g, '"');
  if (straight === undefined) return undefined;
  const STRING = String.raw`("(?:[^"\\]|\\.)*")`;
  const mended = straight
    .replace(RegExp(`${STRING}|,(?=\\s*[}\\]])`, "g"), (_, string) => string ?? "")
    .replace(
      RegExp(`${STRING}|(?<=[{,]\\s*)([A-Za-z_]\\w*)(?=\\s*:)`, "g"),
      (_, string, key) => string ?? `"${key}"`,
    );
  return withValue(mended, length + surplus.length);
}

function withValue(json: string, length: number): Value | undefined {
  try {
    return { value: JSON.parse(json), length };
  } catch {
    return undefined;
  }
}
