import type { CoreTool } from "./core.ts";

/** `ask` (specification 4.8): a question, or a request for permission, to the parent agents and the operator. */
export const askTool: CoreTool = {
  name: "ask",
  description:
    "Ask a question of those you work for and get the answer. Use it when only they can " +
    "decide or know. When no one is there the question is parked and you are told so: go on without the " +
    "answer where you can. Ask once, with everything needed to answer.",
  parameters: {
    type: "object",
    properties: {
      question: { type: "string", description: "One question, complete in itself." },
      context: { type: "string", description: "What one must know to answer." },
      options: { type: "array", items: { type: "string" }, description: "Choices, if there are." },
      target: {
        type: "string",
        enum: ["human", "lead"],
        description: "Who is asked; lead: the agent that gave you your task. Default: human.",
      },
      kind: {
        type: "string",
        enum: ["direction", "permission"],
        description: "Whether you ask what to do, or for permission to do it. Default: direction.",
      },
      permission: {
        type: "string",
        description: "For kind permission: the tool category you request.",
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
