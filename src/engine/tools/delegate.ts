import type { CoreTool } from "./core.ts";

/** `delegate` (specification 4.8): another agent does a task, and what it answers is the result. */
export const delegateTool: CoreTool = {
  name: "delegate",
  description:
    "Have another agent do a task and get its final answer. It works in the same project, " +
    "with the prompt, tools and rights of its role, and knows nothing of this conversation: put all " +
    "that it needs into the task. To go on with an agent that has answered before, pass resume.",
  parameters: {
    type: "object",
    properties: {
      role: { type: "string", description: "Name of a role of the catalog." },
      task: { type: "string", description: "What to do, complete in itself." },
      skills: {
        type: "array",
        items: { type: "string" },
        description: "Names of skills it gets in addition to those of its role.",
      },
      resume: {
        type: "string",
        description: "The agent to go on with: its run (#2), its session's name or id.",
      },
      context: {
        type: "string",
        enum: ["continue", "compact", "new"],
        description: "With resume: what it keeps of its conversation. compact: a summary. " +
          "new: nothing, and resume is ignored. Default: continue.",
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
