import assert from "node:assert/strict";
import { join } from "node:path";
import { systemClock } from "../../src/platform/clock.ts";
import { hang, say, startBackend } from "../support/backend.ts";
import { filePostgres } from "../support/postgres.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { scripted } from "../jobs/support.ts";

const { needed, server } = await filePostgres();
/** Milliseconds in which the run of a dead worker is taken over. */
const TAKEOVER = 30_000;

Deno.test({
  ...needed,
  name: "the run of a worker that is killed is taken over within 30 seconds",
  async fn() {
    await using place = await project();
    await using backend = startBackend({ replies: [hang(), say("done")] });
    const env = { SVC_STORE: await server.database() };
    const config = JSON.stringify({ ...scripted(backend), project: "shop" });
    const options = (name: string) => ({
      cwd: join(place.path, name),
      home: join(place.path, `home-${name}`),
      env,
    });
    for (const name of ["one", "two", "three"]) {
      await place.write(`${name}/.svc/config.json`, config);
    }
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await svc(args, options("three"));
      assert.equal(code, 0, stdout + stderr);
    };
    await run("store", "migrate");
    const at = new Date(Date.now() + 1000).toISOString();
    await run("jobs", "add", "slow", "--at", at, "--prompt", "go", "--approval", "auto");
    const start = (name: string, ...args: string[]) => {
      const child = startSvc(args, options(name));
      const process = { child, out: "", errors: "" };
      const read = async (stream: ReadableStream<Uint8Array>, key: "out" | "errors") => {
        for await (const text of stream.pipeThrough(new TextDecoderStream())) process[key] += text;
      };
      void read(child.stdout, "out");
      void read(child.stderr, "errors");
      return process;
    };
    const workers = ["one", "two"].map((name) => start(name, "worker", "--port", "0"));
    const scheduler = start("three", "jobs", "daemon", "--no-work", "--tick", "1");
    const all = () => [...workers, scheduler].map(({ out, errors }) => out + errors).join("\n");
    const until = async (check: () => boolean) => {
      const end = Date.now() + 60_000;
      while (!check()) {
        assert.ok(Date.now() < end, `${check}\n${all()}`);
        await systemClock.sleep(50);
      }
    };
    await until(() => workers.some(({ out }) => out.includes("slow: attempt 1")));
    const dead = workers.find(({ out }) => out.includes("slow: attempt 1"))!;
    const other = workers.find((worker) => worker !== dead)!;
    await until(() => backend.chats.length === 1);
    const killed = Date.now();
    dead.child.kill("SIGKILL");
    await until(() => other.out.includes("slow: ended ok"));
    assert.ok(Date.now() - killed < TAKEOVER, `${Date.now() - killed} ms`);
    for (const { child } of [other, scheduler]) child.kill("SIGTERM");
    assert.deepEqual(
      (await Promise.all([other, scheduler].map(({ child }) => child.status)))
        .map(({ code }) => code),
      [0, 0],
      all(),
    );
    const { stdout } = await svc(["jobs", "show", "slow", "--output", "json"], options("three"));
    const { history } = JSON.parse(stdout);
    assert.deepEqual(
      // deno-lint-ignore no-explicit-any
      history.map(({ attempt, status, reason }: any) => [attempt, status, reason]),
      [[1, "failed", "interrupted"], [2, "verified", ""]],
    );
    assert.notEqual(history[0].worker, history[1].worker);
  },
});
