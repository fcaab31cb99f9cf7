import assert from "node:assert/strict";
import { join } from "node:path";
import type { Project } from "./project.ts";

/** A Git repository in a folder of a scratch project. */
export interface TestRepository {
  readonly url: string;
  /** Writes files and commits everything. */
  commit(files: Record<string, string>): Promise<void>;
  git(...args: string[]): Promise<void>;
}

export async function repository(
  place: Project,
  folder: string,
  files: Record<string, string>,
): Promise<TestRepository> {
  const cwd = join(place.path, folder);
  await Deno.mkdir(cwd, { recursive: true });
  const git = async (...args: string[]) => {
    const who = [
      "-c",
      "user.name=t",
      "-c",
      "user.email=t@example.org",
      "-c",
      "commit.gpgSign=false",
    ];
    const { success, stderr } = await new Deno.Command("git", { args: [...who, ...args], cwd })
      .output();
    assert.ok(success, new TextDecoder().decode(stderr));
  };
  const made: TestRepository = {
    url: `file://${cwd}`,
    git,
    async commit(files) {
      for (const [file, text] of Object.entries(files)) {
        await place.write(`${folder}/${file}`, text);
      }
      await git("add", "--all", "--force");
      await git("commit", "--quiet", "--message=x");
    },
  };
  await git("init", "--quiet", "--initial-branch=main");
  await made.commit(files);
  return made;
}
