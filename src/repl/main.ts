import type { Io } from "../commands/io.ts";
import type { SessionOptions } from "../commands/session_options.ts";
import { Workspace } from "../engine/workspace.ts";
import { denoPort } from "./input/terminal.ts";
import { newest, openShell } from "./shell.ts";

/** `svc` alone (specification 4.4, 4.7): the terminal session, or one turn per line of a pipe. */
export async function repl(args: string[], io: Io): Promise<number> {
  const options = args.length === 0 ? NO_OPTIONS : await parseOptions(args, io);
  if (options === undefined) return 0;
  let tell = (line: string) => io.note(line);
  const workspace = Workspace.open({
    path: options.path || io.environment.cwd,
    environment: io.environment,
    warn: (message) => tell(`warning: ${message}`),
    overrides: options.overrides,
    trusted: options.trust,
  });
  await workspace.store?.follow();
  const port = denoPort(io.environment.get("TERM"));
  const session = options.continue ? await newest(workspace) : options.session;
  await workspace.sessions.current(session);
  const opened = openShell({ io, port, workspace, options: { ...options, session } });
  let code: number;
  if (port.isTerminal) {
    tell = opened.announce;
    const { runTerminal } = await import("./terminal_session.ts");
    code = await runTerminal(opened);
    tell = (line) => io.note(line);
  } else {
    const { runPiped } = await import("./piped.ts");
    code = await runPiped(opened);
  }
  if (workspace.background.busy) {
    if (port.isTerminal) io.note("Writing what roles and teams remember; Ctrl-C cuts it short.");
    const interrupt = io.onInterrupt();
    await workspace.background.settle(interrupt.signal);
    interrupt.release();
  }
  await workspace.close();
  return code;
}

const NO_OPTIONS: SessionOptions = { path: "", continue: false, overrides: {} };

/** Only a start with options loads the parser. */
async function parseOptions(args: string[], io: Io): Promise<SessionOptions | undefined> {
  const { parseSessionOptions } = await import("../commands/session_options.ts");
  return await parseSessionOptions(args, io);
}
