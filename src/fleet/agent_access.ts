import { AskStore } from "../asks/store.ts";
import { Config } from "../config/config.ts";
import type { Clock } from "../platform/clock.ts";
import { type Environment, openPaths, type Paths, VERSION } from "../platform/environment.ts";
import { readTextIfExists } from "../platform/files.ts";
import { Trust } from "../policy/trust.ts";
import { SessionStore } from "../sessions/store.ts";
import { storeLink } from "../store/link.ts";

interface AgentAccessOptions {
  /** The user's settings folder. */
  user: string;
  environment: Environment;
  /** Whether everything in the agent's worktree is trusted. */
  trusted: boolean;
  clock: Clock;
  warn: (message: string) => void;
}

/** The worktree of an agent and its server, for other processes of the same user on this machine. */
export class AgentAccess {
  readonly paths: Paths;
  readonly sessions: SessionStore;
  readonly asks: AskStore;
  readonly #options: AgentAccessOptions;

  /**
   * @param dir absolute
   * @throws SvcError `no_worktree`, `state_link` (exit 2)
   */
  constructor(dir: string, options: AgentAccessOptions) {
    const { user, environment, clock, warn } = options;
    this.#options = options;
    this.paths = openPaths(dir, user);
    const { state, sessions: directory } = this.paths;
    let store: ReturnType<typeof storeLink>;
    try {
      store = storeLink({ paths: this.paths, environment, config: this.#config(), warn });
    } catch { /* its settings are broken: its files can be read all the same */ }
    this.sessions = new SessionStore({ directory, version: VERSION, clock, warn, shared: store });
    this.asks = new AskStore({ state, sessions: this.sessions, clock, warn, store });
  }

  /** Sends a JSON body to its server, with a token where it requires one. */
  post(
    port: number,
    path: string,
    body: unknown,
    { signal, accept }: { signal?: AbortSignal; accept?: string } = {},
  ): Promise<Response> {
    const token = this.#token();
    return fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...accept !== undefined && { accept },
        ...token !== undefined && { authorization: `Bearer ${token}` },
      },
      body: JSON.stringify(body),
      redirect: "error",
      signal,
    });
  }

  /** A token of its token file, of one that may do everything if there is such a one. */
  #token(): string | undefined {
    const file = this.#config().get("serve.token_file");
    const lines = file === "" ? [] : (readTextIfExists(file) ?? "").split("\n")
      .map((line) => line.trim().replace(/^operate /, ""))
      .filter((line) => line !== "" && !line.startsWith("#"));
    const best = lines.find((line) => !line.includes(" ")) ?? lines[0];
    return best?.split(" ").at(-1);
  }

  #config(): Config {
    const { environment, clock, warn, trusted: all } = this.#options;
    const trust = new Trust({ paths: this.paths, environment, clock, warn, all });
    return Config.open(this.paths, trust.screen);
  }
}
