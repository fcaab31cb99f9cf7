import { usageError } from "../../platform/error.ts";
import { takeOption } from "../words.ts";
import { slashCommand } from "./command.ts";

const SHOWN = 10;

export const command = slashCommand({
  summary: "the turns of this session, or of another run",
  usage: ["history [n|all] [--thoughts [all]] [--run <target>]"],
  complete: { "": ["all"] },
  flags: { "--thoughts": true, "--run": "targets" },
  async run(line, shell) {
    const { words: others, value: target } = takeOption(line.words, "--run");
    const at = others.indexOf("--thoughts");
    const whole = at >= 0 && others[at + 1] === "all";
    const words = at < 0 ? others : others.toSpliced(at, whole ? 2 : 1);
    const [count = String(SHOWN), ...more] = words;
    if (more.length > 0 || !/^(all|[1-9]\d{0,8})$/.test(count)) {
      throw usageError(
        "usage",
        `/history does not know "${words.join(" ")}".`,
        "See: /help history",
      );
    }
    const [{ targetOf }, { historyLines }] = await Promise.all([
      import("./target.ts"),
      import("../render/saved_turns.ts"),
    ]);
    const { document: { turns } } = await targetOf(target, shell);
    const shown = count === "all" ? turns : turns.slice(-Number(count));
    const thoughts = at < 0 ? "none" : whole ? "all" : "first";
    for (const each of historyLines(shown, thoughts, shell.style, shell.output.columns())) {
      shell.output.line(each);
    }
    const left = turns.length - shown.length;
    if (left > 0) shell.io.note(`${left} earlier: /history all`);
    if (turns.length === 0) shell.io.note("There are no turns yet.");
  },
});
