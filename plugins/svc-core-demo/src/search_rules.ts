import type { Intent } from "./intent.ts";
import type { Masked } from "./masked.ts";
import { looksLikeFile } from "./names.ts";
import { place, words } from "./operands.ts";

/** Finds files by name. */
export function glob(clause: string, masked: Masked): Intent | undefined {
  const pattern = words(clause).map((word) => masked.name(word)).find((word) =>
    /\*/.test(word) && !/^\*+$/.test(word)
  );
  if (pattern !== undefined && !/^(?:find|search|grep|look) for\b/iu.test(clause)) {
    return { kind: "glob", pattern: pattern.includes("/") ? pattern : `**/${pattern}`, path: "." };
  }
  const match =
    /^(?:find|locate|where(?: is|'s|’s| are| can i find))(?: (?:me|the|a|any|all|every))* (?:files? )?(?:called |named )?(\S+)(?: file)?$/iu
      .exec(clause);
  if (match === null) return undefined;
  const name = masked.name(match[1]!);
  const sought = looksLikeFile(name) || /\b(?:called|named)\b/iu.test(clause);
  return sought ? { kind: "glob", pattern: `**/${name}`, path: "." } : undefined;
}

/** Finds text in files. */
export function find(clause: string, masked: Masked): Intent | undefined {
  if (
    /^how many (?:files|folders|directories|entries|things|items)\b(?! (?:contain|mention|use|have|match))/iu
      .test(clause)
  ) {
    return undefined;
  }
  for (const pattern of FIND) {
    const match = pattern.exec(clause);
    if (match === null) continue;
    const what = match.groups?.what ?? match[1]!;
    const where = match.groups?.where ?? match[2];
    const asRegex = /^(?:the )?(?:regex|regexp|pattern|regular expression) (.+)$/iu.exec(what);
    if (asRegex !== null) {
      return {
        kind: "find",
        text: masked.operand(asRegex[1]!),
        path: place(where, masked),
        regex: true,
      };
    }
    const plain = masked.operand(
      what.replace(
        /^(?:(?:the|a|an|any|all|every)\s+)?(?:(?:word|text|string|phrase|term|name|function|class|variable|symbol|comment)s?\s+)?/iu,
        "",
      ),
    );
    const text = /^[\p{Lu}]{2,}s$/u.test(plain) ? plain.slice(0, -1) : plain;
    if (text === "") return { kind: "unclear", question: "What text should I look for?" };
    return { kind: "find", text, path: place(where, masked), regex: false };
  }
  return undefined;
}

/** Patterns for finding text: what is sought and, after it, where. */
const FIND = [
  /\b(?:where|in (?:which|what) files?) (?:is|are|do|does|did|can i find|have)(?: (?:we|i|you|it))? (.+?)(?: (?:being |get )?(?:mentioned|used?|defined|declared|referenced|called|found|occur|appear|come up|written|set))+(?: (?:in|under|inside|within|across) (.+))?$/isu,
  /\b(?:which|what|list|show me|find)(?: (?:all|the|me|every|any))* (?:files?|lines?|places?|code)(?: that| which)? (?:contain|mention|use|have|reference|include|define|call|match)(?:s|es|ing)? (.+?)(?: (?:in|under|inside|within) (.+))?$/isu,
  /\bhow (?:many (?:times|lines|files)|often) (?:does|do|is|are|did|contain|mention|have|match)s? (.+?)(?: (?:appear|occur|mentioned|used|come up|found|show up)s?)?(?: (?:in|under|inside|within) (.+))?$/isu,
  /\bhow many (.+?) (?:are|do)(?: there| we have| you see| you find)?(?: (?:in|under|inside|within) (.+))?$/isu,
  /^(?:search|grep|look)(?: in| through| inside)? (?:the )?(?<where>.+?) for (?<what>.+)$/isu,
  /^(?:grep|rg) (?<what>(?!for )\S+) (?<where>\S+)$/isu,
  /^(?:does|do|is|are) (?<where>\S+) (?:contain|mention|include|have|mentioning)s? (?<what>.+)$/isu,
  /^(?:does|do|is|are)(?: there)?(?: any| an?)? (.+?)(?: (?:appear|occur|mentioned|used|defined|exist)s?)?(?: (?:anywhere )?(?:in|under|inside|within|anywhere in) (.+))$/isu,
  /^(?:find|search(?: for)?|grep(?: for)?|look for|locate|look up|rg|spot)(?: me)? (?:(?:all|the|every|any|each) )*(?:(?:occurrences?|mentions?|uses?|usages?|references?|instances?|places?|lines?|files?) (?:of|to|with|containing|mentioning|that (?:mention|contain|say)s?) )?(.+?)(?:,? (?:in|under|inside|within|across|through) (.+))?$/isu,
];
