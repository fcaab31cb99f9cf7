import type { Contestant, Place } from "./contestants.ts";
import { startDemoServer } from "../plugins/svc-core-demo/src/server.ts";

/** What `svc serve` was measured at; memory is resident, in MB of a million bytes. */
export interface ServerFigures {
  idle_mb: number;
  /** Not shared with any other process; two servers run, as in a fleet. */
  idle_private_mb: number;
  bare_idle_mb: number;
  /** Of a peer's idle server, by its name; left out where it did not start. */
  peers_idle_mb: Record<string, number>;
  health_per_s: number;
  bare_per_s: number;
  /** `health_per_s` by `bare_per_s`. */
  health_share: number;
  after_1000_mb: number;
  after_100000_mb: number;
  chats_answered: number;
  chats_logged: number;
  burst_s: number;
  after_burst_mb: number;
  /** After 2,000 chats on 200 sessions, and after twice as many. */
  after_chats_mb: number;
  after_more_chats_mb: number;
  /** Milliseconds that `GET /health` took while chats ran: 99 of 100 at most, and the slowest. */
  health_p99_ms: number;
  health_max_ms: number;
  /**
   * Milliseconds to the first token of `POST /chat` with `stream`, one chat after another, and chats per second of
   * eight clients; the same of bare `Deno.serve`, which passes the stream of the same backend on. Left out in results
   * of before they were measured.
   */
  streams?: Record<"svc" | "bare", { first_token_ms: number; per_s: number }>;
}

/** Connections that ask at the same time. */
const WIDTH = 32;
const HEALTH = 100_000;
/** Rounds of streamed chats, each of so many in turn and of so many by eight clients at once. */
const STREAM_ROUNDS = 5;
const STREAMS = 40;
const CLIENTS = 8;
const SESSIONS = 200;
/** Chats on every session, twice. */
const CHATS = 10;
/** Milliseconds that a server is left alone before its idle memory is read. */
const SETTLE = 2000;

/** Measures the server of an executable of svc, next to bare `Deno.serve` and peers that serve. */
export async function measureServer(
  executable: string,
  peers: Contestant[],
  folder: string,
): Promise<ServerFigures> {
  const backend = startDemoServer({ script: { replies: [], default: { text: "done" } } });
  const started: Started[] = [];
  const serve = async (command: string[], name: string) => {
    const place = { home: `${folder}/${name}/home`, worktree: `${folder}/${name}/worktree` };
    await Deno.mkdir(`${place.worktree}/.svc`, { recursive: true });
    await Deno.mkdir(place.home, { recursive: true });
    const settings = { base_url: backend.url, model: "bench", memory_enabled: false };
    await Deno.writeTextFile(`${place.worktree}/.svc/config.json`, JSON.stringify(settings));
    const server = await start(command, place);
    started.push(server);
    return { ...server, place };
  };
  const own = [executable, "serve", "--port", "0"];
  try {
    await end(await serve(own, "first")); // unpacks itself, and fills its caches
    const svc = await serve(own, "svc");
    await serve(own, "other");
    const bare = await serve(await bareServer(folder, backend.url), "bare");
    await settle();
    const [idle, bareIdle] = [memory(svc), memory(bare)];
    await hammer(svc.url, 1000);
    const after_1000_mb = memory(svc).resident;
    // In turn, so that a slow moment of the machine hits both.
    const rates = { svc: [] as number[], bare: [] as number[] };
    for (let i = 0; i < 5; i++) {
      rates.svc.push(await hammer(svc.url, HEALTH / 5));
      rates.bare.push(await hammer(bare.url, HEALTH / 5));
    }
    const after_100000_mb = memory(svc).resident;
    const names = Array.from({ length: SESSIONS }, (_, i) => `bench_${i}`);
    const chats = () => Promise.all(names.map((session) => chat(svc.url, session)));
    const begun = performance.now();
    const answers = await chats();
    const burst_s = (performance.now() - begun) / 1000;
    const logged = names.map((name) => loggedTurns(svc.place, name));
    const after_burst_mb = memory(svc).resident;
    const probe = probing(svc.url);
    for (let i = 1; i < CHATS; i++) await chats();
    const after_chats_mb = memory(svc).resident;
    for (let i = 0; i < CHATS; i++) await chats();
    const after_more_chats_mb = memory(svc).resident;
    const latencies = await probe.stop();
    const streams = await measureStreams({ svc: svc.url, bare: bare.url });
    const [ours, theirs] = [median(rates.svc), median(rates.bare)];
    for (const server of started.splice(0)) await end(server);
    const peers_idle_mb: Record<string, number> = {};
    for (const { name, serve: command } of peers) {
      if (command === undefined) continue;
      try {
        const server = await serve(command, name);
        await settle();
        peers_idle_mb[name] = memory(server).resident;
      } catch {
        // a peer that does not start fails nothing
      }
    }
    return {
      idle_mb: idle.resident,
      idle_private_mb: idle.private,
      bare_idle_mb: bareIdle.resident,
      peers_idle_mb,
      health_per_s: ours,
      bare_per_s: theirs,
      health_share: ours / theirs,
      after_1000_mb,
      after_100000_mb,
      chats_answered: answers.filter((status) => status === "ok").length,
      chats_logged: logged.filter((turns) => turns === 1).length,
      burst_s,
      after_burst_mb,
      after_chats_mb,
      after_more_chats_mb,
      health_p99_ms: latencies.at(Math.floor(latencies.length * 0.99))!,
      health_max_ms: latencies.at(-1)!,
      streams,
    };
  } finally {
    for (const server of started) await end(server);
    await backend.close();
  }
}

interface Started {
  child: Deno.ChildProcess;
  url: string;
}

/** Starts a server that says where it listens. */
async function start(command: string[], { home, worktree }: Place): Promise<Started> {
  const child = new Deno.Command(command[0]!, {
    args: command.slice(1),
    cwd: worktree,
    env: {
      HOME: home,
      XDG_CACHE_HOME: `${home}/../../cache`,
      DENO_NO_UPDATE_CHECK: "1",
      SVC_TRUST: "1",
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const where = Promise.withResolvers<string>();
  for (const output of [child.stdout, child.stderr]) listen(output, where.resolve);
  child.status.then(() => where.reject(new Error(`${command[0]} ended before it listened`)));
  return { child, url: await where.promise };
}

/** Reads all that a server says: one that is not read would wait one day. */
async function listen(output: ReadableStream<Uint8Array>, found: (url: string) => void) {
  let text = "";
  for await (const piece of output.pipeThrough(new TextDecoderStream())) {
    text = (text + piece).slice(-4096);
    const [, url] = /listening on (http\S+)\s/i.exec(text) ?? [];
    if (url !== undefined) found(url);
  }
}

async function end({ child }: Started): Promise<void> {
  try {
    child.kill("SIGTERM");
  } catch {
    // it has ended
  }
  await child.status;
}

async function bareServer(folder: string, backend: string): Promise<string[]> {
  const path = `${folder}/bare.ts`;
  await Deno.writeTextFile(
    path,
    `Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: ({ port }) =>
      console.error("listening on http://127.0.0.1:" + port) },
      async ({ method }) => {
        if (method === "GET") return Response.json({ status: "ok" });
        const messages = [{ role: "user", content: "hello" }];
        const body = JSON.stringify({ model: "bench", stream: true, messages });
        const headers = { "content-type": "application/json" };
        const url = "${backend}/chat/completions";
        return new Response((await fetch(url, { method: "POST", headers, body })).body);
      });\n`,
  );
  return [Deno.execPath(), "run", "--no-prompt", "--no-config", "--allow-net", path];
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

/** Asks for /health, one request after another, until it is stopped; then gives the times, sorted. */
function probing(url: string): { stop(): Promise<number[]> } {
  let asking = true;
  const times: number[] = [];
  const asked = (async () => {
    while (asking) {
      const begun = performance.now();
      await (await fetch(`${url}/health`)).text();
      times.push(performance.now() - begun);
      await new Promise((resume) => setTimeout(resume, 5));
    }
  })();
  return {
    async stop() {
      asking = false;
      await asked;
      return times.sort((a, b) => a - b);
    },
  };
}

async function chat(url: string, session: string): Promise<string> {
  const body = JSON.stringify({ prompt: "hello", session });
  return (await (await fetch(`${url}/chat`, { method: "POST", body })).json()).status;
}

/** Measures streamed chats of servers in turn, so that a slow moment of the machine hits all of them. */
async function measureStreams<N extends string>(
  servers: Record<N, string>,
): Promise<Record<N, { first_token_ms: number; per_s: number }>> {
  const names = Object.keys(servers) as N[];
  const firsts = new Map(names.map((name) => [name, [] as number[]]));
  const rates = new Map(names.map((name) => [name, [] as number[]]));
  for (let round = 0; round < STREAM_ROUNDS; round++) {
    for (const name of names) {
      const url = servers[name];
      for (let i = 0; i < STREAMS; i++) {
        firsts.get(name)!.push(await firstToken(url, `s_${i % 10}`));
      }
      const begun = performance.now();
      await Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
        for (let i = 0; i < STREAMS; i += CLIENTS) await firstToken(url, `client_${client}`);
      }));
      rates.get(name)!.push(STREAMS / ((performance.now() - begun) / 1000));
    }
  }
  const figures = names.map((name) => [
    name,
    { first_token_ms: median(firsts.get(name)!), per_s: median(rates.get(name)!) },
  ]);
  return Object.fromEntries(figures);
}

/** Sends a chat and reads its stream to the end; returns the milliseconds until the first token. */
async function firstToken(url: string, session: string): Promise<number> {
  const begun = performance.now();
  const body = JSON.stringify({ prompt: "hello", session, stream: true });
  const answer = await fetch(`${url}/chat`, { method: "POST", body });
  let text = "";
  let first = NaN;
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (Number.isNaN(first) && text.includes("done")) first = performance.now() - begun;
  }
  return first;
}

function loggedTurns({ worktree }: Place, name: string): number {
  const { turns } = JSON.parse(Deno.readTextFileSync(`${worktree}/.svc/sessions/${name}.json`));
  return turns.filter(({ status }: { status: string }) => status === "ok").length;
}

/** Memory in MB, as the kernel counts it (`/proc/<pid>/smaps_rollup`). */
function memory({ child }: Started): { resident: number; private: number } {
  const text = new TextDecoder().decode(
    new Deno.Command("cat", { args: [`/proc/${child.pid}/smaps_rollup`] }).outputSync().stdout,
  );
  const sum = (pattern: RegExp) =>
    [...text.matchAll(pattern)].reduce((total, [, kb]) => total + Number(kb), 0) * 1024 / 1e6;
  return { resident: sum(/^Rss:\s+(\d+)/gm), private: sum(/^Private_\w+:\s+(\d+)/gm) };
}

function settle(): Promise<void> {
  return new Promise((resume) => setTimeout(resume, SETTLE));
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}
