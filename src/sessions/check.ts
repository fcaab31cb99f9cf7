import { isObject } from "../platform/files.ts";
import type { Part, SessionDocument, Turn } from "./schema.ts";

/** The result of a check: a document, one in an old format (2.1), or a broken one. */
export type Checked =
  | { kind: "document"; document: SessionDocument }
  | { kind: "old" }
  | { kind: "broken"; where: string };

/**
 * Checks a parsed file like the schema of `schema.ts`, and completes it in place: missing fields get their defaults,
 * and a null of another program counts as missing. Unknown fields stay. Written by
 * hand for speed: the check of 10,000 turns takes no longer than parsing their JSON.
 */
export function checkDocument(value: unknown): Checked {
  if (!isObject(value)) return { kind: "broken", where: "the whole file" };
  const current = "session_name" in value && "session_id" in value && "turns" in value;
  if (!current) return { kind: "old" };
  const document = {
    parent_id: "",
    role: "",
    version: "",
    sub_sessions: [],
    errors: [],
    permissions: [],
    ...withoutNulls(value),
  };
  const where = invalidField(document);
  return where === undefined
    ? { kind: "document", document: document as unknown as SessionDocument }
    : { kind: "broken", where };
}

type Fields = Record<string, unknown>;

const STATUSES = new Set(["running", "ok", "error", "truncated", "empty", "cancelled"]);
const ACTIONS = new Set(["allow", "ask", "deny"]);
const DECISIONS = new Set(["granted", "declined", "denied"]);
const HEAD = ["session_name", "session_id", "created_at", "updated_at", "parent_id", "role"];

/** The path of the first invalid field. */
function invalidField(document: Fields): string | undefined {
  for (const name of [...HEAD, "version"]) {
    if (typeof document[name] !== "string") return name;
  }
  return invalidEntry(document, "sub_sessions", (entry) => typeof entry === "string") ??
    invalidEntry(document, "errors", isError) ??
    invalidEntry(document, "permissions", isPermission) ??
    invalidEntry(document, "turns", isTurn);
}

function invalidEntry(
  document: Fields,
  name: string,
  isValid: (entry: unknown) => boolean,
): string | undefined {
  const entries = document[name];
  if (!Array.isArray(entries)) return name;
  for (let i = 0; i < entries.length; i++) {
    if (!isValid(entries[i])) return `${name}[${i}]`;
  }
  return undefined;
}

/** Removes the fields that are null: other programs write null where there is nothing. */
function withoutNulls(fields: Fields): Fields {
  for (const name in fields) if (fields[name] === null) delete fields[name];
  return fields;
}

export function isError(entry: unknown): boolean {
  if (!isObject(entry)) return false;
  if (entry.code === "" || entry.code === null) entry.code = 0;
  return Number.isSafeInteger(entry.code) &&
    typeof entry.message === "string" && typeof entry.timestamp === "string";
}

export function isPermission(entry: unknown): boolean {
  if (!isObject(entry)) return false;
  // The word of the earlier implementation for a call that was asked for and granted.
  if (entry.action === "grant") entry.action = "ask";
  return typeof withoutNulls(entry).tool === "string" &&
    ACTIONS.has(entry.action as string) && DECISIONS.has(entry.decision as string) &&
    isOptionalText(entry.path) && isOptionalText(entry.permission) &&
    (entry.scope === undefined || entry.scope === "once" || entry.scope === "always") &&
    (entry.origin === undefined || entry.origin === "text") && isOptionalText(entry.granted_by) &&
    isOptionalText(entry.covers) &&
    typeof entry.timestamp === "string";
}

export function isTurn(turn: unknown): turn is Turn {
  if (!isObject(turn)) return false;
  turn.reasoning ??= "";
  return Number.isSafeInteger(turn.index) &&
    typeof turn.started_at === "string" && typeof turn.ended_at === "string" &&
    STATUSES.has(turn.status as string) && typeof turn.model === "string" &&
    typeof turn.provider === "string" && typeof turn.mode === "string" &&
    (typeof turn.reasoning === "string" || typeof turn.reasoning === "boolean") &&
    Array.isArray(turn.parts) && turn.parts.every(isPart);
}

export function isPart(part: unknown): part is Part {
  if (!isObject(part) || typeof withoutNulls(part).timestamp !== "string") return false;
  switch (part.type) {
    case "user":
      return typeof part.text === "string" && areAttachments(part.attachments);
    case "system":
      return typeof part.text === "string";
    case "text":
    case "thinking":
      return typeof part.text === "string" && isOfReply(part);
    case "tool":
      return typeof part.name === "string" && isObject(part.input) &&
        typeof part.output === "string" && typeof part.is_error === "boolean" &&
        isOptionalText(part.analysis) && isOfReply(part) && areAttachments(part.attachments) &&
        (part.call === undefined || isCall(part.call));
    case "command":
      // The earlier implementation writes an empty summary into every command: it is no compaction record.
      if (part.summary === "" && part.compact_from === undefined) delete part.summary;
      return typeof part.text === "string" && isOptionalText(part.summary) &&
        POSITIONS.every((name) => isOptionalInteger(part[name]));
    default:
      return false;
  }
}

function areAttachments(attachments: unknown = []): boolean {
  return Array.isArray(attachments) &&
    attachments.every((each) =>
      isObject(each) && typeof each.name === "string" && typeof each.digest === "string" &&
      Number.isSafeInteger(each.bytes) && isOptionalText(each.media_type)
    );
}

const POSITIONS = [
  ...["compact_from", "compact_part", "window"],
  ...["results_max", "results_since", "results_from", "results_part"],
];

function isOfReply({ round, continued = [], backend_state }: Fields): boolean {
  return isOptionalInteger(round) && isBackendState(backend_state) && Array.isArray(continued) &&
    continued.every((each) =>
      isObject(each) && Number.isSafeInteger(each.text) && Number.isSafeInteger(each.thinking) &&
      typeof each.request === "string"
    );
}

function isBackendState(state: unknown): boolean {
  if (state === undefined) return true;
  return isObject(state) && typeof state.provider === "string" &&
    typeof state.model === "string" && Array.isArray(state.blocks) && state.blocks.every(isObject);
}

function isCall(call: unknown): boolean {
  if (!isObject(call)) return false;
  const { id, name, arguments: given, extra_content = {}, reasoning_details = [] } = call;
  return typeof id === "string" && isOptionalText(name) && isOptionalText(given) &&
    isObject(extra_content) && Array.isArray(reasoning_details) &&
    reasoning_details.every(isObject);
}

function isOptionalInteger(value: unknown): boolean {
  return value === undefined || Number.isSafeInteger(value);
}

function isOptionalText(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}
