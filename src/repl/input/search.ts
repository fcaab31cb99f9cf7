import { graphemes } from "./graphemes.ts";
import type { Key } from "./keys.ts";

/** A search through the history, newest first, that goes on with every key. */
export interface Search {
  readonly query: string;
  /** The entry that was found. */
  readonly found?: { readonly index: number; readonly text: string; readonly at: number };
  /** Whether nothing matches the query; `found` is then the last that did. */
  readonly failed: boolean;
}

export const NEW_SEARCH: Search = { query: "", failed: false };

/**
 * What a key makes of a search: the search as it goes on, `left` when the key gives it up, `taken` when
 * what was found is taken into the line and the key then means what it always does.
 */
export function searchKey(
  search: Search,
  entries: readonly string[],
  key: Key,
): Search | "left" | "taken" {
  if (key.type !== "key") return searchFor(search, entries, search.query + key.text);
  switch (key.name) {
    case "ctrl-r":
      return searchOn(search, entries, -1);
    case "ctrl-s":
      return searchOn(search, entries, 1);
    case "backspace":
      return searchFor(NEW_SEARCH, entries, graphemes(search.query).slice(0, -1).join(""));
    case "escape":
    case "ctrl-g":
    case "ctrl-c":
      return "left";
    default:
      return "taken";
  }
}

/** The search with another query: what is found stays if it matches still. */
function searchFor(search: Search, entries: readonly string[], query: string): Search {
  const longer = query.startsWith(search.query);
  const from = longer ? search.found?.index ?? entries.length - 1 : entries.length - 1;
  return find({ ...search, query }, entries, from, -1);
}

/** The next match that is older (-1) or newer (1) and has another text. */
function searchOn(search: Search, entries: readonly string[], by: -1 | 1): Search {
  const from = search.found === undefined ? entries.length - 1 : search.found.index + by;
  return find(search, entries, from, by);
}

function find(search: Search, entries: readonly string[], from: number, by: -1 | 1): Search {
  const { query } = search;
  if (query === "") return NEW_SEARCH;
  const sameCase = query !== query.toLowerCase(); // capitals in the query are meant
  for (let index = from; index >= 0 && index < entries.length; index += by) {
    const text = entries[index]!;
    if (text === search.found?.text && index !== search.found.index) continue;
    const at = sameCase ? text.lastIndexOf(query) : text.toLowerCase().lastIndexOf(query);
    if (at >= 0) {
      return { query, found: { index, text, at: Math.min(at, text.length) }, failed: false };
    }
  }
  return { ...search, failed: true };
}
