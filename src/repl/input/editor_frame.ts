import type { Edited } from "./editor.ts";
import type { Folds } from "./folds.ts";
import type { ReadOptions } from "./read.ts";
import { type Frame, type Laid, layOut } from "./layout.ts";
import { menuRows } from "./menu.ts";
import type { Search } from "./search.ts";
import type { Menu } from "./tab.ts";
import type { TerminalPort } from "./terminal.ts";
import type { Widths } from "./width.ts";

/** What a read has come to, as far as it can be seen. */
export interface Editing {
  options: Pick<ReadOptions, "prompt" | "hidden">;
  edited: Edited;
  folds: Folds;
  search?: Search;
  menu?: Menu;
  size: ReturnType<TerminalPort["size"]>;
  widths: Widths;
}

const CONTINUATION = "\x1b[2m... \x1b[0m";

/** The rows of a read: its prompt, or that of a search, with the text, and the candidates below. */
export function editorFrame(editing: Editing): Frame {
  const { menu, widths, size: { columns, rows } } = editing;
  const frame = layOut({ ...shown(editing), continuation: CONTINUATION, columns, widths });
  if (menu === undefined) return frame;
  const room = Math.max(Math.floor(rows / 2), rows - frame.rows.length);
  return { ...frame, below: menuRows(menu.candidates, menu.chosen, columns, room, widths) };
}

function shown(
  { options: { prompt, hidden }, edited, folds, search }: Editing,
): Pick<Laid, "prompt" | "text" | "cursor" | "label"> {
  if (hidden) return { prompt, text: "", cursor: 0 };
  const label = (character: string) => folds.label(character);
  if (search === undefined) return { prompt, text: edited.text, cursor: edited.cursor, label };
  const { found, query, failed } = search;
  return {
    prompt: `(${failed ? "nothing older" : "search"}) ${query}: `,
    text: found?.text ?? "",
    cursor: found?.at ?? 0,
    label,
  };
}
