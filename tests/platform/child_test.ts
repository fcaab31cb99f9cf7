import assert from "node:assert/strict";
import { startChild } from "../../src/platform/child.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { nobodyLeft } from "../support/processes.ts";
import { project } from "../support/project.ts";

const PATH = "/usr/local/bin:/usr/bin:/bin";

function shell(script: string, cwd: string, env: Record<string, string> = {}) {
  return startChild({ command: ["sh", "-c", script], cwd, env: { PATH, ...env } }, systemClock);
}

Deno.test("a child has the environment it is given, and pipes to be talked to", async () => {
  await using place = await project();
  const child = shell("read line; echo $line; env; echo oops >&2", place.path, { ONE: "1" });
  const writer = child.input.getWriter();
  await writer.write(new TextEncoder().encode("hello\n"));
  const [out, errors] = await Promise.all([
    new Response(child.output).text(),
    new Response(child.errors).text(),
  ]);
  const [line, ...variables] = out.trim().split("\n");
  assert.equal(line, "hello");
  const names = variables.map((each) => each.split("=")[0]!);
  assert.deepEqual(names.filter((name) => !["_", "PWD", "OLDPWD", "SHLVL"].includes(name)).sort(), [
    "ONE",
    "PATH",
  ]);
  assert.equal(errors, "oops\n");
  assert.equal(await child.ended, 0);
});

Deno.test("what a child leaves in its group ends with it", async () => {
  await using place = await project();
  const child = shell("sleep 600 & sleep 600 & exit 3", place.path);
  assert.equal(await child.ended, 3);
  await child.output.cancel();
  await child.errors.cancel();
  await nobodyLeft(place.path);
});

Deno.test("a child that ignores the end of its input and SIGTERM is stopped with its children", async () => {
  await using place = await project();
  const child = shell("trap '' TERM; echo up; sleep 600 & sleep 600; sleep 600", place.path);
  const reader = child.output.getReader();
  await reader.read();
  await child.stop();
  assert.equal(await child.ended, 137);
  await reader.cancel();
  await child.errors.cancel();
  await nobodyLeft(place.path);
});

Deno.test("a program that is not there is named", () => {
  assert.throws(() => startChild({ command: ["/no/such"], cwd: "/", env: {} }, systemClock), {
    code: "program_not_found",
  });
});
