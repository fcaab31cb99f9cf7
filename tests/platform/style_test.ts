import assert from "node:assert/strict";
import { PALETTES, style, themeOf } from "../../src/platform/style.ts";

Deno.test("auto follows COLORFGBG, and without it takes colours that are readable on both backgrounds", () => {
  const theme = (variables: Record<string, string>) => themeOf("auto", variables);
  assert.equal(theme({ COLORFGBG: "0;15" }), "light");
  assert.equal(theme({ COLORFGBG: "15;default;0" }), "dark");
  assert.equal(theme({ TERM: "xterm-256color" }), "both");
  assert.equal(theme({ TERM: "linux" }), "dark");
  assert.equal(themeOf("light", { COLORFGBG: "15;0" }), "light");
});

Deno.test("the colours of a theme have contrast on its background", () => {
  const least = { light: { white: 4.5, black: 0 }, both: { white: 3, black: 3 } };
  for (const [theme, { white, black }] of Object.entries(least)) {
    for (const [name, [on]] of Object.entries(PALETTES[theme as keyof typeof least])) {
      const color = /^38;5;(\d+)$/.exec(on)?.[1];
      if (color === undefined) continue;
      const light = luminance(Number(color));
      assert.ok(1.05 / (light + 0.05) >= white, `${theme}: ${name} on white`);
      assert.ok((light + 0.05) / 0.05 >= black, `${theme}: ${name} on black`);
    }
  }
});

Deno.test("the theme none marks words without colours", () => {
  const { red, added, bold } = style({ enabled: true, theme: () => "none" });
  assert.equal(red("a"), "a");
  assert.equal(added("a") + bold("b"), "\x1b[4ma\x1b[24m\x1b[1mb\x1b[22m");
  assert.equal(style({ enabled: false }).added("a"), "a");
});

/** The relative luminance of a colour of the 6 × 6 × 6 cube (WCAG 2). */
function luminance(color: number): number {
  const steps = [0, 95, 135, 175, 215, 255];
  const parts = [Math.floor((color - 16) / 36), Math.floor((color - 16) / 6) % 6, (color - 16) % 6];
  const [red, green, blue] = parts.map((part) => {
    const share = steps[part]! / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
