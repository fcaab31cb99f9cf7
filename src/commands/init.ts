import { join } from "node:path";
import { configFile } from "../config/config.ts";
import type { Workspace } from "../engine/workspace.ts";
import { usageError } from "../platform/error.ts";
import { exists, readJson } from "../platform/files.ts";
import { oneLine } from "../platform/terminal.ts";
import { commandPrefix } from "../policy/bash_allow.ts";
import { checkMode } from "../policy/settings.ts";
import { approveModels } from "../providers/model_approval.ts";
import { parseModelRef } from "../providers/resolve.ts";
import { defineCommand, pathOption, textOption } from "./command.ts";
import type { Io } from "./io.ts";
import { nameOf } from "./names.ts";
import { openWorkspace } from "./workspace.ts";
import { command, integer, multiple, option, optional, string } from "./options.ts";

/** The settings of a worktree that `svc init` writes; those that are left out stay as they are. */
interface Choices {
  model?: string;
  mode?: string;
  /** Beginnings of commands that run unasked. */
  allow: readonly string[];
  /** The command that tests the project. */
  test?: string;
  /** The most tokens of a day. */
  dayTokens?: number;
}

/** `svc init`: the settings of a worktree, by options or asked for on a terminal. */
export const init = defineCommand({
  parser: command(
    "init",
    {
      model: textOption(
        "--model",
        nameOf("models", "REF"),
        "A model, or <provider>/<model>; it is approved by this.",
      ),
      mode: textOption("--mode", nameOf("modes", "MODE"), "build, or plan, which changes nothing."),
      allow: multiple(
        option(
          "--allow",
          string("COMMAND"),
          "The beginning of a command that runs unasked; may be repeated.",
        ),
      ),
      test: textOption("--test", "COMMAND", "The command that tests the project (dev.test_cmd)."),
      dayTokens: optional(
        option(
          "--day-tokens",
          integer("TOKENS", 1),
          "The most tokens that all agents here may use in a day.",
        ),
      ),
      path: pathOption,
    },
    "Write the settings of a worktree, .svc/config.json. Without options, it asks for them on a " +
      "terminal. What is set already and not named stays.",
  ),
  examples: [
    "svc init",
    'svc init --mode plan --allow "git status" --allow "git log"',
    'svc init --model groq/llama-3.3-70b-versatile --test "npm test" --day-tokens 2000000',
  ],
  async run({ path, ...given }, io) {
    const workspace = openWorkspace(path, io);
    const { allow, ...others } = given;
    const named = allow.length > 0 || Object.values(others).some((each) => each !== undefined);
    if (!named && !io.isTerminal("in")) {
      throw usageError("usage", "Nothing is named to set.", "See the options: svc init --help");
    }
    const choices = named ? given : await askChoices(workspace, io);
    if (choices === undefined) {
      io.note("Cancelled; nothing is written.");
      return 130;
    }
    const values = settingsOf(workspace, choices);
    if (Object.keys(values).length === 0) {
      io.note("Nothing is written: every answer was left empty.");
      return 0;
    }
    await approveNamed(workspace, choices.model);
    await workspace.set("local", values);
    io.note(`Wrote ${Object.keys(values).join(", ")} to ${configFile(workspace.paths, "local")}`);
    io.note("Examine what a run needs with: svc doctor");
    return 0;
  },
});

/** The answers of the operator; undefined when the input ends. */
async function askChoices({ config, paths }: Workspace, io: Io): Promise<Choices | undefined> {
  const found = testCommand(paths.worktree);
  const current = (value: unknown) => value ? ` [${oneLine(String(value))}]` : "";
  const questions = [
    `Model, or provider/model${current(config.get("model"))}:`,
    `Mode, build or plan${current(config.get("mode"))}:`,
    `Commands that run unasked, separated by commas${current(listed(config))}:`,
    `Command that tests the project${current(config.get("dev.test_cmd") || found)}:`,
    `Tokens a day at most${current(config.get("budget.day").tokens) || " [no limit]"}:`,
  ];
  const answers: string[] = [];
  for (const question of questions) {
    const answer = await io.readLine(question);
    if (answer === undefined) return undefined;
    answers.push(answer.trim());
  }
  const [model, mode, allow = "", test, tokens = ""] = answers;
  if (tokens !== "" && !/^[1-9]\d{0,14}$/.test(tokens)) {
    throw usageError("usage", `${JSON.stringify(tokens)} is no number of tokens.`);
  }
  return {
    model: model || undefined,
    mode: mode || undefined,
    allow: allow.split(",").map((each) => each.trim()).filter((each) => each !== ""),
    test: test || (config.get("dev.test_cmd") === "" ? found : undefined),
    dayTokens: tokens === "" ? undefined : Number(tokens),
  };
}

/** Approves a model that is named by a ref, as `svc model` does: the operator chose it. */
async function approveNamed(workspace: Workspace, model: string | undefined): Promise<void> {
  if (model === undefined) return;
  await workspace.load({ providers: "all" });
  await approveModels([parseModelRef(model, workspace)], workspace.models, { granted: true });
}

function listed(config: Workspace["config"]): string {
  return config.get("tool_permission").bash_allow?.join(", ") ?? "";
}

/** @throws SvcError (exit 2) before anything is written */
function settingsOf(
  { config }: Workspace,
  { model, mode, allow, test, dayTokens }: Choices,
): Record<string, unknown> {
  if (mode !== undefined) checkMode(config, mode);
  const wrong = allow.find((entry) => commandPrefix(entry) === undefined);
  if (wrong !== undefined) {
    throw usageError(
      "usage",
      `${JSON.stringify(wrong)} allows nothing.`,
      'Name the plain beginning of one command, such as "git status".',
    );
  }
  return {
    ...model !== undefined && { model },
    ...mode !== undefined && { mode },
    ...allow.length > 0 && { "tool_permission.bash_allow": [...new Set(allow)] },
    ...test !== undefined && { "dev.test_cmd": test },
    ...dayTokens !== undefined && { "budget.day.tokens": dayTokens },
  };
}

/** The command that tests a project of a common kind; empty when none is known. */
function testCommand(worktree: string): string {
  const has = (name: string) => exists(join(worktree, name));
  const scripts = (name: string, field: string) => {
    try {
      const file = readJson(join(worktree, name)) as Record<string, Record<string, string>>;
      return file[field]?.test !== undefined;
    } catch {
      return false;
    }
  };
  if (scripts("package.json", "scripts")) return "npm test";
  if (scripts("deno.json", "tasks")) return "deno task test";
  if (has("Cargo.toml")) return "cargo test";
  if (has("go.mod")) return "go test ./...";
  return has("pyproject.toml") ? "python -m pytest" : "";
}
