import { dirname, join, resolve } from "node:path";
import type { ProjectKind } from "./kind.ts";
import type { Target } from "../target.ts";

/** Cargo takes packages and names. A file or a folder stands for the package that it is in. */
export const CARGO: ProjectKind = {
  kind: "Cargo",
  commands: {
    test: (target, folder) => {
      if (target?.kind === "name") return ["cargo", "test", target.text];
      const suite = /^(?:\.\/)?(?:(.*)\/)?tests\/([\w-]+)\.rs$/.exec(target?.text ?? "")?.[2];
      return ["cargo", "test", ...within(target, folder), ...suite ? ["--test", suite] : []];
    },
    lint: (target, folder) => ["cargo", "clippy", ...within(target, folder)],
    format: (target, folder) => ["cargo", "fmt", ...within(target, folder)],
  },
};

function within(target: Target | undefined, folder: string): string[] {
  if (target === undefined) return [];
  if (target.kind === "name") return ["--package", target.text];
  for (let place = target.kind === "folder" ? target.text : dirname(target.text);;) {
    const manifest = join(place, "Cargo.toml");
    if (isThere(resolve(folder, manifest))) {
      return manifest === "Cargo.toml" ? [] : ["--manifest-path", manifest];
    }
    if (place === dirname(place)) return [];
    place = dirname(place);
  }
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
