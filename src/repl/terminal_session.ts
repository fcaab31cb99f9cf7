import { AsksWatch } from "./asks_watch.ts";
import { EVERYTHING } from "./conversation.ts";
import { reported, runLoop } from "./loop.ts";
import type { Opened } from "./open.ts";
import { promptText } from "./prompt.ts";
import { onSignals } from "./signals.ts";

/** Milliseconds after which the prompt has been drawn, on any machine worth mentioning. */
const AHEAD = 50;

/** A person at a terminal, from the first prompt to the last. @returns the exit code */
export async function runTerminal({ shell, cancellation }: Opened): Promise<number> {
  const { workspace, conversation, input, output, style, io } = shell;
  const signals = onSignals(cancellation);
  const asks = new AsksWatch(workspace.asks, io);
  let ahead: ReturnType<typeof setTimeout> | undefined;
  try {
    output.line(style.dim("svc: type a message, /help for commands, Ctrl-D to leave"));
    if (conversation.name !== undefined) {
      const { introduce } = await import("./introduce.ts");
      await reported(shell, () => Promise.resolve(introduce(shell)));
    }
    const { provider, base_url, model } = workspace.backendRequest();
    if (provider === "" && base_url === "" && model === "" && !workspace.config.get("unattended")) {
      const { welcome } = await import("./welcome.ts");
      await reported(shell, () => welcome(shell));
    }
    // What the first message needs, while nobody waits for it: behind the first prompt.
    ahead = setTimeout(() => void workspace.load(EVERYTHING).catch(() => {}), AHEAD);
    await runLoop({
      shell,
      between: () => asks.look(),
      prompt: () => promptText(shell),
      async complete(line, cursor) {
        const { complete } = await import("./completion/complete.ts");
        return await complete(line, cursor, shell);
      },
      ending: signals.ending,
    });
  } finally {
    clearTimeout(ahead);
    await conversation.close();
    output.status(undefined);
    output.fresh();
    input.close();
    signals.release();
  }
  if (conversation.name !== undefined && signals.code() === 0) {
    // The next start goes on from here.
    output.line(style.dim(`Session ${conversation.name} is saved; go on with: svc --continue`));
  }
  return signals.code();
}
