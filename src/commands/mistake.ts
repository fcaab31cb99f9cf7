import { formatMessage, type Message } from "@optique/core/message";
import { getDocPage, type Parser } from "@optique/core/parser";
import type { Usage } from "@optique/core/usage";
import { nearest } from "../platform/nearest.ts";

/**
 * What is wrong with a command line, as one sentence, or two where a word is nearly an option.
 *
 * @param place the words that lead to the command or subcommand that is meant
 */
export function mistake(
  error: Message,
  // deno-lint-ignore no-explicit-any
  parser: Parser<"sync", any, any>,
  place: string[],
): string {
  const said = formatMessage(error, { colors: false, quotes: true })
    .replace(/\s*\n\s*/g, " ").trim()
    .replace(/^Expected an? `([^`]+)`, but too few arguments\.$/, "$1 is missing.");
  const [, wrong] = /^Unexpected option or \w+: ["`](--?[^="`]+)[^"`]*["`]\.$/.exec(said) ?? [];
  if (wrong === undefined) return said;
  // The library looks no further than the command itself, and takes the value along.
  const guess = nearest(wrong, optionNames(getDocPage(parser, place)?.usage ?? []));
  return guess === undefined ? said : `${said} Did you mean \`${guess}\`?`;
}

function optionNames(usage: Usage): string[] {
  return usage.flatMap((term) => {
    if (term.type === "option") return [...term.names];
    if (term.type === "exclusive") return term.terms.flatMap(optionNames);
    return "terms" in term ? optionNames(term.terms) : [];
  });
}
