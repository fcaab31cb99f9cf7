import assert from "node:assert/strict";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import {
  connectChoices,
  type Connected,
  connectProvider,
  type ConnectRequest,
} from "../../src/providers/connect.ts";
import { ConnectionStore } from "../../src/providers/connections.ts";
import { ProviderRegistry } from "../../src/providers/registry.ts";
import { json, providerOptions, TestClock, WireServer } from "./support.ts";

interface Desk extends AsyncDisposable {
  server: WireServer;
  connections: ConnectionStore;
  registry: ProviderRegistry;
  /** What the operator was asked, in order. */
  asked: string[];
  connect(request: Partial<ConnectRequest>, answers?: Answers): Promise<Connected | undefined>;
}

interface Answers {
  choice?: string;
  key?: string;
  anyway?: boolean;
}

/** A vendor `acme` at a server that knows the key `sk-good`, and an operator with answers. */
function openDesk(): Desk {
  const server = new WireServer((wire, { headers }) => {
    const good = headers.get("authorization") === "Bearer sk-good";
    return wire.send(good ? json({ data: [{ id: "a" }, { id: "b" }] }) : json({}, 401));
  });
  class Acme extends OpenAICompatibleProvider {
    static override readonly DEFAULT_BASE_URL = `${server.url}/acme/v1`;
    static override readonly HOST_PATTERNS = ["acme.invalid"];
  }
  const registry = new ProviderRegistry();
  registry.register("acme", Acme, { bundled: true, owner: "svc-core-acme" });
  const directory = Deno.makeTempDirSync();
  const connections = new ConnectionStore(directory, new TestClock(), assert.fail);
  const asked: string[] = [];
  const connect: Desk["connect"] = (request, answers = {}) =>
    connectProvider({
      target: "",
      name: "",
      check: true,
      providers: registry,
      connections,
      options: providerOptions(),
      prompts: {
        choose(choices) {
          asked.push(`choose ${choices.map(({ name }) => name).join(" ")}`);
          return Promise.resolve(answers.choice);
        },
        key(provider, has_key) {
          asked.push(`key ${provider} ${has_key}`);
          return Promise.resolve(answers.key);
        },
        saveAnyway(problem) {
          asked.push(`anyway? ${problem}`);
          return Promise.resolve(answers.anyway ?? false);
        },
      },
      ...request,
    });
  return {
    server,
    connections,
    registry,
    asked,
    connect,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      Deno.removeSync(directory, { recursive: true });
    },
  };
}

function saved({ connections }: Desk): Record<string, [base_url: string, api_key: string]> {
  return Object.fromEntries(
    [...connections.list()].map(([name, { base_url, api_key }]) => [name, [base_url, api_key]]),
  );
}

Deno.test("/connect <name> probes a known provider with the key, and stores it without an address [4.10]", async () => {
  await using desk = openDesk();
  assert.deepEqual(await desk.connect({ target: "acme" }, { key: " sk-good\n" }), {
    provider: "acme",
    base_url: `${desk.server.url}/acme/v1`,
    found: "2 models on offer",
  });
  assert.deepEqual(desk.asked, ["key acme false"]);
  assert.equal(desk.server.requests[0]!.path, "/acme/v1/models");
  assert.deepEqual(saved(desk), { acme: ["", "sk-good"] });
});

Deno.test("a failed probe of /connect asks whether to save anyway [4.10]", async () => {
  await using desk = openDesk();
  assert.equal(await desk.connect({ target: "acme" }, { key: "sk-bad" }), undefined);
  assert.deepEqual(saved(desk), {});
  const connected = await desk.connect({ target: "acme" }, { key: "sk-bad", anyway: true });
  assert.equal(connected?.found, "");
  assert.deepEqual(saved(desk), { acme: ["", "sk-bad"] });
  assert.equal(desk.asked[1], "anyway? acme refused the key (401).");
});

Deno.test("without connect_check there is no probe [2.13]", async () => {
  await using desk = openDesk();
  await desk.connect({ target: "acme", check: false }, { key: "sk-bad" });
  assert.equal(desk.server.requests.length, 0);
  assert.deepEqual(saved(desk), { acme: ["", "sk-bad"] });
});

Deno.test("an empty key at /connect keeps the stored one and probes with it [2.12]", async () => {
  await using desk = openDesk();
  await desk.connections.save("acme", { api_key: "sk-good" });
  assert.equal((await desk.connect({ target: "acme" }, { key: "" }))?.provider, "acme");
  assert.deepEqual(desk.asked, ["key acme true"]);
  assert.deepEqual(saved(desk), { acme: ["", "sk-good"] });
});

Deno.test("a stored key does not follow the provider to another host", async () => {
  await using desk = openDesk();
  await desk.connections.save("acme", { base_url: "http://acme.invalid", api_key: "sk-good" });
  await desk.connect({ target: desk.server.url, name: "acme" }, { key: "", anyway: true });
  assert.equal(desk.server.requests[0]!.headers.has("authorization"), false);
  assert.deepEqual(saved(desk), { acme: [desk.server.url, ""] });
});

Deno.test("/connect <url> of a known host selects its provider, with the address stored if it is custom [4.10]", async () => {
  await using desk = openDesk();
  const plain = await desk.connect({ target: `${desk.server.url}/acme/` }, { key: "sk-good" });
  assert.equal(plain?.provider, "acme");
  assert.deepEqual(saved(desk), { acme: ["", "sk-good"] });
  const custom = { target: "http://eu.acme.invalid/v1", check: false };
  assert.deepEqual(await desk.connect(custom, { key: "sk-eu" }), {
    provider: "acme",
    base_url: "http://eu.acme.invalid/v1",
    found: "",
  });
  assert.deepEqual(saved(desk), { acme: ["http://eu.acme.invalid/v1", "sk-eu"] });
});

Deno.test("/connect <url> of any other host makes a custom provider named after it, which is detected later [4.10]", async () => {
  await using desk = openDesk();
  const named: [url: string, name: string][] = [
    ["https://api.mine.test/v1", "mine.test"],
    ["https://api.mine.test", "mine.test"],
    ["https://www.mine.test/other", "mine.test-2"],
    ["http://localhost:8080", "localhost-8080"],
    ["http://[::1]:8080", "1--8080"],
    ["http://acme/v1", "acme-2"],
  ];
  for (const [target, name] of named) {
    const connected = await desk.connect({ target, check: false }, { key: "" });
    assert.equal(connected?.provider, name);
    assert.equal(connected?.base_url, target);
  }
  assert.equal(saved(desk)["mine.test-2"]![0], "https://www.mine.test/other");
  assert.equal(
    (await desk.connect({ target: "mine.test", check: false }, { key: "k" }))?.base_url,
    "https://api.mine.test",
  );
});

Deno.test("/connect <url> <name> stores the URL under the given name [4.10]", async () => {
  await using desk = openDesk();
  await desk.connect({ target: desk.server.url, name: "mine" }, { key: "sk-good" });
  assert.deepEqual(saved(desk), { mine: [desk.server.url, "sk-good"] });
});

Deno.test("/connect without argument takes a number, a name or a URL [4.10]", async () => {
  await using desk = openDesk();
  await desk.connections.save("mine", { base_url: desk.server.url, api_key: "sk-good" });
  assert.deepEqual(connectChoices({ providers: desk.registry, connections: desk.connections }), [
    { name: "acme", address: `${desk.server.url}/acme/v1`, has_key: false },
    { name: "mine", address: desk.server.url, has_key: true },
  ]);
  for (const [choice, provider] of [["2", "mine"], ["mine", "mine"], [desk.server.url, "mine"]]) {
    assert.equal((await desk.connect({}, { choice, key: "" }))?.provider, provider);
  }
  assert.equal(desk.asked[0], "choose acme mine");
  for (const choice of ["0", "3"]) {
    await assert.rejects(desk.connect({}, { choice }), { code: "bad_choice", exit: 2 });
  }
});

Deno.test("cancelling any question changes nothing", async () => {
  await using desk = openDesk();
  for (const answers of [{}, { choice: "" }, { choice: "1" }]) {
    assert.equal(await desk.connect({}, answers), undefined);
  }
  assert.deepEqual(saved(desk), {});
  assert.equal(desk.server.requests.length, 0);
});

Deno.test("a target that cannot be connected is wrong usage, before any question", async () => {
  await using desk = openDesk();
  const cases: [Partial<ConnectRequest>, string][] = [
    [{ target: "acmee" }, "unknown_provider"],
    [{ target: "generic-compatible" }, "no_base_url"],
    [{ target: "http://" }, "bad_base_url"],
    [{ target: "https://me:secret@h.test" }, "bad_base_url"],
    [{ target: "http://h.test", name: "a/b" }, "bad_provider"],
    [{ target: "http://h.test", name: "generic-compatible" }, "bad_provider"],
    [{ target: "acme", name: "other" }, "bad_base_url"],
  ];
  for (const [request, code] of cases) {
    await assert.rejects(desk.connect(request, { key: "k" }), { code, exit: 2 });
  }
  assert.deepEqual(desk.asked, []);
});

Deno.test("the probe's client is closed", async () => {
  await using desk = openDesk();
  let closed = 0;
  class Local extends OpenAICompatibleProvider {
    static override readonly DEFAULT_BASE_URL = desk.server.url;
    close() {
      closed++;
      return Promise.resolve();
    }
  }
  desk.registry.register("local", Local, { bundled: false, owner: "theirs" });
  await desk.connect({ target: "local" }, { key: "sk-good" });
  assert.equal(closed, 1);
});
