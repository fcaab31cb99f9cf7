import { errorMessage, SvcError } from "../../platform/error.ts";
import type { CoreTool } from "./core.ts";

/** `team` (specification 4.8): roles work on a task one after the other; the last one's answer is the result. */
export const teamTool: CoreTool = {
  name: "team",
  description:
    "Have a team do a task: its roles work one after the other, each with the results before it, " +
    "some again until a review passes. They know nothing of this conversation: put all they need " +
    "into the task.",
  parameters: {
    type: "object",
    properties: {
      name: { type: "string" },
      task: { type: "string" },
      skills: {
        type: "array",
        items: { type: "string" },
      },
      resume: {
        type: "string",
        description: "Continue from a stage: its run (#2), or session name or id.",
      },
      context: {
        type: "string",
        enum: ["continue", "compact", "new"],
        description: "As for delegate.",
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
