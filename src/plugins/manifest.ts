import { join } from "node:path";
import * as z from "zod/mini";
import { errorMessage } from "../platform/error.ts";
import { readJson } from "../platform/files.ts";

/** A plugin's name is also the name of its install directory, so it has to be a plain file name. */
const name = z.string().check(
  // A dot at the end is lost on some file systems.
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
  /** Third-party packages the plugin's tools look for; for display only. */
  requires: z._default(z.array(z.string()), []),
  /** What the plugin registers, by kind. Decides what is loaded for bundled plugins only. */
  provides: z._default(z.record(z.string(), z.array(z.string())), {}),
  /** Where it was installed from. */
  source: z._default(z.string(), ""),
});

export type Manifest = z.output<typeof manifestSchema>;

/** Bytes. It is read at every start. */
const MAX_SIZE = 1_000_000;

/**
 * Reads `manifest.json` in a plugin's folder.
 *
 * @throws Error with a sentence that says what is wrong with it.
 */
export function readManifest(directory: string): Manifest {
  const path = join(directory, "manifest.json");
  // A pipe or a device in its place would block the reader.
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

/** The manifest of a plugin that has none: a bare file, or a folder whose manifest is invalid. */
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
