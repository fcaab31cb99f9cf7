import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Child, ProcessRequest, ProcessResult } from "../plugins/api.ts";
import type { Clock } from "./clock.ts";
import type { Environment } from "./environment.ts";
import { SvcError } from "./error.ts";
import { type Launch, outputOf, runProcess, startChild, Watchdogs } from "./process.ts";
import { secretValues } from "./secrets.ts";
import type { SandboxRules, Seen } from "./sandbox_rules.ts";

/** The operating-system mechanism that confines a command. Only Landlock does not hold all rules. */
export type SandboxKind = "bubblewrap" | "landlock" | "sandbox-exec";

/** The settings `sandbox.*`. */
export interface SandboxSettings {
  mode: "off" | "auto" | "require";
  /** Files and folders that commands cannot read; `~` is the home directory. */
  deny_read: string[];
  /** Further files and folders that commands may write; `~` is the home directory. */
  write: string[];
  network: boolean;
  /** Names of further environment variables that commands get. */
  env: string[];
}

interface SandboxOptions {
  worktree: string;
  environment: Environment;
  clock: Clock;
  /** The current settings; read for each command. */
  settings(): SandboxSettings;
  /** Absolute paths that are hidden in addition to `deny_read`: svc's own settings and keys. */
  hidden: string[];
  warn(message: string): void;
}

/** Environment variables that every command gets, where they are set. */
export const COMMAND_VARIABLES = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TERM", "NO_COLOR", "CI", "TZ"],
  ...["LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"],
  // Where tools and their certificates are found.
  ...["CARGO_HOME", "RUSTUP_HOME", "GOROOT", "GOPATH", "JAVA_HOME", "PYENV_ROOT", "VIRTUAL_ENV"],
  ...["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"],
  ...["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"],
  ...["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"],
];

/** The PATH of commands when svc has none. */
const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

/**
 * Runs the commands of a workspace: those of tools, and MCP servers. They get a list of environment
 * variables instead of the whole environment, and run confined as the settings `sandbox.*` require.
 */
export class Sandbox {
  readonly #options: SandboxOptions;
  #full: Promise<Launcher | undefined> | undefined;
  #environment: Promise<void> | undefined;
  #secrets: string[] = [];
  readonly #seen: Seen = new Map();
  readonly #watchdogs = new Watchdogs();
  #session: Promise<string[]> | undefined;
  #landlock: Promise<boolean> | undefined;
  #warned = false;

  constructor(options: SandboxOptions) {
    this.#options = options;
  }

  /** The mechanism in force; undefined when commands run without one. */
  async kind(): Promise<SandboxKind | undefined> {
    if (this.#options.settings().mode === "off") return undefined;
    const full = await (this.#full ??= this.#findFull());
    if (full !== undefined) return full.kind;
    return await (this.#landlock ??= findLandlock()) ? "landlock" : undefined;
  }

  /** Whether a mechanism that holds all rules is in force. */
  async full(): Promise<boolean> {
    if (this.#options.settings().mode === "off") return false;
    return await (this.#full ??= this.#findFull()) !== undefined;
  }

  /** Secrets in svc's environment; empty before the first command. */
  get secrets(): string[] {
    return this.#secrets;
  }

  /**
   * Runs a command to its end; see {@linkcode runProcess}.
   *
   * @throws SvcError `no_sandbox` when the settings require a sandbox that this machine does not have.
   */
  async run(
    request: ProcessRequest & Pick<Launch, "open_input" | "on_start">,
    signal: AbortSignal,
  ): Promise<ProcessResult> {
    const launch = await this.#launch(request, { confined: true });
    const watched = { ...request, ...launch, watchdogs: this.#watchdogs };
    return await runProcess(watched, signal, this.#options.clock);
  }

  /** Ends the helpers that it keeps for later commands. */
  close(): Promise<void> {
    return this.#watchdogs.close();
  }

  /**
   * Starts a program such as an MCP server; see {@linkcode startChild}.
   *
   * @param options.confined `false` runs it outside the sandbox, with the same environment
   * @throws SvcError `no_sandbox`, see {@linkcode run}.
   */
  async start(
    request: Pick<ProcessRequest, "command" | "cwd" | "env">,
    options: { confined: boolean },
  ): Promise<Child> {
    return startChild(await this.#launch(request, options), this.#options.clock);
  }

  /** How to start a command so that the settings hold for it. */
  async #launch(
    request: Pick<ProcessRequest, "command" | "cwd" | "env">,
    { confined }: { confined: boolean },
  ): Promise<Launch> {
    const { environment } = this.#options;
    const settings = this.#options.settings();
    const env: Record<string, string> = {
      PATH: DEFAULT_PATH,
      ...this.#variables([...COMMAND_VARIABLES, ...settings.env]),
      ...request.env,
    };
    const unknown = settings.env.filter((name) => env[name] === undefined && isName(name));
    const plain: Launch = { command: request.command, cwd: request.cwd, env, clear_env: true };
    const kind = confined ? await this.kind() : undefined;
    if (confined) this.#check(kind, settings);
    await (this.#environment ??= this.#readEnvironment());
    const { commandCaches, findProgram, landlockRules } = await import("./sandbox_rules.ts");
    const [name = "", ...args] = request.command;
    const command = [findProgram(name, request.cwd, env.PATH!, this.#seen), ...args];
    const session = await (this.#session ??= this.#findSession());
    const makes_session = session.length > 0;
    if (kind === undefined) {
      const own = makes_session ? { command: [...session, ...command], makes_session } : {};
      return forwarding(unknown, { ...plain, ...own });
    }
    const caches = commandCaches(environment.home);
    const variables: Record<string, string> = { ...caches.variables, ...env };
    const rules = this.#rules(settings, caches.folder);
    const full = await this.#full;
    if (full !== undefined) {
      return forwarding(unknown, {
        ...plain,
        command: [...session, ...full.wrap(rules, command, request.cwd)],
        env: variables,
        contained: full.kind === "bubblewrap",
        makes_session,
      });
    }
    // The helper sets DENO_DIR itself: Deno would keep its own code there, and load it.
    const { DENO_DIR } = variables;
    const own = DENO_DIR === undefined ? {} : { DENO_DIR };
    const confinement = { ...landlockRules(rules), env: own };
    return forwarding(unknown, {
      ...plain,
      command: [
        ...session,
        ...landlockHelper(Object.keys(own)),
        JSON.stringify(confinement),
        ...command,
      ],
      env: { ...variables, ...DENO_DIR !== undefined && { DENO_DIR: "/dev/null" } },
      makes_session,
    });
  }

  /** Rejects a command that the settings do not let run with this mechanism. */
  #check(kind: SandboxKind | undefined, { mode, network }: SandboxSettings): void {
    const full = kind !== undefined && kind !== "landlock";
    if (mode === "off" || full) return;
    const found = kind === undefined
      ? "no sandbox"
      : "only Landlock, which does not hold all rules";
    const hint = "Install bubblewrap (the program bwrap), and allow it user namespaces.";
    if (mode === "require" || !network) {
      const setting = mode === "require" ? "sandbox.mode is require" : "sandbox.network is false";
      const message = `Commands are not run: ${setting}, and this machine has ${found}.`;
      throw new SvcError("no_sandbox", message, { hint });
    }
    if (kind !== undefined || this.#warned) return;
    this.#warned = true;
    this.#options.warn(`Commands run without a sandbox: none works on this machine. ${hint}`);
  }

  /**
   * Notes the secrets of svc's environment, which a command may find elsewhere. Another program prints it, since
   * svc itself may read only a few variables.
   */
  async #readEnvironment(): Promise<void> {
    const print = ["env", "-0"];
    const full = await this.#full;
    const rules = () => this.#rules(this.#options.settings(), "");
    const text = await outputOf(full === undefined ? print : full.wrap(rules(), print, "/"));
    const pairs = (text ?? "").split("\0").map((line): [string, string] => {
      const end = line.indexOf("=");
      return [line.slice(0, end), line.slice(end + 1)];
    });
    this.#secrets = secretValues(pairs);
  }

  #rules(settings: SandboxSettings, caches: string): SandboxRules {
    const { worktree, environment, hidden } = this.#options;
    const expanded = (paths: string[]) => paths.map((path) => expand(path, environment.home));
    const temporary = [environment.get("TMPDIR") ?? "/tmp", "/tmp", "/var/tmp"];
    return {
      worktree,
      write: [...temporary, caches, ...expanded(settings.write)],
      deny_read: [...hidden, ...expanded(settings.deny_read)],
      network: settings.network,
      seen: this.#seen,
    };
  }

  #variables(names: string[]): Record<string, string> {
    const pairs = names.map((name) => [name, this.#options.environment.get(name)]);
    return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
  }

  /** The PATH for svc's own launchers, which a worktree cannot bring. */
  #path(): string {
    const { worktree, environment } = this.#options;
    return (environment.get("PATH") ?? DEFAULT_PATH).split(":")
      .filter((path) => path.startsWith("/") && !`${path}/`.startsWith(`${worktree}/`)).join(":");
  }

  /** The program `setsid`, if it is there and may be run; see {@linkcode Launch.makes_session}. */
  async #findSession(): Promise<string[]> {
    const { findProgram } = await import("./sandbox_rules.ts");
    try {
      const command = findProgram("setsid", "/", this.#path());
      const { state } = Deno.permissions.querySync({ name: "run", command });
      return state === "granted" ? [command] : [];
    } catch {
      return []; // not there
    }
  }

  /** bubblewrap or sandbox-exec, if it runs a program with the rules of this workspace. */
  async #findFull(): Promise<Launcher | undefined> {
    const { worktree } = this.#options;
    const { bubblewrapCommand, findProgram, sandboxExecCommand } = await import(
      "./sandbox_rules.ts"
    );
    const launcher = (): Launcher => {
      if (Deno.build.os === "darwin") {
        return { kind: "sandbox-exec", wrap: sandboxExecCommand };
      }
      const bwrap = findProgram("bwrap", "/", this.#path());
      const root = isRoot();
      return {
        kind: "bubblewrap",
        wrap: (...request) => [bwrap, ...bubblewrapCommand(...request, { root })],
      };
    };
    try {
      const found = launcher();
      const command = found.wrap(this.#rules(this.#options.settings(), ""), ["true"], worktree);
      return await outputOf(command) === undefined ? undefined : found;
    } catch {
      return undefined; // not installed
    }
  }
}

/** A program that runs commands with all rules. */
interface Launcher {
  kind: SandboxKind;
  /** The command line that runs a command in a folder. */
  wrap(rules: SandboxRules, command: string[], cwd: string): string[];
}

/** Whether this process is root's; Deno tells only the owner of a new file without further permissions. */
function isRoot(): boolean {
  try {
    const file = Deno.makeTempFileSync();
    const { uid } = Deno.statSync(file);
    Deno.removeSync(file);
    return uid === 0;
  } catch {
    return true; // drops capabilities
  }
}

/** The command line of the Landlock helper, which may set the variables. */
function landlockHelper(variables: string[]): string[] {
  if (Deno.build.standalone) return [Deno.execPath(), "--landlock"];
  const file = import.meta.url.endsWith(".ts") ? "landlock.ts" : "landlock.js";
  const flags = ["--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm", "--quiet"];
  const permissions = ["--allow-ffi", "--allow-read", `--allow-env=${["_", ...variables].join()}`];
  const path = fileURLToPath(new URL(file, import.meta.url));
  return [Deno.execPath(), "run", ...flags, ...permissions, path];
}

async function findLandlock(): Promise<boolean> {
  if (Deno.build.os !== "linux") return false;
  // The version of Linux 6.12: the first that also holds signals.
  return Number(await outputOf(landlockHelper([])) ?? 0) >= 6;
}

/**
 * Forwards variables of svc's environment that svc itself may not read (Deno's `--allow-env`): a shell
 * that inherits everything removes all others.
 */
function forwarding(names: string[], launch: Launch): Launch {
  if (names.length === 0) return launch;
  const keep = [...names, ...Object.keys(launch.env ?? {})].join(" ");
  const command = ["sh", "-c", FORWARD, "svc", ` ${keep} `, ...launch.command];
  return { ...launch, command, clear_env: false };
}

const FORWARD = `keep=$1
shift
for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'); do
  case $keep in *" $name "*) ;; *) unset "$name" ;; esac
done
unset keep name
exec "$@"`;

function isName(name: string): boolean {
  return /^[A-Za-z_]\w*$/.test(name);
}

function expand(path: string, home: string): string {
  return path === "~" ? home : path.startsWith("~/") ? join(home, path.slice(2)) : path;
}
