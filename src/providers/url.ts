import { usageError } from "../platform/error.ts";

/**
 * The address of an endpoint such as `/chat/completions` under a base URL. A base with or without a
 * trailing `/v1` results in the same address; path prefixes and the query are kept (specification 9.4). A
 * base may also be the complete address of `/chat/completions`.
 *
 * @throws SvcError `bad_base_url` (exit 2) when the base is no http or https URL, or holds credentials.
 */
export function endpointUrl(base_url: string, path: string): string {
  const url = parseBase(base_url);
  url.pathname = apiPath(url) + path;
  return url.href;
}

/** Whether a base URL is one of a deployment, which takes its key in the header `api-key`. */
export function isDeployment(base_url: string): boolean {
  return URL.canParse(base_url) && DEPLOYMENT.test(apiPath(new URL(base_url)));
}

/** Scheme, host and port of a base URL; empty when it is no http or https URL. */
export function originOf(base_url: string): string {
  try {
    return parseBase(base_url).origin;
  } catch {
    return "";
  }
}

/** A common spelling of the base URLs of one endpoint; empty for a text that is no URL. */
export function canonicalBase(base_url: string): string {
  try {
    const url = parseBase(base_url);
    const path = apiPath(url);
    return url.origin + (/\/v1$/.test(path) ? path.slice(0, -3) : completePath(path)) + url.search;
  } catch {
    return "";
  }
}

// A path with a version is complete. So are `/openai` after a version (`/v1beta/openai`), and deployments
// (`/openai/deployments/mine`).
const DEPLOYMENT = /\/openai\/deployments\/[^/]+$/;
const COMPLETE = RegExp(`/v\\d+\\w*(/(.*/)?openai)?$|${DEPLOYMENT.source}`);
/** The path of completions under a base URL. */
export const COMPLETIONS = "/chat/completions";

/** The path to which the path of an endpoint is appended. */
function apiPath(url: URL): string {
  const path = url.pathname.replace(/\/+$/, "");
  if (path.endsWith(COMPLETIONS)) return path.slice(0, -COMPLETIONS.length);
  return COMPLETE.test(path) ? path : `${path}/v1`;
}

/** A path that `apiPath` maps to itself. */
function completePath(path: string): string {
  return COMPLETE.test(path) ? path : path + COMPLETIONS;
}

function parseBase(base_url: string): URL {
  const url = URL.canParse(base_url) ? new URL(base_url) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.host === "") {
    throw usageError(
      "bad_base_url",
      `The base URL ${JSON.stringify(base_url)} is no web address.`,
      "Write it with its scheme, such as http://localhost:11434/v1.",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw usageError(
      "bad_base_url",
      `The base URL of ${url.host} holds a user name or a password.`,
      "Leave them out, and store a key with `svc connect`.",
    );
  }
  url.hash = "";
  return url;
}
