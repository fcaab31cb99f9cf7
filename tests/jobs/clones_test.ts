import assert from "node:assert/strict";
import { join } from "node:path";
import { openClone } from "../../src/jobs/clones.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import { call, httpError, say } from "../support/backend.ts";
import { repository } from "../support/git.ts";
import { project } from "../support/project.ts";
import { jobs, type TestJobs } from "./support.ts";

const never = new AbortController().signal;

const write = (path: string, content: string) => call("write_file", { path, content });

/** A repository whose branches can be pushed to, and what Git says of it. */
async function origin(files: Record<string, string>) {
  const place = await project();
  const made = await repository(place, "origin", files);
  const cwd = join(place.path, "origin");
  return {
    ...made,
    async show(...args: string[]) {
      const { stdout } = await new Deno.Command("git", { args, cwd }).output();
      return new TextDecoder().decode(stdout).trim();
    },
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

const clones = ({ context }: TestJobs) => join(context.environment.home, ".cache/svc/clones");

Deno.test("a job with a repository works in a clone at its ref, and pushes what it changed as a branch", async () => {
  await using from = await origin({ "README.md": "one\n", ".svc/config.json": '{"mode": "nope"}' });
  await from.git("checkout", "--quiet", "-b", "next");
  await from.commit({ "README.md": "two\n" });
  await from.git("checkout", "--quiet", "main");
  await using place = await jobs([
    write("new.txt", "made by the job\n"),
    say("done"),
    say("nothing to do"),
  ]);
  const git = { url: from.url, ref: "next", push: true };
  await place.add({ name: "tidy", git, tool_permission: { write: "allow" } });
  await new Scheduler(place.context).tick(never);
  const [entry] = place.register.history("tidy");
  assert.deepEqual([entry!.status, entry!.reason, entry!.denied], ["verified", "", undefined]);
  assert.equal(entry!.branch, "svc/tidy/20260102030405000");
  assert.equal(await from.show("show", `${entry!.branch}:new.txt`), "made by the job");
  assert.equal(await from.show("show", `${entry!.branch}:README.md`), "two");
  assert.match(
    await from.show("log", "-1", "--format=%s", entry!.branch!),
    /^tidy: verified attempt 1/,
  );
  assert.equal(
    await from.show("log", "--format=%s", `next..${entry!.branch}`).then((text) =>
      text.split("\n").length
    ),
    1,
  );
  assert.throws(() => Deno.statSync(join(place.project.path, "new.txt")));
  assert.ok(place.context.register.get("tidy"));

  place.clock.set(place.clock.now() + 3600_000);
  await new Scheduler(place.context).tick(never);
  const [, second] = place.register.history("tidy");
  assert.deepEqual([second!.status, second!.branch], ["verified", undefined]);
  const left = [...Deno.readDirSync(clones(place))].map(({ name }) => name.replace(/^\w{24}/, ""));
  assert.deepEqual(left.filter((name) => name === ""), [""]); // one clone for both runs
  assert.deepEqual(place.warnings, []);
});

Deno.test("the next attempt of a run continues from the branch of the attempt before it", async () => {
  await using from = await origin({ "README.md": "one\n" });
  await using place = await jobs([
    write("half.txt", "half\n"),
    httpError(500),
    call("read_file", { path: "half.txt" }),
    say("done"),
  ]);
  const git = { url: from.url, ref: "", push: true };
  const tool_permission = { write: "allow" as const };
  await place.add({ name: "tidy", git, tool_permission, retries: 1, backoff: 0 });
  const scheduler = new Scheduler(place.context);
  await scheduler.tick(never);
  await scheduler.tick(never);
  const [first, second] = place.register.history("tidy");
  assert.deepEqual([first!.status, second!.status], ["failed", "verified"]);
  assert.equal(first!.branch, "svc/tidy/20260102030405000");
  assert.match(JSON.stringify(place.backend.chats.at(-1)), /half\\\\n|half/);
  assert.equal(await from.show("show", `${first!.branch}:half.txt`), "half");
});

Deno.test("a repository that cannot be reached is a failed attempt, which is retried", async () => {
  await using place = await jobs([]);
  const git = { url: "file:///there/is/none", ref: "", push: true };
  await place.add({ name: "tidy", git, retries: 1, backoff: 60 });
  await new Scheduler(place.context).tick(never);
  const [entry] = place.register.history("tidy");
  assert.equal(entry!.status, "failed");
  assert.match(entry!.reason, /^git ls-remote: /);
  assert.equal(place.register.get("tidy")!.running?.phase, "backoff");
});

Deno.test("clones that were used least recently are removed when they take too much", async () => {
  await using one = await origin({ "a.txt": "a\n" });
  await using two = await origin({ "b.txt": "b\n" });
  await using home = await project();
  const environment = { home: home.path, cwd: home.path, get: () => undefined };
  const cache = join(home.path, ".cache/svc/clones");
  const kept = () =>
    [...Deno.readDirSync(cache)].filter(({ name }) => /^\w{24}$/.test(name)).length;
  const options = { branch: "svc/x/1", environment, size: 1, signal: never };
  const clone = await openClone({ url: one.url, ref: "", push: true }, options);
  assert.equal(kept(), 1); // it is in use
  await clone.close();
  const other = await openClone({ url: two.url, ref: "main", push: true }, options);
  assert.equal(kept(), 1);
  assert.equal(Deno.readTextFileSync(join(other.path, "b.txt")), "b\n");
  assert.equal(await other.publish("nothing"), "");
  await other.close();
});

Deno.test("what an agent has set up in a submodule's folder runs no program when its work is pushed", async () => {
  await using from = await origin({ "a.txt": "a\n" });
  await using inner = await origin({ "b.txt": "b\n" });
  const commit = await inner.show("rev-parse", "HEAD");
  await from.git("update-index", "--add", "--cacheinfo", `160000,${commit},sub`);
  await from.git("commit", "--quiet", "--message=sub");
  await using home = await project();
  const environment = { home: home.path, cwd: home.path, get: () => undefined };
  const options = { branch: "svc/x/1", environment, size: 1e9, signal: never };
  const clone = await openClone({ url: from.url, ref: "", push: true }, options);
  const sub = join(clone.path, "sub");
  await inner.git("clone", "--quiet", inner.url, sub);
  await inner.git("-C", sub, "config", "filter.own.clean", `touch ${home.path}/ran; cat`);
  Deno.writeTextFileSync(join(sub, ".git/info/attributes"), "* filter=own\n");
  Deno.writeTextFileSync(join(sub, "b.txt"), "c\n");
  Deno.writeTextFileSync(join(clone.path, "new.txt"), "new\n");
  assert.equal(await clone.publish("new"), "svc/x/1");
  await clone.close();
  assert.throws(() => Deno.statSync(join(home.path, "ran")), Deno.errors.NotFound);
  assert.equal(await from.show("show", "svc/x/1:new.txt"), "new");
  assert.equal(await from.show("rev-parse", "svc/x/1:sub"), commit);
});
