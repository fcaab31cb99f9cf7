import { join } from "node:path";
import type { Task } from "./command.ts";

type Words = (target: string | undefined, folder: string) => string[] | undefined;

/** A kind of project, and what runs its tests, linter and formatter. */
export interface ProjectKind {
  kind: string;
  commands: Partial<Record<Task, Words>>;
}

/** What a folder's files say it is; of several, the first in this order. */
export async function findProject(folder: string): Promise<ProjectKind | undefined> {
  for (const [files, found] of KINDS) {
    for (const file of files) {
      const text = await content(join(folder, file));
      const kind = text === undefined ? undefined : found(text);
      if (kind !== undefined) return kind;
    }
  }
  return undefined;
}

const KINDS: [string[], (text: string) => ProjectKind | undefined][] = [
  [["deno.json", "deno.jsonc"], () => DENO],
  [["Cargo.toml"], () => CARGO],
  [["go.mod"], () => GO],
  [["package.json"], npm],
  [["pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", "setup.py"], () => PYTHON],
  [["Makefile", "makefile", "GNUmakefile"], make],
];

const DENO: ProjectKind = {
  kind: "Deno",
  commands: {
    // A target that is no file is the name of tests.
    test: (target, folder) =>
      target === undefined
        ? ["deno", "test"]
        : isThere(join(folder, target))
        ? ["deno", "test", target]
        : ["deno", "test", `--filter=${target}`],
    lint: (target) => ["deno", "lint", ...given(target)],
    format: (target) => ["deno", "fmt", ...given(target)],
  },
};

const CARGO: ProjectKind = {
  kind: "Cargo",
  commands: {
    test: (target) => ["cargo", "test", ...given(target)],
    lint: (target) => ["cargo", "clippy", ...packageOf(target)],
    format: (target) => ["cargo", "fmt", ...packageOf(target)],
  },
};

const GO: ProjectKind = {
  kind: "Go",
  commands: {
    // A target that reads like a test function is the name of one.
    test: (target) =>
      /^(Test|Example|Fuzz)\w*$/.test(target ?? "")
        ? ["go", "test", `-run=^${target}$`, "./..."]
        : ["go", "test", target ?? "./..."],
    lint: (target) => ["go", "vet", target ?? "./..."],
    format: (target) => ["go", "fmt", target ?? "./..."],
  },
};

const PYTHON: ProjectKind = {
  kind: "Python",
  commands: {
    test: (target) => ["python3", "-m", "pytest", ...given(target)],
    lint: (target) => ["ruff", "check", ...given(target)],
    format: (target) => ["ruff", "format", ...given(target)],
  },
};

function npm(text: string): ProjectKind | undefined {
  const scripts = scriptsOf(text);
  const script = (...names: string[]): Words | undefined => {
    const name = names.find((name) => Object.hasOwn(scripts, name));
    if (name === undefined) return undefined;
    return (
      target,
    ) => ["npm", "run", "--silent", name, ...target === undefined ? [] : ["--", target]];
  };
  // What npm writes into a new package runs no test.
  const empty = String(scripts.test ?? "").includes("no test specified");
  const commands = {
    test: empty ? undefined : script("test"),
    lint: script("lint"),
    format: script("format", "fmt"),
  };
  return { kind: "npm", commands };
}

function scriptsOf(text: string): Record<string, unknown> {
  try {
    const { scripts } = JSON.parse(text);
    return typeof scripts === "object" && scripts !== null ? scripts : {};
  } catch {
    return {};
  }
}

/** Of a makefile the rules of these names; a target takes the place of the rule. */
function make(text: string): ProjectKind {
  const rule = (...names: string[]): Words | undefined => {
    const name = names.find((name) => new RegExp(`^${name}\\s*:(?!=)`, "m").test(text));
    return name === undefined ? undefined : (target) => ["make", target ?? name];
  };
  const commands = {
    test: rule("test", "check"),
    lint: rule("lint"),
    format: rule("format", "fmt"),
  };
  return { kind: "make", commands };
}

function given(target: string | undefined): string[] {
  return target === undefined ? [] : [target];
}

function packageOf(target: string | undefined): string[] {
  return target === undefined ? [] : ["--package", target];
}

function isThere(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

async function content(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch {
    return undefined;
  }
}
