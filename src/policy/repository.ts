import { exists } from "../platform/files.ts";

/**
 * Whether git would take a folder for a repository once an entry of this name is in it: under any name, as a
 * "bare" one, and whoever runs git in there runs what its configuration says.
 *
 * @param heads what is known of the `HEAD` of folders; a search asks for thousands of files
 */
export function isRepositoryWith(
  folder: string,
  name: string,
  heads: Map<string, boolean>,
): boolean {
  const added = name.toLowerCase(); // a file system may not tell them apart
  if (added !== "head") {
    if (!heads.has(folder)) heads.set(folder, exists(`${folder}/HEAD`));
    if (!heads.get(folder)) return false;
  }
  const has = (entry: string) => added === entry || exists(`${folder}/${entry}`);
  return has("commondir") || (has("objects") && has("refs"));
}
