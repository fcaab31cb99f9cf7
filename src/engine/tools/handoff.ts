import { targetRun } from "../runs.ts";
import type { CoreTool } from "./core.ts";

/** `handoff` (specification 3.6, 4.8): this agent stops, and the operator continues with another run. */
export const handoffTool: CoreTool = {
  name: "handoff",
  description:
    "End your turn and let the person continue with another run, or say that this one is done; " +
    "say what is to be known in the same reply.",
  parameters: {
    type: "object",
    properties: {
      target: {
        type: "string",
        description: "Its number (#2), its session's name or id, or parent, child, sibling, root.",
      },
      done: { type: "boolean" },
    },
  },
  permission: "handoff",
  read_only: true,
  key_arg: "target",
  loop: "stop",
  handler({ target = "", done = false }, { agent }) {
    const { run, runs, emit } = agent;
    const wanted: string = target.trim();
    if (done || wanted === "done") {
      emit({ type: "handoff", run, target: "done" });
      return `Run #${run} is done.`;
    }
    if (wanted === "") return "Error: handoff needs a target, or done";
    const found = targetRun(runs, run, wanted);
    if (found === undefined) {
      const known = runs.list().slice(-MOST_NAMED)
        .map(({ id, role }) => role === "" ? `#${id}` : `#${id} (${role})`);
      return `Error: there is no run ${JSON.stringify(wanted)} to hand over to; the runs are ` +
        known.join(", ");
    }
    if (found.id === run) {
      return `Error: run #${run} is this one; hand over to another, or say done`;
    }
    runs.finish(run, "paused");
    emit({ type: "handoff", run, target: found.id });
    return `Run #${run} pauses; the person goes on with run #${found.id}.`;
  },
};

const MOST_NAMED = 20;
