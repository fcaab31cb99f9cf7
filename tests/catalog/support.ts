import { Catalog } from "../../src/catalog/catalog.ts";
import type { CatalogSources } from "../../src/catalog/layers.ts";
import { openPaths } from "../../src/platform/environment.ts";
import { type Project, project } from "../support/project.ts";

/** A catalog on real folders: a worktree and the user's folder. */
export interface TestCatalog extends AsyncDisposable {
  catalog: Catalog;
  warnings: string[];
  worktree: Project;
  /** The user's folder, `~/.config/svc`. */
  user: Project;
}

/** `local` and `global` files are relative to the worktree and to the user's folder; objects become JSON. */
export async function openCatalog(
  { local = {}, global = {}, plugins }: {
    local?: Record<string, unknown>;
    global?: Record<string, unknown>;
    plugins?: CatalogSources["plugins"];
  } = {},
): Promise<TestCatalog> {
  const worktree = await project(texts(local));
  const user = await project(texts(global));
  const warnings: string[] = [];
  const paths = openPaths(worktree.path, user.path);
  return {
    catalog: new Catalog({
      paths,
      plugins,
      accepts: () => true,
      warn: (message) => warnings.push(message),
    }),
    warnings,
    worktree,
    user,
    async [Symbol.asyncDispose]() {
      await worktree[Symbol.asyncDispose]();
      await user[Symbol.asyncDispose]();
    },
  };
}

function texts(files: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).map((
      [file, content],
    ) => [file, typeof content === "string" ? content : JSON.stringify(content)]),
  );
}
