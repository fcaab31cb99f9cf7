import type { CoreTool } from "./core.ts";

/**
 * `ask` (specification 4.8) in a root run: the operator answers, or in an unattended run the question is
 * parked (3.2). A root run has no lead, so what is meant for one reaches the human too.
 */
export const askTool: CoreTool = {
  name: "ask",
  description: "Ask the human a question and get the answer. Use it when only they can decide or " +
    "know. When nobody is there the question is parked and you are told so: go on without the " +
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
        description: "Whether you ask what to do, or for leave to do it. Default: direction.",
      },
      permission: {
        type: "string",
        description: "For kind permission: the tool category you ask leave for.",
      },
    },
    required: ["question"],
  },
  permission: "ask",
  confirm: false,
  key_arg: "question",
  async handler({ question, context, options, kind, permission }, { agent, ...call }) {
    const { run, operator, asks, emit } = agent;
    const { session, signal, config } = call;
    if (question.trim() === "") return "Error: ask needs a question";
    if (config.get("unattended")) {
      const origin = session;
      const { id } = await asks.park({ question, context, options, origin, kind, permission });
      emit({ type: "ask", run, id, question });
      return `[parked] Ask #${id} waits for a human; the answer will be added to this session. ` +
        "Go on without it where you can, and do not ask again; otherwise end here and say what waits.";
    }
    const answer = await operator.ask({
      question,
      context: context ?? "",
      options: options ?? [],
      run,
      session,
      signal,
    });
    return answer ??
      "Error: ask has no one to answer: nobody is there, and this run does not park questions. Go on " +
        "with what you know, or say in your answer what you need to know.";
  },
};
