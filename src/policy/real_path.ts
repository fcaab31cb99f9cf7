import { dirname } from "node:path";
import { errorMessage, SvcError } from "../platform/error.ts";

/** Links followed before a path is taken for a loop, as Linux does. */
const MAX_LINKS = 40;

/**
 * The absolute path without links that the system would arrive at for `path`, read from the real
 * directory `base`. Components that do not exist are taken as they are written, so the path of a file
 * still to be made is where it would be made; a dangling link leads to where it points.
 *
 * Unlike `Deno.realPath`, `..` after a link goes up from the link's target, and nothing is folded
 * before links are known. `~` is an ordinary name.
 *
 * @throws SvcError `bad_path` for a NUL byte, a loop of links or a place that may not be looked at.
 */
export function realPath(base: string, path: string): string {
  if (path.includes("\0")) throw badPath(path, "it contains a NUL byte");
  let [current, rest] = start(base, path);
  const pending = rest.split("/").reverse();
  let missing: string | undefined; // below it there is nothing to look at
  for (let links = 0; pending.length > 0;) {
    const name = pending.pop()!;
    if (name === "" || name === ".") continue;
    if (name === "..") {
      current = dirname(current);
      if (missing !== undefined && !within(missing, current)) missing = undefined;
      continue;
    }
    const next = current === "/" ? `/${name}` : `${current}/${name}`;
    const target = missing === undefined ? linkTarget(next, path) : undefined;
    if (target === undefined) missing ??= next;
    if (!target) {
      current = next;
      continue;
    }
    if (++links > MAX_LINKS) throw badPath(path, "its links form a loop");
    if (target.startsWith("/")) current = "/";
    pending.push(...target.split("/").reverse());
  }
  return current;
}

/** True when `path` is `root` or lies below it; both absolute and without links. */
export function within(root: string, path: string): boolean {
  return path === root || path.startsWith(root === "/" ? root : `${root}/`);
}

/** Where to begin: `base` holds no links, so nothing above it needs another look. */
function start(base: string, path: string): [string, string] {
  if (!path.startsWith("/")) return [base, path];
  return within(base, path) ? [base, path.slice(base.length)] : ["/", path];
}

/** Where the link at `place` points; empty for anything but a link, undefined when nothing is there. */
function linkTarget(place: string, path: string): string | undefined {
  try {
    return Deno.lstatSync(place).isSymlink ? Deno.readLinkSync(place) : "";
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      return undefined;
    }
    const closed = error instanceof Deno.errors.NotCapable;
    throw badPath(path, closed ? "this process may not look there" : errorMessage(error));
  }
}

function badPath(path: string, problem: string): SvcError {
  const shown = JSON.stringify(path.slice(0, 200));
  return new SvcError("bad_path", `The path ${shown} cannot be used: ${problem}.`);
}
