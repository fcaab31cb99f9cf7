import { dirname, join } from "node:path";
import type { ToolPaths } from "../../../src/plugins/api.ts";
import { CARGO } from "./kinds/cargo.ts";
import { deno } from "./kinds/deno.ts";
import { GO } from "./kinds/go.ts";
import type { KindOf, ProjectKind, Task } from "./kinds/kind.ts";
import { make } from "./kinds/make.ts";
import { npm } from "./kinds/npm.ts";
import { PYTHON } from "./kinds/python.ts";

/**
 * What a folder's files say it is. Of several kinds the first in this order that has a command for the
 * task, or the first at all.
 */
export async function findProject(
  task: Task,
  folder: string,
  paths: ToolPaths,
): Promise<ProjectKind | undefined> {
  const around = { first: (files: string[]) => firstAround(files, folder, paths.worktree) };
  const found: ProjectKind[] = [];
  for (const [files, kindOf] of KINDS) {
    for (const file of files) {
      const text = await content(join(folder, file), paths);
      if (text === undefined) continue;
      const kind = await kindOf(text, around);
      if (kind.commands[task] !== undefined) return kind;
      found.push(kind);
      break;
    }
  }
  return found[0];
}

const KINDS: [string[], KindOf][] = [
  [["deno.json", "deno.jsonc"], deno],
  [["Cargo.toml"], () => CARGO],
  [["go.mod"], () => GO],
  [["package.json"], npm],
  [
    [
      "pyproject.toml",
      "pytest.ini",
      "setup.cfg",
      "tox.ini",
      "setup.py",
      "conftest.py",
      "requirements.txt",
    ],
    () => PYTHON,
  ],
  [["GNUmakefile", "makefile", "Makefile"], make],
];

async function firstAround(
  files: string[],
  folder: string,
  worktree: string,
): Promise<string | undefined> {
  for (let place = folder;; place = dirname(place)) {
    for (const file of files) {
      if (await isThere(join(place, file))) return file;
    }
    if (place === worktree || place === dirname(place)) return undefined;
  }
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Bytes of a project's file that are looked at. */
const MAX_FILE = 4_000_000;

/** Undefined too for what is no regular file, or a link out of the worktree. */
async function content(path: string, paths: ToolPaths): Promise<string | undefined> {
  try {
    using file = await paths.open(path, { read: true });
    if (file.statSync().size > MAX_FILE) return undefined;
    return await new Response(file.readable).text();
  } catch {
    return undefined;
  }
}
