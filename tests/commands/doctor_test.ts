import assert from "node:assert/strict";
import { join } from "node:path";
import { main } from "../../src/cli/main.ts";
import { exists } from "../../src/platform/files.ts";
import { runMain, testIo } from "../support/io.ts";
import { project } from "../support/project.ts";
import { frozen, mounts, tiny } from "../support/tiny_disk.ts";

interface Finding {
  check: string;
  state: string;
  text: string;
  hint?: string;
}

/** What `svc doctor` finds in a worktree with these files, which is also the user's home. */
async function examine(files: Record<string, string>) {
  const work = await project(files);
  await using _ = work;
  const io = testIo({ home: work.path, cwd: work.path });
  const untrusting = (name: string) => name === "PATH" ? "/usr/bin:/bin" : undefined;
  const environment = { ...io.environment, get: untrusting };
  const code = await main(["doctor", "--output", "json"], { ...io, environment });
  const findings: Finding[] = JSON.parse(io.printed);
  const of = (check: string) => findings.filter((finding) => finding.check === check);
  const state = join(work.path, ".svc");
  return { code, of, findings, state: exists(state) ? [...Deno.readDirSync(state)] : [] };
}

/** A backend that lists one model, and whose clock is some milliseconds ahead. */
function backend(models: string[], ahead = 0) {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
    const date = new Date(Date.now() + ahead).toUTCString();
    return Response.json({ data: models.map((id) => ({ id })) }, { headers: { date } });
  });
  const url = `http://127.0.0.1:${server.addr.port}/v1`;
  return { url, [Symbol.asyncDispose]: () => server.shutdown() };
}

const config = (settings: Record<string, unknown>) => ({
  ".config/svc/config.json": JSON.stringify(settings),
});

Deno.test("svc doctor finds nothing wrong with the demo model, and writes nothing", async () => {
  const { code, of, findings, state } = await examine(config({ provider: "demo" }));
  assert.equal(code, 0);
  assert.deepEqual(findings.filter(({ state }) => state === "failed"), []);
  for (const check of ["configuration", "state", "settings", "backend", "model", "trust"]) {
    assert.deepEqual(of(check).map(({ state }) => state), ["ok"], check);
  }
  assert.match(of("policy")[0]!.text, /^mode build; without --yes, a headless run refuses bash, /);
  assert.deepEqual(state, []);
});

Deno.test("svc doctor names a backend that answers, its key, its model and its clock", async () => {
  await using server = backend(["large-1", "small-1"]);
  const base = { base_url: server.url };
  const { code, of } = await examine(config({ ...base, model: "small-1" }));
  assert.equal(code, 0);
  assert.match(of("backend")[0]!.text, /127\.0\.0\.1:\d+\/v1\) answers$/);
  assert.equal(of("model")[0]!.text, "small-1");
  assert.equal(of("clock")[0]!.text, "agrees with the backend's");
  assert.match(of("key")[0]!.text, /^none is stored for /);

  const other = await examine(config({ ...base, model: "small-2" }));
  assert.deepEqual(other.of("model"), [{
    check: "model",
    state: "warning",
    text: "the backend does not list small-2",
    hint: "Did you mean small-1?",
  }]);
  const none = await examine(config(base));
  assert.equal(none.code, 1);
  assert.match(none.of("backend")[0]!.text, /model/);
});

Deno.test("svc doctor says when the clocks differ by more than a minute", async () => {
  await using server = backend(["m"], 600_000);
  const { of } = await examine(config({ base_url: server.url, model: "m" }));
  const [{ state, text }] = of("clock") as [Finding];
  assert.equal(state, "warning");
  assert.match(text, /^\d+ s behind the backend's$/);
});

Deno.test("svc doctor fails for a backend that does not answer and a model that is not approved", async () => {
  const closed = backend([]);
  await closed[Symbol.asyncDispose]();
  const { code, of } = await examine(config({ base_url: closed.url, model: "m" }));
  assert.equal(code, 1);
  assert.equal(of("backend")[0]!.state, "failed");
  assert.deepEqual(of("clock"), []);

  const refused = await examine(config({ model: "demo/other" }));
  assert.equal(refused.code, 1);
  const [approval] = refused.of("approval");
  assert.equal(approval!.text, "demo/other is not approved");
  assert.equal(approval!.hint, "Approve it with: svc model demo/other");
});

Deno.test("svc doctor stops at a configuration that cannot be read", async () => {
  const { code, findings } = await examine({ ".config/svc/config.json": "{" });
  assert.equal(code, 1);
  assert.deepEqual(findings.map(({ check, state }) => [check, state]), [
    ["configuration", "failed"],
  ]);
  assert.match(findings[0]!.text, /config\.json/);
});

Deno.test("svc doctor warns of what the settings do not mean", async () => {
  const { code, of } = await examine({
    ...config({
      ...{ provider: "demo", nosuch: 1, tools: { deny: ["file_raed"] } },
      tool_permission: { bash_allow: ["find"] },
    }),
    ".svc/config.json": JSON.stringify({ tool_permission: { bash: "allow" } }),
  });
  assert.equal(code, 0);
  const [, ...warnings] = of("configuration");
  assert.match(warnings.map(({ text }) => text).join("\n"), /nosuch[^]*did you mean file_read\?/);
  assert.match(
    of("trust")[0]!.text,
    /^left out until it is trusted: setting:tool_permission\.bash$/,
  );
  const [, listed, ...more] = of("policy");
  assert.match(listed!.text, /^bash_allow "find": /);
  assert.deepEqual(more, []);
});

Deno.test({
  name: "svc doctor fails where no session can be kept, and warns where no key can be",
  ...mounts,
  async fn() {
    await using work = await project(config({ provider: "demo" }));
    await using _ = await frozen(work.path);
    const { code, out } = await runMain(work.path, "doctor");
    assert.equal(code, 1);
    assert.match(out, /^state +failed +\S+\.svc cannot be written \(EROFS\): no sessions/m);
    assert.match(out, /^settings +warning +\S+\.config\/svc cannot be written \(EROFS\)/m);
  },
});

Deno.test({
  name: "svc doctor fails on a disk that is nearly full",
  ...mounts,
  async fn() {
    await using work = await project(config({ provider: "demo" }));
    await using _ = await tiny(work, { at: ".svc" });
    const { code, out, notes } = await runMain(work.path, "doctor");
    assert.equal(code, 1);
    assert.match(out, /^state +failed +\S+\.svc can be written, 0 MB are free/m);
    assert.match(notes.join("\n"), /^state: Make space; /m);
  },
});
