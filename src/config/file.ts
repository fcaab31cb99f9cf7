import { errorMessage, SvcError, writeFailure } from "../platform/error.ts";
import { withFileLock, writeFileAtomic } from "../platform/files.ts";

const BOM = "\uFEFF";

/**
 * The text of a configuration file without its byte order mark; undefined when there is none.
 *
 * @throws SvcError `config_file` (exit 2) for anything that is there and cannot be read as text: a
 * policy that is out of sight must not count as no policy.
 */
export function readConfigFile(path: string): string | undefined {
  const text = readText(path);
  return text?.startsWith(BOM) ? text.slice(BOM.length) : text;
}

/**
 * Replaces the text of a configuration file under its lock. `change` gets the current text and returns
 * the new one, or undefined to leave the file alone. A link is followed to its target, so that
 * settings kept elsewhere stay there; the file's mode and byte order mark stay too.
 */
export async function changeConfigFile(
  path: string,
  change: (text: string | undefined) => string | undefined,
): Promise<void> {
  readText(path); // refuses what is no file before a lock is laid beside it
  const target = targetOf(path);
  try {
    await withFileLock(target, () => {
      const old = readText(target);
      const mark = old?.startsWith(BOM) ? BOM : "";
      const text = change(old?.slice(mark.length));
      if (text === undefined || mark + text === old) return;
      const mode = old === undefined ? 0o644 : Deno.statSync(target).mode! & 0o777;
      writeFileAtomic(target, mark + text, mode);
      // The mask of the process narrows the mode of a new file.
      if (old !== undefined) Deno.chmodSync(target, mode);
    });
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw writeFailure("config_file", path, error);
  }
}

function readText(path: string): string | undefined {
  try {
    if (!Deno.statSync(path).isFile) throw fileError(path, "is not a regular file");
    const bytes = Deno.readFileSync(path);
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof SvcError) throw error;
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      if (isLink(path)) throw fileError(path, "is a link to a file that does not exist");
      return undefined;
    }
    if (error instanceof TypeError) throw fileError(path, "is not UTF-8 text", error);
    throw fileError(path, `cannot be read: ${errorMessage(error)}`, error);
  }
}

function targetOf(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return path; // not there yet, or a dangling link, which reading reports
  }
}

function isLink(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false;
  }
}

function fileError(path: string, problem: string, cause?: unknown): SvcError {
  return new SvcError("config_file", `The configuration file ${path} ${problem}.`, {
    hint:
      "Settings, and with them the tool policy, come from this file; put it right or remove it.",
    exit: 2,
    cause,
  });
}
