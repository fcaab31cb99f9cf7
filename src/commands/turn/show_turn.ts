import { ROOT_RUN, type TurnEvent } from "../../engine/events.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { stripControl } from "../../platform/terminal.ts";
import { activity } from "./activity.ts";
import { type Io, toJson } from "../io.ts";

/** How a turn is shown. */
export interface TurnShown {
  output: "json" | "text" | "stream-json";
  verbose: boolean;
}

/**
 * Shows a turn to its end: its result or its answer as output, what the agents do as notes.
 *
 * @returns the exit code: 0 for a turn that ended `ok` or `truncated`, 130 for a cancelled one, else 1
 */
export async function showTurn(
  turn: AsyncIterable<TurnEvent>,
  shown: TurnShown,
  { asks }: Pick<Workspace, "asks">,
  io: Io,
): Promise<number> {
  const show = turnRenderer(shown, asks.path, io);
  let status = "";
  for await (const event of turn) {
    show(event);
    if (event.type === "turn_finished" && event.run === ROOT_RUN) status = event.result.status;
  }
  if (status === "cancelled") return 130;
  return status === "ok" || status === "truncated" ? 0 : 1;
}

/** Shows the events of a turn as they come. */
export function turnRenderer(
  { output, verbose }: TurnShown,
  asksPath: string,
  io: Io,
): (event: TurnEvent) => void {
  const asks = verbose || output === "text" ? asksPath : undefined;
  const note = activity(io, { verbose, asks });
  let open = false; // text has been printed that does not end its line yet
  return (event) => {
    if (output === "stream-json") io.out(toJson(event) + "\n");
    if (output === "text" && event.run === ROOT_RUN) {
      if (event.type === "token") {
        io.out(stripControl(event.content));
        open = !event.content.endsWith("\n");
      } else if (open && event.type !== "thinking") {
        io.out("\n");
        open = false;
      }
    }
    note(event);
    if (output === "json" && event.type === "turn_finished" && event.run === ROOT_RUN) {
      io.out(toJson(event.result, 2) + "\n");
    }
  };
}
