import { textWidth } from "../../src/platform/text.ts";
import type { Cell, Screen } from "./screen.ts";

const CELL = { width: 8.4, height: 19 };
const MARGIN = { left: 16, top: 44 };
const PAPER = "#0d1117";
const INK = "#e6edf3";
const ANSI = [
  ...["#484f58", "#ff7b72", "#7ee787", "#d29922", "#79c0ff", "#d2a8ff", "#39c5cf", "#b1bac4"],
  ...["#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc"],
];

/** A screen as a picture, down to its last row that is not empty. */
export function svg(screen: Screen, title: string): string {
  const rows = screen.cells();
  while (rows.at(-1)?.every(({ text }) => text === " ")) rows.pop();
  const width = Math.ceil(2 * MARGIN.left + screen.columns * CELL.width);
  const height = MARGIN.top + rows.length * CELL.height + 8;
  const { row, column } = screen.cursor;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
    `viewBox="0 0 ${width} ${height}" role="img" aria-label="A terminal: ${title}">`,
    `<rect width="${width}" height="${height}" rx="10" fill="${PAPER}"/>`,
    ...["#ff5f56", "#ffbd2e", "#27c93f"].map((color, index) =>
      `<circle cx="${22 + 20 * index}" cy="20" r="6" fill="${color}"/>`
    ),
    '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" style="white-space: pre">',
    rect(column, row, 1, INK),
    ...rows.flatMap((cells, at) => drawn(cells, at)),
    "</g>\n</svg>\n",
  ].join("\n");
}

/** A row, in pieces of one style. */
function drawn(cells: Cell[], row: number): string[] {
  const pieces: { cell: Cell; column: number; text: string; width: number }[] = [];
  let column = 0;
  for (const cell of cells) {
    const last = pieces.at(-1);
    const { text: _, width: __, ...look } = cell;
    const { text: ___, width: ____, ...before } = last?.cell ?? cell;
    if (last !== undefined && JSON.stringify(look) === JSON.stringify(before)) {
      last.text += cell.text;
      last.width += cell.width;
    } else pieces.push({ cell, column, text: cell.text, width: cell.width });
    column += cell.width;
  }
  return pieces.flatMap(({ cell, column, text, width }) => {
    const { color, background, inverse, bold, dim, italic, underline } = cell;
    const [ink, paper] = inverse
      ? [hex(background, PAPER), hex(color, INK)]
      : [hex(color, INK), hex(background, PAPER)];
    const parts = paper === PAPER ? [] : [rect(column, row, width, paper)];
    // The scratch folder has no name that says anything.
    const shown = text.replace(/\S*svc-test-[0-9a-f]+/g, "~/harbour").trimEnd();
    if (shown === "") return parts;
    const look = [
      ...bold ? ['font-weight="bold"'] : [],
      ...dim ? ['opacity="0.6"'] : [],
      ...italic ? ['font-style="italic"'] : [],
      ...underline ? ['text-decoration="underline"'] : [],
    ].map((each) => ` ${each}`).join("");
    const start = shown.length - shown.trimStart().length;
    const x = (MARGIN.left + (column + start) * CELL.width).toFixed(1);
    const y = MARGIN.top + row * CELL.height + 14;
    const length = (textWidth(shown.trim()) * CELL.width).toFixed(1);
    return [
      ...parts,
      `<text x="${x}" y="${y}" textLength="${length}" fill="${ink}"${look}>` +
      `${escaped(shown.trim())}</text>`,
    ];
  });
}

function rect(column: number, row: number, columns: number, color: string): string {
  const x = (MARGIN.left + column * CELL.width).toFixed(1);
  const y = MARGIN.top + row * CELL.height;
  const width = (columns * CELL.width).toFixed(1);
  return `<rect x="${x}" y="${y}" width="${width}" height="${CELL.height}" fill="${color}"/>`;
}

/** A colour of the 256-colour palette. */
function hex(color: number | undefined, otherwise: string): string {
  if (color === undefined) return otherwise;
  if (color < 16) return ANSI[color]!;
  const parts = color >= 232
    ? [0, 0, 0].map(() => 8 + 10 * (color - 232))
    : [36, 6, 1].map((step) => [0, 95, 135, 175, 215, 255][Math.floor((color - 16) / step) % 6]!);
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

function escaped(text: string): string {
  // Pictures in documents collapse other spaces.
  return text.replaceAll(" ", "\u00a0").replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(
    ">",
    "&gt;",
  );
}
