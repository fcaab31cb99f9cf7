import type { ToolDefinition } from "../plugins/api.ts";

/**
 * The tool that an answer calls in its text: the model wrote a call in its own syntax, and the backend did not
 * recognise it. Only a call of one of the tools counts, and only when it is the whole answer or its end. An answer
 * that explains or quotes calls does not count.
 *
 * @param options.json whether plain JSON and plain function calls count too. False where an answer may be JSON.
 * @returns the name as it was written; undefined for any other answer
 */
export function textCall(
  answer: string,
  tools: readonly ToolDefinition[],
  { json = true }: { json?: boolean } = {},
): string | undefined {
  const text = withoutEnd(answer).trim();
  const named = callable(tools).filter(({ name }) => text.includes(name));
  if (named.length === 0) return undefined;
  return marked(text, named) ?? elements(text, named) ?? (json ? plain(text, named) : undefined);
}

/** A name that a model may call, and the parameters of its tool. */
interface Callable {
  name: string;
  parameters: Set<string>;
}

function callable(tools: readonly ToolDefinition[]): Callable[] {
  return tools.flatMap(({ name, aliases = [], parameters, param_aliases = {} }) => {
    const names = new Set([...Object.keys(parameters.properties), ...Object.keys(param_aliases)]);
    return [name, ...aliases].map((each) => ({ name: each, parameters: names }));
  });
}

/** Tokens that end a message in the templates of models. */
const END_TOKENS = [
  ...[
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|endoftext|>",
    "<|return|>",
    "<|call|>",
  ],
  "</s>",
];

function withoutEnd(answer: string): string {
  let text = answer.trimEnd();
  for (let token; (token = END_TOKENS.find((each) => text.endsWith(each))) !== undefined;) {
    text = text.slice(0, -token.length).trimEnd();
  }
  return text;
}

/** The beginnings of calls that models are trained to write, on a line of their own. */
const OPENERS = [
  String.raw`<\|?\/?(?:\w+:)?tool_?(?:calls?|code|use)(?:_start|_begin|s_section_begin)?\|?>`, // Qwen, Hermes, GLM, Granite, LFM
  String.raw`<\|tool_calls?_section_begin\|>`, // Kimi
  String.raw`<\/?(?:antml:)?(?:function_?calls?|start_function_call)>`,
  String.raw`<function(?:=|\s+name=)`, // Llama, Qwen Coder
  String.raw`<(?:\w+:)?(?:invoke|tool)\s+name=`,
  String.raw`\[TOOL_?CALLS?\]`, // Mistral
  String.raw`<\|python_tag\|>`, // Llama
  String.raw`<｜(?:tool▁|DSML｜)`, // DeepSeek
  String.raw`<\|(?:START_ACTION|action_start)\|>`, // Command, InternLM
  String.raw`(?:<\|start\|>assistant)?(?:<\|channel\|>(?:commentary|analysis)\s+)?to=functions\.`, // gpt-oss
  String.raw`(?:functools|tool_calls?:?)\s*\[`, // Phi, Firefunction
  String.raw`(?:Action|Tool|Function):\s*(?=[\w.-]+\s*\n\s*(?:Action Input|Input|Arguments|Args):)`, // ReAct
  String.raw`>>>(?=[\w.-]+\n)`, // Functionary
  String.raw`functions\.(?=[\w-]+(?:[({]|:\d+))`,
];
const OPENER = RegExp(String.raw`^[ \t]*(?:${OPENERS.join("|")})`, "gimu");

/** Characters after the beginning of a call in which its name stands. */
const NAME_WITHIN = 300;

/** Markers that are looked at, from the end of the answer. */
const MOST_MARKERS = 20;

/** A call that begins with one of the markers. */
function marked(text: string, named: Callable[]): string | undefined {
  for (const { index, 0: opener } of [...text.matchAll(OPENER)].slice(-MOST_MARKERS)) {
    const after = text.slice(index + opener.length);
    const found = named.find(({ name }) =>
      RegExp(String.raw`(?<![\w-])${RegExp.escape(name)}(?![\w-])`).test(
        after.slice(0, NAME_WITHIN),
      )
    );
    if (found === undefined) continue;
    const lead = leadOf(text.slice(0, index));
    if (lead !== undefined && !explains(lead) && endsWithCall(after)) return found.name;
  }
  return undefined;
}

/** A call as an element named after the tool, with its parameters as elements. */
function elements(text: string, named: Callable[]): string | undefined {
  for (const { name, parameters } of named) {
    const start = text.search(RegExp(String.raw`^[ \t]*<${RegExp.escape(name)}>\s*<(\w+)>`, "m"));
    if (start < 0) continue;
    const after = text.slice(start);
    const inner = /^\s*<[^>]*>\s*<(\w+)>/.exec(after)?.[1] ?? "";
    const lead = leadOf(text.slice(0, start));
    const whole = after.endsWith(`</${name}>`) || after.endsWith(`</${name}>\n\`\`\``);
    if (whole && parameters.has(inner) && lead !== undefined && !explains(lead)) return name;
  }
  return undefined;
}

/** Characters of prose before a call in plain JSON or in the syntax of a programming language. */
const MOST_PROSE = 600;

/** A call without a marker: JSON, or a function call with named arguments. */
function plain(text: string, named: Callable[]): string | undefined {
  const fence = /^[ \t]*```[ \t]*([\w-]*)[ \t]*\n([\s\S]*?)\n[ \t]*```$/m.exec(lastFence(text));
  const bare = /^[ \t]*[{[]/m.exec(text);
  const candidates = [
    ...fence === null
      ? []
      : [{ before: text.length - fence[0].length, body: fence[2]!, sure: true }],
    ...bare === null ? [] : [{ before: bare.index, body: text.slice(bare.index), sure: true }],
    { before: 0, body: text, sure: false },
  ];
  for (const { before, body } of candidates) {
    const lead = leadOf(text.slice(0, before));
    if (lead === undefined || before > MOST_PROSE || explains(lead)) continue;
    const name = jsonCall(body.trim(), named) ?? functionCall(body.trim(), named);
    if (name !== undefined) return name;
  }
  return undefined;
}

/** The text from its last code block on; empty when it does not end with one. */
function lastFence(text: string): string {
  if (!text.endsWith("```")) return "";
  const start = text.lastIndexOf("```", text.length - 4);
  return start < 0 ? "" : text.slice(text.lastIndexOf("\n", start) + 1);
}

/** The keys of an object that is a call, and of those the ones for the name and the arguments. */
const NAMES = [
  "name",
  "tool",
  "tool_name",
  "function",
  "function_name",
  "action",
  "recipient_name",
];
const ARGUMENTS = [
  ...["arguments", "parameters", "args", "input", "tool_input", "action_input", "kwargs", "params"],
];
const OTHERS = ["id", "type", "index", "call_id", "tool_call_id", "thought"];
/** Keys that wrap calls. */
const WRAPPERS = ["tool_calls", "function_call", "function", "tool_call", "tool_uses"];

function jsonCall(text: string, named: Callable[]): string | undefined {
  for (const value of jsonValues(text)) {
    const name = called(value, named);
    if (name !== undefined) return name;
  }
  return undefined;
}

/** The JSON values that a text consists of: one, or several objects in a row; none for another text. */
function jsonValues(text: string): unknown[] {
  if (!/^[{[]/.test(text)) return [];
  for (const parts of [[text], text.split(/(?<=\})(?:\s*;)?\s*(?=\{)/)]) {
    try {
      return parts.map((part) => JSON.parse(part));
    } catch {
      // a text of another form
    }
  }
  return [];
}

function called(value: unknown, named: Callable[]): string | undefined {
  if (Array.isArray(value)) return value.length === 0 ? undefined : called(value[0], named);
  if (typeof value !== "object" || value === null) return undefined;
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object);
  const wrapper = WRAPPERS.find((key) => typeof object[key] === "object");
  if (
    wrapper !== undefined &&
    keys.every((key) => [wrapper, ...OTHERS, "role", "content"].includes(key))
  ) {
    return called(object[wrapper], named);
  }
  if (!keys.every((key) => [...NAMES, ...ARGUMENTS, ...OTHERS].includes(key))) return undefined;
  const given = ARGUMENTS.filter((key) => key in object);
  const name = NAMES.map((key) => object[key]).find((each) => typeof each === "string");
  if (given.length !== 1 || typeof name !== "string") return undefined;
  const tool = named.find((each) => each.name === name.replace(/^functions\./, ""));
  return tool !== undefined && takes(tool, object[given[0]!]) ? tool.name : undefined;
}

/** Whether the arguments can be those of a tool: a schema of its parameters is not. */
function takes({ parameters }: Callable, given: unknown): boolean {
  let value = given;
  try {
    if (typeof given === "string") value = JSON.parse(given);
  } catch {
    return parameters.size > 0; // some models write a single argument as it is
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return keys.length === 0 || keys.some((key) => parameters.has(key));
}

/** Calls in the syntax of Python or JavaScript, with arguments by name, and nothing else. */
function functionCall(text: string, named: Callable[]): string | undefined {
  const [, written = "", rest = ""] =
    /^\[?\s*(?:print\()?(?:await )?(?:\w+ = )?(?:functions\.|default_api\.|tools\.)?([\w.-]+?)(?:\.call)?\(([\s\S]*)\)\s*[\];)]*$/
      .exec(text) ?? [];
  const tool = named.find(({ name }) => name === written);
  if (tool === undefined || /\n\s*\n/.test(rest)) return undefined;
  const [, key = ""] = /^\s*(?:\{\s*["']?)?(\w+)["']?\s*[=:]/.exec(rest) ?? [];
  return tool.parameters.has(key) ? tool.name : undefined;
}

/**
 * The last paragraph before a call. Undefined when the call stands inside a code block or a quotation that
 * begins with something else.
 */
function leadOf(before: string): string | undefined {
  const fences = before.match(/^[ \t]*```.*$/gm) ?? [];
  let prose = before.trimEnd();
  if (fences.length % 2 === 1) {
    const open = prose.lastIndexOf("```");
    if (/\n/.test(prose.slice(open).trimEnd())) return undefined;
    prose = prose.slice(0, open).trimEnd();
  }
  return prose.split(/\n\s*\n/).at(-1) ?? "";
}

/** Words of a text that shows a call instead of making it. */
const SHOWS =
  /\b(?:examples?|e\.g\.|for instance|formats?|formatted|syntax|looks? like|look as|would|such as|schemas?|documentation|documented|docs|snippets?|templates?|samples?|fixtures?|transcripts?|payloads?|instead of|quoted?|shape|form of|definition)\b/i;
/** Words that do so where the writer does not announce an action. */
const REPORTS =
  /\b(?:wrote|written|writes|emit(?:s|ted)|produce[sd]|print(?:s|ed)|logged|logs|recorded|records|return(?:s|ed)|received|sends?|sent|stored?|stores|means|represent(?:s|ed)|parse[sd]|serialised|serialized|encoded|could|should be|asserts?|expect(?:s|ed)|contains|line \d+|answered|replied|saw|see|shows|showed)\b/i;
const ANNOUNCES =
  /\b(?:let me|let's|let us|I'll|I will|I'm going|I am going|I need to|I should|I must|I have to|we need to|now I|next|first)\b/i;

function explains(lead: string): boolean {
  const line = lead.split("\n").at(-1) ?? "";
  return SHOWS.test(lead) || (REPORTS.test(lead) && !ANNOUNCES.test(lead)) ||
    /^\s*(?:>|[-*] `)/.test(line);
}

/** Characters that may follow a call, on a line of their own. */
const MOST_AFTER = 120;

function endsWithCall(text: string): boolean {
  const end = Math.max(...["}", ")", "]", ">", "```"].map((closer) => text.lastIndexOf(closer)));
  const after = text.slice(end < 0 ? 0 : end + (text.startsWith("```", end) ? 3 : 1));
  if (after === "") return true;
  // An argument that the model did not close, or a remark.
  const open = end < 0 || /<[^/>][^>]*>$/.test(text.slice(0, end + 1));
  return (open || /^[ \t]*\n/.test(after)) && after.trim().length <= MOST_AFTER;
}
