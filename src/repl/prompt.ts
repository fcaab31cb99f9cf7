import { ROOT_RUN } from "../engine/events.ts";
import { oneLine } from "../platform/terminal.ts";
import type { Shell } from "./shell.ts";

/** What stands before the line: mode, focused run and role where they are not the usual ones. */
export function promptText({ workspace: { config }, conversation, focus, style }: Shell): string {
  const mode = config.get("mode");
  const run = focus.current();
  const role = run?.role ?? conversation.role;
  const words = [
    mode === "build" ? "" : style.yellow(oneLine(mode)),
    config.get("unattended") ? style.yellow("unattended") : "",
    focus.run === ROOT_RUN ? "" : style.cyan(`#${focus.run}`),
    role !== "" && (config.get("prompt_role") || focus.run !== ROOT_RUN)
      ? style.cyan(oneLine(role))
      : "",
  ].filter((word) => word !== "");
  return [...words, style.bold("› ")].join(" ");
}
