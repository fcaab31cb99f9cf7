import { fileURLToPath } from "node:url";
import { buildFlags } from "../tests/support/flags.ts";

/**
 * How long `svc` alone takes from its start to its first prompt, beside bare Deno that writes the same
 * character to the same kind of terminal (`script`): medians of so many starts, in milliseconds.
 *
 *     deno run --allow-run --allow-read --allow-write bench/first_prompt.ts
 */
const RUNS = 15;
const PROMPT = "› ";

const folder = await Deno.makeTempDir();
try {
  await Deno.mkdir(`${folder}/.svc`);
  await Deno.writeTextFile(`${folder}/.svc/config.json`, '{"provider": "demo"}');
  const bare = `${folder}/bare.js`;
  await Deno.writeTextFile(bare, `console.log("${PROMPT}"); setTimeout(() => {}, 10_000);`);
  const app = `${folder}/app`;
  const config = fileURLToPath(new URL("../deno.json", import.meta.url));
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));
  const options = ["--quiet", "--config", config, "--minify", "--platform", "deno"];
  await new Deno.Command(Deno.execPath(), {
    args: ["bundle", ...options, "--code-splitting", "--outdir", app, main],
    stderr: "null",
  }).output();
  const flags = buildFlags().join(" ");
  const floor: number[] = [];
  const svc: number[] = [];
  for (let run = 0; run <= RUNS; run++) {
    floor.push(await start(`deno run --quiet --no-config ${bare}`));
    svc.push(await start(`deno run --quiet --no-config ${flags} ${app}/main.js`));
  }
  const [least, ours] = [median(floor.slice(1)), median(svc.slice(1))];
  const times = (ours / least).toFixed(1);
  const line = `bare Deno ${least.toFixed(0)} ms, svc ${ours.toFixed(0)} ms: ${times} times\n`;
  await Deno.stdout.write(new TextEncoder().encode(line));
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Milliseconds until the prompt stands on the terminal. */
async function start(command: string): Promise<number> {
  const started = performance.now();
  const child = new Deno.Command("script", {
    args: ["--quiet", "--command", `exec ${command}`, "/dev/null"],
    cwd: folder,
    env: { HOME: folder, PATH: `${Deno.execPath().replace(/\/[^/]*$/, "")}:/usr/bin:/bin` },
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
  return took;
}

function median(values: number[]): number {
  return values.toSorted((one, other) => one - other)[values.length >> 1]!;
}
