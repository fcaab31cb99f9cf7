import type { RawEntry } from "./schema.ts";

/** The teams that come with the program. */
export const BUNDLED_TEAMS: Record<string, RawEntry> = {
  writing: {
    description: "Research, write, reference and edit a text until the editor passes it",
    tags: ["writing"],
    stages: [
      {
        role: "researcher",
        task_hint: "Collect the facts that the text needs, each with its source. Do not write it.",
      },
      {
        role: "writer",
        task_hint: "Write the text, or settle the findings of the last review in it.",
        handoff_note:
          "Above is the researched material: everything the text may claim. Keep its sources beside the " +
          "statements.",
      },
      {
        role: "referencer",
        task_hint:
          "Check the text in its file against the researched material and set its references there.",
        handoff_note: "The text is written; the writer's answer names the file and what is open.",
      },
      {
        role: "editor",
        task_hint: "Review the text as a whole against the task, and give your verdict.",
        handoff_note: "The text is written and its references are set. Read the file itself.",
      },
    ],
    loop: { from: "writer", until: "editor" },
  },

  programming: {
    description: "Plan, program, test and review a change until the reviewer passes it",
    tags: ["programming"],
    stages: [
      {
        role: "planner",
        task_hint: "Work out how the change should be made. Do not make it.",
      },
      {
        role: "programmer",
        task_hint: "Make the change, or settle the findings of the last review in it.",
        handoff_note: "Above is the plan. Say where you had to leave it, and why.",
      },
      {
        role: "tester",
        task_hint:
          "Try the change against the task, and add the tests that are missing. After a review, see " +
          "first that its findings are settled.",
        handoff_note: "The change is made; the programmer's answer says what was run already.",
      },
      {
        role: "code-reviewer",
        task_hint: "Review the change with its tests against the task, and give your verdict.",
        handoff_note:
          "The change is made and tested. A defect that the tester reports and nobody has settled is a " +
          "finding.",
      },
    ],
    loop: { from: "programmer", until: "code-reviewer" },
  },
};
