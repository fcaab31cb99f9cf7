/** Makes the screenshots of docs/repl.md from the screen of the real program: `deno task screenshots`. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { call, say, usage } from "../support/backend.ts";
import { type Session, session } from "../support/repl.ts";
import { svg } from "../support/svg.ts";

const DOCS = fileURLToPath(new URL("../../docs", import.meta.url));
const PRICES = { "generic-compatible/tide-large": { in: 1, out: 5 } };
const BASE = { model: "tide-large", context_window: 128_000, prices: PRICES, "repl.theme": "dark" };
const TIDES = `import { readTable } from "./table.ts";

/** The height of high water at a harbour. */
export function highWater(harbour: string): number {
  const table = readTable(harbour);
  return Math.max(...table.map(({ height }) => height));
}
`;
const FIXED = TIDES.replace(
  "  return Math.max(...table.map(({ height }) => height));",
  "  if (table.length === 0) throw new Error(`no table for ${harbour}`);\n" +
    "  return Math.max(...table.map((row) => row.height));",
);
const FAILING = 'for n in $(seq 1 24); do echo "table $n ... ok"; done; ' +
  "echo 'Husum ... FAILED: -Infinity'; exit 1";

await shot("command", "a command whose last lines are shown, with its exit code", [
  call("run_command", { command: FAILING }),
  say(
    "The table of Husum is empty, and `Math.max()` of nothing is `-Infinity`:\n\n```ts\n" +
      "if (table.length === 0) throw new Error(harbour); // no tide at all\n```\n",
    usage(18_200, 310),
  ),
], async ({ pty, ready }) => {
  await pty.type("why do the tests fail?\r");
  await pty.until("no tide");
  await ready();
}, { tool_permission: { bash: "allow" } });

await shot("diff", "the diff of an edit that is to be confirmed", [
  call("file_write", { path: "src/tides.ts", content: FIXED }),
  say("done"),
], async ({ pty }) => {
  await pty.type("fix it\r");
  await pty.until(/\[n\] no/);
}, { tool_permission: { edit: "ask" } });

await shot("sessions", "the list of saved sessions", [
  say("High water is at noon.", usage(4_100, 50)),
  say("I have moved it.", usage(9_800, 420)),
  say("There are 24 tables.", usage(3_900, 40)),
], async ({ pty, enter, ready }) => {
  await enter("when is high water at Husum?", "noon");
  await enter("/clear", "new");
  await enter("move the tables to data/", "moved");
  await enter("/session new", "new session");
  await enter("how many tables are there?", "24");
  await ready();
  await pty.type("\x0c/sessions\r");
  await pty.until("type to filter");
});

await shot("start", "the banner, and the line after a turn", [
  say("High water at **Husum** is at noon today.", usage(21_400, 120)),
], async ({ pty, enter, ready }) => {
  await pty.until("sandbox:");
  await enter("when is high water at Husum?", "noon");
  await ready();
});

await shot("ask", "a question of the agent with its options", [
  call("ask", {
    question: "Which tables may I delete?",
    context: "data/ has tables of 2024 and of 2025 that nothing reads any more.",
    options: ["those of 2024", "both years", "none"],
  }),
], async ({ pty }) => {
  await pty.type("tidy up data/\r");
  await pty.until("or a number:");
});

/** Draws the screen at the end of the acts into `docs/terminal-<name>.svg`. */
async function shot(
  name: string,
  title: string,
  replies: Parameters<typeof session>[0],
  acts: (open: Session) => Promise<void>,
  config: Record<string, unknown> = {},
): Promise<void> {
  await using open = await session(replies, {
    config: { ...BASE, ...config },
    files: { "src/tides.ts": TIDES },
    columns: 84,
    rows: 30,
  });
  await acts(open);
  await Deno.writeTextFile(join(DOCS, `terminal-${name}.svg`), svg(open.pty.screen, title));
}
