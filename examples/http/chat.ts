/**
 * Sends a prompt to `svc serve` and prints the answer as it comes:
 * `deno run --allow-net chat.ts http://127.0.0.1:8787 "list the files"`.
 */
const [url, prompt] = Deno.args;
const response = await fetch(`${url}/chat`, {
  method: "POST",
  body: JSON.stringify({ prompt, stream: true }),
});
if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);

let rest = "";
let status = "error";
for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
  const events = (rest + text).split("\n\n");
  rest = events.pop()!;
  for (const event of events) {
    const type = /^event: (.*)$/m.exec(event)?.[1];
    const data = /^data: (.*)$/m.exec(event)?.[1];
    if (data === undefined) continue; // a comment keeps the connection open
    const { content, ...result } = JSON.parse(data);
    if (type === "token" && result.run === 1) await print(content);
    if (type === "result") status = result.status;
  }
}
await print("\n");
Deno.exitCode = status === "ok" ? 0 : 1;

async function print(text: string): Promise<void> {
  await new Blob([text]).stream().pipeTo(Deno.stdout.writable, { preventClose: true });
}
