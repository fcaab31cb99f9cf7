import assert from "node:assert/strict";
import type { Supervisor } from "../../src/fleet/supervisor.ts";
import { type Entry, fleet, somePorts, until, up } from "./support.ts";

/** A program that does nothing but stay; for its health the test answers. */
const STAND_IN = ["sh", "-c", 'echo "$$ $SVC_FLEET_PORT" >> starts; exec sleep 600'];

/** Answers on the ports that agents have. */
class Health implements AsyncDisposable {
  readonly #servers = new Map<number, Deno.HttpServer>();

  async follow(supervisor: Supervisor): Promise<void> {
    const ports = new Set(supervisor.agents().flatMap(({ port }) => port ?? []));
    for (const [port, server] of this.#servers) {
      if (ports.has(port)) continue;
      this.#servers.delete(port);
      await server.shutdown();
    }
    for (const port of ports) {
      if (this.#servers.has(port)) continue;
      const options = { hostname: "127.0.0.1", port, onListen: () => {} };
      this.#servers.set(port, Deno.serve(options, () => new Response("well")));
    }
  }

  async [Symbol.asyncDispose]() {
    await Promise.all([...this.#servers.values()].map((server) => server.shutdown()));
  }
}

Deno.test("an edit of the roster affects only the agents whose entries it changes", async () => {
  const entry = (number: number, more: object = {}): Entry => ({
    name: `agent${number}`,
    command: STAND_IN,
    ...more,
  });
  const first = Array.from({ length: 100 }, (_, number) => entry(number));
  await using here = await fleet(first);
  await using health = new Health();
  const supervisor = here.supervisor({ ports: somePorts(120) });
  const settled = (names: string[]) =>
    until(supervisor, (agents) => {
      void health.follow(supervisor);
      return Object.keys(agents).length === names.length && names.every((name) => up(agents[name]));
    });
  const before = await settled(first.map(({ name }) => name));

  const edited = [
    ...first.slice(10, 90), // 0 to 9 are removed
    ...first.slice(90, 95).map((agent) => ({ ...agent, max_restarts: 3 })),
    ...first.slice(95).map((agent) => ({ ...agent, command: [...STAND_IN, "other"] })),
    ...Array.from({ length: 10 }, (_, number) => entry(100 + number)),
  ];
  await here.write(edited);
  const names = edited.map(({ name }) => name);
  await until(supervisor, (agents) => agents["agent99"]!.pid !== before["agent99"]!.pid);
  const after = await settled(names);
  for (const [number, name] of names.entries()) {
    const starts = number < 85 || number >= 90 ? 1 : 2;
    assert.equal(here.starts(name).length, starts, name);
    assert.equal(after[name]!.pid === before[name]?.pid, number < 85, name);
    assert.equal(after[name]!.restarts, 0);
  }
  assert.equal(new Set(names.map((name) => after[name]!.port)).size, names.length);
  await supervisor.stop();
  await health.follow(supervisor);
});
