// deno-lint-ignore-file no-console
/**
 * A program for fleets to run in place of svc: listens on `SVC_FLEET_PORT`, is as well as the file `health`
 * in its folder says, and keeps a diary of its starts.
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
  const health = read("health");
  return Response.json({ status: health || "ok" }, { status: health === "" ? 200 : 500 });
});
if (read("stubborn") !== "") Deno.addSignalListener("SIGINT", () => console.log("no"));
