import { errorMessage, SvcError } from "../platform/error.ts";
import { isObject, jsonOr } from "../platform/files.ts";
import { stripControl } from "../platform/terminal.ts";
import { type ErrorReport, type FailureFacts, refusalFacts } from "./refusal.ts";

/** The receiver of a request, for messages about its failure. */
export interface Peer {
  /** Registered name of the provider. */
  name: string;
  url: string;
  model: string;
  api_key: string;
  /** The argument of `svc connect` for this backend. */
  connect: string;
  /** The time in milliseconds since 1970. */
  now(): number;
}

/**
 * A failed request: a sentence and the HTTP status, 0 when there is none. A failure without a kind is that of a
 * stream that broke or that cannot be understood.
 */
export class BackendError extends SvcError {
  readonly status: number;
  readonly facts: FailureFacts;

  constructor(status: number, message: string, hint = "", facts: FailureFacts = {}) {
    super("backend", message, { hint });
    this.status = status;
    this.facts = facts;
  }

  get kind(): FailureFacts["kind"] {
    return this.facts.kind;
  }
}

/** The backend accepted the connection, but refused the request. */
export class RefusedRequest extends BackendError {}

/** The failure for an answer with an error status (specification 7.2, 7.4). */
export function statusFailure(
  { status, headers, body }: ErrorReport & { body: string },
  peer: Peer,
): BackendError {
  const now = peer.now();
  const detail = harmless(errorDetail(body), peer.api_key);
  // The model made a mistake, not the request: like a broken stream, it is worth another attempt.
  if (status === 400 && /"tool_use_failed"/.test(body)) {
    const what = `${peer.name} could not use the tool call that the model made`;
    return new BackendError(0, sentence(what, detail));
  }
  const facts = refusalFacts({ status, headers, body: jsonOr(body, undefined) ?? body }, now);
  const say = (what: string, hint = "") =>
    new BackendError(status, sentence(`${peer.name} ${what} (${status})`, detail), hint, facts);
  const [type = ""] = headers?.get("content-type")?.split(";") ?? [];
  if (status === 501 || [404, 405].includes(status) && type === "text/html") {
    const hint = `Asked at ${withoutQuery(peer.url)}; check the base URL, which often ends in /v1.`;
    const what = `${peer.name} did not answer as a model server does (${status}${
      type && `, ${type}`
    })`;
    return new BackendError(status, sentence(what, detail), hint, { kind: "permanent" });
  }
  if (facts.kind === "overflow") return say("rejected the request", SHORTEN);
  if (facts.kind === "permanent" && (status === 402 || status === 429)) {
    return say("has no credit left for this account");
  }
  const connect = `\`svc connect ${peer.connect}\``;
  switch (status) {
    case 401:
      return peer.api_key === ""
        ? say("wants a key", `Store one with ${connect}.`)
        : say("refused the key", `Store a valid one with ${connect}.`);
    case 403:
      return say(
        "refused access",
        `Check that the key may use the model ${peer.model}, or store another with ${connect}.`,
      );
    case 404:
      return say(
        "knows no such model or endpoint",
        `Asked for ${peer.model || "no model"} at ${withoutQuery(peer.url)}; ` +
          `\`svc models list ${peer.name}\` names the models on offer.`,
      );
    case 429:
      return say("limits the rate of requests", opening(facts, now));
  }
  if (facts.kind === "announced") return say("failed", opening(facts, now));
  if (status >= 500) return say("failed");
  if (status >= 300 && status < 400) return say("answered with a redirect that leads nowhere");
  return say("rejected the request");
}

/** The failure for an error object inside a stream or a document. */
export function reportedFailure(error: unknown, peer: Peer): RefusedRequest {
  const now = peer.now();
  const { code, status } = record(error) ?? {};
  const http = [code, status].map(Number).find((n) => Number.isInteger(n) && n >= 400 && n < 600) ??
    0;
  const facts = refusalFacts({ status: http, body: error }, now);
  const detail = harmless(detailOf(error), peer.api_key);
  const hint = facts.kind === "overflow" ? SHORTEN : opening(facts, now);
  return new RefusedRequest(http, sentence(`${peer.name} reported an error`, detail), hint, facts);
}

/** When a backend says that it answers again; empty when it does not say. */
export function opening({ retry_at }: FailureFacts, now: number): string {
  if (retry_at === undefined) return "";
  const time = new Date(Math.ceil(retry_at / 1000) * 1000).toISOString().replace(".000Z", "Z");
  return `It answers again at ${time}, in ${span(retry_at - now)}.`;
}

/** A time span such as `38 s`, `9 min 38 s` or `2 d 3 h`. */
function span(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000));
  const parts = [["d", 86_400, Infinity], ["h", 3600, 24], ["min", 60, 60], ["s", 1, 60]] as const;
  const shown = parts.map(([unit, size, of]) => [Math.floor(seconds / size) % of, unit] as const)
    .filter(([count]) => count > 0);
  return shown.slice(0, 2).map((part) => part.join(" ")).join(" ");
}

/** The failure for an error that `fetch`, or reading its body, threw. */
export function networkFailure(error: unknown, peer: Peer): BackendError {
  const host = hostOf(peer.url);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  const text = `${errorMessage(error)} ${cause}`;
  const say = (what: string, hint = "", kind: FailureFacts["kind"] = "transient") =>
    new BackendError(0, `${what}.`, hint, { kind });
  if (error instanceof Deno.errors.NotCapable) {
    return say(`svc has no permission to open a connection to ${host}`, "", "permanent");
  }
  if (/dns error|lookup address|name resolution/i.test(text)) {
    return say(`The host ${host} of ${peer.name} was not found`, CHECK_ADDRESS);
  }
  if (/refused/i.test(text)) {
    return say(`${peer.name} refused the connection to ${host}`, "Is a server running there?");
  }
  if (/certificate|tls|ssl|handshake|InvalidContentType/i.test(text)) {
    const reason = /certificate[^:]*: (\w+)/i.exec(cause)?.[1];
    return say(
      `No secure connection to ${host} of ${peer.name}${reason ? ` (${reason})` : ""}`,
      "Check the scheme of the base URL and the server's certificate.",
      "permanent",
    );
  }
  if (/timed out/i.test(text)) return say(`The connection to ${host} of ${peer.name} timed out`);
  if (/unreachable/i.test(text)) return say(`${host} of ${peer.name} is out of reach`);
  if (/ports? \d+ (are|is) blocked/i.test(text)) {
    return say(`The port of ${host} is a blocked one`, "", "permanent");
  }
  if (/body|end of file|reset|closed|broken pipe|abort/i.test(text)) {
    return say(`The connection to ${peer.name} broke off`);
  }
  if (/invalid|parse/i.test(text)) {
    return say(`${peer.name} at ${host} did not answer in valid HTTP`, "", "permanent");
  }
  return say(`The request to ${peer.name} at ${host} failed`);
}

const SHORTEN = "`svc compact <session>` (`/compact`) makes room in a long conversation; where a " +
  "short one is refused, a smaller max_tokens does.";

const CHECK_ADDRESS = "Check the base URL and the network.";

/** Maximum length of a backend's text in a message, in characters. */
const MAX_DETAIL = 400;

/** A backend's text as one short line without control characters and without the key. */
export function harmless(text: string, api_key: string): string {
  let line = stripControl(text).replace(/\s+/g, " ").trim();
  if (api_key !== "") line = line.replaceAll(api_key, "***");
  return line.length > MAX_DETAIL ? `${line.slice(0, MAX_DETAIL)}…` : line;
}

function sentence(what: string, detail: string): string {
  if (detail === "") return `${what}.`;
  return /[.!?…]$/.test(detail) ? `${what}: ${detail}` : `${what}: ${detail}.`;
}

/** The message of an error body: JSON of the common forms, a page's title, or plain text. */
function errorDetail(body: string): string {
  const text = body.trim();
  if (/^[{["]/.test(text)) {
    const value = jsonOr(text, undefined);
    return value === undefined ? text : detailOf(value);
  }
  if (!text.startsWith("<")) return text;
  return /<title[^>]*>([^<]*)/i.exec(text)?.[1] ?? "";
}

function detailOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.length > 0 ? detailOf(value[0]) : "";
  const fields = record(value);
  if (fields === undefined) return "";
  // A gateway puts the message of the backend behind it into its metadata.
  const upstream = errorDetail(string(record(fields.metadata)?.raw));
  const own = [fields.error, fields.message, fields.detail, fields.msg, fields.errors]
    .map(detailOf).find((detail) => detail !== "") ?? "";
  const location = Array.isArray(fields.loc) ? fields.loc.filter((name) => name !== "body") : [];
  return [location.join("."), own, upstream].filter((text) => text !== "").join(": ");
}

function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function record(value: unknown): Record<string, unknown> | undefined {
  return isObject(value) ? value : undefined;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function withoutQuery(url: string): string {
  return URL.canParse(url) ? new URL(url).origin + new URL(url).pathname : url;
}
