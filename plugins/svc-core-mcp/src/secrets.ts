import type { ServerSettings } from "./settings.ts";

/** Names of headers and variables whose values are credentials. */
const CREDENTIAL = /auth|cookie|credential|key|passw|secret|session|signature|token/i;
/** Characters of a value that is worth hiding: a shorter one stands in too many words. */
const LEAST = 8;

/**
 * Takes a server's credentials out of a text: its complaint about a header quotes the header, and so does
 * that of the package which sends it. What they are is known to whoever wrote the configuration.
 */
export function concealer(
  { headers, env }: Pick<ServerSettings, "headers" | "env">,
): (text: string) => string {
  const secrets = [...Object.entries(headers), ...Object.entries(env)]
    .filter(([name]) => CREDENTIAL.test(name))
    .flatMap(([, value]) => [value, value.trim(), value.replace(/^\s*[a-z]+\s+/i, "").trim()])
    .filter((value) => value.length >= LEAST)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, "(hidden)"), text);
}
