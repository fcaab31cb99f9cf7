import type { Environment } from "./environment.ts";

/** Styles text with SGR sequences, or returns it unchanged. */
export interface Style {
  /** False: every function returns its text unchanged. */
  readonly enabled: boolean;
  bold(text: string): string;
  dim(text: string): string;
  italic(text: string): string;
  underline(text: string): string;
  strike(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  blue(text: string): string;
  magenta(text: string): string;
  cyan(text: string): string;
  /** Marks words of a line that were added. */
  added(text: string): string;
  /** Marks words of a line that were removed. */
  removed(text: string): string;
}

/** The background that colours are chosen for; `both` is readable on either, `none` has no colours. */
export type Theme = "dark" | "light" | "both" | "none";

type Color = "red" | "green" | "yellow" | "blue" | "magenta" | "cyan" | "added" | "removed";

/** The SGR parameters that begin and end each colour. `dark` has the terminal's own palette. */
export const PALETTES: Readonly<Record<Theme, Readonly<Record<Color, readonly [string, string]>>>> =
  {
    dark: palette(["31", "32", "33", "34", "35", "36"], [["48;5;22", "49"], ["48;5;52", "49"]]),
    light: palette(
      ["38;5;124", "38;5;22", "38;5;94", "38;5;25", "38;5;90", "38;5;23"],
      [["48;5;194", "49"], ["48;5;224", "49"]],
    ),
    both: palette(
      ["38;5;160", "38;5;28", "38;5;130", "38;5;32", "38;5;133", "38;5;30"],
      [["4", "24"], ["4", "24"]],
    ),
    none: palette(["", "", "", "", "", ""], [["4", "24"], ["4", "24"]]),
  };

function palette(
  [red, green, yellow, blue, magenta, cyan]: string[],
  [added, removed]: [string, string][],
): Record<Color, readonly [string, string]> {
  const color = (code: string | undefined) => [code!, code === "" ? "" : "39"] as const;
  return {
    red: color(red),
    green: color(green),
    yellow: color(yellow),
    blue: color(blue),
    magenta: color(magenta),
    cyan: color(cyan),
    added: added!,
    removed: removed!,
  };
}

/**
 * The theme of the setting `repl.theme`. `auto` follows `COLORFGBG`, in which some terminals name the numbers of their
 * colours. Without it, a terminal of 256 colours gets those that are readable on both backgrounds.
 */
export function themeOf(
  setting: Theme | "auto",
  { COLORFGBG, TERM }: { COLORFGBG?: string; TERM?: string },
): Theme {
  if (setting !== "auto") return setting;
  const background = /;(\d+)$/.exec(COLORFGBG ?? "")?.[1];
  if (background !== undefined) return /^(7|9|1[0-5])$/.test(background) ? "light" : "dark";
  return /256color|kitty|ghostty|alacritty|foot/.test(TERM ?? "") ? "both" : "dark";
}

/** The colours of a terminal; none when `NO_COLOR` is set, or the output is not a terminal. */
export function terminalStyle(
  { isTerminal, environment, setting }: {
    isTerminal: boolean;
    environment: Pick<Environment, "get">;
    /** The current value of the setting `repl.theme`. */
    setting(): Theme | "auto";
  },
): Style {
  const [COLORFGBG, TERM] = [environment.get("COLORFGBG"), environment.get("TERM")];
  return style({
    enabled: isTerminal && environment.get("NO_COLOR") === undefined,
    theme: () => themeOf(setting(), { COLORFGBG, TERM }),
  });
}

/**
 * Terminal colours; plain text when `NO_COLOR` is set or output is not a terminal.
 *
 * @param options.theme the current theme; default: `dark`
 */
export function style(
  { enabled, theme = () => "dark" }: { enabled: boolean; theme?: () => Theme },
): Style {
  const paint = (codes: () => readonly [string, string]) => (text: string): string => {
    const [on, off] = codes();
    if (!enabled || on === "" || text === "") return text;
    const [open, close] = [`\x1b[${on}m`, `\x1b[${off}m`];
    // Nested styles may end with the same sequence; reopen this style after it.
    return open + text.replaceAll(close, close + open) + close;
  };
  const color = (name: Color) => paint(() => PALETTES[theme()][name]);
  return {
    enabled,
    bold: paint(() => ["1", "22"]),
    dim: paint(() => ["2", "22"]),
    italic: paint(() => ["3", "23"]),
    underline: paint(() => ["4", "24"]),
    strike: paint(() => ["9", "29"]),
    red: color("red"),
    green: color("green"),
    yellow: color("yellow"),
    blue: color("blue"),
    magenta: color("magenta"),
    cyan: color("cyan"),
    added: color("added"),
    removed: color("removed"),
  };
}
