import type { WireTool } from "../plugins/api.ts";
import type { BackendError } from "./failure.ts";
import { SchemaKeywords } from "./schema_keywords.ts";

type Payload = Record<string, unknown>;

/**
 * The optional parameters, and keywords in the schemas of tools, that one backend turns down. Models differ in what they take (no reasoning,
 * one fixed temperature, another name for the limit), and the answer to a first try is the only way to
 * know; a request that failed over one is made again without it, and so are all later ones.
 */
export class RefusedParameters {
  readonly #names = new Set<string>();
  readonly #keywords = new SchemaKeywords();

  /** Whether a rejected request was rejected for a parameter that it can do without. */
  learn(failure: BackendError, payload: Payload, reasoning: Payload): boolean {
    if (failure.status !== 400 && failure.status !== 422) return false;
    const signs: [name: string, sign: RegExp][] = [
      ["stream_options", /stream_options|include_usage/],
      ...Object.keys(reasoning).map((name): [string, RegExp] => [name, RegExp(`\\b${name}\\b`)]),
      ["max_tokens", /max_completion_tokens/],
      // A temperature that is out of range is the user's to correct.
      ["temperature", /temperature.*(not (support|permitted|allowed)|default|deprecated|only)/i],
      ["temperature", /(unsupported|unknown|unrecogni[sz]ed|only).*temperature/i],
    ];
    if (payload.stream === true) signs.push(["stream", NO_STREAM]);
    const culprit = signs.find(([name, sign]) => name in payload && sign.test(failure.message));
    if (culprit === undefined) return this.#keywords.learn(failure.message, payload.tools);
    this.#names.add(culprit[0]);
    return true;
  }

  /** The payload as this backend takes it. */
  adapt(payload: Payload): Payload {
    const adapted = { ...payload };
    for (const name of this.#names) delete adapted[name];
    if (Array.isArray(payload.tools)) {
      adapted.tools = this.#keywords.adapt(payload.tools as WireTool[]);
    }
    if (this.#names.has("stream")) delete adapted.stream_options;
    if (this.#names.has("max_tokens")) adapted.max_completion_tokens = payload.max_tokens;
    return adapted;
  }
}

/** Signs that this model, or this customer, is answered with whole documents only. */
const NO_STREAM =
  /verified to stream|stream(ing)?\b.{0,40}(not supported|unsupported)|support.{0,40} stream(ing)?\b/i;
