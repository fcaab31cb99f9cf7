import assert from "node:assert/strict";
import { join } from "node:path";
import type { Project } from "./project.ts";

/** A file system of 64 KB in a folder of a project; unmounted also while somebody is still in it. */
export async function tiny(
  place: Project,
  { at = "tiny", readOnly = false } = {},
): Promise<AsyncDisposable> {
  const path = join(place.path, at);
  const mount = async (...args: string[]) => {
    const { success, stderr } = await new Deno.Command(args[0]!, { args: args.slice(1) }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
  };
  await Deno.mkdir(path, { recursive: true });
  const options = readOnly ? "size=64k,ro" : "size=64k";
  await mount("mount", "-t", "tmpfs", "-o", options, "none", path);
  return { [Symbol.asyncDispose]: () => mount("umount", "--lazy", path) };
}

/** For `Deno.test`: what needs `tiny` is left out where nothing may be mounted. */
export const mounts = { ignore: !canMount() };

/** Whether this process may mount a file system. */
function canMount(): boolean {
  if (Deno.uid() !== 0 || Deno.build.os !== "linux") return false;
  const folder = Deno.makeTempDirSync();
  const sh = (script: string) =>
    new Deno.Command("sh", { args: ["-c", script, "sh", folder], stderr: "null" }).outputSync();
  const { success } = sh('mount -t tmpfs none "$1" && umount "$1"');
  Deno.removeSync(folder);
  if (!success) Deno.stderr.writeSync(new TextEncoder().encode("no right to mount: skipped\n"));
  return success;
}
