import { type Candidate, completed, type Completer } from "./completion.ts";
import { type Edited, splice } from "./editor.ts";
import { cleanInput } from "./clean.ts";

/** The candidates that are listed below the line. */
export interface Menu {
  readonly candidates: Candidate[];
  readonly from: number;
  /** The text before a candidate was put into it. */
  readonly base: Edited;
  /** The candidate that stands in the line now. */
  readonly chosen?: number;
}

export interface Tabbed {
  edited: Edited;
  menu?: Menu;
}

/** Tab: as much as the candidates have in common, else a list of them. */
export async function tab(edited: Edited, complete: Completer): Promise<Tabbed> {
  const menu = await listFor(edited, complete);
  if (menu === undefined) return { edited };
  const more = moreInCommon(menu);
  if (more !== undefined) return { edited: more };
  return menu.candidates.length > 1 ? { edited, menu } : { edited };
}

/** Tab or Shift-Tab (-1) while candidates are listed: what they have in common, else the next of them. */
export function tabAgain(menu: Menu, by: -1 | 1): Tabbed {
  const more = menu.chosen === undefined ? moreInCommon(menu) : undefined;
  return more === undefined ? cycle(menu, by) : { edited: more };
}

function moreInCommon({ base, from, candidates }: Menu): Edited | undefined {
  const text = completed(candidates, base.text.slice(from, base.cursor));
  return text === undefined ? undefined : splice(base, from, base.cursor, text);
}

/** The list for the text as it is; undefined when there is nothing to list. */
export async function listFor(edited: Edited, complete: Completer): Promise<Menu | undefined> {
  const { from, candidates } = await complete(edited.text, edited.cursor);
  // A file's name may hold anything; one that could not be typed is not offered.
  const usable = candidates.filter(({ text }) => text !== "" && cleanInput(text) === text);
  const known = from >= 0 && from <= edited.cursor;
  return usable.length > 0 && known ? { candidates: usable, from, base: edited } : undefined;
}

/** Puts the next (1) or the last (-1) candidate into the line. */
function cycle(menu: Menu, by: -1 | 1): Tabbed {
  const { candidates, from, base, chosen } = menu;
  const count = candidates.length;
  const next = chosen === undefined ? (by > 0 ? 0 : count - 1) : (chosen + by + count) % count;
  const edited = splice(base, from, base.cursor, candidates[next]!.text);
  return { edited, menu: { ...menu, chosen: next } };
}
