// deno-lint-ignore-file no-console
/**
 * Receives reports of job runs: `deno run --allow-net --allow-env receiver.ts [port]`, the secret in
 * REPORT_SECRET. A report without the right signature is answered with 403.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

const secret = Deno.env.get("REPORT_SECRET") ?? "";

const options = {
  hostname: "127.0.0.1",
  port: Number(Deno.args[0] ?? 9000),
  onListen: ({ port }: Deno.NetAddr) => console.log(`listening on http://127.0.0.1:${port}`),
};
Deno.serve(options, async (request) => {
  const body = await request.text();
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  const expected = new TextEncoder().encode(`sha256=${digest}`);
  const given = new TextEncoder().encode(request.headers.get("x-svc-signature") ?? "");
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    return new Response(null, { status: 403 });
  }
  const { event, job, outcome, duration, content } = JSON.parse(body);
  if (event === "job.run.completed") console.log(`${job} ${outcome} in ${duration} s: ${content}`);
  else console.log(`${event} ${job ?? ""}`);
  return new Response(null, { status: 204 });
});
