import { dirname } from "node:path";
import type { ProjectKind } from "./kind.ts";
import type { Target } from "../target.ts";
import { UsageError } from "../usage_error.ts";

/** Go takes packages. A file stands for the package that it is in, a folder for all that it holds. */
export const GO: ProjectKind = {
  kind: "Go",
  commands: {
    // A target that reads like a test function is the name of one.
    test: (target) =>
      target?.kind === "name" && /^(Test|Example|Fuzz)\w*(\/.*)?$/.test(target.text)
        ? ["go", "test", `-run=${exactly(target.text)}`, "./..."]
        : ["go", "test", packages(target)],
    lint: (target) => ["go", "vet", packages(target)],
    format: (target) => ["go", "fmt", ownPackages(target)],
  },
};

function packages(target: Target | undefined): string {
  if (target === undefined) return "./...";
  if (target.kind === "name") return target.text;
  const place = target.kind === "file" ? dirname(target.text) : target.text.replace(/\/+$/, "");
  const path = place.startsWith("/") || /^\.{1,2}(\/|$)/.test(place) ? place : `./${place}`;
  return target.kind === "file" ? path : `${path}/...`;
}

/** Formatting writes, and by its name a package may be one of Go's own. */
function ownPackages(target: Target | undefined): string {
  if (target?.kind === "name" && !target.text.startsWith("./")) {
    throw new UsageError(`${JSON.stringify(target.text.slice(0, 80))} is no file or folder here`);
  }
  return packages(target);
}

/** A pattern for one test, and the subtest that follows each slash. */
function exactly(name: string): string {
  return name.split("/").map((part) => `^${part.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&")}$`).join(
    "/",
  );
}
