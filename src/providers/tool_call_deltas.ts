import { mintId } from "../platform/files.ts";
import type { WireToolCall } from "../plugins/api.ts";
import { isJson } from "./sse.ts";

// deno-lint-ignore no-explicit-any
type Delta = Record<string, any>;

interface Parts {
  index: number;
  id: string;
  name: string;
  arguments: string;
  extra_content?: Record<string, unknown>;
}

/** Puts the tool calls of one answer together from their fragments, as many backends number them. */
export class ToolCallDeltas {
  readonly #calls: Parts[] = [];
  readonly #keep: (text: string, cost?: number) => string;

  /** @param keep counts a text that is held in memory, and what it costs beside its characters */
  constructor(keep: (text: string, cost?: number) => string) {
    this.#keep = keep;
  }

  /** Takes what one chunk brought. */
  push(deltas: Delta[]): void {
    const touched = new Set<Parts>();
    for (const delta of deltas) touched.add(this.#add(delta, touched));
  }

  /**
   * The calls in the order of their index, each with an id of its own; empty ones are left out. A minted id
   * has nine letters and digits, which even the strictest backend takes back.
   */
  whole(): WireToolCall[] {
    const ids = new Set<string>();
    const calls = this.#calls.filter((call) => call.name !== "" || call.arguments !== "");
    return calls.sort((a, b) => a.index - b.index).map((call) => {
      let id = call.id;
      while (id === "" || ids.has(id)) id = `svc${mintId()}`;
      ids.add(id);
      const { name, arguments: args, extra_content } = call;
      return {
        id,
        type: "function",
        function: { name, arguments: args },
        ...(extra_content && { extra_content }),
      };
    });
  }

  #add(delta: Delta, touched: Set<Parts>): Parts {
    const { name: named, arguments: args } = delta.function ?? {};
    const id = typeof delta.id === "string" ? delta.id : "";
    const name = typeof named === "string" ? named : "";
    const call = this.#callFor({ index: delta.index, id, name, args }, touched);
    // Some backends give every fragment another id; any one of them will do.
    call.id ||= id;
    // A name may come in fragments, or again whole with every fragment of the arguments.
    if (name !== call.name) call.name += name;
    if (typeof args === "string") call.arguments += this.#keep(args);
    else if (typeof args === "object" && args !== null) {
      call.arguments = this.#keep(JSON.stringify(args));
    }
    if (typeof delta.extra_content === "object" && delta.extra_content !== null) {
      call.extra_content = delta.extra_content;
      this.#keep(JSON.stringify(delta.extra_content));
    }
    this.#keep(id + name);
    return call;
  }

  /** The call that a delta continues, or a new one. */
  #callFor(head: Head, touched: Set<Parts>): Parts {
    const { index, id, name } = head;
    const known = typeof index === "number"
      ? this.#calls.findLast((call) => call.index === index)
      : this.#calls.findLast((call) => id === "" || call.id === id) ??
        (name === "" ? this.#calls.at(-1) : undefined);
    if (known !== undefined && !startsAnother(head, known, touched)) return known;
    const place = typeof index === "number" ? index : this.#calls.length;
    const call: Parts = { index: place, id: "", name: "", arguments: "" };
    this.#keep("", CALL_COST);
    this.#calls.push(call);
    return call;
  }
}

/** What a tool call is counted as, beside its characters. */
const CALL_COST = 32 * 1024;

/** What tells which call a delta belongs to. */
interface Head {
  index: unknown;
  id: string;
  name: string;
  args: unknown;
}

/**
 * Whether a delta starts another call than the last one of its index. Backends that number every call 0, or
 * none at all, start the next one with a name; but a name is also repeated with every fragment.
 *
 * @param touched the calls that the same chunk has brought something for
 */
function startsAnother(
  { index, id, name, args }: Head,
  known: Parts,
  touched: Set<Parts>,
): boolean {
  if (name === "") return false;
  const numbered = typeof index === "number";
  const renamed = name !== known.name;
  if (known.arguments === "") {
    return id !== "" && known.id !== "" && id !== known.id && (renamed || !numbered);
  }
  if (!isJson(known.arguments)) return false;
  if (id !== "") return id !== known.id;
  return !numbered || renamed || touched.has(known) || (args !== undefined && args !== "");
}
