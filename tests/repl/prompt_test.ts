import assert from "node:assert/strict";
import { ROOT_RUN } from "../../src/engine/events.ts";
import { style } from "../../src/platform/style.ts";
import type { Shell } from "../../src/repl/shell.ts";
import { promptText } from "../../src/repl/terminal_session.ts";

Deno.test("the prompt has the mode in its color, unattended, the focused run and, with prompt_role, the role [2.13]", () => {
  const settings = { mode: "build", modes: {}, unattended: false, prompt_role: false };
  const prompt = (changed: object, role = "", run = ROOT_RUN) => {
    const values: Record<string, unknown> = { ...settings, ...changed };
    return promptText({
      workspace: { config: { get: (key: string) => values[key] } },
      conversation: { role: "" },
      focus: { run, current: () => ({ role }) },
      style: style({ enabled: true }),
    } as unknown as Shell).replaceAll("\x1b[", "^");
  };
  const modes = { review: { color: "green" }, odd: { color: "beige" } };
  assert.equal(prompt({}), "^1m› ^22m");
  assert.equal(prompt({ mode: "plan" }), "^33mplan^39m ^1m› ^22m");
  assert.equal(prompt({ mode: "review", modes }), "^32mreview^39m ^1m› ^22m");
  assert.equal(prompt({ mode: "odd", modes }), "^33modd^39m ^1m› ^22m");
  assert.equal(prompt({ unattended: true }), "^33munattended^39m ^1m› ^22m");
  assert.equal(prompt({}, "tester"), "^1m› ^22m");
  assert.equal(prompt({ prompt_role: true }, "tester"), "^36mtester^39m ^1m› ^22m");
  assert.equal(prompt({}, "tester", 2), "^36m#2^39m ^36mtester^39m ^1m› ^22m");
});
