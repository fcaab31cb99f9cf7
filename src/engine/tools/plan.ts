import type { CoreTool } from "./core.ts";

const STATES = { done: "[x]", active: "[>]", pending: "[ ]" };

interface Step {
  step: string;
  state?: keyof typeof STATES;
}

/**
 * `plan`: the steps of long work with their states. Its part in the log keeps the plan, and its result is what front
 * ends show. A summary of the conversation gives the newest one back.
 */
export const planTool: CoreTool = {
  name: "plan",
  description: "Keep the steps of long work and their states: the whole plan each time.",
  short: "Keep the steps of long work and their states.",
  permission: "plan",
  read_only: true,
  confirm: false,
  echo: true,
  parameters: {
    type: "object",
    properties: {
      steps: {
        type: "array",
        items: {
          type: "object",
          properties: {
            step: { type: "string" },
            state: { type: "string", enum: ["pending", "active", "done"] },
          },
          required: ["step"],
        },
      },
    },
    required: ["steps"],
  },
  status: ({ steps }) => `plan: ${progress(steps)}`,
  details: (result) => ({ output_at: result.indexOf("\n") + 1 }), // the activity line has the heading
  handler({ steps }) {
    const flaw = flawOf(steps);
    if (flaw !== "") return `Error: ${flaw}`;
    const lines = (steps as Step[]).map(({ step, state = "pending" }) =>
      `${STATES[state]} ${step.replace(/\s+/g, " ").trim()}`
    );
    return [`Plan, ${progress(steps)}:`, ...lines].join("\n");
  },
};

/** Steps of the longest plan. */
const MOST = 50;

function flawOf(steps: Step[]): string {
  if (steps.length === 0 || steps.length > MOST) return `a plan has 1 to ${MOST} steps`;
  const known = Object.keys(STATES);
  const wrong = steps.find((each) =>
    typeof each?.step !== "string" || each.step.trim() === "" ||
    !known.includes(each.state ?? "pending")
  );
  return wrong === undefined
    ? ""
    : `each step is {step, state}, with the state pending, active or done; not ${
      JSON.stringify(wrong).slice(0, 200)
    }`;
}

function progress(steps: Step[]): string {
  const done = steps.filter((each) => each?.state === "done").length;
  return `${done} of ${steps.length} done`;
}
