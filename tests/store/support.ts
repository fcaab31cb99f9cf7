import { join } from "node:path";
import { Workspace } from "../../src/engine/workspace.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { storeLink } from "../../src/store/link.ts";
import { migrate } from "../../src/store/migrations.ts";
import { project } from "../support/project.ts";

/** Makes the tables of svc in a new database; a function that `server.database` copies. */
export async function withTables(url: string): Promise<void> {
  await using place = await project();
  const link = linkOf(place.path, url);
  await migrate(await link.connect());
  await link.close();
}

/** The link of a folder's worktree to a store, as a `Workspace` makes it. */
export function linkOf(
  path: string,
  store: string,
  settings: { project?: string; timeout?: number; user?: string; warn?: (text: string) => void } =
    {},
): NonNullable<ReturnType<typeof storeLink>> {
  const values: Record<string, unknown> = {
    store,
    project: settings.project ?? "shop",
    "store_timeout": settings.timeout ?? 20,
  };
  const state = join(path, ".svc");
  const user = settings.user ?? join(path, "user");
  return storeLink({
    paths: { worktree: path, state, sessions: join(state, "sessions"), user },
    environment: { home: path, cwd: path, get: () => undefined },
    config: { get: (key) => values[key] },
    warn: settings.warn ?? (() => {}),
  })!;
}

/** A machine that works on a project: a worktree of its own, open, with a store or with files. */
export interface Machine extends AsyncDisposable {
  readonly workspace: Workspace;
  readonly path: string;
  readonly warnings: string[];
}

/**
 * A machine with a worktree of its own.
 *
 * @param store empty: files alone
 * @param given further settings of the machine's user
 * @param other its worktree is used: without a store, this is another process of one machine
 */
export async function machine(
  store: string,
  name = "shop",
  given: Record<string, unknown> = {},
  other?: Machine,
): Promise<Machine> {
  const place = await project();
  const home = join(other?.path ?? join(place.path, "shop"), "../home");
  const path = other?.path ?? join(place.path, "shop");
  await Deno.mkdir(path, { recursive: true });
  await Deno.mkdir(join(home, ".config/svc"), { recursive: true });
  const settings = {
    ...{ store, project: name, store_timeout: 20 },
    ...{
      provider: "openai",
      model: "test",
      base_url: "http://127.0.0.1:1/v1",
      approve_models: true,
    },
    ...given,
  };
  await Deno.writeTextFile(join(home, ".config/svc/config.json"), JSON.stringify(settings));
  const warnings: string[] = [];
  const workspace = Workspace.open({
    path,
    environment: { home, cwd: path, get: () => undefined },
    clock: systemClock,
    trusted: true,
    warn: (text) => warnings.push(text),
  });
  return {
    workspace,
    path,
    warnings,
    async [Symbol.asyncDispose]() {
      await workspace.close();
      await place[Symbol.asyncDispose]();
    },
  };
}
