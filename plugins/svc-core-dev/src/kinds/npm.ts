import type { ProjectKind, Surroundings } from "./kind.ts";
import type { Target } from "../target.ts";

/** The scripts of a package, run by the manager that it says it is managed with. */
export async function npm(text: string, around: Surroundings): Promise<ProjectKind> {
  const { scripts = {}, packageManager } = described(text);
  const [name, run] = await managerOf(packageManager, around);
  const script = (...names: string[]) => {
    const found = names.find((name) => Object.hasOwn(scripts, name));
    if (found === undefined) return undefined;
    return (target: Target | undefined) => run(found, target === undefined ? [] : [target.text]);
  };
  // What npm writes into a new package runs no test.
  const empty = String(scripts.test ?? "").includes("no test specified");
  return {
    kind: name,
    commands: {
      test: empty ? undefined : script("test"),
      lint: script("lint"),
      format: script("format", "fmt"),
    },
  };
}

type Run = (script: string, args: string[]) => string[];

const MANAGERS: Record<string, Run> = {
  npm: (script, args) => [
    "npm",
    "run",
    "--silent",
    script,
    ...args.length > 0 ? ["--", ...args] : [],
  ],
  // These hand everything behind the script's name on as it is.
  pnpm: (script, args) => ["pnpm", "run", "--silent", script, ...args],
  yarn: (script, args) => ["yarn", "run", script, ...args],
  bun: (script, args) => ["bun", "run", script, ...args],
};

const LOCKS: Record<string, string> = {
  "package-lock.json": "npm",
  "npm-shrinkwrap.json": "npm",
  "pnpm-lock.yaml": "pnpm",
  "yarn.lock": "yarn",
  "bun.lock": "bun",
  "bun.lockb": "bun",
};

/** What `packageManager` names, else the nearest lock file. */
async function managerOf(declared: unknown, around: Surroundings): Promise<[string, Run]> {
  const named = String(declared ?? "").split("@")[0]!;
  const name = Object.hasOwn(MANAGERS, named)
    ? named
    : LOCKS[await around.first(Object.keys(LOCKS)) ?? "package-lock.json"]!;
  return [name, MANAGERS[name]!];
}

function described(
  text: string,
): { scripts?: Record<string, unknown>; packageManager?: unknown } {
  try {
    const { scripts, packageManager } = JSON.parse(text);
    const usable = typeof scripts === "object" && scripts !== null;
    return { scripts: usable ? scripts : {}, packageManager };
  } catch {
    return {};
  }
}
