import { type TurnEvent, TurnFailure, type TurnResult } from "./events.ts";
import type { ToolDefinition } from "../plugins/api.ts";
import type { Reply } from "./reply.ts";
import type { TurnScope } from "./scope.ts";
import { CORE } from "./tools/core.ts";

/** What the checks of a turn know of it. */
export type CheckedScope = TurnScope & {
  result: TurnResult;
  /** The current round, and the last one that the turn may have; 0: no cap. The rounds after a check count on. */
  counted: { round: number; most: number };
};

/**
 * One check of a turn whose model says that it is done, with the reply that says so.
 *
 * @returns what the model is to be asked in a further round; empty when the check is satisfied
 * @throws TurnFailure when the turn has to end
 */
export type Check = (scope: CheckedScope, reply?: Reply) => AsyncGenerator<TurnEvent, string>;

/**
 * Runs the rounds of a turn, then the checks in their order. A check that is not satisfied has the model asked
 * again, in further rounds of the same turn; all checks follow anew then. A turn that ends otherwise than `ok` or
 * `truncated` is not checked.
 *
 * @throws TurnFailure
 */
export async function* checkedRounds(
  scope: CheckedScope,
  rounds: () => AsyncGenerator<TurnEvent, Reply | undefined>,
): AsyncGenerator<TurnEvent> {
  const { result, log, agent: { run } } = scope;
  const checks = await checksOf(scope);
  let reply = yield* rounds();
  for (let at = 0; at < checks.length && isDone(result);) {
    const question = yield* checks[at]!(scope, reply);
    if (question === "") {
      at++;
      continue;
    }
    log.append({ type: "user", text: question });
    // Front ends join the texts of a turn: the next answer is a paragraph of its own.
    if (reply !== undefined && reply.content !== "") yield { type: "token", run, content: "\n\n" };
    reply = yield* rounds();
    at = 0;
  }
}

/** The scope of a turn whose answer must satisfy a schema: it has one more tool, which takes the answer. */
export async function withAnswer<S extends CheckedScope>(scope: S): Promise<S> {
  const { task, tools, policy } = scope;
  if (task?.schema === undefined) return scope;
  const { structuredAnswer } = await import("./answer.ts");
  const alone = !tools.list().some((tool) => policy.offers(tool));
  const answer = structuredAnswer(task.schema, alone);
  const { tool } = answer;
  return { ...scope, answer, tools: tools.with(tool, CORE), policy: policy.allowing(tool) };
}

function isDone({ status }: TurnResult): boolean {
  return status === "ok" || status === "truncated";
}

/** The checks of a turn: no call in the text of the answer, its schema, the verification of the work. */
async function checksOf(
  { task = {}, agent, tools, policy, answer }: CheckedScope,
): Promise<Check[]> {
  const checks: Check[] = [
    ...agent.config.get("text_calls") === "off" ? [] : [noTextCall()],
    ...answer === undefined ? [] : [answer.check],
    noComplaint,
    noReturn,
  ];
  if (task.verify !== undefined) {
    const { verification } = await import("./verify.ts");
    const { prompt: { worktree } } = agent;
    const tool = tools.find("run_command");
    const listed = tool && policy.resolve(tool, { command: task.verify });
    const before = () => agent.changes.scan(agent.session.name);
    checks.push(verification(task, { ...agent, worktree, before, env: listed?.environment }));
  }
  return checks;
}

/** Tells the model of what the project's checker has found in its last changes. */
const noComplaint: Check = async function* ({ agent: { run }, checker, counted }) {
  if (checker === undefined || counted.round === counted.most) return "";
  const note = await checker.lastNote();
  if (note !== "") yield goesOn(run, "The project's checker has new complaints");
  return note;
};

function goesOn(run: number, why: string): TurnEvent {
  return { type: "notice", run, level: "info", message: `${why}; the model is asked again.` };
}

/** Has the model go on where a hook of the turn's end asks for it. */
const noReturn: Check = async function* ({ agent: { run }, hooks, result, counted }) {
  if (hooks === undefined || counted.round === counted.most) return "";
  const reason = await hooks.turnEnd(result.content);
  if (reason !== "") yield goesOn(run, "A hook has not accepted the end of the turn");
  return reason;
};

/** Characters of an answer beyond which no call is looked for in it. */
const LONGEST_CALL = 500_000;

/** Beginnings of calls in the syntaxes of models. */
const MARKED = /<[|\uff5c/]?\w|\[\/?TOOL|to=|functools|tool_calls/i;

/** Whether a text may have a call in it; most have none, and are not searched. */
export function mayHaveCall(text: string, tools: readonly ToolDefinition[]): boolean {
  if (text.length > LONGEST_CALL) return false; // a model writes no call as long, and the search takes time
  return MARKED.test(text) ||
    tools.some(({ name, aliases = [] }) => [name, ...aliases].some((each) => text.includes(each)));
}

/** Has the model make a call that it wrote as text, once. One at the end of its reasoning counts too. */
function noTextCall(): Check {
  let asked = false;
  // deno-lint-ignore require-yield
  return async function* ({ agent, tools, policy, task }, reply) {
    const { content = "", thinking = "", status } = reply ?? {};
    const offered = tools.list().filter((tool) => policy.offers(tool));
    const texts = [content, thinking].filter((text) => text !== "" && mayHaveCall(text, offered));
    if (offered.length === 0 || texts.length === 0) return "";
    const { cutCall, textCall } = await import("./text_call.ts");
    const names = offered.map(({ name }) => name);
    const cut = status === "truncated" ? cutCall(content, names) : undefined;
    const found = texts.map((text) => {
      const json = task?.schema === undefined && (text === content || content === "");
      return { text, name: textCall(text, offered, { json }) };
    }).find(({ name }) => name !== undefined);
    const name = cut ?? found?.name;
    if (name === undefined) return "";
    if (asked && cut === undefined && content !== "" && found!.text !== content) return ""; // it has answered
    if (asked) {
      throw new TurnFailure(
        "text_call",
        `The model wrote a call of ${name} as text again, and nothing was run. Likely the backend's parser of ` +
          "tool calls, or the model's chat template with tools, is not enabled (vLLM: --enable-auto-tool-choice " +
          "and --tool-call-parser; llama.cpp: --jinja). With the setting text_calls: run, svc runs such calls.",
      );
    }
    asked = true;
    const how = agent.config.get("text_calls") === "run"
      ? "Make the call through the interface for tool calls, or write it alone, as your whole message"
      : "Make the call through the interface for tool calls";
    if (cut !== undefined) {
      return `Your last message has a call of the tool ${cut} in its text, which was cut off and ` +
        `was not run. ${how}, in smaller pieces.`;
    }
    const unknown = !offered.some((tool) => [tool.name, ...tool.aliases ?? []].includes(name))
      ? ` There is no tool ${name}; the tools are: ${names.join(", ")}.`
      : "";
    const where = found!.text === content ? "text" : "reasoning";
    return `Your last message has a call of the tool ${name} in its ${where}. It was not run: text is taken as your ` +
      `answer.${unknown} ${how}. If you meant to show a call, answer again with the call in backquotes, within a ` +
      "sentence.";
  };
}
