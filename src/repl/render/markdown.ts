import { stripControl } from "../../platform/terminal.ts";
import type { Style } from "./style.ts";

/** Markdown for a terminal, rendered as it arrives: how it is cut into pieces makes no difference. */
export class MarkdownStream {
  constructor(_style: Style, _columns: () => number) {}

  /** What can be shown now that this piece has come. */
  write(piece: string): string {
    return stripControl(piece);
  }

  /** The rest. The stream is as new afterwards. */
  end(): string {
    return "";
  }
}

/** A whole text. */
export function renderMarkdown(text: string, style: Style, columns: number): string {
  const stream = new MarkdownStream(style, () => columns);
  return stream.write(text) + stream.end();
}
