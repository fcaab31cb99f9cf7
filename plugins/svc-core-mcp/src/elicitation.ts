import type { ElicitResult } from "@modelcontextprotocol/client";
import type { Question, ToolContext } from "../../../src/plugins/api.ts";
import { cleanLine, isObject } from "./imported_tools.ts";

/** Fields of a form, choices of a field, and attempts that the operator has at a form. */
const MAX_FIELDS = 20;
const MAX_CHOICES = 100;
const ATTEMPTS = 3;
/** Answers that give no value. */
const DECLINE = "(decline)";
const NOTHING = "(nothing)";

/** The requests of a server for input during one call. Only the operator answers them, never a model. */
export class InputRequests {
  readonly #server: string;
  readonly #ask: ToolContext["ask"];
  readonly #notes = new Set<string>();

  /** @param server how the server is named in questions: `the MCP server files` */
  constructor(server: string, ask: ToolContext["ask"]) {
    this.#server = server;
    this.#ask = ask;
  }

  /** Answers a request for input: a form, or an address to open (mode `url`). */
  async answer(params: unknown, signal?: AbortSignal): Promise<ElicitResult> {
    if (!isObject(params)) return this.refuse("its request is invalid");
    const message = cleanLine(params.message, 2000);
    if (params.mode === "url") return await this.#address(message, params.url, signal);
    const fields = fieldsOf(params.requestedSchema);
    if (typeof fields === "string") return this.refuse(fields);
    return await this.#form(message, fields, signal);
  }

  /** Declines a request, and tells the model why. */
  refuse(why: string): ElicitResult {
    this.#notes.add(`${this.#server} asked for input, which was declined: ${why}`);
    return { action: "decline" };
  }

  /** A result of the call, after what the model has to know of the requests. */
  withNotes(result: string): string {
    return [...this.#notes, result].join("\n");
  }

  async #form(message: string, fields: Field[], signal?: AbortSignal): Promise<ElicitResult> {
    if (fields.length === 0) {
      const answers = await this.#answers([
        this.#question(message, "", ["accept", DECLINE]),
      ], signal);
      if (!Array.isArray(answers)) return answers;
      return answers[0] === "accept" ? { action: "accept", content: {} } : this.#declined();
    }
    const content: Record<string, string | number | boolean | string[]> = {};
    let open = fields.map((field) => ({ field, problem: "" }));
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const questions = open.map(({ field: { title, about, options }, problem }) =>
        this.#question(`${message} – ${title}`, [problem, about].filter(Boolean).join(" "), [
          ...options,
          DECLINE,
        ])
      );
      const answers = await this.#answers(questions, signal);
      if (!Array.isArray(answers)) return answers;
      if (answers.includes(DECLINE)) return this.#declined();
      open = open.flatMap(({ field }, index) => {
        const read = field.read(answers[index]!.trim());
        if ("value" in read) content[field.name] = read.value;
        return "problem" in read ? [{ field, problem: `Not accepted: ${read.problem}.` }] : [];
      });
      if (open.length === 0) return { action: "accept", content };
    }
    return this.refuse("the answers did not fit its form");
  }

  async #address(message: string, given: unknown, signal?: AbortSignal): Promise<ElicitResult> {
    const url = URL.parse(String(given));
    if (url === null || !["https:", "http:"].includes(url.protocol) || url.href.length > 4000) {
      return this.refuse("the address to open is no web address");
    }
    const answers = await this.#answers([
      this.#question(
        `${message} – It asks you to open ${url.href}`,
        `Open it yourself, if you trust ${url.host}; svc does not.`,
        ["opened", DECLINE],
      ),
    ], signal);
    if (!Array.isArray(answers)) return answers;
    return answers[0] === "opened" ? { action: "accept" } : this.#declined();
  }

  #question(text: string, context: string, options: string[]): Question {
    const from = this.#server.replace(/^t/, "T");
    return { question: `${from} asks: ${text}`, context, options };
  }

  /** The answers of the operator, or what the server is told in place of them. */
  async #answers(questions: Question[], signal?: AbortSignal): Promise<string[] | ElicitResult> {
    const given = await this.#ask?.(questions, signal);
    if (given === undefined) return this.refuse("no one gave an answer");
    if ("answers" in given) return given.answers;
    const [one, ...more] = given.parked.map((id) => `#${id}`);
    const asks = more.length === 0 ? `Ask ${one} waits` : `Asks ${[one, ...more].join(", ")} wait`;
    this.#notes.add(
      `[parked] ${asks} for a human: ${this.#server} needs input for this call. Go on without it where you can. ` +
        "When the answer has been added to this session, make the same call again; it is given to the server then.",
    );
    return { action: "cancel" };
  }

  #declined(): ElicitResult {
    return this.refuse("by the operator");
  }
}

/** One value of a form. */
interface Field {
  name: string;
  title: string;
  /** Its description and what its values must be like. */
  about: string;
  /** The values that can be chosen; the default first. */
  options: string[];
  /** The value of an answer, `{}` for none, or what is wrong with it. */
  read(answer: string): { value: string | number | boolean | string[] } | { problem: string } | {
    none: true;
  };
}

/** The fields of a form, or why it cannot be answered. Its patterns are not evaluated. */
function fieldsOf(schema: unknown): Field[] | string {
  const given = isObject(schema) && isObject(schema.properties) ? schema.properties : undefined;
  if (given === undefined) return "its form has no schema";
  const { required } = schema as { required?: unknown };
  const entries = Object.entries(given);
  if (entries.length > MAX_FIELDS) return `its form has more than ${MAX_FIELDS} fields`;
  const fields = entries.map(([name, each]) =>
    fieldOf(name, isObject(each) ? each : {}, Array.isArray(required) && required.includes(name))
  );
  const problem = fields.find((field) => typeof field === "string");
  return problem ?? fields as Field[];
}

function fieldOf(name: string, schema: Record<string, unknown>, required: boolean): Field | string {
  const { type, items, minimum, maximum, minLength, maxLength, minItems, maxItems, format } =
    schema;
  const choices = choicesOf(isObject(items) && type === "array" ? items : schema);
  const known = ["string", "number", "integer", "boolean"].includes(String(type)) ||
    (type === "array" && choices.length > 0);
  if (!known || name === "__proto__" || choices.length > MAX_CHOICES) {
    return `its form has a field of a kind that svc does not know`;
  }
  const labels = type === "boolean" ? ["yes", "no"] : choices.map(({ label }) => label);
  const preset = defaultOf(schema, choices);
  const bounds = [
    type === "integer" ? "a whole number" : type === "number" ? "a number" : "",
    type === "array" ? "one or several of these, separated by commas" : "",
    typeof format === "string" ? `a ${cleanLine(format, 40)}` : "",
    ...[["from", minimum], ["to", maximum], ["at least", minLength ?? minItems]].concat([[
      "at most",
      maxLength ?? maxItems,
    ]]).map(([word, limit]) => typeof limit === "number" ? `${word} ${limit}` : ""),
  ].filter(Boolean).join(" ");
  const about = cleanLine(schema.description, 1000);
  const outside = (size: number, least: unknown, most: unknown) =>
    (typeof least === "number" && size < least) || (typeof most === "number" && size > most);
  const value = (answer: string) =>
    choices.find(({ label, value }) => [label, value].includes(answer));
  return {
    name,
    title: cleanLine(schema.title, 200) || cleanLine(name, 200),
    about: [about, bounds === "" ? "" : `(${bounds})`].filter(Boolean).join(" "),
    options: [...new Set([preset, ...labels, required ? "" : NOTHING])].filter(Boolean),
    read(answer) {
      const problem = (why: string) => ({ problem: why });
      if (answer === NOTHING && !required) return { none: true };
      if (type === "boolean") {
        const yes = /^(yes|y|true)$/i.test(answer);
        return yes || /^(no|n|false)$/i.test(answer) ? { value: yes } : problem("it is yes or no");
      }
      if (type === "number" || type === "integer") {
        const number = answer === "" ? NaN : Number(answer);
        const fits = type === "integer" ? Number.isSafeInteger(number) : Number.isFinite(number);
        return fits && !outside(number, minimum, maximum)
          ? { value: number }
          : problem(`it is ${bounds}`);
      }
      if (type === "array") {
        const parts = value(answer) ? [answer] : answer.split(",").map((part) => part.trim());
        const chosen = parts.filter((part) => part !== "").map(value);
        return chosen.includes(undefined) || outside(chosen.length, minItems, maxItems)
          ? problem(`it is ${bounds}`)
          : { value: [...new Set(chosen.map((each) => each!.value))] };
      }
      if (choices.length > 0) {
        const chosen = value(answer);
        return chosen === undefined
          ? problem("it is none of the choices")
          : { value: chosen.value };
      }
      const fits = !outside([...answer].length, minLength, maxLength) && hasFormat(answer, format);
      return fits ? { value: answer } : problem(`it is ${bounds}`);
    },
  };
}

/** The values of an enumeration, in each of the forms that the revisions of the protocol have, and their labels. */
function choicesOf(schema: Record<string, unknown>): { label: string; value: string }[] {
  const { enum: values, enumNames: names, oneOf, anyOf } = schema;
  const titled = Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : undefined;
  const given = titled?.map((each) => isObject(each) ? [each.const, each.title] : []) ??
    (Array.isArray(values) ? values : []).map((each, index) => [
      each,
      Array.isArray(names) ? names[index] : undefined,
    ]);
  return given.filter(([value]) => typeof value === "string").map(([value, title]) => {
    const shown = cleanLine(value, 200);
    const label = cleanLine(title, 200);
    return { value, label: label === "" || label === shown ? shown : `${label} (${shown})` };
  });
}

/** The default of a field as an answer; empty without one. */
function defaultOf(schema: Record<string, unknown>, choices: { label: string; value: string }[]) {
  const preset = schema.default;
  if (preset === undefined || preset === null) return "";
  if (typeof preset === "boolean") return preset ? "yes" : "no";
  const label = (one: unknown) =>
    choices.find(({ value }) => value === one)?.label ?? cleanLine(String(one), 200);
  return (Array.isArray(preset) ? preset : [preset]).map(label).join(", ");
}

function hasFormat(text: string, format: unknown): boolean {
  switch (format) {
    case "email":
      return /^[^\s@]+@[^\s@]+$/.test(text);
    case "uri":
      return URL.canParse(text);
    case "date":
      return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));
    case "date-time":
      return /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text));
    default:
      return true;
  }
}
