import { join } from "node:path";
import type { ConfigKey } from "../config/keys.ts";
import type { Clock } from "../platform/clock.ts";
import type { Environment, Paths } from "../platform/environment.ts";
import { exists, fileStamp, isObject } from "../platform/files.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import type { ConfigView } from "../plugins/api.ts";
import { BACKEND, list, type Opening, plainly, type Screened, screenSettings } from "./openings.ts";

/** The record of one worktree in `trust.json`. Digests by the id of an opening. */
interface TrustRecord {
  /** Whether everything of the worktree is trusted, whatever changes. */
  folder?: true;
  accepted?: Record<string, string>;
  /** The openings that notices have named. */
  noticed?: Record<string, string>;
  /** The openings that the operator has not accepted when asked. */
  declined?: Record<string, string>;
}

/** Worktrees without anything accepted in `trust.json`; the ones noticed longest ago are dropped. */
const MAX_NOTICED = 500;

export interface TrustRequest {
  paths: Paths;
  environment: Environment;
  clock: Clock;
  warn: (message: string) => void;
  /** Whether everything is trusted in this process (`--trust`). */
  all?: boolean;
}

/**
 * What the user has accepted of a worktree: its record in `~/.config/svc/trust.json`, which is read again when it has
 * changed. `SVC_TRUST=1` accepts everything for the process.
 */
export class Trust {
  /** Whether the worktree had no `.svc` when this process opened it. */
  #fresh: boolean;
  /** Whether everything is trusted in this process. */
  readonly all: boolean;
  readonly #paths: Paths;
  readonly #path: string;
  readonly #file: RegistryFile;
  #known: { stamp: string; record: TrustRecord } | undefined;
  #pass: ((accepts: (opening: Opening) => boolean) => Screened) | undefined;
  #left: Opening[] = [];

  constructor({ paths, environment, clock, warn, all = false }: TrustRequest) {
    this.#paths = paths;
    this.all = all || environment.get("SVC_TRUST") === "1";
    this.#fresh = !exists(paths.state);
    this.#path = join(paths.user, "trust.json");
    this.#file = new RegistryFile(this.#path, clock, warn);
  }

  /** Whether everything of the worktree is trusted, now and after changes. */
  get everything(): boolean {
    return this.all || this.#record.folder === true;
  }

  accepts({ id, digest }: Opening): boolean {
    if (this.everything) return true;
    const { accepted = {} } = this.#record;
    return Object.hasOwn(accepted, id) && accepted[id] === digest();
  }

  /**
   * Trusts openings as they are now. A worktree whose `.svc` svc itself has made is trusted as a whole.
   *
   * @throws SvcError `registry_write`
   */
  async accept(openings: Opening[]): Promise<void> {
    if (this.everything) return;
    if (this.#fresh && exists(this.#paths.state)) return await this.acceptFolder();
    const digests = Object.fromEntries(
      Object.entries(digestsOf(openings)).filter(([, digest]) => digest !== ""),
    );
    if (Object.keys(digests).length === 0) return;
    await this.#update((record) => ({ ...record, accepted: { ...record.accepted, ...digests } }));
  }

  /**
   * Runs a change of settings that the user makes through svc, and accepts what it opens. An opening that was left out
   * before counts only when the change sets all of it.
   *
   * @param change writes the settings, then reads them with {@linkcode screen} again
   */
  async changing(keys: string[], change: () => Promise<void>): Promise<void> {
    const before = new Set(this.#left.map(({ id }) => id));
    await change();
    const made = (id: string) => {
      const path = id.replace(/^mcp:/, "mcp.servers.").replace(/^setting:/, "");
      return keys.some((key) =>
        path === key || path.startsWith(`${key}.`) ||
        !before.has(id) &&
          (key.startsWith(`${path}.`) || BACKEND.includes(path) && BACKEND.includes(key))
      );
    };
    await this.accept(this.settings().filter(({ id }) => made(id)));
  }

  /** Trusts the worktree as a whole. */
  async acceptFolder(): Promise<void> {
    if (this.#record.folder !== true) await this.#update(() => ({ folder: true }));
  }

  /**
   * Trusts the worktree when svc is about to make its `.svc`, which then holds nothing of other origin. A user's folder
   * that cannot be written stays as it is.
   */
  async begin(): Promise<void> {
    if (
      !this.#fresh || this.everything ||
      OPENING_FILES.some((name) => exists(join(this.#paths.state, name)))
    ) return;
    await this.acceptFolder().catch(() => {});
  }

  /** Other machines write into this worktree: that svc has made its `.svc` says nothing of what comes into it. */
  share(): void {
    this.#fresh = false;
  }

  /** Removes openings, or for an empty list everything of the worktree, from `trust.json`. */
  async revoke(ids: readonly string[]): Promise<void> {
    this.#fresh = false;
    await this.#update(({ accepted = {}, ...record }) => {
      const kept = Object.entries(accepted).filter(([id]) => !ids.includes(id));
      return ids.length === 0 ? undefined : { ...record, accepted: Object.fromEntries(kept) };
    });
  }

  /** Whether an opening is accepted, has changed since then, or is new. */
  stateOf(opening: Opening): "accepted" | "changed" | "new" {
    if (this.accepts(opening)) return "accepted";
    return Object.hasOwn(this.#record.accepted ?? {}, opening.id) ? "changed" : "new";
  }

  /** Whether the worktree has files that may open something, and is not trusted as a whole. */
  get pending(): boolean {
    return !this.everything &&
      OPENING_FILES.some((name) => exists(join(this.#paths.state, name)));
  }

  /** Remembers openings that the operator does not accept, so that they are asked about once. */
  async decline(openings: Opening[]): Promise<void> {
    const declined = digestsOf(openings);
    await this.#update((record) => ({ ...record, declined })).catch(() => {});
  }

  /** Whether the operator has declined all of the openings as they are. */
  declined(openings: Opening[]): boolean {
    const { declined = {} } = this.#record;
    return openings.every(({ id, digest }) => declined[id] === (digest() ?? ""));
  }

  /** All worktrees of `trust.json` in which something is accepted. */
  worktrees(): Map<string, TrustRecord> {
    const records = Object.entries(recordsIn(this.#file.read()));
    return new Map(records.filter(([, { folder, accepted }]) => folder ?? accepted !== undefined));
  }

  /**
   * Warns of openings that are left out, when they differ from those of the last warning. Of hooks it always warns: a
   * guard that is off must not be taken for one that agrees.
   */
  async notice(left: Opening[], warn: (message: string) => void): Promise<void> {
    const { noticed = {} } = this.#record;
    const digests = digestsOf(left);
    const known = ([id, digest]: [string, string]) =>
      id !== "setting:hooks" && noticed[id] === digest;
    if (Object.entries(digests).every(known)) return;
    const many = left.length === 1 ? "1 opening is" : `${left.length} openings are`;
    warn(
      `${this.#paths.state}: ${many} left out, not being trusted: ` +
        `${list(left.map(({ id }) => id), plainly)}. Show and accept them with: svc trust`,
    );
    try {
      await this.#update((record) => ({ ...record, noticed: { ...record.noticed, ...digests } }));
    } catch {
      // The next start warns again.
    }
  }

  /** The settings of the worktree's file that take effect above the lower layers: a `Screen` of `Config.open`. */
  readonly screen = (
    lower: ConfigView,
    local: ReadonlyMap<ConfigKey, unknown>,
  ): Map<ConfigKey, unknown> => {
    const pass = (accepts: (opening: Opening) => boolean) =>
      screenSettings({ lower, local, accepts, connected: () => Object.keys(this.#providers()) });
    this.#pass = pass;
    const { values, openings } = pass((opening) => this.accepts(opening));
    this.#left = openings.filter(({ accepted }) => !accepted);
    return values;
  };

  /** The openings of the worktree's file that the last {@linkcode screen} has left out. */
  get left(): readonly Opening[] {
    return this.#left;
  }

  /** All openings of the worktree's file; acceptance of one can make another one narrower, or wider. */
  settings(): Opening[] {
    const passes = [true, false].map((all) => this.#pass?.(() => all).openings ?? []);
    return [...new Map([...passes.flat(), ...this.#left].map((each) => [each.id, each])).values()];
  }

  #providers(): Record<string, unknown> {
    try {
      return recordsIn(JSON.parse(Deno.readTextFileSync(join(this.#paths.user, "providers.json"))));
    } catch {
      return {}; // none, or corrupt: `ConnectionStore` warns of it
    }
  }

  get #record(): TrustRecord {
    const stamp = fileStamp(this.#path);
    if (this.#known?.stamp === stamp) return this.#known.record;
    const records = stamp === "" ? {} : recordsIn(this.#file.read());
    const { worktree } = this.#paths;
    const record = Object.hasOwn(records, worktree) ? records[worktree]! : {};
    this.#known = { stamp, record };
    return record;
  }

  async #update(change: (record: TrustRecord) => TrustRecord | undefined): Promise<void> {
    const { worktree } = this.#paths;
    await this.#file.update((value) => {
      const { [worktree]: own = {}, ...others } = recordsIn(value);
      const changed = change(own);
      const all = Object.entries(others);
      const noticed = all.filter(([, { folder, accepted }]) => !folder && accepted === undefined);
      const dropped = new Set(noticed.slice(0, -MAX_NOTICED).map(([path]) => path));
      return {
        ...Object.fromEntries(all.filter(([path]) => !dropped.has(path))),
        ...changed && { [worktree]: changed },
      };
    });
    this.#known = undefined;
  }
}

/** Entries of `.svc` that openings come from. */
const OPENING_FILES = [
  "config.json",
  "plugins",
  "roles.json",
  "teams.json",
  "jobs.json",
  "fleet.json",
  "eval",
];

function recordsIn(value: unknown): Record<string, TrustRecord> {
  const records = isObject(value) ? Object.entries(value) : [];
  return Object.fromEntries(
    records.filter((entry): entry is [string, TrustRecord] => isObject(entry[1])),
  );
}

/** The digests by id; empty where there is none. */
function digestsOf(openings: Opening[]): Record<string, string> {
  return Object.fromEntries(openings.map(({ id, digest }) => [id, digest() ?? ""]));
}
