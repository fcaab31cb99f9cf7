import type { Shell } from "./shell.ts";

/** The first start, with no provider yet: connects one, takes the demo model, or is skipped. */
export async function welcome(shell: Shell): Promise<void> {
  const { workspace, input, output, style, io } = shell;
  output.line("");
  output.line(style.bold("Welcome.") + " No model provider is connected yet.");
  output.line("  1  connect one: its name or address, then its key");
  output.line("  2  try the built-in demo model: a few rules, no key, no language model");
  output.line("  Enter skips this; /connect does it later.");
  const answer = await input.read({ prompt: "1, 2, a provider, or Enter: ", remember: false });
  if (answer.type !== "line") return;
  const choice = answer.text.trim();
  if (choice !== "" && choice !== "2" && choice !== "demo") {
    const { findCommand } = await import("./commands/table.ts");
    const { readLine } = await import("./words.ts");
    await (await findCommand("connect"))!.command.run(
      readLine(choice === "1" ? "" : choice),
      shell,
    );
  } else if (choice !== "") {
    workspace.config.override("provider", "demo");
    io.note("The demo model answers in this session. Try: how many lines does README.md have?");
  } else {
    io.note("Skipped. /connect connects a provider, /help lists everything else.");
  }
}
