import { usageError } from "../../platform/error.ts";
import { slashCommand } from "./command.ts";

const EFFORTS = ["off", "on", "auto", "low", "medium", "high"];

export const command = slashCommand({
  summary: "show or hide reasoning, or say how much",
  usage: ["thinking", "thinking show|hide", `thinking ${EFFORTS.join("|")}`],
  complete: { "": ["show", "hide", ...EFFORTS] },
  run({ words: [word] }, { workspace: { config }, output, io }) {
    if (word === undefined) {
      const shown = config.get("show_thinking") ? "shown" : "hidden";
      output.line(`reasoning ${config.get("reasoning")}, ${shown}`);
    } else if (word === "show" || word === "hide") {
      config.override("show_thinking", word === "show");
      io.note(`The model's reasoning is ${word === "show" ? "shown" : "hidden"} from now on.`);
    } else if (EFFORTS.includes(word)) {
      config.override("reasoning", word);
      io.note(`Reasoning is ${word} from the next turn on.`);
    } else {
      throw usageError("usage", `/thinking does not know "${word}".`, "See: /help thinking");
    }
    return Promise.resolve();
  },
});
