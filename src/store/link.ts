import { basename, join } from "node:path";
import type { Environment, Paths } from "../platform/environment.ts";
import { errorMessage, usageError } from "../platform/error.ts";
import {
  entriesOf,
  exists,
  jsonOr,
  readTextIfExists,
  removeTree,
  writeFileAtomic,
} from "../platform/files.ts";
import type { RecordCopy, StoreLink } from "./port.ts";
import type { PostgresStore } from "./store.ts";

/** The file in `~/.config/svc` that holds the passwords of stores by their addresses. */
export const PASSWORDS = "stores.json";

interface LinkRequest {
  paths: Paths;
  environment: Environment;
  /** `store`, `project`, `store_timeout` and `project_concurrency`. */
  config: { get(key: string): unknown };
  warn: (message: string) => void;
}

/**
 * The link to the store of a worktree; undefined when `store` and SVC_STORE are empty. Nothing is connected or loaded
 * before its first use.
 *
 * @throws SvcError `store_address` (exit 2) for a text that is no address; `store_password` (exit 2)
 */
export function storeLink(request: LinkRequest): Link | undefined {
  const { environment, config, paths, warn } = request;
  const given = environment.get("SVC_STORE") || config.get("store") as string;
  if (given !== "") return new Link(request, given);
  const marker = markerOf(paths);
  if (marker !== undefined) {
    warn(
      `This worktree is a copy of the project ${marker.project} in a store, and no store is set: ` +
        "its files are used as they are.",
    );
  }
  return undefined;
}

/** The error of a command that needs a store. `why` is the beginning of the sentence. */
export function noStore(why: string): Error {
  return usageError(
    "no_store",
    `${why}, and none is set.`,
    "Set it with: svc config set store postgres://user@host:5432/database",
  );
}

/** A text `postgres://[user[:password]@]host[:port]/database[?options]` in its parts. */
export function parseAddress(given: string): { address: string; password: string; url: URL } {
  const url = URL.parse(given);
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol) || !/^\/[^/]+$/.test(url.pathname)) {
    throw usageError(
      "store_address",
      "The store is no address of a PostgreSQL database.",
      "It looks like postgres://user@host:5432/database",
    );
  }
  const { username, host, pathname, searchParams } = url;
  const password = decoded(url.password) || (searchParams.get("password") ?? "");
  url.password = "";
  if (searchParams.has("password")) searchParams.delete("password");
  const address = `postgres://${username === "" ? "" : `${username}@`}${host}${pathname}`;
  return { address, password, url };
}

/** `StoreLink.worker` of this process. */
export function workerName(): string {
  // Deno.hostname() would need a permission of its own.
  const host = readTextIfExists("/etc/hostname")?.trim() || "host";
  return `${host}/${Deno.pid}`;
}

/** The password in a file, such as a container's secret. */
function passwordIn(file: string): string {
  try {
    return Deno.readTextFileSync(file).trimEnd();
  } catch (error) {
    throw usageError(
      "store_password",
      `The file of the store's password cannot be read: ${errorMessage(error)}`,
      "PGPASSWORD_FILE names it. The user that svc runs as needs the right to read it.",
    );
  }
}

/** A text whose percent signs need not be those of an encoding. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export class Link implements StoreLink {
  readonly address: string;
  readonly project: string;
  readonly worker = workerName();
  readonly #request: LinkRequest;
  readonly #connection: string;
  /** By name: all copies of one name in a worktree are the same files. */
  readonly #copies = new Map<string, RecordCopy>();
  /** Whether {@linkcode follow} was called: later copies are followed too. */
  #following = false;
  #store: Promise<PostgresStore> | undefined;
  #opened: Promise<PostgresStore> | undefined;

  constructor(request: LinkRequest, given: string) {
    const { paths, config, environment } = request;
    const { address, password, url } = parseAddress(given);
    this.#request = request;
    this.address = address;
    this.project = config.get("project") as string || basename(paths.worktree);
    const kept = jsonOr(readTextIfExists(join(paths.user, PASSWORDS)) ?? "", {})?.[address]
      ?.password;
    // `pg` reads the other PG* variables, and ~/.pgpass, by itself.
    const file = environment.get("PGPASSWORD_FILE");
    url.password = encodeURIComponent(
      password || String(kept ?? environment.get("PGPASSWORD") ?? (file ? passwordIn(file) : "")),
    );
    this.#connection = url.href;
  }

  /** The secrets that are masked in texts for models, logs and errors. */
  get secrets(): string[] {
    const { password } = new URL(this.#connection);
    return password === "" ? [] : [this.#connection, password, decodeURIComponent(password)];
  }

  register(copy: RecordCopy): void {
    if (this.#copies.has(copy.name)) return;
    this.#copies.set(copy.name, copy);
    if (this.#following) {
      this.#follow(copy).catch((error) => this.#request.warn(errorMessage(error)));
    }
  }

  open(): Promise<PostgresStore> {
    return this.#opened ??= this.#open(false).catch((error) => {
      this.#opened = undefined;
      throw error;
    });
  }

  /**
   * Like `open`, for a worktree with files of its own: for `svc store import`. It opens in no other way until `adopted`
   * is called.
   *
   * @throws SvcError `store_not_empty` (exit 2) when the store has something of the project that did not come from here
   */
  adopt(): Promise<PostgresStore> {
    return this.#opened = this.#open(true);
  }

  /** The files are in the store: the worktree is a copy now. */
  async adopted(): Promise<void> {
    this.#mark(await (await this.open()).check(), false);
  }

  /** A link to the same project for another worktree. */
  at(worktree: string): Link {
    const { config, paths: { user } } = this.#request;
    const state = join(worktree, ".svc");
    const request = {
      ...this.#request,
      paths: { worktree, state, sessions: join(state, "sessions"), user },
      config: { get: (key: string) => key === "project" ? this.project : config.get(key) },
    };
    return new Link(request, this.#connection);
  }

  /** The copies that are registered. */
  copies(): RecordCopy[] {
    return [...this.#copies.values()];
  }

  /** The connected store, whatever its schema. */
  connect(): Promise<PostgresStore> {
    return this.#store ??= this.#connect().catch((error) => {
      this.#store = undefined;
      throw error;
    });
  }

  async refresh(): Promise<void> {
    const { records } = await this.open();
    await Promise.all(Array.from(this.#copies.values(), (copy) => records.pull(copy)));
  }

  async follow(): Promise<void> {
    await this.open();
    this.#following = true;
    for (const copy of this.#copies.values()) await this.#follow(copy);
  }

  async #follow(copy: RecordCopy): Promise<void> {
    const { records, events } = await this.open();
    const { warn } = this.#request;
    let pulling: Promise<void> | undefined;
    let again = false;
    const pull = async () => {
      do {
        again = false;
        await records.pull(copy).catch((error) => warn(errorMessage(error)));
      } while (again);
      pulling = undefined;
    };
    await events.on(copy.name, ({ data }) => {
      if (data === records.id) return;
      again = true;
      pulling ??= pull();
    });
    await records.pull(copy);
  }

  async answers(): Promise<boolean> {
    try {
      return await (await this.open()).database.answers();
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    const store = await this.#store?.catch(() => undefined);
    this.#store = this.#opened = undefined;
    await store?.close();
  }

  async #connect(): Promise<PostgresStore> {
    const { config, paths, warn } = this.#request;
    const { PostgresStore } = await import("./store.ts");
    const store = new PostgresStore({
      connection: this.#connection,
      address: this.address,
      project: this.project,
      state: paths.state,
      timeout: () => config.get("store_timeout") as number,
      most: () => config.get("project_concurrency") as number,
      warn,
    });
    try {
      await store.database.check();
    } catch (error) {
      await store.close();
      throw error;
    }
    return store;
  }

  async #open(adopt: boolean): Promise<PostgresStore> {
    const { paths } = this.#request;
    const store = await this.connect();
    const id = await store.check();
    const marker = markerOf(paths);
    const same = marker?.store === id && marker.project === this.project;
    const { worktree } = paths;
    if (marker !== undefined && !same) {
      throw usageError(
        "store_other",
        `The files of ${worktree} are a copy of the project ${marker.project} of ` +
          `${marker.store === id ? "this store" : "another store"}, not of ${this.project}.`,
        "Set project or store accordingly, or use another worktree.",
      );
    }
    if (adopt) {
      if (!marker?.importing && await store.hasProject()) {
        throw usageError(
          "store_not_empty",
          `The store ${this.address} has a project ${this.project} already.`,
          "Set another name in the setting project, or use a worktree without sessions, jobs and asks.",
        );
      }
      this.#mark(id, true);
    } else if (marker?.importing) {
      throw usageError(
        "store_other",
        `The files of ${worktree} are not all in the store yet.`,
        "Do it again: svc store import",
      );
    } else if (marker === undefined) {
      if (hasOwnState(paths)) {
        throw usageError(
          "store_other",
          `${worktree} has sessions, jobs or asks of its own, which the store does not have.`,
          "Move them into the store with: svc store import",
        );
      }
      this.#mark(id, false);
    }
    return store;
  }

  /** Files of one project never mix with those of another: `.svc/store.json` says which one they belong to. */
  #mark(store: string, importing: boolean): void {
    const { paths: { state } } = this.#request;
    const marker: Marker = {
      store,
      project: this.project,
      ...importing && { importing: true as const },
    };
    if (markerOf(this.#request.paths) === undefined) removeTree(join(state, "store"));
    writeFileAtomic(join(state, "store", ".gitignore"), "*\n"); // that of `.svc` may be older
    writeFileAtomic(join(state, "store.json"), JSON.stringify(marker, null, 2) + "\n");
  }
}

/** `.svc/store.json`. */
interface Marker {
  /** Id of the store. */
  store: string;
  project: string;
  /** `svc store import` has begun and not ended. */
  importing?: true;
}

function markerOf({ state }: Paths): Marker | undefined {
  const marker = jsonOr(readTextIfExists(join(state, "store.json")) ?? "", undefined);
  return typeof marker?.store === "string" && typeof marker.project === "string"
    ? marker
    : undefined;
}

/** Whether a worktree has sessions, jobs, asks, runs or memories. */
function hasOwnState({ state, sessions }: Paths): boolean {
  if (exists(join(state, "jobs.json")) || exists(join(state, "asks.json"))) return true;
  const folders = [sessions, ...["runs", "memory", "usage"].map((name) => join(state, name))];
  return folders.some((folder) => entriesOf(folder).some(({ name }) => !name.startsWith(".")));
}
