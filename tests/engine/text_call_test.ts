import assert from "node:assert/strict";
import { cutCall, textCall } from "../../src/engine/text_call.ts";
import type { ToolDefinition } from "../../src/plugins/api.ts";

const tool = (name: string, parameters: string[], more: Partial<ToolDefinition> = {}) => ({
  name,
  description: "",
  permission: "read",
  parameters: {
    type: "object" as const,
    properties: Object.fromEntries(parameters.map((each) => [each, { type: "string" }])),
  },
  handler: () => "",
  ...more,
});
const TOOLS: ToolDefinition[] = [
  tool("read_file", ["path", "offset"]),
  tool("run_command", ["command", "cwd"], { aliases: ["bash"], param_aliases: { cmd: "command" } }),
  tool("grep", ["pattern", "path"]),
  tool("list_dir", ["path"]),
  tool("ask", ["question"]),
  tool("git.status", []),
];

const J = '{"name": "read_file", "arguments": {"path": "a.ts"}}';
const P = '{"name": "read_file", "parameters": {"path": "a.ts"}}';

const CALLS: string[] = [
  // Hermes, Qwen 2.5, Qwen 3
  `<tool_call>\n${J}\n</tool_call>`,
  `<tool_call>${J}</tool_call>`,
  `<tool_call>\n${J}\n</tool_call>\n<tool_call>\n{"name": "grep", "arguments": {"pattern": "x"}}\n</tool_call>`,
  `<tool_call>\n${J}`,
  `I'll read the file first.\n\n<tool_call>\n${J}\n</tool_call>`,
  `Let me run the tests and see what the log contains.\n<tool_call>\n{"name": "run_command", "arguments": {"command": "npm test"}}\n</tool_call>`,
  `<tool_call>\n{"arguments": {"path": "a.ts"}, "name": "read_file"}\n</tool_call><|im_end|>`,
  `\n\n<tool_call>\n{"name": "bash", "arguments": {"cmd": "ls"}}\n</tool_call>`,
  `<tool_call>\n${J}\n</tool_call>\nI will wait for the result.`,
  "```xml\n<tool_call>\n" + J + "\n</tool_call>\n```",
  `<tools>\n<tool_call>${J}</tool_call>`,
  // Qwen Coder, Seed
  "<tool_call>\n<function=read_file>\n<parameter=path>\na.ts\n</parameter>\n</function>\n</tool_call>",
  "<function=read_file>\n<parameter=path>\na.ts\n</parameter>\n</function>",
  "<function=run_command>\n<parameter=command>\nls -la\n</parameter>",
  "Now I check the folder.\n<function=list_dir>\n<parameter=path>.</parameter>\n</function>\n</tool_call>",
  "<seed:tool_call>\n<function=read_file>\n<parameter=path>a.ts</parameter>\n</function>\n</seed:tool_call>",
  // Llama 3
  '<function=read_file>{"path": "a.ts"}</function>',
  '<function=read_file>{"path": "a.ts"}</function><|eot_id|>',
  P,
  `${P}<|eom_id|>`,
  `${P}; {"name": "grep", "parameters": {"pattern": "x"}}`,
  '{"type": "function", "name": "read_file", "parameters": {"path": "a.ts"}}',
  `<|python_tag|>${P}`,
  '<|python_tag|>read_file.call(path="a.ts")',
  '<function name="read_file">{"path": "a.ts"}</function>',
  // Llama 4, LFM, Olmo, Gemma
  '[read_file(path="a.ts"), grep(pattern="x")]',
  'read_file(path="a.ts")',
  '<|tool_call_start|>[read_file(path="a.ts")]<|tool_call_end|>',
  '<function_calls>\nread_file(path="a.ts")\n</function_calls>',
  '```tool_code\nread_file(path="a.ts")\n```',
  '```tool_code\nprint(default_api.read_file(path="a.ts"))\n```',
  "<start_function_call>call:read_file{path:<escape>a.ts<escape>}<end_function_call>",
  '```python\nread_file(path="a.ts")\n```',
  // Mistral
  `[TOOL_CALLS] [${J}]`,
  `[TOOL_CALLS][${J}]</s>`,
  '[TOOL_CALLS]read_file[ARGS]{"path": "a.ts"}',
  '[TOOL_CALLS]read_file{"path": "a.ts"}',
  '[TOOL_CALLS]read_file[CALL_ID]a1b2c3d4e[ARGS]{"path": "a.ts"}',
  // DeepSeek
  '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n{"path": "a.ts"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  '<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a.ts"}<｜tool▁call▁end｜>',
  '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read_file">\n<｜DSML｜parameter name="path" string="true">a.ts</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
  // Claude, MiniMax
  '<function_calls>\n<invoke name="read_file">\n<parameter name="path">a.ts</parameter>\n</invoke>\n</function_calls>',
  '<invoke name="read_file"><parameter name="path">a.ts</parameter></invoke>',
  '<minimax:tool_call>\n<invoke name="read_file">\n<parameter name="path">a.ts</parameter>\n</invoke>\n</minimax:tool_call>',
  `<tool_use>\n${J}\n</tool_use>`,
  // Kimi, gpt-oss
  '<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "a.ts"}<|tool_call_end|><|tool_calls_section_end|>',
  '<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "a.ts"}<|tool_call_end|>',
  '<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path": "a.ts"}<|call|>',
  'to=functions.read_file {"path": "a.ts"}',
  'functions.read_file({"path": "a.ts"})',
  'functions.read_file:0 {"path": "a.ts"}',
  // GLM, Granite, Phi, Nemotron, Command, InternLM, Functionary
  "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a.ts</arg_value>\n</tool_call>",
  `<|tool_call|>[${J}]`,
  `<|tool_call|>[${J}]<|/tool_call|>`,
  `functools[${J}]`,
  `<TOOLCALL>[${J}]</TOOLCALL>`,
  '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "read_file", "parameters": {"path": "a.ts"}}]<|END_ACTION|>',
  `<|action_start|><|plugin|>${P}<|action_end|>`,
  '>>>read_file\n{"path": "a.ts"}',
  // JSON
  J,
  `[${J}]`,
  "```json\n" + J + "\n```",
  "```\n" + J + "\n```",
  "I'll look at the file.\n\n```json\n" + J + "\n```",
  "To answer this I need to read the file:\n" + J,
  "Here is the function call:\n```json\n" + P + "\n```",
  '{"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{\\"path\\": \\"a.ts\\"}"}}]}',
  '{"function_call": {"name": "read_file", "arguments": "{\\"path\\": \\"a.ts\\"}"}}',
  '{"type": "function", "function": {"name": "read_file", "arguments": {"path": "a.ts"}}}',
  '{"tool": "read_file", "args": {"path": "a.ts"}}',
  '{"action": "read_file", "action_input": {"path": "a.ts"}}',
  '{"tool_name": "git.status", "parameters": {}}',
  '{"tool_uses": [{"recipient_name": "functions.read_file", "parameters": {"path": "a.ts"}}]}',
  `${J}\n{"name": "grep", "arguments": {"pattern": "x"}}`,
  "{'name': 'read_file', 'arguments': {'path': 'a.ts'}}",
  '{"name": "read_file", "parameters": {"path": "a.ts"}',
  '{"tool_name": "read_file", "tool_arguments": {"path": "a.ts"}}',
  '{"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.ts"}}',
  '{"jsonrpc": "2.0", "id": 1, "method": "read_file", "params": {"path": "a.ts"}}',
  `${J}\n</tool_call>`,
  `${J}\n\nI wait for the result.`,
  "```json\n" + J + "\n```\nPlease give me the result.",
  "Let me check the format of the file, and what the sample contains:\n\n```json\n" + J + "\n```",
  // Names, and what announces them
  'Tool call: read_file({"path": "a.ts"})',
  '**Tool call:** `read_file` {"path": "a.ts"}',
  'Calling read_file with {"path": "a.ts"}',
  'Action: read_file(path="a.ts")',
  'read_file {"path": "a.ts"}',
  'read_file\n{"path": "a.ts"}',
  'I will look at it.\n\nread_file(path="a.ts")',
  'call:read_file{"path": "a.ts"}',
  // Variants of markers
  '<tool_call name="read_file">{"path": "a.ts"}</tool_call>',
  '<tool name="read_file"><param name="path">a.ts</param></tool>',
  "<tool>read_file</tool>\n<path>a.ts</path>",
  '<tool_use>\n<name>read_file</name>\n<arguments>{"path": "a.ts"}</arguments>\n</tool_use>',
  `<functioncall> ${J}`,
  '<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>read_file\n```json\n{"path": "a.ts"}\n```<|tool_call_end|><|tool_calls_end|>',
  '<|tool_call>call:read_file{path:<|"|>a.ts<|"|>}<tool_call|>',
  'assistantcommentary to=functions.read_file json{"path": "a.ts"}',
  'to=read_file code {"path": "a.ts"}',
  `I'll read it. <tool_call>${J}</tool_call>`,
  `I would like to see an existing template first.\n<tool_call>\n${J}\n</tool_call>`,
  // ReAct, elements
  'Thought: I need the file.\nAction: read_file\nAction Input: {"path": "a.ts"}',
  'Action: read_file\nAction Input: {"path": "a.ts"}\nObservation:',
  "<read_file>\n<path>a.ts</path>\n</read_file>",
  "Let me look.\n\n<run_command>\n<command>ls</command>\n</run_command>",
];

/** What a model goes on with that nothing stops after its call. */
const INVENTED = "The file has 12 lines, and the code word in its last one is heron. " +
  "Nothing else in it matters for the question that was asked, so I stop here.";
CALLS.push(
  `<tool_call>\n${J}\n</tool_call>\n<tool_response>\n12 lines\n</tool_response>\n\n${INVENTED}`,
  `I'll read it.\n\n<tool_call>\n${J}\n</tool_call>\n<tool_result>12 lines</tool_result>\n${INVENTED}`,
  `[TOOL_CALLS][${J}]\n[TOOL_RESULTS]{"content": "12 lines"}[/TOOL_RESULTS]\n${INVENTED}`,
  '<invoke name="read_file"><parameter name="path">a.ts</parameter></invoke>\n<function_results>\n12 lines\n' +
    `</function_results>\n\n${INVENTED}`,
  `Thought: I need the file.\nAction: read_file\nAction Input: {"path": "a.ts"}\nObservation: 12 lines\n` +
    `Thought: I know it.\nFinal Answer: ${INVENTED}`,
);

const ANSWERS: string[] = [
  `The transcript contains:\n\n<tool_call>\n${J}\n</tool_call>\n<tool_response>\n12 lines\n</tool_response>\n\n${INVENTED}`,
  "```\n<tool_call>\n" + J +
  "\n</tool_call>\n<tool_response>\n12 lines\n</tool_response>\n```\n\n" + INVENTED,
  `> <tool_call>\n> ${J}\n> </tool_call>\n> <tool_response>12 lines</tool_response>\n\n${INVENTED}`,
  "Done: a.ts reads the file with read_file and has 12 lines.",
  "I used read_file and grep; the value is 42.",
  "The function `read_file(path)` is in a.ts.",
  'It calls `read_file(path="a.ts")` twice.',
  "```ts\nexport function read_file(path: string): string {\n  return Deno.readTextFileSync(path);\n}\n```",
  `Qwen writes calls as \`<tool_call>${J}</tool_call>\`.`,
  `For example, Hermes models write:\n\n<tool_call>\n${J}\n</tool_call>`,
  "The format of a call is:\n\n```\n<tool_call>\n" + J + "\n</tool_call>\n```",
  `The model wrote\n\n<tool_call>\n${J}\n</tool_call>\n\nbut the backend did not parse it, so nothing was run. Enable the parser with --tool-call-parser hermes, and restart the server.`,
  `<tool_call>${J}</tool_call> is what the log has at 10:32.`,
  "The session log contains this text of the assistant:\n\n```xml\n<tool_call>\n" + J +
  "\n</tool_call>\n```",
  "A call looks like this:\n```json\n" + J + "\n```",
  'The definition of the tool:\n```json\n{"name": "read_file", "description": "Read a file.", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}\n```',
  '{"name": "read_file", "description": "Read a file.", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}',
  '{"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}',
  '{"name": "read_file", "uses": 12, "errors": 0}',
  '{"name": "read_file"}',
  '{"name": "a.ts", "arguments": {"path": "read_file"}}',
  '{"name": "unknown_tool", "arguments": {"path": "a.ts"}}',
  '{"tools": ["read_file", "grep"]}',
  '[{"name": "read_file", "calls": 3}, {"name": "grep", "calls": 1}]',
  "grep",
  "read_file",
  "read_file()",
  "`grep` found nothing.",
  "grep(pattern) is called in main.ts, line 12.",
  'The first call is:\n\n    read_file(path="a.ts")\n\nand the second one reads b.ts.',
  "| tool | calls |\n| --- | --- |\n| read_file | 3 |\n| grep | 1 |",
  "- read_file: 3 calls\n- grep: 1 call",
  "Run this in your shell:\n\n```sh\ngrep -r TODO src\n```",
  "```sh\ngrep -rn read_file src\n```",
  "The parser accepts `[TOOL_CALLS]` followed by a list such as `[TOOL_CALLS][" + J + "]`.",
  "[TOOL_CALLS] is the marker of Mistral models. svc does not run what follows it.",
  "<tool_call> is not closed in line 3 of the template, so read_file is never called.\n\nI closed it, and all tests pass now. The change is in chat_template.jinja.",
  "In tests/fixtures/qwen.txt the sample is:\n\n```\n<function=read_file>\n<parameter=path>a.ts</parameter>\n</function>\n```",
  "I added this fixture:\n\n```json\n" + J + "\n```",
  'The request that the client sends:\n\n```json\n{"tool_calls": [' + J + "]}\n```",
  "```ts\nconst call = " + J + ';\nassert.equal(call.name, "read_file");\n```',
  "```ts\nconst text = `\n<tool_call>\n" + J + "\n</tool_call>`;\nassert.ok(textCall(text));\n```",
  "> <tool_call>\n> " + J + "\n> </tool_call>\n\nThis quotation is from the issue.",
  'Use the tool like so:\n\n```python\nfrom tools import read_file\n\ntext = read_file(path="a.ts")\nprint(text)\n```',
  "To see the file, you could call read_file with the path a.ts, e.g.\n\n```json\n" + J + "\n```",
  "The history has an assistant message with\n\n```json\n" + J +
  "\n```\n\nand a tool message with its result.",
  "Which file should I read? Call me back with ask when you know.",
  "I was refused: run_command (bash). Please run `npm test` yourself.",
  "The plan:\n\n1. read_file a.ts\n2. grep for TODO\n3. run_command npm test\n",
  "Action: read_file was chosen, since the path is known.",
  'The agent\'s trace reads:\n\nThought: I need the file.\nAction: read_file\nAction Input: {"path": "a.ts"}\nObservation: 12 lines\nThought: I know the answer.\nFinal Answer: the file has 12 lines, and the code word in its last one is "heron". Nothing else in it matters for the question that was asked.',
  "<read_file> is the element that Cline uses; svc uses function calling.",
  "<p>read_file</p>",
  "The mail has these fields:\n\n```\nto=team@example.org\nsubject=read_file (urgent)\n```",
  "The marker of Hermes is: <tool_call>" + J + "</tool_call>",
  'The hooks file is now {"run_command": ["audit"], "read_file": []}.',
  '{"run_command": {"allow": ["ls"]}, "read_file": {"deny": [".env"]}}',
  "I ran grep (pattern TODO) in src and found 3 matches.",
  'Use `grep` with {"pattern": "TODO"} to find them.',
  '| call | result |\n| --- | --- |\n| read_file(path="a.ts") | 12 lines |',
  'The trace has 3 calls:\n\n1. read_file(path="a.ts")\n2. grep(pattern="x")\n3. list_dir(path=".")',
  'I refactored it:\n\n```ts\nconst text = await read_file({ path: "a.ts" });\nconsole.log(text);\n```',
  "The signature is now:\n\n```python\ndef read_file(path: str, offset: int = 0) -> str: ...\n```",
  "An example for docs:\n\n<read_file>\n<path>a.ts</path>\n</read_file>",
  "[".repeat(50_000) + "read_file" + "]".repeat(50_000),
  "[".repeat(50_000) + '"read_file"' + "]".repeat(50_000),
  "",
];

Deno.test("calls that models write as text are recognised", () => {
  assert.deepEqual(CALLS.filter((text) => textCall(text, TOOLS) === undefined), []);
});

Deno.test("answers that are about calls are answers", () => {
  assert.deepEqual(ANSWERS.filter((text) => textCall(text, TOOLS) !== undefined), []);
});

Deno.test("a call in plain JSON does not count where the answer is to be JSON", () => {
  assert.equal(textCall(J, TOOLS, { json: false }), undefined);
  assert.equal(textCall(`<tool_call>${J}</tool_call>`, TOOLS, { json: false }), "read_file");
});

Deno.test("after a marker, the call of a tool that is not there counts too; in plain JSON it is an answer", () => {
  const unknown = '{"name": "search_web", "arguments": {"query": "how to read_file in bash"}}';
  for (
    const text of [
      `<tool_call>\n${unknown}\n</tool_call>`,
      `I look it up.\n\n[TOOL_CALLS][${unknown}]`,
    ]
  ) {
    assert.equal(textCall(text, TOOLS), "search_web");
  }
  assert.equal(textCall(unknown, TOOLS), undefined);
  assert.equal(textCall(`The log has\n\n<tool_call>${unknown}</tool_call>`, TOOLS), undefined);
});

Deno.test("a call that the output limit cuts off is recognised by its beginning", () => {
  const names = TOOLS.map(({ name }) => name);
  const begun = '{"name": "run_command", "arguments": {"command": "cat <<EOF\\n' + "x".repeat(500);
  for (
    const text of [
      `<tool_call>\n${begun}`,
      `I'll do it.\n\n<tool_call>\n${begun}`,
      begun,
      "```json\n" + begun,
      "<function=run_command>\n<parameter=command>\n" + "x > y\n".repeat(99),
      `[TOOL_CALLS]run_command[ARGS]${begun.slice(40)}`,
    ]
  ) {
    assert.equal(cutCall(text, names), "run_command", text.slice(0, 60));
  }
  for (
    const text of [
      "A long text about run_command and its ends, wh",
      "For example, Hermes writes:\n\n<tool_call>\n" + begun,
      '{"name": "Ada", "uses": "run_command", ',
      "```ts\nconst text = `\n<tool_call>\n" + begun,
    ]
  ) {
    assert.equal(cutCall(text, names), undefined, text.slice(0, 60));
  }
});
