import { usageError } from "../platform/error.ts";
import { splitShellLine } from "../policy/shell.ts";
import type { Definition } from "./roster.ts";

/**
 * The command line of an agent: `svc serve` on its port and folder, or its own with `{port}` and `{dir}`
 * filled in. No shell sees it.
 *
 * @throws SvcError `agent_command` (exit 2) for an own one that only a shell could run
 */
export function agentCommand(
  { name, command }: Pick<Definition, "name" | "command">,
  { svc, port, dir }: { svc: readonly string[]; port: number; dir: string },
): string[] {
  if (command === undefined) {
    return [...svc, "serve", "--host", "127.0.0.1", "--port", String(port), "--path", dir];
  }
  const words = typeof command === "string" ? wordsOf(name, command) : command;
  return words.map((word) => word.replaceAll("{port}", String(port)).replaceAll("{dir}", dir));
}

function wordsOf(name: string, command: string): string[] {
  const line = splitShellLine(command.replaceAll(/\{(port|dir)\}/g, "@$1@"));
  const parts = "parts" in line ? line.parts : [];
  if (parts.length === 1 && parts[0]!.every(({ literal }) => literal)) {
    return parts[0]!.map(({ value }) => value.replaceAll(/@(port|dir)@/g, "{$1}"));
  }
  throw usageError(
    "agent_command",
    `The command of ${name} is more than a program and its arguments.`,
    'Write it as a list, such as ["sh", "-c", "..."].',
  );
}
