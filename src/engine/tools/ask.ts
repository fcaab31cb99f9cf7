import type { CoreTool } from "./core.ts";

/** `ask` (specification 4.8): a question, or a request for permission, to the parent agents and the operator. */
export const askTool: CoreTool = {
  name: "ask",
  description:
    "Ask those you work for what only they can decide or know. When no one is there, the " +
    "question is parked and you are told so: go on without it where you can. Ask once, with " +
    "all that the answer needs.",
  parameters: {
    type: "object",
    properties: {
      question: { type: "string" },
      context: { type: "string" },
      options: { type: "array", items: { type: "string" } },
      target: {
        type: "string",
        enum: ["human", "lead"],
        description: "lead: the agent that gave you your task. Default: human.",
      },
      kind: {
        type: "string",
        enum: ["direction", "permission"],
        description: "direction: to be told what to do (default).",
      },
      permission: {
        type: "string",
        description: "For kind permission: the tool category.",
      },
    },
    required: ["question"],
  },
  permission: "ask",
  read_only: true,
  confirm: false,
  error_refuses: true,
  obtains_grants: true,
  key_arg: "question",
  note: (result) => result.startsWith("[cancelled]") ? "no answer was given" : "",
  async handler({ question, context = "", options = [], kind, permission = "" }, { agent }) {
    if (question.trim() === "") return "Error: ask needs a question";
    const asked = { question, context, options };
    if (kind !== "permission") return await agent.ask(asked);
    const { categories } = agent;
    if (categories.includes(permission)) return await agent.askPermission(permission, asked);
    return `Error: there is no category ${JSON.stringify(permission)} to request; they are ` +
      categories.join(", ");
  },
};
