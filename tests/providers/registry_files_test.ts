import assert from "node:assert/strict";
import { join } from "node:path";
import { ModelStore } from "../../src/providers/model_approval.ts";
import { ConnectionStore } from "../../src/providers/connections.ts";
import { TestClock } from "./support.ts";

interface Home extends AsyncDisposable {
  directory: string;
  warnings: string[];
  clock: TestClock;
  connections: ConnectionStore;
  models: ModelStore;
  write(name: string, text: string): void;
  read(name: string): string;
}

function openHome(): Home {
  const directory = Deno.makeTempDirSync();
  const warnings: string[] = [];
  const clock = new TestClock();
  const warn = (message: string) => void warnings.push(message.replace(directory, "~"));
  return {
    directory,
    warnings,
    clock,
    connections: new ConnectionStore(directory, clock, warn),
    models: new ModelStore(directory, clock, warn),
    write: (name, text) => Deno.writeTextFileSync(join(directory, name), text),
    read: (name) => Deno.readTextFileSync(join(directory, name)),
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

const NOW = "2026-01-02T03:04:05.000Z";
const LATER = "2026-01-02T04:04:05.000Z";

Deno.test("a connection is stored in providers.json, changed and read back as an object keyed by provider [2.12]", async () => {
  await using home = openHome();
  const { connections, clock } = home;
  assert.equal(connections.get("groq"), undefined);
  await connections.save("groq", { api_key: " sk-1\n" });
  await connections.save("mine", { base_url: "http://h:1/v1" });
  clock.time += 3_600_000;
  await connections.save("groq", { base_url: "http://proxy", api_key: "" });
  await connections.touch("groq");
  await connections.touch("unknown");
  assert.deepEqual(JSON.parse(home.read("providers.json")), {
    groq: { base_url: "http://proxy", api_key: "sk-1", added_at: NOW, last_used: LATER },
    mine: { base_url: "http://h:1/v1", api_key: "", added_at: NOW, last_used: "" },
  });
  assert.deepEqual([...connections.list().keys()], ["groq", "mine"]);
  assert.equal(connections.get("mine")?.base_url, "http://h:1/v1");
  assert.deepEqual(home.warnings, []);
});

Deno.test("an empty key in providers.json keeps the stored one; a key that cannot be sent is rejected [2.12]", async () => {
  await using home = openHome();
  await home.connections.save("groq", { api_key: "sk-1" });
  await home.connections.save("groq", { api_key: "" });
  for (const api_key of ["sk 2", "sk\n2", "sk-→"]) {
    await assert.rejects(home.connections.save("groq", { api_key }), (error: Error) => {
      assert.doesNotMatch(error.message, /2|→/);
      return true;
    });
  }
  assert.equal(home.connections.get("groq")?.api_key, "sk-1");
});

Deno.test({
  name: "providers.json and models.json are readable by their owner only, also existing ones [5.1]",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using home = openHome();
    home.write("providers.json", "{}");
    await home.connections.save("groq", { api_key: "sk-1" });
    await home.models.approve("groq", "m");
    for (const name of ["providers.json", "models.json"]) {
      assert.equal(Deno.statSync(join(home.directory, name)).mode! & 0o777, 0o600);
    }
  },
});

Deno.test("unknown fields and entries are kept by a change", async () => {
  await using home = openHome();
  const odd = { groq: { api_key: "sk-1", note: "mine" }, odd: { base_url: 7 }, odder: "x" };
  home.write("providers.json", JSON.stringify(odd));
  assert.deepEqual([...home.connections.list().keys()], ["groq"]);
  assert.deepEqual(home.warnings, ['~/providers.json has an entry "odd" that is not understood.']);
  await home.connections.touch("groq");
  const { groq, ...rest } = JSON.parse(home.read("providers.json"));
  assert.deepEqual(groq, { api_key: "sk-1", note: "mine", last_used: NOW });
  assert.deepEqual(rest, { odd: odd.odd, odder: "x" });
});

Deno.test("a corrupt providers.json or models.json causes one warning, and the first change keeps a copy of it [7.6]", async () => {
  for (const broken of ['{"groq": {"api_key": "sk-', "", "null", "\x00\xff"]) {
    await using home = openHome();
    const names = () => [...Deno.readDirSync(home.directory)].map((entry) => entry.name);
    for (const name of ["providers.json", "models.json"]) home.write(name, broken);
    for (let i = 0; i < 2; i++) {
      assert.equal(home.connections.get("groq"), undefined);
      assert.deepEqual(home.models.list(), []);
    }
    assert.equal(home.warnings.length, 2);
    assert.match(home.warnings[0]!, /^~\/providers\.json is corrupt; it is read as empty/);
    assert.equal(home.read("providers.json"), broken);

    await home.connections.save("groq", { api_key: "sk-2" });
    await home.models.approve("groq", "m");
    assert.equal(home.connections.get("groq")?.api_key, "sk-2");
    assert.equal(home.models.isApproved("groq", "m"), true);
    for (const name of ["providers.json", "models.json"]) {
      const kept = names().filter((kept) => kept.startsWith(`${name}.broken-2026-01-02T03-04-05`));
      assert.equal(kept.length, 1);
      assert.equal(home.read(kept[0]!), broken);
    }
    assert.match(home.warnings[2]!, /^~\/providers\.json was corrupt; it is kept as prov/);
  }
});

Deno.test("a providers.json that cannot be read causes a warning, one that cannot be written an error [7.6]", async () => {
  await using home = openHome();
  Deno.mkdirSync(join(home.directory, "providers.json"));
  assert.equal(home.connections.get("groq"), undefined);
  assert.match(home.warnings[0]!, /^~\/providers\.json cannot be read: /);
  await assert.rejects(home.connections.save("groq", {}), { code: "registry_write", exit: 1 });
});

Deno.test("concurrent writers lose no change", async () => {
  await using home = openHome();
  const names = Array.from({ length: 20 }, (_, i) => `p${i}`);
  const stores = names.map(() => new ConnectionStore(home.directory, home.clock, () => {}));
  await Promise.all(names.map((name, i) => stores[i]!.save(name, { api_key: `sk-${i}` })));
  assert.deepEqual([...home.connections.list().keys()].sort(), names.toSorted());
});

Deno.test("models.json has an approved model once for each provider, without a key [2.12, 5.1]", async () => {
  await using home = openHome();
  const { models, clock } = home;
  assert.equal(models.isApproved("groq", "m"), false);
  await models.approve("groq", "m");
  clock.time += 3_600_000;
  await models.approve("groq", "m");
  await models.approve("openai", "m");
  await models.touch("groq", "m");
  await models.touch("groq", "unknown");
  assert.deepEqual(JSON.parse(home.read("models.json")), [
    { provider: "groq", model: "m", added_at: NOW, last_used: LATER },
    { provider: "openai", model: "m", added_at: LATER, last_used: "" },
  ]);
  assert.equal(models.isApproved("openai", "m"), true);
  assert.equal(models.isApproved("openai", "other"), false);
});

Deno.test("approvals under `models` are read, and unknown entries are kept", async () => {
  await using home = openHome();
  home.write("models.json", JSON.stringify({ models: [{ provider: "a", model: "m" }, 7] }));
  assert.equal(home.models.isApproved("a", "m"), true);
  assert.deepEqual(home.warnings, ["~/models.json has an entry that is not understood."]);
  await home.models.approve("b", "n");
  assert.deepEqual(JSON.parse(home.read("models.json")).slice(0, 2), [
    { provider: "a", model: "m" },
    7,
  ]);
});
