import { join } from "node:path";
import { Config, configFile, type ConfigScope } from "../../src/config/config.ts";
import { openPaths, type Paths } from "../../src/platform/environment.ts";

/** A temporary worktree and home with configuration files. */
export interface Scratch extends Disposable {
  readonly paths: Paths;
  readonly global: string;
  readonly local: string;
  write(scope: ConfigScope, content: string | object): void;
  read(scope: ConfigScope): string;
  open(): Config;
}

export function scratch(
  files: { global?: string | object; local?: string | object } = {},
): Scratch {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "svc-config-" }));
  Deno.mkdirSync(join(folder, "work", ".svc"), { recursive: true });
  const paths = openPaths(join(folder, "work"), join(folder, "home", ".config", "svc"));
  const made: Scratch = {
    paths,
    global: configFile(paths, "global"),
    local: configFile(paths, "local"),
    write(scope, content) {
      if (scope === "global") Deno.mkdirSync(paths.user, { recursive: true });
      const text = typeof content === "string" ? content : JSON.stringify(content);
      Deno.writeTextFileSync(configFile(paths, scope), text);
    },
    read: (scope) => Deno.readTextFileSync(configFile(paths, scope)),
    open: () => Config.open(paths, (_, local) => new Map(local)),
    [Symbol.dispose]: () => Deno.removeSync(folder, { recursive: true }),
  };
  if (files.global !== undefined) made.write("global", files.global);
  if (files.local !== undefined) made.write("local", files.local);
  return made;
}
