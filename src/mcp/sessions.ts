import {
  type ListResourcesResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
} from "@modelcontextprotocol/server";
import type { SessionStore } from "../sessions/store.ts";

const SCHEME = "polyglav://session/";
const TYPE = "application/json";
/** Sessions on one page of a listing. */
const PAGE = 500;
/** Characters of a session's JSON that are sent at most. */
const MOST = 32 * 1024 * 1024;

/** What `resources/templates/list` answers. */
export const SESSION_TEMPLATE = {
  uriTemplate: `${SCHEME}{name}`,
  name: "session",
  description: "The log of a session, as it is on disk.",
  mimeType: TYPE,
};

/** One page of the sessions, in the order of their names (specification 4.2). */
export function listSessions(store: SessionStore, cursor = ""): ListResourcesResult {
  const after = fromUri(SCHEME + cursor) ?? invalidCursor();
  const names = store.list().filter((name) => name > after);
  const page = names.slice(0, PAGE);
  const resources = page.map((name) => ({ uri: toUri(name), name, mimeType: TYPE }));
  const last = page.at(-1);
  return names.length > PAGE && last !== undefined
    ? { resources, nextCursor: encodeURIComponent(last) }
    : { resources };
}

/**
 * The JSON of a session. Reads, and leaves the session as it is.
 *
 * @throws ResourceNotFoundError for a URI that names none
 */
export function readSession(store: SessionStore, uri: string): ReadResourceResult {
  const name = fromUri(uri);
  const document = name === undefined ? undefined : store.read(name);
  if (document === undefined) throw new ResourceNotFoundError(uri);
  const text = JSON.stringify(document);
  if (text.length > MOST) {
    const message = `The session is larger than ${MOST} characters.`;
    throw new ProtocolError(ProtocolErrorCode.InternalError, message);
  }
  return { contents: [{ uri, mimeType: TYPE, text }] };
}

function toUri(name: string): string {
  return SCHEME + encodeURIComponent(name);
}

function fromUri(uri: string): string | undefined {
  if (!uri.startsWith(SCHEME)) return undefined;
  try {
    return decodeURIComponent(uri.slice(SCHEME.length));
  } catch {
    return undefined;
  }
}

function invalidCursor(): never {
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, "Invalid cursor.");
}
