const ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz";

/** Six random characters of base 36: the id of a session (specification 2.1). */
export function mintId(): string {
  let id = "";
  while (id.length < 6) {
    for (const byte of crypto.getRandomValues(new Uint8Array(8))) {
      // 252 is the largest multiple of 36 in a byte; the rest would favour the first letters.
      if (byte < 252 && id.length < 6) id += ALPHABET[byte % 36];
    }
  }
  return id;
}
