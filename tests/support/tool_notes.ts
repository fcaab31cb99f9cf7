/** What docs/tools.md says of a tool in addition to its definition, which models pay for with each request. */
export interface ToolNotes {
  /** Meanings of parameters that the definition leaves to their names, or that it shortens. */
  parameters?: Record<string, string>;
  notes?: string[];
}

const CWD = "Folder to run in (default: the worktree).";
const SKILLS = "Skills for this task, in addition to those of the role.";

export const TOOL_NOTES: Record<string, ToolNotes> = {
  ask: {
    parameters: {
      question: "What is asked.",
      context: "What the reader has to know for an answer.",
      options: "Answers to choose from; others can be given, too.",
      kind:
        "`direction`: to be told what to do (default); `permission`: to be allowed calls of a category.",
    },
    notes: [
      "In an unattended run a question for a human is parked in the inbox, and the result is `[parked] Ask #<id> ...`.",
    ],
  },
  delegate: {
    parameters: {
      role: "Role of the agent; `svc roles list` has them.",
      task: "All that the agent needs to know.",
      skills: SKILLS,
    },
    notes: [
      "Agents start agents at most three levels deep. Neighbouring calls run at the same time, up to `delegate.max_parallel`.",
    ],
  },
  team: {
    parameters: {
      name: "Name of the team; `svc teams list` has them.",
      task: "All that the team needs to know.",
      skills: SKILLS,
      context:
        "With `resume`: `compact` keeps a summary of the stage's conversation, `new` nothing.",
    },
  },
  handoff: {
    parameters: { done: "This run is done." },
    notes: ["The turn ends after the calls of the same reply. A call has a target, or `done`."],
  },
  plan: {
    parameters: {
      steps:
        "The whole plan: objects with `step` (text) and `state` (`pending`, `active` or `done`).",
    },
  },
  catalog: {
    parameters: {
      action: "What to do; `save` and `remove` change the worktree's own layer.",
      name: "Name of the entry.",
      description: "One line.",
      tags: "Words to filter by.",
      system_prompt: "Of a role.",
      tool_permission: "Of a role: category to `allow`, `ask` or `deny`.",
      grant_permission: "Of a role: the most that it hands down to its agents.",
      skills: "Of a role: names of skills.",
      model: "Of a role: a model, or `provider/model`.",
      instructions: "Of a role: path of a Markdown file.",
      ask_policy: "Of a role: who answers its questions.",
      stages:
        "Of a team: names of roles, or objects with `role`, `task_hint`, `handoff_note`, `skills`, `mode`.",
      loop:
        "Of a team: `from`, `until` and `max_iterations` of the stages that repeat until a review passes.",
      text: "Of a skill: its instructions.",
    },
    notes: ["The fields of the entries are in [roles.md](roles.md)."],
  },
  file_read: {
    parameters: {
      offset: "First line, from 1 (default 1). The offset of a PDF is its page.",
      limit: "Lines (default 500), of a PDF pages; `0`: the header alone.",
    },
    notes: [
      "The header has the counts of lines and characters, of files up to 256 MB. A line shows its first 2,000 characters.",
      "An image (PNG, JPEG, GIF, WebP) of at most 5 MB is given to the model along with the result.",
      "A PDF has at most 64 MB and 20 seconds, a notebook 32 MB and 10 images. Of an archive (zip, tar, tar.gz) the " +
      "entries are listed, at most 20,000.",
      "Other files with a NUL byte in their first 8 KB are binary and are not shown.",
    ],
  },
  list_dir: {
    parameters: { path: "Folder.", depth: "Levels (default 1, at most 20)." },
    notes: [
      "The setting `list_dir_max_entries` (default 200) limits the entries. `.git` and `node_modules` are opened only " +
      "where the listing begins there.",
    ],
  },
  glob: {
    parameters: { pattern: "Pattern of at most 1,000 characters." },
    notes: ["At most 200 matches, of at most 500,000 entries."],
  },
  grep: {
    parameters: { pattern: "Regular expression of at most 1,000 characters." },
    notes: [
      "At most 100 lines. The first 4,000 characters of a line are searched, and 300 around the match are shown. " +
      "Binary files are left out.",
    ],
  },
  file_write: {
    parameters: {
      path: "File; its missing folders are made.",
      content: "The whole content, or what is appended.",
    },
  },
  file_edit: {
    parameters: {
      path: "File.",
      old: "The text to replace, as the file has it.",
      new: "The text in its place.",
      count: "How many occurrences are meant: `1` the first, `0` all. Default: `old` occurs once.",
      edits: "Several objects with `old` and `new` instead; all are made, or none.",
    },
    notes: ["How the place is found is in [edits.md](edits.md). A file has at most 64 MB."],
  },
  apply_patch: {
    parameters: { input: "The patch." },
    notes: [
      "Offered to models that are trained on this format ([edits.md](edits.md)); every model can call it.",
    ],
  },
  run_command: {
    parameters: {
      command: "The command line; with `bash`, or `sh` where there is no `bash`.",
      cwd: CWD,
      background:
        "Do not wait for the end: the result has a number for `command_output` and `command_stop`.",
    },
    notes: [
      "Standard input is empty. Of output that is longer than a result may be, the beginning and the end are kept.",
      "Commands in the background: [long-work.md](long-work.md).",
    ],
  },
  command_output: {
    parameters: {
      id: "Number of the command.",
      wait_for: "Text in the new output to wait for.",
      port: "TCP port of this machine to wait for, 1 to 65535.",
      timeout:
        "Seconds to wait, at most 600. Default: 30 with `wait_for` or `port`, else the call does not wait.",
    },
  },
  command_stop: { parameters: { id: "Number of the command." } },
  git: {
    parameters: {
      operation: "What to look at.",
      path: "File or folder, in the place that is looked at.",
      limit: "`log`: commits (default 20, at most 1,000).",
      cwd: CWD,
    },
  },
  git_commit: {
    parameters: {
      operation: "What to do.",
      message: "`commit`: the message.",
      cwd: CWD,
    },
    notes: ["A call with `all` needs an approval, also where the category is allowed."],
  },
  code_test: {
    parameters: {
      target: "File, folder or name of a test (default: all).",
      cwd: CWD,
      timeout: "Seconds (default 300, at most 3,600).",
    },
    notes: ["The command is the setting `dev.test_cmd`, or that of the project's kind."],
  },
  code_lint: {
    parameters: {
      target: "File, folder or package (default: all).",
      cwd: CWD,
      timeout: "Seconds (default 300, at most 3,600).",
    },
    notes: ["The command is the setting `dev.lint_cmd`, or that of the project's kind."],
  },
  code_format: {
    parameters: {
      target: "File, folder or package (default: all).",
      cwd: CWD,
      timeout: "Seconds (default 300, at most 3,600).",
    },
    notes: ["The command is the setting `dev.format_cmd`, or that of the project's kind."],
  },
  diagnostics: {
    parameters: { path: "File of at most 2 MB." },
    notes: ["At most 100 lines."],
  },
  references: {
    parameters: {
      path: "File that has the symbol, of at most 2 MB.",
      line: "Line that has the symbol, from 1.",
      symbol: "The symbol as the line has it.",
    },
    notes: ["At most 100 lines."],
  },
  mcp_find: {
    parameters: { query: "Words." },
    notes: [
      "At most 8 tools. It is there for servers with more tools than the setting `mcp.defer` ([mcp.md](mcp.md)).",
    ],
  },
  mcp_call: {
    parameters: {
      name: "Name of the tool.",
      arguments: "As the parameters that `mcp_find` shows.",
    },
    notes: ["The policy and the log see the call of that tool."],
  },
  web_search: {
    parameters: { query: "Query of at most 400 characters.", num: "Results, at most 20." },
    notes: ["The settings `web.search_engine` and `web.search_url` name the engine."],
  },
  web_fetch: {
    notes: [
      "`web.timeout` and `web.max_bytes` limit a page, and `web.allow_private` opens private addresses. At most 5 " +
      "redirects are followed.",
    ],
  },
};
