/**
 * The part of `pg` that is used here. `@types/pg` would replace Deno's types of the whole project by Node's:
 * import it with `// @ts-types="./pg.d.ts"` in the line before.
 */
export interface QueryResult {
  // deno-lint-ignore no-explicit-any
  rows: any[];
  rowCount: number | null;
}

export interface Config {
  connectionString?: string;
  host?: string;
  port?: number;
  user?: string;
  password?: string;
  database?: string;
  application_name?: string;
  /** Milliseconds. */
  connectionTimeoutMillis?: number;
  statement_timeout?: number;
  query_timeout?: number;
  idle_in_transaction_session_timeout?: number;
  keepAlive?: boolean;
  /** Sends statements without waiting for the answers to those before. */
  pipeline?: boolean;
  types?: Types;
  ssl?: unknown;
}

export interface Types {
  getTypeParser(id: number, format?: string): (text: string) => unknown;
}

export interface PoolConfig<C extends Client> extends Config {
  Client: new (config?: Config) => C;
  max?: number;
  /** Milliseconds. */
  idleTimeoutMillis?: number;
}

export interface Notification {
  channel: string;
  payload?: string;
}

interface Queryable {
  query(sql: string, values?: unknown[]): Promise<QueryResult>;
  query(query: { name?: string; text: string; values?: unknown[] }): Promise<QueryResult>;
  on(event: "error", listener: (error: Error) => void): this;
  removeListener(event: "error", listener: (error: Error) => void): this;
  end(): Promise<void>;
}

export interface Client extends Queryable {
  connect(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "notification", listener: (notification: Notification) => void): this;
  on(event: "end", listener: () => void): this;
  escapeIdentifier(name: string): string;
}

/** A connection that was taken out of a pool. */
export type Pooled<C extends Client> = C & {
  /** With an error: the connection is closed, not kept. */
  release(error?: Error | boolean): void;
};

export interface Pool<C extends Client> extends Queryable {
  connect(): Promise<Pooled<C>>;
  readonly totalCount: number;
}

declare const pg: {
  Client: new (config?: Config) => Client;
  Pool: new <C extends Client>(config: PoolConfig<C>) => Pool<C>;
  types: Types;
};
export default pg;
