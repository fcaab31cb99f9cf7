import assert from "node:assert/strict";
import { join } from "node:path";
import { needs } from "./needs.ts";
import type { Project } from "./project.ts";

/**
 * A file system in a folder of a project, of 64 KB unless `flags` says otherwise; unmounted also while a process
 * still uses it.
 */
export async function tiny(
  place: Project,
  { at = "tiny", flags = "size=64k" } = {},
): Promise<AsyncDisposable> {
  const path = join(place.path, at);
  await Deno.mkdir(path, { recursive: true });
  await run("mount", "-t", "tmpfs", "-o", flags, "none", path);
  return { [Symbol.asyncDispose]: () => run("umount", "--lazy", path) };
}

/** Makes a folder read-only from now on, as a disk with errors becomes; what is open stays writable. */
export async function frozen(path: string): Promise<AsyncDisposable> {
  await run("mount", "--bind", path, path);
  await run("mount", "-o", "remount,ro,bind", path);
  return { [Symbol.asyncDispose]: () => run("umount", "--lazy", path) };
}

async function run(command: string, ...args: string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(command, { args }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

/** For `Deno.test`: what needs `tiny` is left out where nothing may be mounted. */
export const mounts = needs("file systems cannot be mounted", canMount());

/** Whether this process may mount a file system. */
function canMount(): boolean {
  if (Deno.uid() !== 0 || Deno.build.os !== "linux") return false;
  const folder = Deno.makeTempDirSync();
  const sh = (script: string) =>
    new Deno.Command("sh", { args: ["-c", script, "sh", folder], stderr: "null" }).outputSync();
  const { success } = sh('mount -t tmpfs none "$1" && umount "$1"');
  Deno.removeSync(folder);
  return success;
}
