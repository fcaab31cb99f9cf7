import assert from "node:assert/strict";
import { type Invocation, Meter } from "../../bench/measure.ts";

Deno.test("a run has its output, its time and the memory of the largest process in its tree", async () => {
  const grows = "const bytes = new Uint8Array(150e6).fill(1);" +
    "setTimeout(() => console.log(bytes.length), 3000);"; // long enough for the sampler
  const starts = `const args = ["eval", ${JSON.stringify(grows)}];` +
    "await new Deno.Command(Deno.execPath(), { args, stdout: 'inherit' }).output();";
  using meter = new Meter();
  const { stdout, ms, mb } = await meter.run(evaluate(starts));
  assert.equal(stdout, "150000000\n");
  assert.ok(ms >= 3000);
  assert.ok(mb >= 150 && mb < 300, `${mb} MB`);
  const small = await meter.run(evaluate("setTimeout(() => console.log(1), 1500)"));
  assert.ok(small.mb > 0 && small.mb < 150, `${small.mb} MB: a run is counted by itself`);
});

Deno.test("a program that fails is no measurement", async () => {
  using meter = new Meter();
  await assert.rejects(
    meter.run(evaluate("console.error('no luck'); Deno.exit(3)")),
    /^Error: exit 3: no luck$/,
  );
});

function evaluate(code: string): Invocation {
  return {
    command: [Deno.execPath(), "eval", code],
    cwd: "/",
    env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", HOME: Deno.env.get("HOME") ?? "/" },
  };
}
