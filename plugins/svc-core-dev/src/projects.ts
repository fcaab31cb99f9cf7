import { dirname, join, resolve } from "node:path";
import type { ToolPaths } from "../../../src/plugins/api.ts";

/** A call that cannot be run. The message is the result of the call. */
export class UsageError extends Error {}

export type Task = "test" | "lint" | "format";

/** The part of a project that a call is limited to. */
export interface Target {
  /** The target as the call gives it. */
  text: string;
  /** Whether the part before a `::` is an existing file or folder; otherwise it is a name. */
  kind: "file" | "folder" | "name";
}

/** Builds the words of a command. */
type Words = (target: Target | undefined, folder: string) => string[] | undefined;

/** A kind of project, and the commands that run its tests, linter and formatter. */
export interface ProjectKind {
  kind: string;
  commands: Partial<Record<Task, Words>>;
}

/** Facts about a project that are not in its own file. */
interface ProjectFacts {
  /** The first of these files that exists in the project's folder or one of its parents in the worktree. */
  first(files: string[]): Promise<string | undefined>;
}

type KindOf = (text: string, facts: ProjectFacts) => ProjectKind | Promise<ProjectKind>;

/**
 * The kind of project in a folder, recognised by its files. Of several kinds it is the first of `KINDS` that has a
 * command for the task, or else the first.
 *
 * @param names what the folder has, where it is known
 */
export async function findProject(
  task: Task,
  folder: string,
  paths: ToolPaths,
  names?: Set<string>,
): Promise<ProjectKind | undefined> {
  const facts = { first: (files: string[]) => firstUpwards(files, folder, paths.worktree) };
  const found: ProjectKind[] = [];
  for (const [files, kindOf] of KINDS) {
    for (const file of files) {
      if (names?.has(file) === false) continue;
      const text = await content(join(folder, file), paths);
      if (text === undefined) continue;
      const kind = await kindOf(text, facts);
      if (kind.commands[task] !== undefined) return kind;
      found.push(kind);
      break;
    }
  }
  return found[0];
}

async function firstUpwards(
  files: string[],
  folder: string,
  worktree: string,
): Promise<string | undefined> {
  for (let at = folder;; at = dirname(at)) {
    for (const file of files) {
      if (await pathExists(join(at, file))) return file;
    }
    if (at === worktree || at === dirname(at)) return undefined;
  }
}

async function pathExists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Bytes of the largest project file that is read. */
const MAX_FILE = 4_000_000;

/** The text of a project file; undefined for a missing or large file, and for a link out of the worktree. */
async function content(path: string, paths: ToolPaths): Promise<string | undefined> {
  try {
    using file = await paths.open(path, { read: true });
    if (file.statSync().size > MAX_FILE) return undefined;
    return await new Response(file.readable).text();
  } catch {
    return undefined;
  }
}

/** A `test` task of the project takes precedence: it grants the permissions that the tests need. */
async function deno(text: string): Promise<ProjectKind> {
  const test = await hasTestTask(text) ? ["deno", "task", "test"] : ["deno", "test"];
  return {
    kind: "Deno",
    commands: {
      // A target that is not a file is the name of a test.
      test: (target) => [
        ...test,
        ...target?.kind === "name" ? [`--filter=${target.text}`] : given(target),
      ],
      lint: (target) => ["deno", "lint", ...given(target)],
      format: (target) => ["deno", "fmt", ...given(target)],
    },
  };
}

async function hasTestTask(text: string): Promise<boolean> {
  const { parse } = await import("jsonc-parser");
  const tasks = parse(text)?.tasks;
  return typeof tasks === "object" && tasks !== null && Object.hasOwn(tasks, "test");
}

function given(target: Target | undefined): string[] {
  return target === undefined ? [] : [target.text];
}

/** Cargo takes packages and names. A file or a folder stands for its package. */
const CARGO: ProjectKind = {
  kind: "Cargo",
  commands: {
    test: (target, folder) => {
      if (target?.kind === "name") return ["cargo", "test", target.text];
      const suite = /^(?:\.\/)?(?:(.*)\/)?tests\/([\w-]+)\.rs$/.exec(target?.text ?? "")?.[2];
      return ["cargo", "test", ...cargoPackage(target, folder), ...suite ? ["--test", suite] : []];
    },
    lint: (target, folder) => ["cargo", "clippy", ...cargoPackage(target, folder)],
    format: (target, folder) => ["cargo", "fmt", ...cargoPackage(target, folder)],
  },
};

function cargoPackage(target: Target | undefined, folder: string): string[] {
  if (target === undefined) return [];
  if (target.kind === "name") return ["--package", target.text];
  for (let at = target.kind === "folder" ? target.text : dirname(target.text);;) {
    const manifest = join(at, "Cargo.toml");
    if (isFile(resolve(folder, manifest))) {
      return manifest === "Cargo.toml" ? [] : ["--manifest-path", manifest];
    }
    if (at === dirname(at)) return [];
    at = dirname(at);
  }
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

/** Go takes packages. A file stands for its package, a folder for all packages in it. */
const GO: ProjectKind = {
  kind: "Go",
  commands: {
    // A name of the form of a test function is one.
    test: (target) =>
      target?.kind === "name" && /^(Test|Example|Fuzz)\w*(\/.*)?$/.test(target.text)
        ? ["go", "test", `-run=${exactly(target.text)}`, "./..."]
        : ["go", "test", goPackages(target)],
    lint: (target) => ["go", "vet", goPackages(target)],
    format: (target) => ["go", "fmt", ownPackages(target)],
  },
};

function goPackages(target: Target | undefined): string {
  if (target === undefined) return "./...";
  if (target.kind === "name") return target.text;
  const folder = target.kind === "file" ? dirname(target.text) : target.text.replace(/\/+$/, "");
  const path = folder.startsWith("/") || /^\.{1,2}(\/|$)/.test(folder) ? folder : `./${folder}`;
  return target.kind === "file" ? path : `${path}/...`;
}

/** The formatter writes, so it takes no package by name, which may be one of Go's own. */
function ownPackages(target: Target | undefined): string {
  if (target?.kind === "name" && !target.text.startsWith("./")) {
    throw new UsageError(`${JSON.stringify(target.text.slice(0, 80))} is no file or folder here`);
  }
  return goPackages(target);
}

/** A pattern for one test, and the subtest that follows each slash. */
function exactly(name: string): string {
  return name.split("/").map((part) => `^${part.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&")}$`).join(
    "/",
  );
}

/** The scripts of a package, run by its package manager. */
async function npm(text: string, facts: ProjectFacts): Promise<ProjectKind> {
  const { scripts = {}, packageManager } = readPackage(text);
  const [name, run] = await managerOf(packageManager, facts);
  const script = (...names: string[]) => {
    const found = names.find((name) => Object.hasOwn(scripts, name));
    if (found === undefined) return undefined;
    return (target: Target | undefined) => run(found, target === undefined ? [] : [target.text]);
  };
  // The script that npm writes into a new package runs no test.
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
  // These pass the arguments after the script's name on unchanged.
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

/** The package manager that `packageManager` names, or else that of the nearest lock file. */
async function managerOf(declared: unknown, facts: ProjectFacts): Promise<[string, Run]> {
  const named = String(declared ?? "").split("@")[0]!;
  const name = Object.hasOwn(MANAGERS, named)
    ? named
    : LOCKS[await facts.first(Object.keys(LOCKS)) ?? "package-lock.json"]!;
  return [name, MANAGERS[name]!];
}

function readPackage(
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

const PYTHON: ProjectKind = {
  kind: "Python",
  commands: {
    // A word that is not a file is the name of a test.
    test: (target) => [
      "python3",
      "-m",
      "pytest",
      ...target?.kind === "name" && /^\w+$/.test(target.text)
        ? ["-k", target.text]
        : pythonTarget(target),
    ],
    lint: (target) => ["ruff", "check", ...pythonTarget(target)],
    format: (target) => ["ruff", "format", ...pythonTarget(target)],
  },
};

function pythonTarget(target: Target | undefined): string[] {
  // pytest reads options from a file that is named with `@`.
  if (target?.text.startsWith("@")) {
    throw new UsageError(`${JSON.stringify(target.text.slice(0, 80))} is no target`);
  }
  return target === undefined ? [] : [target.text];
}

/** The rules of a makefile with these names. A target replaces the rule when its name contains the task. */
function make(text: string): ProjectKind {
  const rule = (fits: RegExp, ...names: string[]) => {
    const name = names.find((name) => new RegExp(`^${name}\\s*:(?!=)`, "m").test(text));
    if (name === undefined) return undefined;
    return (
      target: Target | undefined,
    ) => ["make", target === undefined ? name : goal(target, fits)];
  };
  return {
    kind: "make",
    commands: {
      test: rule(/test|check|spec/i, "test", "check"),
      lint: rule(/lint/i, "lint"),
      format: rule(/format|fmt/i, "format", "fmt"),
    },
  };
}

/** Rejects rules of other names, which may install or deploy, and assignments such as `X:=$(shell ...)`. */
function goal({ text }: Target, fits: RegExp): string {
  if (fits.test(text) && /^[\w./%+-]+$/.test(text)) return text;
  throw new UsageError(
    `${
      JSON.stringify(text.slice(0, 80))
    } is no rule for this by its name; leave it out, or run make`,
  );
}

/** Files by which each kind is recognised, in the order of precedence. */
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
