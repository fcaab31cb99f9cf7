import { stripControl } from "../platform/terminal.ts";
import type { Shell } from "./shell.ts";

/** Says where a session that is gone on with stands. */
export function introduce({ workspace, conversation, io }: Shell): void {
  const name = conversation.name!;
  if (workspace.sessions.read(name) === undefined) {
    io.note(`Session ${name} begins with your next message.`);
    return;
  }
  const document = conversation.open().document(); // a turn whose process has died is closed by that
  const { turns, role } = document;
  const count = turns.length === 1 ? "1 turn" : `${turns.length} turns`;
  const as = role === "" ? "" : `, role ${role}`;
  io.note(`Session ${name}: ${count}${as}. See them with /history.`);
  const last = turns.at(-1);
  const prompt = last?.parts.find((part) => part.type === "user");
  if (prompt !== undefined && "text" in prompt) {
    io.note(`last: #${last!.index} [${last!.status}] ${stripControl(prompt.text).slice(0, 200)}`);
  }
}
