import { join } from "node:path";
import { sealing } from "../engine/run_seal.ts";
import { type Run, RunStore } from "../engine/run_store.ts";
import { Workspace } from "../engine/workspace.ts";
import { jobContext } from "../jobs/context.ts";
import { usageError } from "../platform/error.ts";
import { exists, makeFolder, removeIfExists, removeTree } from "../platform/files.ts";
import type { Link } from "../store/link.ts";
import type { RecordRow } from "../store/port.ts";
import type { Counts } from "../store/store.ts";

/** Records that are sent at a time. */
const BATCH = 500;

/**
 * Moves the files of a worktree into the store, whose project must have nothing. An import that was interrupted is done
 * again, and until it is complete the worktree does not open.
 *
 * @throws SvcError `store_not_empty` (exit 2)
 */
export async function importFiles(workspace: Workspace, link: Link): Promise<Counts> {
  const { paths, sessions, spending } = workspace;
  const copies = copiesOf(workspace, link);
  const store = await link.adopt();
  const seals = await sealsOf(workspace, link);
  for (const copy of copies) {
    const rows = (await copy.entries()).map((row) => resealed(row, seals.user, seals.project));
    for (let at = 0; at < rows.length; at += BATCH) {
      await store.records.put(copy, rows.slice(at, at + BATCH));
    }
  }
  const { ledger } = spending;
  await store.requests.import(
    ledger.days().flatMap((day) => ledger.read(day).map((line) => ({ day, line }))),
  );
  for (const name of sessions.list()) await sessions.publish(name);
  await sessions.settled();
  removeIfExists(join(paths.state, "store", "run.json"));
  await link.adopted();
  await link.refresh();
  return await store.counts();
}

/**
 * Writes all that the store has of a project into the files of a folder.
 *
 * @throws SvcError `export_folder` (exit 2) when the folder has a `.svc`
 */
export async function exportFiles(
  { environment, warn }: Workspace,
  link: Link,
  folder: string,
): Promise<Counts> {
  if (exists(join(folder, ".svc"))) {
    throw usageError("export_folder", `${folder} has a .svc already.`, "Name an empty folder.");
  }
  makeFolder(folder);
  const own = Workspace.open({ path: folder, environment, warn, store: link.at(folder) });
  const target = own.store!;
  try {
    const copies = copiesOf(own, target);
    await target.refresh();
    await own.spending.ledger.refresh();
    const { index, counts } = await target.open().then((store) => ({
      index: store.index,
      counts: store.counts(),
    }));
    for (const name of await index.names()) await own.sessions.current(name);
    const seals = await sealsOf(own, target);
    const runs = copies.find(({ name }) => name === "run")!;
    const rows = await runs.entries();
    await runs.apply(rows.map((row) => resealed(row, seals.project, seals.user)), false);
    removeTree(join(own.paths.state, "store"));
    removeIfExists(join(own.paths.state, "store.json"));
    return await counts;
  } finally {
    await own.close();
    await target.close();
  }
}

/** The copies of everything that is shared but sessions and requests. */
function copiesOf(workspace: Workspace, link: Link): ReturnType<Link["copies"]> {
  const { paths: { state, user }, clock, warn } = workspace;
  jobContext(workspace);
  new RunStore({ state, user, clock, warn, store: link });
  return link.copies();
}

type Seal = (run: Pick<Run, "id" | "request">) => string;

async function sealsOf(
  { paths: { state, user } }: Workspace,
  link: Link,
): Promise<{ user: Seal; project: Seal }> {
  const directory = join(state, "runs");
  return {
    user: await sealing(directory, user, undefined),
    project: await sealing(directory, user, link),
  };
}

/** A run is signed anew, where the signature before was right. */
function resealed(row: RecordRow, from: Seal, to: Seal): RecordRow {
  if (row.kind !== "run") return row;
  const run = row.value as Run;
  return run.seal === from(run) ? { ...row, value: { ...run, seal: to(run) } } : row;
}
