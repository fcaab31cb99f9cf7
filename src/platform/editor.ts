import { errorMessage, usageError } from "./error.ts";

/**
 * Opens a file in an editor on this process's terminal, and waits for it to be closed. The command is
 * split into words, of which quotes hold some together; no shell sees it.
 *
 * @returns the editor's exit code
 * @throws SvcError `no_editor` (exit 2) when it cannot be started
 */
export async function openEditor(command: string, file: string): Promise<number> {
  const [program, ...args] = words(command);
  if (program === undefined) {
    throw usageError("no_editor", "No editor is set.", `Set EDITOR, or edit the file: ${file}`);
  }
  try {
    const editor = new Deno.Command(program, {
      args: [...args, file],
      stdin: "inherit",
      stdout: "inherit",
      stderr: "inherit",
    }).spawn();
    return (await editor.status).code;
  } catch (error) {
    throw usageError(
      "no_editor",
      `The editor ${program} does not start: ${errorMessage(error)}`,
      `Set EDITOR, or edit the file: ${file}`,
    );
  }
}

function words(command: string): string[] {
  return Array.from(
    command.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g),
    ([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single),
  );
}
