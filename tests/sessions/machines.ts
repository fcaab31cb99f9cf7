import { AskStore } from "../../src/asks/store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { SessionStore } from "../../src/sessions/store.ts";
import { migrate } from "../../src/store/migrations.ts";
import type { SharedStore, StoreLink } from "../../src/store/port.ts";
import { PostgresStore } from "../../src/store/store.ts";

/** A machine that has the sessions of a project in a folder of its own. */
export interface Machine extends AsyncDisposable {
  directory: string;
  sessions: SessionStore;
  asks: AskStore;
  store: SharedStore;
  /** The bytes of a document, brought up to date. */
  text(name: string): Promise<string>;
  /** Has the leases of this machine expire, as if it had not answered for too long. */
  expire(): Promise<void>;
}

/** A machine of the project `project` in the database of a URL. */
export function machine(
  url: string,
  { project = "p", directory, timeout = 20 }: {
    project?: string;
    directory?: string;
    timeout?: number;
  } = {},
): Machine {
  const own = directory === undefined;
  directory ??= Deno.makeTempDirSync({ prefix: "svc-machine-" });
  const store = new PostgresStore({
    connection: url,
    address: url,
    project,
    state: directory,
    timeout: () => timeout,
    warn: () => {},
  });
  const shared: StoreLink = {
    address: url,
    project,
    worker: store.leases.holder,
    open: () => Promise.resolve(store),
    register: () => {},
    refresh: () => Promise.resolve(),
    follow: () => Promise.resolve(),
    answers: () => Promise.resolve(true),
    close: () => store.close(),
  };
  const sessions = new SessionStore({ directory, version: "0.1.0", clock: systemClock, shared });
  return {
    directory,
    sessions,
    asks: new AskStore({
      state: directory,
      sessions,
      clock: systemClock,
      warn: () => {},
      store: shared,
    }),
    store,
    async text(name) {
      await sessions.current(name);
      return Deno.readTextFileSync(`${directory}/${name}.json`);
    },
    async expire() {
      await store.database.query(`UPDATE svc.leases SET expires = now() - interval '1 second'`);
    },
    async [Symbol.asyncDispose]() {
      await sessions.settled();
      await store.close();
      if (own) Deno.removeSync(directory!, { recursive: true });
    },
  };
}

/** Makes the tables in a database. */
export async function tables(url: string): Promise<void> {
  await using first = machine(url);
  await migrate(first.store);
}
