import { errorMessage, SvcError } from "../../platform/error.ts";
import type { CoreTool } from "./core.ts";

/** `team` (specification 4.8): roles work on a task one after the other; the last one's answer is the result. */
export const teamTool: CoreTool = {
  name: "team",
  description:
    "Have a team of the catalog do a task: its roles work on it one after the other, each " +
    "with the results of those before it, and some go over the work again until it passes a review. They " +
    "know nothing of this conversation: put all that they need into the task. You get the last " +
    "answer. To have a stage that has answered before go on, and those after it again, pass resume.",
  parameters: {
    type: "object",
    properties: {
      name: { type: "string", description: "Name of a team of the catalog." },
      task: { type: "string", description: "What to do, complete in itself, also with resume." },
      skills: {
        type: "array",
        items: { type: "string" },
        description: "Names of skills that every stage gets in addition to its own.",
      },
      resume: {
        type: "string",
        description: "The stage to go on from: its run (#2), its session's name or id.",
      },
      context: {
        type: "string",
        enum: ["continue", "compact", "new"],
        description:
          "With resume: what that stage keeps of its conversation. compact: a summary. " +
          "new: nothing, and resume is ignored. Default: continue.",
      },
    },
    required: ["name", "task"],
  },
  param_aliases: { team: "name" },
  permission: "team",
  read_only: true,
  key_arg: "name",
  lists: "team",
  async handler({ name, task, skills, resume, context }, { agent }) {
    if (task.trim() === "") return "Error: team needs a task";
    try {
      return await agent.team({ name, task, skills, resume, context });
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      const hint = error.hint === "" ? "" : ` ${error.hint}`;
      return `Error: team ${JSON.stringify(name)} failed: ${errorMessage(error)}${hint}`;
    }
  },
};
