import { basename, extname, join } from "node:path";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { mintId, removeTree } from "../platform/files.ts";
import { runProcess } from "../platform/process.ts";
import type { ProcessResult } from "./api.ts";

/** Seconds that one step of installing a package may take. */
const LIMIT = 300;

/**
 * Installs npm packages into a plugin's folder. Each becomes one module with its dependencies,
 * `node_modules/<name>/index.js`, which resolves from source and from the executable. Install scripts are not run,
 * but the package's module is imported once.
 *
 * @param requires names with an optional range, as in `marked@^12`.
 * @throws SvcError `plugin_requires` (exit 2) for a name that is not an npm package; `plugin_package` for a package
 * that cannot be installed.
 */
export async function installPackages(
  folder: string,
  requires: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const modules = join(folder, "node_modules");
  removeStaged(modules);
  for (const { name, range } of requires.map(readRequirement)) {
    const work = join(modules, `.staged-${mintId()}`);
    Deno.mkdirSync(work, { recursive: true });
    try {
      await bundle(`npm:${name}${range === "" ? "" : `@${range}`}`, work, signal);
      Deno.writeTextFileSync(
        join(work, "package.json"),
        JSON.stringify({ name, type: "module", exports: "./index.js" }, null, 2) + "\n",
      );
      const target = join(modules, name);
      Deno.mkdirSync(join(target, ".."), { recursive: true });
      removeTree(target);
      Deno.renameSync(work, target);
    } finally {
      removeTree(work);
    }
  }
}

/** Removes the leftovers of a killed installation. */
function removeStaged(modules: string): void {
  try {
    for (const { name } of Deno.readDirSync(modules)) {
      if (name.startsWith(".staged-")) removeTree(join(modules, name));
    }
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

const REQUIREMENT = /^((?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*)(?:@([\w.^~<>=*+-]+))?$/i;

/**
 * Splits an entry of the manifest's `requires` into a package name and a version range.
 *
 * @throws SvcError `plugin_requires` (exit 2)
 */
export function readRequirement(text: string): { name: string; range: string } {
  const [, name, range = ""] = REQUIREMENT.exec(text) ?? [];
  if (name !== undefined) return { name, range };
  throw usageError(
    "plugin_requires",
    `The plugin requires ${JSON.stringify(text)}, which is no npm package.`,
    'A package is written as "name" or "name@range".',
  );
}

/** Bundles a package into one module, `index.js` in the folder `work`. */
async function bundle(specifier: string, work: string, signal: AbortSignal): Promise<void> {
  const step = async (args: string[]) => {
    const ended = await runDeno(args, {
      cwd: work,
      timeout: LIMIT,
      signal,
      purpose: "installing a plugin's packages",
    });
    if (ended.cancelled) throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
    if (ended.code === 0) return;
    const reason = ended.timed_out ? "it took too long" : complaint(ended.output);
    throw new SvcError(
      "plugin_package",
      `The package ${specifier} cannot be installed: ${reason}.`,
    );
  };
  const isolated = ["--quiet", "--no-config", "--no-lock"];
  // The export names of a CommonJS package are known only after it has run.
  Deno.writeTextFileSync(
    join(work, "names.js"),
    `const names = Object.keys(await import(${JSON.stringify(specifier)}));
Deno.writeTextFileSync("names.json", JSON.stringify(names));\n`,
  );
  const allowed = ["--no-prompt", "--allow-read", "--allow-write=.", "--allow-env", "--allow-sys"];
  await step(["run", ...isolated, ...allowed, "names.js"]);
  const names: string[] = JSON.parse(Deno.readTextFileSync(join(work, "names.json")));
  const exported = names.filter((name) => /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name));
  Deno.writeTextFileSync(
    join(work, "entry.js"),
    `export { ${exported.join(", ")} } from ${JSON.stringify(specifier)};\n`,
  );
  await step(["bundle", ...isolated, "--platform", "deno", "--output", "index.js", "entry.js"]);
  for (const file of ["names.js", "names.json", "entry.js"]) Deno.removeSync(join(work, file));
}

function complaint(output: string): string {
  const line = output.split("\n").find((line) => /error:/i.test(line)) ??
    output.trim().split("\n")[0]!;
  return line.replace(/^.*?error: (Uncaught )?(\(in promise\) )?/i, "").replace(/\.$/, "").trim();
}

/**
 * Runs a Deno command with the Deno that runs this program, or else with the one on the PATH.
 *
 * @throws SvcError `no_deno` when there is none.
 */
export async function runDeno(
  args: string[],
  { cwd, timeout, signal, purpose }: {
    cwd: string;
    /** Seconds. */
    timeout: number;
    signal: AbortSignal;
    /** Purpose that the error names, as in "installing packages". */
    purpose: string;
  },
): Promise<ProcessResult> {
  const own = Deno.execPath();
  const program = basename(own, extname(own)) === "deno" ? own : "deno";
  const env = { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", DENO_NO_PACKAGE_JSON: "1" };
  try {
    return await runProcess({ command: [program, ...args], cwd, timeout, env }, signal);
  } catch (cause) {
    throw new SvcError("no_deno", `Deno is needed for ${purpose}: ${errorMessage(cause)}`, {
      hint: "Install Deno (https://deno.com), or have svc run where it is on the PATH.",
      cause,
    });
  }
}
