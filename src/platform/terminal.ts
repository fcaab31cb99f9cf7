/**
 * Makes text from a model, a tool or a server harmless to print: removes escape sequences (CSI, OSC,
 * DCS and the like), the C0 and C1 control characters except tab and line feed, and the bidirectional
 * overrides that can disguise a command.
 */
export function stripControl(text: string): string {
  return SUSPECT.test(text) ? text.replace(SEQUENCES, "").replace(CONTROLS, "") : text;
}

// deno-lint-ignore no-control-regex
const SUSPECT = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\u200e\u200f]/;
const SEQUENCES =
  // deno-lint-ignore no-control-regex
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]/g;
// deno-lint-ignore no-control-regex
const CONTROLS =
  /\r(?=\n)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\u200e\u200f]/g;
