import { join } from "node:path";
import {
  exists,
  jsonOr,
  makeFolder,
  mintId,
  readTextIfExists,
  tryRemove,
  withFileLock,
  writeAllSync,
} from "../platform/files.ts";
import type { Database, Query, RequestRow, Requests } from "./port.ts";
import { LOCK } from "./postgres.ts";

/** Rows that are read at a time. */
const PAGE = 1000;

/** How far the files of the ledger have followed the rows: `.svc/store/request.json`. */
interface Position {
  /** Names these files in rows: their own rows are in them already. */
  copy: string;
  /** The sequence number of the last row that was read. */
  seq: number;
}

/** Requests to models as rows of the table `svc.requests`. They are only added. */
export class PostgresRequests implements Requests {
  readonly #project: string;
  readonly #state: string;
  readonly #database: Database;

  constructor(project: string, state: string, database: Database) {
    this.#project = project;
    this.#state = state;
    this.#database = database;
  }

  async exclusive<T>(
    work: (alive: ReadonlySet<string>) => { lines: RequestRow[]; result: T },
  ): Promise<T> {
    return await this.#locked(async () => {
      let done: { lines: RequestRow[]; result: T } | undefined;
      await this.#database.transaction(async (query) => {
        const [, , alive] = await Promise.all([
          this.#lock(query),
          this.#follow(query),
          query(
            `SELECT name FROM svc.leases
              WHERE project = $1 AND starts_with(name, 'live/') AND expires > clock_timestamp()`,
            [this.#project],
          ),
        ]);
        // Done once: what it has written into the files is sent again after a lost connection.
        done ??= work(new Set(alive.map(({ name }) => name.slice("live/".length))));
        await this.#insert(done.lines, query);
      });
      return done!.result;
    });
  }

  async append(take: () => RequestRow[]): Promise<void> {
    await this.#locked(async () => {
      const lines = take();
      if (lines.length === 0) return;
      await this.#database.transaction(async (query) => {
        await Promise.all([this.#lock(query), this.#insert(lines, query)]);
      });
    });
  }

  /** Adds all lines of the files, in place of those of an import that was interrupted. */
  async import(lines: RequestRow[]): Promise<void> {
    await this.#locked(async () => {
      if (!exists(this.#path)) this.#save({ copy: mintId() + mintId(), seq: 0 });
      await this.#database.transaction(async (query) => {
        const { copy } = this.#position();
        await query("DELETE FROM svc.requests WHERE project = $1 AND copy = $2", [
          this.#project,
          copy,
        ]);
        await this.#insert(lines, query);
      });
    });
  }

  /** Removes the lines of the days before one. */
  async clean(day: string): Promise<void> {
    await this.#database.query("DELETE FROM svc.requests WHERE project = $1 AND day < $2", [
      this.#project,
      day,
    ]);
  }

  async pull(): Promise<void> {
    await this.#locked(() => this.#follow(this.#database.query));
  }

  #locked<T>(work: () => Promise<T>): Promise<T> {
    makeFolder(join(this.#state, "usage"), 0o700);
    return withFileLock(join(this.#state, "usage", "ledger"), work);
  }

  /** Rows are added one transaction after the other, so that their numbers are in the order of their commits. */
  async #lock(query: Query): Promise<void> {
    await query(LOCK, [
      `svc.requests ${this.#project}`,
    ]);
  }

  async #insert(lines: RequestRow[], query: Query): Promise<void> {
    if (lines.length === 0) return;
    await query(
      `INSERT INTO svc.requests (project, copy, day, line)
        SELECT $1, $2, day, line::json
          FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS given(day, line, n) ORDER BY n`,
      [
        this.#project,
        this.#position().copy,
        lines.map(({ day }) => day),
        lines.map(({ line }) => JSON.stringify(line)),
      ],
    );
  }

  /** Adds the rows of other copies that these files lack. The files' own rows are passed over, once each. */
  async #follow(query: Query): Promise<void> {
    for (let isMore = true; isMore;) {
      const { copy, seq } = this.#position();
      const rows = await query<RequestRow & { seq: number }>(
        `SELECT seq, day, CASE WHEN copy <> $3 THEN line END AS line FROM svc.requests
          WHERE project = $1 AND seq > $2 ORDER BY seq LIMIT ${PAGE}`,
        [this.#project, seq, copy],
      );
      this.#append(rows);
      isMore = rows.length === PAGE;
    }
  }

  #append(rows: (RequestRow & { seq: number })[]): void {
    const others = rows.filter(({ line }) => line !== null);
    for (const [day, some] of Map.groupBy(others, (row) => row.day)) {
      const path = join(this.#state, "usage", `${day}.jsonl`);
      const text = some.map(({ line }) => JSON.stringify(line) + "\n").join("");
      const file = Deno.openSync(path, { append: true, create: true, mode: 0o600 });
      try {
        writeAllSync(file, new TextEncoder().encode(text));
      } finally {
        file.close();
      }
    }
    if (rows.length > 0) this.#save({ ...this.#position(), seq: rows.at(-1)!.seq });
  }

  #position(): Position {
    const known = jsonOr(readTextIfExists(this.#path) ?? "", undefined);
    if (typeof known?.copy === "string" && typeof known.seq === "number") return known;
    // The lines that the files have are rows of a copy with another name: all rows are read anew.
    for (const { name } of Deno.readDirSync(join(this.#state, "usage"))) {
      if (name.endsWith(".jsonl")) tryRemove(join(this.#state, "usage", name));
    }
    const position = { copy: mintId() + mintId(), seq: 0 };
    this.#save(position);
    return position;
  }

  #save(position: Position): void {
    makeFolder(join(this.#state, "store"));
    Deno.writeTextFileSync(this.#path, JSON.stringify(position) + "\n");
  }

  get #path(): string {
    return join(this.#state, "store", "request.json");
  }
}
