// deno-lint-ignore-file no-console
/**
 * A program for fleets to run in place of svc: listens on `SVC_FLEET_PORT`, is as well as the file `health`
 * in its folder says, and keeps a diary of its starts. It says "one" to a client that chats with it, and "two" once
 * the file `go` is there.
 */
const port = Number(Deno.env.get("SVC_FLEET_PORT"));
Deno.writeTextFileSync("starts", `${Deno.pid} ${port}\n`, { append: true });
console.log(`here on ${port}`);
const read = (name: string) => {
  try {
    return Deno.readTextFileSync(name).trim();
  } catch {
    return "";
  }
};
Deno.serve({ hostname: "127.0.0.1", port, onListen: () => {} }, ({ url }) => {
  const { pathname } = new URL(url);
  if (pathname === "/version") {
    return read("version") === "" ? Response.json({ version: "1.0.0" }) : new Response("what?");
  }
  if (pathname === "/chat") return chat();
  const health = read("health");
  return Response.json({ status: health || "ok" }, { status: health === "" ? 200 : 500 });
});
if (read("stubborn") !== "") Deno.addSignalListener("SIGINT", () => console.log("no"));

function chat(): Response {
  const event = (type: string, data: object) =>
    new TextEncoder().encode(`event: ${type}\ndata: ${JSON.stringify({ ...data, run: 1 })}\n\n`);
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(event("token", { type: "token", content: "one\x1b[2J" }));
      while (read("go") === "") await new Promise((resolve) => setTimeout(resolve, 20));
      controller.enqueue(event("token", { type: "token", content: " two" }));
      controller.enqueue(event("notice", { type: "notice", level: "warning", message: "late" }));
      if (read("go") === "break") return controller.close();
      controller.enqueue(event("result", { status: "ok" }));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
