import { join } from "node:path";
import * as z from "zod/mini";
import { errorMessage } from "../platform/error.ts";
import { readJson } from "../platform/files.ts";

/** A plugin's name. It is also the name of its install folder, so it has to be a plain file name. */
const name = z.string().check(
  // Some file systems drop a dot at the end.
  z.regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?<!\.)$/,
    "is not a plain name of letters, digits and . _ -",
  ),
);

/** `manifest.json` (specification 2.9). Unknown keys are kept: they belong to other tools. */
export const manifestSchema = z.looseObject({
  name,
  version: z._default(z.string(), "0.0.0"),
  description: z._default(z.string(), ""),
  /** Range of service versions; the key holds the former product name. */
  polyglav_version: z._default(z.string(), ""),
  /** Range of Python versions: only plugins of the former implementation carry one. */
  python: z._default(z.string(), ""),
  /** Range of Deno versions. */
  deno: z._default(z.string(), ""),
  /** Path of the entry module, relative to the plugin's folder. */
  entry: z._default(z.string().check(z.minLength(1, "is empty")), "plugin.ts"),
  /** npm packages that the plugin's tools import, installed with `--deps`. */
  requires: z._default(z.array(z.string()), []),
  /** Registered names by kind. For bundled plugins, they decide whether a command imports the plugin. */
  provides: z._default(z.record(z.string(), z.array(z.string())), {}),
  /** The source that it was installed from. */
  source: z._default(z.string(), ""),
});

export type Manifest = z.output<typeof manifestSchema>;

/** Bytes. A manifest is read at every start. */
const MAX_SIZE = 1_000_000;

/**
 * Reads `manifest.json` in a plugin's folder.
 *
 * @throws Error with a sentence that describes the problem.
 */
export function readManifest(directory: string): Manifest {
  const path = join(directory, "manifest.json");
  // Reading a pipe or a device would block.
  const { isFile, size } = Deno.statSync(path);
  if (!isFile) throw new Error("manifest.json is not a file");
  if (size > MAX_SIZE) throw new Error("manifest.json is larger than 1 MB");
  let value: unknown;
  try {
    value = readJson(path);
  } catch (error) {
    throw new Error(`manifest.json cannot be read: ${errorMessage(error)}`);
  }
  return parseManifest(value);
}

/**
 * Checks a manifest and fills in the defaults.
 *
 * @throws Error that names each wrong key.
 */
export function parseManifest(value: unknown): Manifest {
  const result = z.safeParse(manifestSchema, value);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => {
    const wrong = issue.code === "invalid_type"
      ? `is not of type ${issue.expected}`
      : issue.message;
    return `${issue.path.join(".") || "the document"} ${wrong}`;
  });
  throw new Error(`manifest.json is invalid: ${problems.join("; ")}`);
}

/** The manifest of a plugin without a valid one: a single file, or a folder whose manifest is invalid. */
export function defaultManifest(name: string, entry = "plugin.ts"): Manifest {
  return {
    name,
    version: "0.0.0",
    description: "",
    polyglav_version: "",
    python: "",
    deno: "",
    entry,
    requires: [],
    provides: {},
    source: "",
  };
}

/**
 * Whether `version` is in a manifest's range: clauses separated by commas, all of which have to hold, as in
 * `>=1.2,<2.0` (specification 2.9). A clause has the syntax of Python packages, where `>1.2` means later than
 * 1.2.0. Any other clause (`^1.2`, `1.x`, `>=1 <2 || >=3`) is a semver range.
 *
 * @returns undefined when the range is invalid.
 */
export async function inRange(version: string, range: string): Promise<boolean | undefined> {
  // Takes 20 ms, so it is loaded only for a plugin with a range. The bundle has no named exports of CommonJS.
  const { default: semver } = await import("semver");
  let every = true;
  for (const clause of range.split(",").map((text) => text.trim())) {
    const { text, negate } = translate(clause);
    if (clause === "" || semver.validRange(text) === null) return undefined;
    every &&= semver.satisfies(version, text, { includePrerelease: true }) !== negate;
  }
  return every;
}

const CLAUSE = /^(>=|<=|>|<|==|!=|~=)\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(\.\*)?$/;

/** Translates a Python clause into a semver range. */
function translate(clause: string): { text: string; negate: boolean } {
  const match = CLAUSE.exec(clause);
  if (match === null) return { text: clause, negate: false };
  const [, operator, major = "0", minor, patch, wildcard] = match;
  const full = `${major}.${minor ?? 0}.${patch ?? 0}`;
  const negate = operator === "!=";
  if (operator === "~=") { // the last given part may be higher
    if (minor === undefined || wildcard) return { text: "invalid", negate };
    const next = patch === undefined ? `${+major + 1}.0.0` : `${major}.${+minor + 1}.0`;
    return { text: `>=${full} <${next}-0`, negate };
  }
  if (operator === "==" || negate) {
    const open = wildcard !== undefined && patch === undefined;
    return { text: open ? [major, minor ?? "x", "x"].join(".") : full, negate };
  }
  // A release candidate of 2.0 does not satisfy <2.0.
  const bound = operator === "<" ? `${full}-0` : full;
  return { text: wildcard ? "invalid" : `${operator}${bound}`, negate };
}
