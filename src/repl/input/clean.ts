import { stripControl } from "../../platform/terminal.ts";

/**
 * What is typed or pasted, as it goes into a message: line feeds end its lines, and control characters,
 * escape sequences and bidirectional marks are gone, so that showing it can do no harm. The
 * noncharacters that stand for folded pastes (folds.ts) are ours alone.
 */
export function cleanInput(text: string): string {
  return stripControl(text.replace(/\r\n?/g, "\n")).replace(/[\ufdd0-\ufdef]/g, "");
}
