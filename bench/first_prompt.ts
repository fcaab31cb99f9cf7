/** Milliseconds from the start to the first prompt, medians; `ratio` is svc's by bare Deno's. */
export interface FirstPrompt {
  svc_ms: number;
  floor_ms: number;
  ratio: number;
}

const PROMPT = "› ";

/**
 * How long `svc` alone takes from its start to its first prompt, next to bare Deno that writes the same
 * character to the same kind of terminal (`script`). They take turns; the first start of each is not counted.
 *
 * @param svc the executable
 * @param folder an empty one, which is home and worktree
 */
export async function firstPrompt(svc: string, folder: string, runs: number): Promise<FirstPrompt> {
  await Deno.mkdir(`${folder}/.svc`, { recursive: true });
  await Deno.writeTextFile(`${folder}/.svc/config.json`, '{"provider": "demo"}');
  const bare = `${folder}/bare.js`;
  await Deno.writeTextFile(bare, `console.log("${PROMPT}"); setTimeout(() => {}, 10_000);`);
  const times = { floor: [] as number[], svc: [] as number[] };
  for (let run = 0; run <= runs; run++) {
    times.floor.push(
      await start(`${Deno.execPath()} run --quiet --no-config --no-lock ${bare}`, folder),
    );
    times.svc.push(await start(svc, folder));
  }
  const [floor_ms, svc_ms] = [median(times.floor.slice(1)), median(times.svc.slice(1))];
  return { svc_ms, floor_ms, ratio: svc_ms / floor_ms };
}

/** Milliseconds until the prompt stands on the terminal. */
async function start(command: string, folder: string): Promise<number> {
  const started = performance.now();
  const child = new Deno.Command("script", {
    args: ["--quiet", "--command", `exec ${command}`, "/dev/null"],
    cwd: folder,
    env: { HOME: folder, SVC_TRUST: "1", PATH: "/usr/local/bin:/usr/bin:/bin" },
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  let seen = "";
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    seen += text;
    if (seen.includes(PROMPT)) break;
  }
  const took = performance.now() - started;
  child.kill("SIGKILL");
  await child.status;
  if (!seen.includes(PROMPT)) throw new Error(`No prompt came from ${command}: ${seen.trim()}`);
  return took;
}

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!;
}
