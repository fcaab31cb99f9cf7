import { errorMessage, SvcError } from "../platform/error.ts";
import { stripControl } from "../platform/terminal.ts";

/** The receiver of a request, for messages about its failure. */
export interface Peer {
  /** Registered name of the provider. */
  name: string;
  url: string;
  model: string;
  api_key: string;
  /** The argument of `svc connect` for this backend. */
  connect: string;
}

/** A failed request: a sentence and the HTTP status, 0 when there is none. */
export class BackendError extends SvcError {
  readonly status: number;

  constructor(status: number, message: string, hint = "") {
    super("backend", message, { hint });
    this.status = status;
  }
}

/** The failure for an answer with an error status (specification 7.2, 7.4). */
export function statusFailure(status: number, body: string, peer: Peer): BackendError {
  const detail = harmless(errorDetail(body), peer.api_key);
  const say = (what: string, hint = "") =>
    new BackendError(status, sentence(`${peer.name} ${what} (${status})`, detail), hint);
  // The model made a mistake, not the request: like a broken stream, it is worth another attempt.
  if (status === 400 && /"tool_use_failed"/.test(body)) {
    const what = `${peer.name} could not use the tool call that the model made`;
    return new BackendError(0, sentence(what, detail));
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
      return say("limits the rate of requests");
  }
  if (status === 413 || TOO_LONG.test(detail)) return say("rejected the request", SHORTEN);
  if (status >= 500) return say("failed");
  if (status >= 300 && status < 400) return say("answered with a redirect that leads nowhere");
  return say("rejected the request");
}

/** The failure for an error object inside a stream or a document. */
export function reportedFailure(error: unknown, peer: Peer): BackendError {
  const { code, status } = record(error) ?? {};
  const http = [code, status].map(Number).find((n) => Number.isInteger(n) && n >= 400 && n < 600);
  const detail = harmless(detailOf(error), peer.api_key);
  const hint = TOO_LONG.test(detail) ? SHORTEN : "";
  return new BackendError(http ?? 0, sentence(`${peer.name} reported an error`, detail), hint);
}

/** The failure for an error that `fetch`, or reading its body, threw. */
export function networkFailure(error: unknown, peer: Peer): BackendError {
  const host = hostOf(peer.url);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  const text = `${errorMessage(error)} ${cause}`;
  const say = (what: string, hint = "") => new BackendError(0, `${what}.`, hint);
  if (error instanceof Deno.errors.NotCapable) {
    return say(`svc has no permission to open a connection to ${host}`);
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
    );
  }
  if (/timed out/i.test(text)) return say(`The connection to ${host} of ${peer.name} timed out`);
  if (/unreachable/i.test(text)) return say(`${host} of ${peer.name} is out of reach`);
  if (/ports? \d+ (are|is) blocked/i.test(text)) return say(`The port of ${host} is a blocked one`);
  if (/body|end of file|reset|closed|broken pipe|abort/i.test(text)) {
    return say(`The connection to ${peer.name} broke off`);
  }
  if (/invalid|parse/i.test(text)) {
    return say(`${peer.name} at ${host} did not answer in valid HTTP`);
  }
  return say(`The request to ${peer.name} at ${host} failed`);
}

/** Messages of backends about a conversation that exceeds the context window. */
const TOO_LONG =
  /context.{0,3}(length|window|size)|(prompt|input|request).{0,30}(too (long|large)|exceeds)|too many (input|prompt) tokens/i;
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
    try {
      return detailOf(JSON.parse(text));
    } catch {
      return text;
    }
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
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? value as Record<string, unknown>
    : undefined;
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function withoutQuery(url: string): string {
  return URL.canParse(url) ? new URL(url).origin + new URL(url).pathname : url;
}
