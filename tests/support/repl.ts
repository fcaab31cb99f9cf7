import { type Reply, type Script, startBackend, type TestBackend } from "./backend.ts";
import { noProcessesLeft } from "./processes.ts";
import { type Project, project } from "./project.ts";
import { type Pty, svcPty } from "./pty.ts";

/** A terminal session of the real program, with a worktree, a home and a scripted backend of its own. */
export interface Session extends AsyncDisposable {
  pty: Pty;
  place: Project;
  home: Project;
  backend: TestBackend;
  /** Types a line and Enter at the prompt, and waits until the screen shows this. */
  enter(line: string, wanted: string | RegExp): Promise<void>;
  /** Waits for the prompt, with nothing typed behind it. */
  ready(): Promise<void>;
  /** Leaves, and returns the exit code. */
  leave(): Promise<number>;
  /** The saved sessions' documents, by the order of their names. */
  // deno-lint-ignore no-explicit-any
  saved(): any[];
}

/** Starts `svc` in a pseudo-terminal and waits for its first prompt. */
export async function session(
  replies: Script | Reply[],
  options: {
    args?: string[];
    config?: Record<string, unknown>;
    files?: Record<string, string>;
    rows?: number;
    columns?: number;
    env?: Record<string, string>;
    /** Files of the home. */
    homeFiles?: Record<string, string>;
    /** The first thing on the screen is a question, and no prompt. */
    welcome?: boolean;
    /** False: there is none to wait for. */
    prompt?: boolean;
  } = {},
): Promise<Session> {
  const { args = [], config = {}, files = {}, rows = 50, columns = 100 } = options;
  const backend = startBackend(replies);
  const home = await project(options.homeFiles);
  const settings = { base_url: backend.url, model: "test", memory_enabled: false, ...config };
  const place = await project({ ".svc/config.json": JSON.stringify(settings), ...files });
  const pty = svcPty(args, { cwd: place.path, home: home.path, env: options.env }, columns, rows);
  const ready = () => pty.until((screen) => atPrompt(screen.lines()));
  const opened: Session = {
    pty,
    place,
    home,
    backend,
    ready,
    async enter(line, wanted) {
      await pty.until((screen) => atPrompt(screen.lines(), /(›|:|\])$/));
      await pty.type(line);
      // At the end of the screen, since an earlier line may begin so. After a single key an answer may follow it.
      const last = (text: string) => line.length === 1 || text.endsWith(line.trimEnd());
      await pty.until((screen) => screen.text().includes(line) && last(screen.text().trimEnd()));
      await pty.type("\r");
      await pty.until((screen) => {
        const text = screen.text();
        const asked = text.lastIndexOf(`› ${line}\n`);
        const answer = text.slice((asked < 0 ? text.lastIndexOf(line) : asked + 2) + line.length);
        return typeof wanted === "string" ? answer.includes(wanted) : wanted.test(answer);
      });
    },
    async leave() {
      await ready();
      await pty.type("\x04");
      return await pty.ended;
    },
    saved() {
      const folder = `${place.path}/.svc/sessions`;
      return [...Deno.readDirSync(folder)].map(({ name }) => name)
        .filter((name) => name.endsWith(".json") && !name.startsWith(".")).sort()
        .map((name) => JSON.parse(Deno.readTextFileSync(`${folder}/${name}`)));
    },
    async [Symbol.asyncDispose]() {
      const killed = !pty.over;
      await pty[Symbol.asyncDispose]();
      if (killed) await noProcessesLeft(place.path); // the program ends when its terminal is gone
      await backend.close();
      await place[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
  if (options.prompt !== false) await (options.welcome ? pty.until("Welcome.") : ready());
  return opened;
}

function atPrompt(lines: string[], prompt = /(^|\s)›$/): boolean {
  return prompt.test(lines.findLast((line) => line !== "") ?? "");
}
