import type { ToolDefinition } from "../plugins/api.ts";

/**
 * The tool that an answer calls in its text: the model wrote a call in its own syntax, and the backend did not
 * recognise it. Only a call that is the whole answer or its end counts, without a marker only one of the tools. An
 * answer that explains or quotes calls does not count.
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
  return marked(text, named) ?? elements(text, named) ??
    (json && named.length > 0 ? plain(text, named) : undefined) ?? unknownCall(text);
}

/** A call whose name is that of no tool, after a marker: a model that has seen other tools, for example. */
function unknownCall(text: string): string | undefined {
  for (const { index, 0: opener } of text.matchAll(OPENER)) {
    const after = text.slice(index + opener.length);
    const near = after.slice(0, NAME_WITHIN);
    const name = [near, opener + near].flatMap((each) => [...each.matchAll(CALLEE)])[0]?.[1];
    const lead = leadOf(text.slice(0, index));
    if (name === undefined || lead === undefined || explains(lead, true)) return undefined;
    return /[}\])>`]$/.test(text) && endsWithCall(after) ? name : undefined;
  }
  return undefined;
}

/**
 * The tool of a call that an answer ends with and that the output limit has cut off.
 *
 * @param names of the tools
 */
export function cutCall(answer: string, names: readonly string[]): string | undefined {
  const text = answer.trim();
  const starts = [...text.matchAll(OPENER)].slice(-MOST_MARKERS)
    .map(({ index, 0: opener }) => [index, opener.length] as const);
  if (/^(?:```\w*\s*)?[[{]/.test(text)) starts.unshift([0, 0]);
  for (const [index, length] of starts) {
    const lead = leadOf(text.slice(0, index));
    if (lead === undefined || explains(lead)) continue;
    const near = text.slice(index, index + length + NAME_WITHIN);
    const callees = [near, near.slice(length)].flatMap((each) => [...each.matchAll(CALLEE)]);
    const found = callees.map(([, name]) => name!).find((name) => names.includes(name));
    if (found !== undefined) return found;
  }
  return undefined;
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

/** An answer without the tokens that end a message. */
export function withoutEnd(answer: string): string {
  let text = answer.trimEnd();
  for (let token; (token = END_TOKENS.find((each) => text.endsWith(each))) !== undefined;) {
    text = text.slice(0, -token.length).trimEnd();
  }
  return text;
}

/** The beginnings of calls that models are trained to write. */
export const OPENERS = [
  // Qwen, Hermes, GLM, Granite, LFM, Gemma
  String
    .raw`<\|?\/?(?:\w+:)?tool_?(?:calls?|code|use)(?:_start|_begin|s_section_begin)?(?:\s+\w+=[^>\n]*)?\|?>`,
  String.raw`<\|tool_calls?_section_begin\|>`, // Kimi
  String.raw`<\|?\/?(?:\w+:)?(?:function_?calls?|start_function_call)\|?>`,
  String.raw`<function(?:=|\s+name=)`, // Llama, Qwen Coder
  String.raw`<(?:\w+:)?(?:invoke|tool)\s+name=`, // Claude, MiniMax
  String.raw`<(?:use|execute|call)_(?:mcp_)?tool>`,
  String.raw`<(?:tool|function|action)(?:_name)?>(?=\s*[\w.-]+\s*<)`,
  String.raw`\[\/?TOOL_?CALLS?\]`, // Mistral
  String.raw`<\|python_tag\|>`, // Llama
  String.raw`<[｜|]tool[▁_]calls?[▁_]begin[｜|]>|<｜DSML｜`, // DeepSeek
  String.raw`<\|(?:START_ACTION|action_start)\|>`, // Command, InternLM
  String
    .raw`(?:<\|start\|>)?(?:assistant)?(?:<\|channel\|>)?(?:commentary|analysis)?[ \t]*to=(?:functions\.)?(?=[\w.-]+\s*(?:<\||json|code|\{))`, // gpt-oss
  String.raw`(?:functools|tool_calls?:?)\s*\[`, // Phi, Firefunction
  String
    .raw`(?:Action|Tool|Function):\s*(?=[\w.-]+[ \t]*\n\s*(?:Action Input|Input|Arguments|Args|Parameters):)`, // ReAct
  String.raw`>>>(?=[\w.-]+\n)`, // Functionary
  String.raw`functions\.(?=[\w-]+(?:[({]|:\d+))`,
];
/** One of them on a line of its own, or after a sentence. */
const OPENER = RegExp(String.raw`(?:^[ \t]*|(?<=[.!?:…] ))(?:${OPENERS.join("|")})`, "gimu");

/** Characters after the beginning of a call in which its name stands. */
const NAME_WITHIN = 300;
/** What precedes the name of a tool in them: nothing, a key, an attribute, a separator. */
const CALLEE =
  /(?:^[\s[({]*|["'](?:name|tool|tool_name|function|action|recipient_name)["']\s*:\s*["']|\b(?:name|function)\s*=\s*["']?|<(?:tool_)?name>\s*|\bcall:|[｜|]>\s*)(?:functions\.|default_api\.)?([\w.-]+)/g;

/** Markers that are looked at, from the end of the answer. */
const MOST_MARKERS = 20;

/** A call that begins with one of the markers. */
function marked(text: string, named: Callable[]): string | undefined {
  for (const { index, 0: opener } of [...text.matchAll(OPENER)].slice(-MOST_MARKERS)) {
    const after = text.slice(index + opener.length);
    const near = after.slice(0, NAME_WITHIN);
    const callees = [near, opener + near].flatMap((each) => [...each.matchAll(CALLEE)])
      .map(([, callee]) => callee!);
    const found = named.find(({ name }) =>
      callees.some((callee) => callee === name || callee.startsWith(`${name}.`))
    );
    if (found === undefined) continue;
    const lead = leadOf(text.slice(0, index));
    if (lead === undefined || explains(lead)) continue;
    if (endsWithCall(after)) return found.name;
    const before = text.slice(0, index);
    const prose = before.length <= MOST_PROSE && !before.includes("```");
    if (prose && INVENTED.test(after) && !explains(before.trim(), true)) {
      return found.name;
    }
  }
  return /^(?:Thought|Action):/.test(text) && /^Observation:/m.test(text)
    ? named.find(({ name }) => RegExp(`^Action:\\s*${RegExp.escape(name)}[ \\t]*$`, "m").test(text))
      ?.name
    : undefined;
}

/** The result of a call, which a model goes on with when nothing has stopped it after the call. */
const INVENTED =
  /^\s*(?:<\|?\/?tool_?(?:response|result|output)s?\b|<function_results>|<\|observation\|>|\[TOOL_RESULTS\])/im;

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
const MOST_PROSE = 1200;

/** A call without a marker: JSON, or a function call with named arguments. */
function plain(text: string, named: Callable[]): string | undefined {
  const body = withoutRemark(text);
  const fence = fenceAt(body);
  const starts = [
    ...fence === undefined ? [] : [fence],
    body.search(/^[ \t]*[{[]/m), // JSON
    body.lastIndexOf("\n\n") + 2, // the last paragraph
    0,
  ];
  for (const start of starts) {
    if (start < 0 || start > MOST_PROSE) continue;
    const lead = leadOf(body.slice(0, start));
    if (lead === undefined || explains(lead) || lead.search(OPENER) >= 0) continue;
    const call = body.slice(start).trim().replace(/^```.*\n|\n[ \t]*```$/g, "").trim();
    const name = jsonCall(call, named) ?? functionCall(call, named);
    if (name !== undefined) return name;
  }
  return undefined;
}

/** A text without a short remark after its last bracket or code block. */
function withoutRemark(text: string): string {
  const end = Math.max(text.lastIndexOf("\n```") + 3, text.lastIndexOf("}"), text.lastIndexOf(")"));
  const remark = text.slice(end + 1);
  return /^[ \t]*\n\s*(?!\p{Ll})\S/u.test(remark) && remark.trim().length <= MOST_AFTER &&
      !remark.includes("`")
    ? text.slice(0, end + 1)
    : text;
}

/** Where the code block begins that a text ends with. */
function fenceAt(text: string): number | undefined {
  if (!text.endsWith("```")) return undefined;
  const start = text.lastIndexOf("```", text.length - 4);
  return start < 0 ? undefined : text.lastIndexOf("\n", start) + 1;
}

/** The keys of an object that is a call, and of those the ones for the name and the arguments. */
const NAMES = [
  ...[
    "name",
    "tool",
    "tool_name",
    "function",
    "function_name",
    "action",
    "recipient_name",
    "method",
  ],
];
const ARGUMENTS = [
  ...["arguments", "parameters", "args", "input", "tool_input", "action_input", "kwargs", "params"],
  ...["tool_arguments", "tool_args", "function_args", "tool_parameters"],
];
const OTHERS = [
  ...["id", "type", "index", "call_id", "tool_call_id", "thought", "jsonrpc", "role", "content"],
];
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
  const python = text.includes('"') ? text : text.replaceAll("'", '"');
  for (
    const parts of [
      [text],
      [python],
      [`${text}}`], // some models leave out the last bracket
      text.split(/(?<=\})(?:\s*;)?\s*(?=\{)/),
    ]
  ) {
    try {
      return parts.map((part) => JSON.parse(part));
    } catch {
      // a text of another form
    }
  }
  return [];
}

/** How deep calls are wrapped at most. */
const MOST_WRAPPERS = 4;

function called(value: unknown, named: Callable[]): string | undefined {
  const [first] = jsonObjectCalls(value) ?? [];
  const tool = named.find(({ name }) => name === first?.name);
  return tool !== undefined && takes(tool, first!.args) ? tool.name : undefined;
}

/** The calls that a JSON value is; undefined for any other value. */
export function jsonObjectCalls(
  value: unknown,
  depth = 0,
): { name: string; args: unknown }[] | undefined {
  if (typeof value !== "object" || value === null || depth > MOST_WRAPPERS) return undefined;
  if (Array.isArray(value)) {
    const calls = value.map((each) => jsonObjectCalls(each, depth + 1));
    return calls.includes(undefined) ? undefined : calls.flatMap((each) => each!);
  }
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object);
  const wrapper = WRAPPERS.find((key) => typeof object[key] === "object");
  if (wrapper !== undefined && keys.every((key) => [wrapper, ...OTHERS].includes(key))) {
    return jsonObjectCalls(object[wrapper], depth + 1);
  }
  if (!keys.every((key) => [...NAMES, ...ARGUMENTS, ...OTHERS].includes(key))) return undefined;
  const given = ARGUMENTS.filter((key) => key in object);
  const name = NAMES.map((key) => object[key]).find((each) => typeof each === "string");
  if (given.length !== 1 || typeof name !== "string") return undefined;
  return [{ name: name.replace(/^functions\./, ""), args: object[given[0]!] }];
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

/** What some models write before the name of the tool. */
const ANNOUNCED =
  /^[*_]*(?:tool[ _]call|function[ _]call|(?:call(?:ing)?|us(?:e|ing)|run(?:ning)?|execut(?:e|ing))(?: the)?(?: tool| function)?|action|tool|function)[*_]*(?::[*_]*\s*|\s+)/i;

/** A call in the syntax of Python or JavaScript, with arguments by name, or a name and JSON; nothing else. */
function functionCall(text: string, named: Callable[]): string | undefined {
  const [, written = "", rest = ""] =
    /^\[?\s*(?:print\()?(?:await )?(?:\w+ = )?(?:functions\.|default_api\.|tools\.|@)?[`*]*([\w.-]+?)[`*]*(?:\.call)?(?:\s+with(?: the)?(?: following)?(?: arguments| parameters)?)?:?\s*(?=[({])\(?([\s\S]*)[)}]\s*[\];)]*$/
      .exec(text.replace(ANNOUNCED, "")) ?? [];
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

/** Phrases of a text that shows a call instead of making it. */
const SHOWS =
  /\b(?:for example|an example|examples?:|e\.g\.|for instance|looks? like|like (?:this|so)|as follows|(?:could|would|should|might|can) (?:look|be|write|call|emit|send|use)|instead of|syntax|markers? (?:is|of)|documented)\b/i;
/** Words that do so where the writer does not announce an action. */
const REPORTS =
  /\b(?:examples?|formats?|formatted|such as|schemas?|documentation|docs|snippets?|templates?|samples?|fixtures?|transcripts?|payloads?|quoted?|shape|form of|definition|would|wrote|written|writes?|emit(?:s|ted)|produce[sd]|print(?:s|ed)|logged|logs|records?|recorded|return(?:s|ed)|received|sends?|sent|stored?|stores|means|represent(?:s|ed)|parse[sd]|serialised|serialized|encoded|could|should be|asserts?|expect(?:s|ed)|contains|line \d+|answered|replied|saw|see|shows|showed)\b/i;
const ANNOUNCES =
  /\b(?:let me|let's|let us|I'll|I will|I'm going|I am going|I need to|I want to|I would like to|I'd like to|I should|I must|I have to|we need to|now I|next|first|reading|checking|looking|running|calling|listing|opening|searching|using|executing|fetching)\b/i;

/** Words that a quotation follows, if its last line announces nothing. */
const QUOTES =
  /\b(?:logs?|files?|issues?|readme|documents?|pages?|messages?|tests?|prompts?|lines?|texts?|strings?|outputs?|results?|models?|users?)\b.{0,40}\b(?:has|have|had|reads?|is|are|was|were|says?|said|ends?|begins?|starts?|sees?)\b|:\s*$/i;

/** @param strict whether a text counts, too, that announces an action, or may introduce a quotation */
export function explains(lead: string, strict = false): boolean {
  const line = lead.split("\n").at(-1) ?? "";
  return SHOWS.test(lead) || (REPORTS.test(lead) && (strict || !ANNOUNCES.test(lead))) ||
    (strict && QUOTES.test(lead) && !ANNOUNCES.test(line)) ||
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
