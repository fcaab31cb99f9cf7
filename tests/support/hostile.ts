const TAGS = Array.from("hide", (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0)));
/** A text that acts on a terminal and hides text. Of it, `MARK` and what a cut sequence leaves as plain text may arrive. */
export const HOSTILE =
  "MARK\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07\x1b]8;;http://x\x1b\\\x1b[2J\x1b[31m\x9b1A\x1bPq\x1b\\" +
  `\x1bc\x08\x07\x7f\x85\r\u202e\u2066\u2069\u200e\u200f\u061c\u200b\u2060\u2064\ufeff\u2028\u2029${
    TAGS.join("")
  }`;
/** What a text on a terminal may not hold: it acts on the terminal or is invisible. */
export const FORBIDDEN =
  /(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;
