import { usageError } from "../../platform/error.ts";
import { slashCommand } from "./command.ts";

export const command = slashCommand({
  summary: "whether somebody is there to answer",
  usage: ["unattended", "unattended on|off|toggle"],
  complete: { "": ["on", "off", "toggle"] },
  run({ words: [word] }, { workspace: { config }, output }) {
    const now = config.get("unattended");
    if (word !== undefined) {
      if (!["on", "off", "toggle"].includes(word)) {
        throw usageError("usage", `/unattended does not know "${word}".`, "Say on, off or toggle.");
      }
      config.override("unattended", word === "toggle" ? !now : word === "on");
    }
    output.line(
      config.get("unattended")
        ? "unattended: confirmations are denied, and questions for a human are parked (/asks)"
        : "attended: confirmations and questions come to you",
    );
    return Promise.resolve();
  },
});
