// deno-lint-ignore-file no-console
/**
 * `deno run -A bench/soak.ts [minutes] [chats per second]`: whether the memory of svc serve stays flat. Answers of
 * 10 bytes to 10 MB, on sessions that end after 20 turns, are asked for by eight clients; each minute prints the
 * memory in MB. Linux only.
 */
import { startWatched } from "./watched.ts";

const WIDTH = 8;
const SESSIONS = 16;
const TURNS = 20;
const MB = 1e6;
/** Characters of an answer, and how many of a hundred answers have them. */
const SIZES: [characters: number, share: number][] = [
  [10, 50],
  [1000, 30],
  [20_000, 14],
  [300_000, 4],
  [2 * MB, 1.7],
  [10 * MB, 0.3],
];
/** Characters of a delta. */
const DELTA = 4000;

async function main(): Promise<void> {
  const [minutes = 60, rate = 2] = Deno.args.map(Number);
  const backend = startBackend();
  const folder = await Deno.makeTempDir({ prefix: "svc-soak-" });
  try {
    const sessions = `${folder}/.svc/sessions`;
    await Deno.mkdir(sessions, { recursive: true });
    const settings = {
      base_url: `http://127.0.0.1:${backend.addr.port}/v1`,
      model: "bench",
      memory_enabled: false,
      serve: { rate_limit: 0 },
    };
    await Deno.writeTextFile(`${folder}/.svc/config.json`, JSON.stringify(settings));
    await using server = await startWatched(folder);
    let [chats, bytes] = [0, 0];
    const chat = async () => {
      const number = chats++;
      const generation = Math.floor(number / SESSIONS / TURNS);
      const session = `soak_${generation}_${number % SESSIONS}`;
      if (number % SESSIONS === number % (SESSIONS * TURNS) && generation > 1) {
        // Two generations are kept: the newest turns of the one before may still run.
        await Deno.remove(`${sessions}/soak_${generation - 2}_${number % SESSIONS}.json`);
      }
      const body = JSON.stringify({ prompt: String(drawn()), session });
      const answer = await fetch(`${server.url}/chat`, { method: "POST", body });
      const { status, content, errors } = await answer.json();
      if (status !== "ok") console.log(session, status, JSON.stringify(errors));
      bytes += content.length;
    };
    const end = performance.now() + minutes * 60_000;
    const clients = Array.from({ length: WIDTH }, async () => {
      while (performance.now() < end) {
        await pause(Math.random() * 2000 * WIDTH / rate);
        await chat();
      }
    });
    let over = false;
    const all = Promise.all(clients).finally(() => over = true);
    console.log("minute   chats  answers    rss   heap  external  longest hold, ms");
    for (let minute = 0; !over; minute++) {
      const { memory, longest } = await server.held();
      const megabytes = [bytes, memory.rss, memory.heapUsed, memory.external]
        .map((value) => (value / MB).toFixed(0).padStart(7));
      console.log(
        String(minute).padStart(6),
        String(chats).padStart(7),
        ...megabytes,
        longest.toFixed(0).padStart(10),
      );
      await Promise.race([pause(60_000), all]);
    }
    await all;
  } finally {
    await backend.shutdown();
    await Deno.remove(folder, { recursive: true });
  }
}

/** A backend that answers with as many characters as the last message says. */
function startBackend() {
  const encoder = new TextEncoder();
  const event = (choice: unknown) =>
    encoder.encode(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice as object }] })}\n\n`);
  const whole = event({ delta: { content: "word ".repeat(DELTA / 5) } });
  return Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    if (request.method !== "POST") return Response.json({ data: [] });
    const { messages } = await request.json();
    let left = Number(messages.at(-1).content);
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (left >= DELTA) controller.enqueue(whole);
        else {controller.enqueue(
            event({ delta: { content: "x".repeat(left) }, finish_reason: "stop" }),
          );}
        left -= DELTA;
        if (left < 0) controller.close();
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
}

/** A size of an answer, drawn by the shares. */
function drawn(): number {
  let at = Math.random() * 100;
  return SIZES.find(([, share]) => (at -= share) < 0)?.[0] ?? 10;
}

function pause(ms: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, ms));
}

await main();
