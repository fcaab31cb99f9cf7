import { checkMode } from "../../policy/settings.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "build, plan, or a mode of your own",
  usage: ["mode", "mode <name>"],
  complete: { "": "modes" },
  run({ words: [name] }, { workspace: { config }, output, io }) {
    if (name === undefined) {
      const names = ["build", "plan", ...Object.keys(config.get("modes"))];
      output.line(`${config.get("mode")} (of ${[...new Set(names)].join(", ")})`);
      return Promise.resolve();
    }
    checkMode(config, name);
    config.override("mode", name);
    io.note(`The mode is ${name} from the next turn on; keep it with: /config set mode ${name}`);
    return Promise.resolve();
  },
});
