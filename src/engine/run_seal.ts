import { createHmac } from "node:crypto";
import { join } from "node:path";
import { SvcError, writeFailure } from "../platform/error.ts";
import { lstatIfExists, readTextIfExists, tryRemove, updateFile } from "../platform/files.ts";
import { RUNS_KEY } from "../policy/paths.ts";
import type { StoreLink } from "../store/port.ts";
import type { Run } from "./run_store.ts";

/** Characters of the shortest key that signs runs. */
const SHORTEST_KEY = 32;

/**
 * Signs runs with a key that is the user's or, with a store, the project's, since a clone can hold any record. Where
 * the user's settings are read-only, as in a container, the key is in the worktree, in a file that no clone has: it is
 * private.
 *
 * @param directory `<worktree>/.svc/runs`
 * @param user `~/.config/svc`
 * @throws SvcError `registry_write`, `store_unreachable`
 */
export async function sealing(
  directory: string,
  user: string,
  store: StoreLink | undefined,
): Promise<(run: Pick<Run, "id" | "request">) => string> {
  const key = store === undefined ? await userKey(directory, user) : await projectKey(store);
  return ({ id, request }) =>
    createHmac("sha256", key).update(JSON.stringify([id, request])).digest("hex");
}

async function projectKey(store: StoreLink): Promise<string> {
  const { records } = await store.open();
  const known = () => records.get("run_seal", "key") as Promise<{ key: string } | undefined>;
  const given = await known();
  if (given !== undefined) return given.key;
  await records.add({ kind: "run_seal", key: "key", value: { key: newKey() } });
  return (await known())!.key; // another server may have been quicker
}

async function userKey(directory: string, user: string): Promise<string> {
  try {
    return await keyIn(join(user, RUNS_KEY));
  } catch {
    const path = join(directory, "key");
    if (((lstatIfExists(path)?.mode ?? 0) & 0o077) !== 0) tryRemove(path);
    try {
      return await keyIn(path);
    } catch (error) {
      throw error instanceof SvcError ? error : writeFailure("registry_write", path, error);
    }
  }
}

/** The key in a file, which is made where there is none. */
async function keyIn(path: string): Promise<string> {
  let key = readTextIfExists(path) ?? "";
  if (key.length >= SHORTEST_KEY) return key;
  await updateFile(path, (text = "") => {
    key = text; // another server may have been quicker
    if (key.length >= SHORTEST_KEY) return undefined;
    return key = newKey();
  }, 0o600);
  return key;
}

function newKey(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}
