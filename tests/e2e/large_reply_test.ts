import assert from "node:assert/strict";
import { commandLine, processOptions } from "../support/program.ts";
import { needs } from "../support/needs.ts";
import { project } from "../support/project.ts";

/** Characters of a reply. One of four times as many, the most that is accepted, takes four times the memory. */
const SIZE = 8 * 1024 * 1024;
/** Megabytes that it takes. */
const LIMIT = 80;

Deno.test({
  name: "a reply takes a bounded multiple of its size in memory, whatever its pieces [8]",
  ...needs("There is no /proc", Deno.build.os === "linux"),
  async fn() {
    let reply = { field: "", size: 0, piece: SIZE };
    await using backend = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen() {} },
      async (request) => {
        if (request.method !== "POST") return new Response("{}", { status: 404 });
        const { messages } = await request.json();
        const size = messages.at(-1).role === "user" ? reply.size : 0;
        return new Response(ReadableStream.from(events(reply.field, size, reply.piece)), {
          headers: { "content-type": "text/event-stream" },
        });
      },
    );
    await using place = await project();
    const peak = async (field: string, size: number, piece: number) => {
      reply = { field, size, piece };
      const url = `http://127.0.0.1:${backend.addr.port}/v1`;
      const args = ["run", "--base-url", url, "--model", "m", "--output", "json", "-p", "go"];
      const { stdout } = await new Deno.Command("sh", {
        args: ["-c", WATCHED, `${place.path}/peak`, ...commandLine(args)],
        ...processOptions({ cwd: place.path }),
      }).output();
      const out = JSON.parse(new TextDecoder().decode(stdout));
      assert.equal(out.status, "ok");
      if (field === "content" && size > 0) assert.equal(out.content.length, size);
      const [kilobytes] = /\d+/.exec(await place.read("peak"))!;
      return Number(kilobytes) / 1024;
    };
    const base = await peak("content", 0, SIZE);
    for (
      const [field, piece] of [["content", SIZE], ["content", 200], ["arguments", 200]] as const
    ) {
      const more = await peak(field, SIZE, piece) - base;
      assert.ok(more > 0 && more < LIMIT, `${field} in pieces of ${piece}: ${more} MB`);
    }
  },
});

/** The events of a completion whose content, reasoning or arguments have a length. */
async function* events(field: string, size: number, piece: number): AsyncGenerator<Uint8Array> {
  const event = (choice: unknown) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
  const text = "lorem ipsum dolor sit amet, ".repeat(Math.ceil(piece / 28)).slice(0, piece);
  const delta = (text: string, begins = false) => {
    if (field !== "arguments") return event({ delta: { [field]: text } });
    const call = { function: { arguments: text, ...begins && { name: "file_read" } } };
    return event({ delta: { tool_calls: [{ index: 0, ...call, ...begins && { id: "c" } }] } });
  };
  const encoder = new TextEncoder();
  const calls = field === "arguments" && size > 0;
  let pending = calls ? delta('{"path":"', true) : "";
  for (let sent = 0; sent < size; sent += piece) {
    pending += delta(text.slice(0, size - sent));
    if (pending.length < 60_000) continue;
    yield encoder.encode(pending);
    pending = "";
  }
  if (calls) pending += delta('"}');
  if (size === 0) pending += event({ delta: { content: "done" } });
  pending += event({ delta: {}, finish_reason: calls ? "tool_calls" : "stop" });
  yield encoder.encode(`${pending}data: [DONE]\n\n`);
}

/** Runs a program and writes its highest resident memory, the kernel's own record, into a file again and again. */
const WATCHED = `"$@" & p=$!
while grep VmHWM /proc/$p/status >"$0.new" 2>/dev/null; do mv "$0.new" "$0"; sleep 0.02; done
wait $p`;
