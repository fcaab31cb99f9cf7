import { dirname, join } from "node:path";

/** A scratch worktree with files, removed when it is disposed of. */
export interface Project extends AsyncDisposable {
  /** Real absolute path. */
  readonly path: string;
  write(file: string, text: string): Promise<void>;
  read(file: string): Promise<string>;
}

export async function project(
  files: Record<string, string> = {},
  { dir }: { dir?: string } = {},
): Promise<Project> {
  const path = await Deno.realPath(await Deno.makeTempDir({ prefix: "svc-test-", dir }));
  const write = async (file: string, text: string) => {
    await Deno.mkdir(dirname(join(path, file)), { recursive: true });
    await Deno.writeTextFile(join(path, file), text);
  };
  for (const [file, text] of Object.entries(files)) await write(file, text);
  return {
    path,
    write,
    read: (file) => Deno.readTextFile(join(path, file)),
    [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }),
  };
}
