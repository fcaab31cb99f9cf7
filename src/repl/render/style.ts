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
}

/** Terminal colours; plain text when `NO_COLOR` is set or output is not a terminal. */
export function style({ enabled }: { enabled: boolean }): Style {
  const paint = (on: number, off: number) => {
    const [open, close] = [`\x1b[${on}m`, `\x1b[${off}m`];
    return (text: string): string => {
      if (!enabled || text === "") return text;
      // Nested styles may end with the same sequence; reopen this style after it.
      return open + text.replaceAll(close, close + open) + close;
    };
  };
  return {
    enabled,
    bold: paint(1, 22),
    dim: paint(2, 22),
    italic: paint(3, 23),
    underline: paint(4, 24),
    strike: paint(9, 29),
    red: paint(31, 39),
    green: paint(32, 39),
    yellow: paint(33, 39),
    blue: paint(34, 39),
    magenta: paint(35, 39),
    cyan: paint(36, 39),
  };
}
