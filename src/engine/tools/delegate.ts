import type { CoreTool } from "./core.ts";

/** `delegate` (specification 4.8): another agent does a task, and what it answers is the result. */
export const delegateTool: CoreTool = {
  name: "delegate",
  description:
    "Have another agent do a task and get its answer. It works in this project with the " +
    "prompt, tools and rights of its role, and knows nothing of this conversation: put all it " +
    "needs into the task.",
  parameters: {
    type: "object",
    properties: {
      role: { type: "string" },
      task: { type: "string" },
      skills: {
        type: "array",
        items: { type: "string" },
      },
      resume: {
        type: "string",
        description: "Continue an agent: its run (#2), or session name or id.",
      },
      context: {
        type: "string",
        enum: ["continue", "compact", "new"],
        description: "With resume: compact keeps a summary of its conversation, new nothing.",
      },
    },
    required: ["role", "task"],
  },
  param_aliases: { type: "role" },
  permission: "delegate",
  read_only: true,
  key_arg: "role",
  parallel_setting: "delegate.max_parallel",
  lists: "role",
  async refuse({ role }, agent) {
    const roles = await agent.roles();
    if (roles.includes(role)) return "";
    return `the catalog has no role ${
      JSON.stringify(role)
    }, and a temporary role is denied; known ` +
      `roles are ${roles.join(", ")}`;
  },
  handler({ role, task, skills, resume, context }, { agent }) {
    if (task.trim() === "") return "Error: delegate needs a task";
    return agent.delegate({ role, task, skills, resume, context });
  },
};
