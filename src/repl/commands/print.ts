import { usageError } from "../../platform/error.ts";
import { takeFlag, takeOption } from "../words.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "a turn again, or one part of it",
  usage: ["print <turn>[.<part>] [--full] [--run <target>]"],
  flags: { "--full": true, "--run": "targets" },
  async run(line, shell) {
    const { words: others, value: target } = takeOption(line.words, "--run");
    const { words: [place = "", ...more], set: full } = takeFlag(others, "--full");
    const [, turnNumber, partNumber] = /^#?(\d{1,9})(?:\.(\d{1,9}))?$/.exec(place) ?? [];
    if (turnNumber === undefined || more.length > 0) {
      throw usageError(
        "usage",
        "/print takes a turn, or a turn and a part: 3 or 3.2.",
        "See: /history",
      );
    }
    const [{ targetOf }, { turnLines }] = await Promise.all([
      import("./target.ts"),
      import("../render/saved_turns.ts"),
    ]);
    const { document: { turns } } = await targetOf(target, shell);
    const turn = turns.find(({ index }) => index === Number(turnNumber));
    if (turn === undefined) {
      throw usageError(
        "no_turn",
        `There is no turn ${turnNumber}.`,
        `The session has ${turns.length}.`,
      );
    }
    const part = partNumber === undefined ? undefined : Number(partNumber);
    if (part !== undefined && turn.parts[part - 1] === undefined) {
      throw usageError(
        "no_part",
        `Turn ${turnNumber} has no part ${part}.`,
        `It has ${turn.parts.length}.`,
      );
    }
    const most = full ? 0 : shell.workspace.config.get("print_max_chars");
    const { output, style } = shell;
    const columns = output.isTerminal ? output.columns() : undefined;
    for (const each of turnLines(turn, { part, most, style, columns })) output.line(each);
  },
});
