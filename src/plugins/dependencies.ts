import { join } from "node:path";
import { SvcError, usageError } from "../platform/error.ts";
import { mintId, removeTree } from "../platform/files.ts";
import { runDeno } from "./deno_program.ts";

/** Seconds for one step of one package. */
const LIMIT = 300;

/**
 * Installs npm packages into a plugin's own folder: each as one module with all that it needs,
 * `node_modules/<name>/index.js`, so that it is found from source and from the executable alike. No script of a
 * package is run, but what its module does when it is imported is.
 *
 * @param requires names with an optional range, as in `marked@^12`.
 * @throws SvcError (exit 2) `plugin_requires` for what is no npm package; `plugin_package` when one cannot be had.
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

/** What an installation that was killed has left. */
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

/** @throws SvcError `plugin_requires` (exit 2) */
export function readRequirement(text: string): { name: string; range: string } {
  const [, name, range = ""] = REQUIREMENT.exec(text) ?? [];
  if (name !== undefined) return { name, range };
  throw usageError(
    "plugin_requires",
    `The plugin requires ${JSON.stringify(text)}, which is no npm package.`,
    'A package is written as "name" or "name@range".',
  );
}

/** Writes a package as one module: `index.js` in `work`. */
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
  // A CommonJS package names its exports only once it has run.
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
