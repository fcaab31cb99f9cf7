/** A language server that misbehaves, as its first argument says. */
const kind = Deno.args[0];

function send(message: Record<string, unknown>): void {
  const body = new TextEncoder().encode(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const head = new TextEncoder().encode(`Content-Length: ${body.length}\r\n\r\n`);
  const all = new Uint8Array([...head, ...body]);
  for (let at = 0; at < all.length;) {
    at += Deno.stdout.writeSync(all.subarray(at, kind === "bytes" ? at + 1 : undefined));
  }
}

const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } };

let text = "";
/** All texts of files that it was sent. */
let sent = "";
if (kind === "garbage") {
  Deno.stdout.writeSync(new TextEncoder().encode("Welcome!\r\n\r\nI am no language server."));
}
for await (const piece of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  text += piece;
  while (true) {
    const found = /^Content-Length: (\d+)\r\n\r\n/.exec(text);
    if (found === null || text.length < found[0].length + Number(found[1])) break;
    const end = found[0].length + Number(found[1]);
    const { id, method, params } = JSON.parse(text.slice(found[0].length, end));
    text = text.slice(end);
    if (method === "initialize") send({ id, result: { capabilities: {} } });
    if (method === "textDocument/references") {
      if (kind === "refuses") send({ id, error: { code: -32603, message: "not now" } });
      if (kind === "far") {
        const uris = ["file:///etc/passwd", "file:///etc/passwd", "untitled:1"];
        send({ id, result: uris.map((uri) => ({ uri, range })) });
      }
    }
    if (method === "textDocument/didChange") sent += params.contentChanges[0].text;
    if (method === "textDocument/didOpen") {
      sent += params.textDocument.text;
      if (kind === "crash") {
        Deno.stderr.writeSync(new TextEncoder().encode("out of luck"));
        Deno.exit(3);
      }
      if (kind === "asks") {
        send({ id: "x", method: "workspace/configuration", params: { items: [{}, {}] } });
      }
      const { uri, version } = params.textDocument;
      const message = kind === "echo"
        ? sent
        : "bad\n\u001b[31mred" + "!".repeat(kind === "bytes" ? 3000 : 0);
      const count = kind === "many" ? 500 : 1;
      send({
        method: "textDocument/publishDiagnostics",
        params: { uri, version, diagnostics: Array(count).fill({ range, message }) },
      });
    }
  }
}
