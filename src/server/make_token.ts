import { join } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import { updateFile } from "../platform/files.ts";
import { TOKENS } from "../policy/paths.ts";

/** Bytes of chance in a token. */
const LENGTH = 32;

/**
 * Adds a fresh bearer token to the token file, which nobody else can read: that of `serve.token_file`, or a
 * new one among the user's settings, where no tool of an agent reaches it; the setting then names it.
 *
 * @returns the token, and what is to be known about it
 */
export async function makeToken(
  { config, paths }: Workspace,
): Promise<{ token: string; note: string }> {
  const configured = config.get("serve.token_file");
  const path = configured || join(paths.user, TOKENS);
  const token = crypto.getRandomValues(new Uint8Array(LENGTH))
    .toBase64({ alphabet: "base64url", omitPadding: true });
  await updateFile(path, (text = "") => {
    const lines = text === "" || text.endsWith("\n") ? text : `${text}\n`;
    return `${lines}${token}\n`;
  }, 0o600);
  if (configured === "") await config.set("global", "serve.token_file", path);
  return { token, note: `It is kept in ${path}; a server that runs knows it after a restart.` };
}
