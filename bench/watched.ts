import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** What `loop_server.ts` saw since it was last asked. */
export interface Watched {
  /** The milliseconds of the longest stretch between two turns of the event loop. */
  longest: number;
  /** How many stretches took over ten milliseconds. */
  over: number;
  /** Of this moment, in bytes. */
  memory: Deno.MemoryUsage;
}

interface WatchedServer extends AsyncDisposable {
  url: string;
  held(): Promise<Watched>;
}

/** The bounds of the heap that the launcher sets for servers, so that what users run is measured. */
export function heapBounds(): Record<string, string> {
  const script = Deno.readTextFileSync(`${ROOT}/compile.sh`);
  return Object.fromEntries(
    Array.from(
      script.matchAll(/\b(MALLOC_\w+_THRESHOLD_)=(\d+)/g),
      ([, name, bytes]) => [name!, bytes!],
    ),
  );
}

/** Starts the server of a worktree, from the sources, in a process of its own that watches itself. */
export async function startWatched(folder: string): Promise<WatchedServer> {
  const flags = (await Deno.readTextFile(`${ROOT}/permissions/build.flags`)).split("\n");
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A", // Deno reads nothing below /proc with less
      ...flags.filter((flag) => /unstable|v8/.test(flag)),
      `${ROOT}/bench/loop_server.ts`,
      folder,
    ],
    env: {
      SVC_TRUST: "1",
      HOME: folder,
      ...heapBounds(),
      DENO_DIR: Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`,
    },
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const stdin = child.stdin.getWriter();
  const line = async () => ((await lines.read()).value ?? "").trim();
  return {
    url: await line(),
    async held(): Promise<Watched> {
      await stdin.write(new TextEncoder().encode("?\n"));
      return JSON.parse(await line());
    },
    async [Symbol.asyncDispose]() {
      await stdin.close();
      await child.status;
    },
  };
}
