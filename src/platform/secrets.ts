/** Characters of a secret that is masked at least; shorter values occur in ordinary text. */
const LEAST = 8;

/** Names of variables and headers whose values are secrets. */
const SECRET_NAME = /auth|cookie|credential|key|passw|secret|signature|token/i;
/** Names of places of secrets, which are none themselves. */
const PLACE_NAME = /(_FILE|_PATH|_DIR|_SOCK|_HOME)$/i;

/** The values of the entries whose names say that they are secrets. */
export function secretValues(entries: Iterable<[name: string, value: string]>): string[] {
  return [...entries]
    .filter(([name]) => SECRET_NAME.test(name) && !PLACE_NAME.test(name))
    .flatMap(([, value]) => [value.trim(), value.trim().replace(/^(Basic|Bearer|Token)\s+/i, "")]);
}

/** Replaces secrets in texts by `[masked]`, also percent-encoded and in base64. */
export class SecretMask {
  #key = "";
  #pattern: RegExp | undefined;

  /** @param secrets the current secrets; those under eight characters are ignored */
  apply(text: string, secrets: string[]): string {
    const known = [...new Set(secrets)].filter((secret) => secret.length >= LEAST).sort();
    const key = known.join("\0");
    if (key !== this.#key) {
      this.#key = key;
      const patterns = known.sort((a, b) => b.length - a.length).flatMap(forms);
      this.#pattern = new RegExp(patterns.join("|"), "gu");
    }
    return this.#key === "" ? text : text.replace(this.#pattern!, "[masked]");
  }
}

/** Regular expressions of a secret: as it is or percent-encoded in any part, and in base64. */
function forms(secret: string): string[] {
  const characters = [...secret].map((character) => {
    const encoded = [...new TextEncoder().encode(character)]
      .map((byte) => `%${anyCase(byte.toString(16).padStart(2, "0"))}`).join("");
    return `(?:${RegExp.escape(character)}|${encoded}${character === " " ? "|\\+" : ""})`;
  });
  return [characters.join(""), ...[0, 1, 2].map((offset) => base64(secret, offset))];
}

/** The characters of base64 that the secret alone determines when `offset` bytes (modulo 3) precede it. */
function base64(secret: string, offset: number): string {
  const bytes = new TextEncoder().encode(secret);
  const padded = new Uint8Array(offset + bytes.length);
  padded.set(bytes, offset);
  const first = Math.ceil(offset * 8 / 6);
  const last = Math.floor(padded.length * 8 / 6);
  return [...padded.toBase64().slice(first, last)]
    .map((digit) => digit === "+" ? "[+\\-]" : digit === "/" ? "[\\/_]" : digit)
    .join("(?:\\r?\\n)?"); // programs break lines
}

function anyCase(hex: string): string {
  return hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}
