import { VERSION } from "../../platform/environment.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "show the version",
  usage: ["version"],
  run(_line, { output }) {
    output.line(`svc ${VERSION}`);
    return Promise.resolve();
  },
});
