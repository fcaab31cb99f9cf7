// deno-lint-ignore-file no-console
/**
 * `deno run --no-prompt --allow-read --allow-write --allow-net --allow-run --allow-env bench/server.ts`:
 * measures `svc serve` from its source. Prints one line of JSON; `--quick` makes a tenth of the requests.
 */
import { fileURLToPath } from "node:url";
import { startDemoServer } from "../plugins/svc-core-demo/src/server.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Connections that ask at the same time. */
const WIDTH = 32;
const SHARE = Deno.args.includes("--quick") ? 0.1 : 1;
const HEALTH = 100_000 * SHARE;
const CHATS = 3000 * SHARE;
const SESSIONS = 200;

const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "svc-bench-" }));
const backend = startDemoServer({ script: { replies: [], default: { text: "done" } } });
await Deno.mkdir(`${folder}/.svc`);
const settings = { base_url: backend.url, model: "bench", memory_enabled: false };
await Deno.writeTextFile(`${folder}/.svc/config.json`, JSON.stringify(settings));

const flags = (await Deno.readTextFile(`${ROOT}permissions/build.flags`)).trim().split("\n");
const svc = await start(["run", ...flags, `${ROOT}main.ts`, "serve", "--port", "0"]);
const bare = await start(["run", "--no-prompt", "--allow-net", bareServer()]);
try {
  const idle_mb = await memory(svc.pid);
  await hammer(svc.url, 1000);
  const after_1000_mb = await memory(svc.pid);
  // In turn, so that a slow moment of the machine hits both.
  const rates = { svc: [] as number[], bare: [] as number[] };
  for (let i = 0; i < 5; i++) {
    rates.svc.push(await hammer(svc.url, HEALTH / 5));
    rates.bare.push(await hammer(bare.url, HEALTH / 5));
  }
  const after_health_mb = await memory(svc.pid);
  const begun = performance.now();
  const names = Array.from({ length: SESSIONS }, (_, i) => `bench_${i}`);
  const answers = await Promise.all(names.map((session) => chat(svc.url, session)));
  const burst_s = (performance.now() - begun) / 1000;
  const logged = await Promise.all(names.map(loggedTurns));
  const after_burst_mb = await memory(svc.pid);
  for (let done = 0; done < CHATS; done += SESSIONS) {
    await Promise.all(names.slice(0, CHATS - done).map((session) => chat(svc.url, session)));
  }
  const after_chats_mb = await memory(svc.pid);
  const [ours, theirs] = [median(rates.svc), median(rates.bare)];
  console.log(JSON.stringify({
    idle_mb,
    health_per_s: Math.round(ours),
    bare_per_s: Math.round(theirs),
    health_share: Number((ours / theirs).toFixed(2)),
    chats_answered: answers.filter((status) => status === "ok").length,
    chats_logged: logged.filter((turns) => turns === 1).length,
    burst_s: Number(burst_s.toFixed(1)),
    after_1000_mb,
    after_health_mb,
    after_burst_mb,
    after_chats_mb,
  }));
} finally {
  for (const { child } of [svc, bare]) {
    child.kill("SIGTERM");
    await child.status;
  }
  await backend.close();
  await Deno.remove(folder, { recursive: true });
}

interface Started {
  child: Deno.ChildProcess;
  pid: number;
  url: string;
}

/** Starts a server that says on standard error where it listens. */
async function start(args: string[]): Promise<Started> {
  const command = new Deno.Command(Deno.execPath(), { args, cwd: folder, stderr: "piped" });
  const child = command.spawn();
  const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (true) {
    const { value, done } = await reader.read();
    if (done) throw new Error(text);
    text += value;
    const [, url] = /listening on (\S+)/i.exec(text) ?? [];
    if (url !== undefined) return { child, pid: child.pid, url };
  }
}

function bareServer(): string {
  const path = `${folder}/bare.ts`;
  Deno.writeTextFileSync(
    path,
    `Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: ({ port }) =>
      console.error("listening on http://127.0.0.1:" + port) },
      () => Response.json({ status: "ok" }));\n`,
  );
  return path;
}

/** Asks for /health so often; returns the requests per second. */
async function hammer(url: string, times: number): Promise<number> {
  const begun = performance.now();
  let left = times;
  await Promise.all(Array.from({ length: WIDTH }, async () => {
    while (left-- > 0) await (await fetch(`${url}/health`)).text();
  }));
  return times / ((performance.now() - begun) / 1000);
}

async function chat(url: string, session: string): Promise<string> {
  const body = JSON.stringify({ prompt: "hello", session });
  return (await (await fetch(`${url}/chat`, { method: "POST", body })).json()).status;
}

async function loggedTurns(name: string): Promise<number> {
  const { turns } = JSON.parse(await Deno.readTextFile(`${folder}/.svc/sessions/${name}.json`));
  return turns.filter(({ status }: { status: string }) => status === "ok").length;
}

/** Resident memory in MB, as the kernel counts it. */
async function memory(pid: number): Promise<number> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "rss=", "-p", `${pid}`] })
    .output();
  return Math.round(Number(new TextDecoder().decode(stdout)) * 1024 / 1e6);
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}
