import type { ChatRequest } from "./chat_request.ts";
import type { Reply, Script, When } from "./script.ts";
import { checkScript } from "./script_check.ts";

/** Hands out a script's replies. */
export class ScriptPlayer {
  readonly script: Script;
  /** How often each reply may still be used. */
  readonly #left: number[];
  /** Every reply before this one is used up. */
  #first = 0;

  /** @throws ScriptError when the script is not valid. */
  constructor(script: Script) {
    this.script = checkScript(script);
    this.#left = script.replies.map((reply) => reply.repeat ?? 1);
  }

  /** The reply for a request, or undefined when the script is exhausted. */
  next(request: ChatRequest): Reply | undefined {
    return this.#take(request) ??
      (this.script.loop ? this.#rewind(request) : undefined) ??
      this.script.default;
  }

  #take(request: ChatRequest): Reply | undefined {
    const { replies } = this.script;
    while (this.#left[this.#first] === 0) this.#first++;
    for (let i = this.#first; i < replies.length; i++) {
      if (this.#left[i]! === 0 || !matches(replies[i]!.when, request)) continue;
      this.#left[i]!--;
      return replies[i];
    }
    return undefined;
  }

  /** Starts over for this kind of request only: another conversation may be in the middle of its own. */
  #rewind(request: ChatRequest): Reply | undefined {
    this.script.replies.forEach((reply, i) => {
      if (matches(reply.when, request)) this.#left[i] = reply.repeat ?? 1;
    });
    this.#first = 0;
    return this.#take(request);
  }
}

function matches(when: When | undefined, request: ChatRequest): boolean {
  if (when === undefined) return true;
  if (when.model !== undefined && when.model !== request.model) return false;
  if (when.user !== undefined && !request.lastUser().includes(when.user)) return false;
  if (when.system !== undefined && !request.system().includes(when.system)) return false;
  return when.tool_result === undefined || request.results().includes(when.tool_result);
}
