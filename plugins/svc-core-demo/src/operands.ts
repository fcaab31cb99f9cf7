import type { Masked } from "./masked.ts";
import { bare, looksLikeFile } from "./names.ts";

/** The name by which a request refers to the file that was last talked about. */
export const IT = "\0it";

/** The files that a clause names, in its order. */
export function filesOf(clause: string, masked: Masked): string[] {
  const all = words(clause);
  const names = all.filter((word) => masked.isQuoted(word) || looksLikeFile(bare(word)))
    .map((word) => usualName(masked.name(word))).filter((name) => name !== "");
  if (names.length > 0) return [...new Set(names)];
  const after = /\b(?:the )?file (?:called |named )?(\S+)$/iu.exec(clause)?.[1] ??
    /(?:^|\s)(\S+) file$/iu.exec(clause)?.[1] ??
    /^(?:read|open|cat|view|show|print|display|wc -l)(?: me)? (\S+)$/iu.exec(clause)?.[1];
  if (after !== undefined && !FILLER.test(bare(after))) return [masked.name(after)];
  return /\b(?:it|that file|this file|the file|the same file|them)\b/iu.test(clause) ? [IT] : [];
}

const FILLER =
  /^(?:it|that|this|the|a|an|them|me|everything|all|some|any|my|your|which|what|does|is|have|has)$/iu;

/** "the readme" is the name of no file. */
function usualName(name: string): string {
  if (/^readme$/i.test(name)) return "README.md";
  return /^changelog$/i.test(name) ? "CHANGELOG.md" : name;
}

/** The path of the one file that a word stands for. */
export function fileName(word: string, masked: Masked): string {
  const name = masked.name(word);
  return /^(?:it|that|this)$/iu.test(name) ? IT : name;
}

/** The folder or file to look in; what means "everywhere" is the worktree. */
export function place(where: string | undefined, masked: Masked): string {
  if (where === undefined) return ".";
  const name = masked.name(
    where.trim().replace(/^(?:(?:the|this|that|my|our|all|every|current|whole|entire)\s+)+/iu, "")
      .replace(/^(?:file|folder|directory|dir)s?\s+/iu, "")
      .replace(/\s+(?:file|folder|directory|dir|project|recursively)$/iu, ""),
  );
  if (/^(?:it|file)$/iu.test(name)) return IT;
  return EVERYWHERE.test(name) ? "." : name;
}

const EVERYWHERE =
  /^(?:|here|there|everywhere|anywhere|files?|folders?|director(?:y|ies)|contents?|everything|entries|project|repo|repository|worktree|workspace|codebase|code|source|tree|working directory|current directory|root)$/iu;

/** The words of a clause, without commas. */
export function words(clause: string): string[] {
  return clause.split(/[\s,]+/u).filter((word) => word !== "");
}
