import { readLine } from "../words.ts";
import { slashCommand } from "./command.ts";

const ACTIONS = ["get", "set", "unset", "reload", "schema"];

export const command = slashCommand({
  summary: "settings; changes hold from the next turn on",
  usage: [
    "config [get] [key ...] [--show-origin]",
    "config [--global|--local] set <key> <value>",
    "config [--global|--local] unset <key>",
    "config reload",
  ],
  complete: { "": ACTIONS, get: "keys", set: "keys", unset: "keys" },
  flags: { "--global": true, "--local": true, "--show-origin": true },
  async run(line, shell) {
    const [{ runTwin }, { config }] = await Promise.all([
      import("./twin.ts"),
      import("../../commands/config.ts"),
    ]);
    const flags = line.words.filter((word) => word.startsWith("--"));
    const [action = "get", ...others] = line.words.filter((word) => !word.startsWith("--"));
    const [key] = others;
    if (action === "set" && key !== undefined && !flags.includes("--help")) {
      // The value may be JSON with blanks and quotes of its own: it is taken as it was typed.
      const typed = line.rest(line.words.indexOf(key, 1) + 1);
      const value = readLine(typed.replace(/\s+--(?:global|local)$/, "")).rest(0);
      const scope = flags.filter((flag) => flag === "--global" || flag === "--local");
      return await runTwin(config, ["config", "set", ...scope, "--", key, value], shell);
    }
    const words = ACTIONS.includes(action) ? [action, ...others] : ["get", action, ...others];
    await runTwin(config, ["config", ...words, ...flags], shell);
  },
});
