import { join } from "node:path";
import { readTextIfExists, writeFileAtomic } from "../platform/files.ts";
import type { RecordRow } from "../store/port.ts";
import { MAX_HISTORY } from "./register_file.ts";
import { isJobName } from "./schema.ts";

/**
 * The kinds of the register's records. A job's key is its name, its value are its fields and, as `task_text`, its task
 * file in `.svc/jobs/`. An attempt's key is `<job>/<finished_at>/<attempt>`.
 */
export const KINDS = ["job", "attempt"];

/** What rows say of one job. */
export interface JobRows {
  job?: RecordRow;
  attempts: RecordRow[];
}

/** The rows of a register by the names of the jobs, in the order of the jobs' own rows. */
export function byJob(rows: RecordRow[]): Map<string, JobRows> {
  const found = new Map<string, JobRows>();
  for (const row of rows) {
    if (row.kind === "job") found.set(row.key, { job: row, attempts: [] });
  }
  for (const row of rows) {
    if (row.kind === "job") continue;
    const name = row.key.slice(0, row.key.indexOf("/"));
    const known = found.get(name);
    if (known === undefined) found.set(name, { attempts: [row] });
    else known.attempts.push(row);
  }
  return found;
}

/** The row of a job. @param state `<worktree>/.svc` with its task file, which other machines get */
export function jobRow(
  fields: Record<string, unknown>,
  state?: string,
  key = String(fields.name),
): RecordRow {
  const path = state && isJobName(key) ? join(state, "jobs", `${key}.md`) : undefined;
  const task_text = path && readTextIfExists(path);
  return { kind: "job", key, value: { ...fields, ...task_text !== undefined && { task_text } } };
}

/** The fields of a job's row. Its task file is written where it differs. */
export function fieldsOf(state: string, { key, value }: RecordRow): Record<string, unknown> {
  const { task_text, ...fields } = value as Record<string, unknown>;
  if (typeof task_text === "string" && isJobName(key)) {
    const path = join(state, "jobs", `${key}.md`);
    if (readTextIfExists(path) !== task_text) writeFileAtomic(path, task_text);
  }
  return fields;
}

/** The rows of a history, the oldest attempt first. */
export function attemptRows(job: string, history: unknown[]): RecordRow[] {
  const taken = new Set<string>();
  return history.map((value) => {
    const { finished_at = "", attempt = 1 } = (value ?? {}) as Record<string, unknown>;
    let key = `${job}/${finished_at}/${attempt}`;
    while (taken.has(key)) key += "+";
    taken.add(key);
    return { kind: "attempt", key, value };
  });
}

/**
 * The rows that append an attempt to a history.
 *
 * @param history the history so far; the oldest attempts go when there are more than 100
 */
export function appendRows(job: string, history: unknown[], attempt: unknown): RecordRow[] {
  const rows = attemptRows(job, [...history, attempt]);
  const old = rows.slice(0, -MAX_HISTORY).map(({ kind, key }) => ({
    kind,
    key,
    implied: true as const,
  }));
  return [rows.at(-1)!, ...old];
}

/** A history after rows of attempts were written, the oldest first. */
export function withRows(job: string, history: unknown[], rows: RecordRow[]): unknown[] {
  const all = new Map(attemptRows(job, history).map(({ key, value }) => [key, value]));
  for (const { key, value } of rows) {
    if (value === undefined) all.delete(key);
    else all.set(key, value);
  }
  return [...all.values()].slice(-MAX_HISTORY);
}
