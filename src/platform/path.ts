/**
 * `node:path` and `node:url` of the executable, for POSIX. Deno's own load 50 modules of its Node layer, which takes
 * 6 ms and 4 MB of every start; compile.sh puts this file in their place. The functions are those of Node, and
 * limited to those that svc uses.
 */
export const sep = "/";

export function isAbsolute(path: string): boolean {
  return path.startsWith("/");
}

export function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (!isAbsolute(path)) parts.push("..");
  }
  const end = path.endsWith("/") ? "/" : "";
  if (parts.length === 0) return isAbsolute(path) ? "/" : `.${end}`;
  return `${isAbsolute(path) ? "/" : ""}${parts.join("/")}${end}`;
}

export function join(...paths: string[]): string {
  return normalize(paths.filter((path) => path !== "").join("/"));
}

export function resolve(...paths: string[]): string {
  let path = "";
  for (const each of paths.toReversed()) {
    if (isAbsolute(path)) break;
    if (each !== "") path = `${each}/${path}`;
  }
  if (!isAbsolute(path)) path = `${Deno.cwd()}/${path}`;
  return withoutEnd(normalize(path)) || "/";
}

export function relative(from: string, to: string): string {
  const [one, other] = [from, to].map((path) => resolve(path).split("/").filter(Boolean));
  let same = 0;
  while (same < one!.length && one![same] === other![same]) same++;
  return [...one!.slice(same).map(() => ".."), ...other!.slice(same)].join("/");
}

export function dirname(path: string): string {
  const at = withoutEnd(path).lastIndexOf("/");
  if (at < 1) return isAbsolute(path) ? "/" : ".";
  return at === 1 && isAbsolute(path) ? "//" : path.slice(0, at);
}

export function basename(path: string, suffix = ""): string {
  const whole = withoutEnd(path);
  const name = whole.slice(whole.lastIndexOf("/") + 1);
  return name !== suffix && name.endsWith(suffix)
    ? name.slice(0, name.length - suffix.length)
    : name;
}

export function extname(path: string): string {
  const name = basename(path);
  const at = name.lastIndexOf(".");
  return at < 1 || name === ".." ? "" : name.slice(at);
}

/** @throws TypeError for a URL that is no file's */
export function fileURLToPath(url: string | URL): string {
  const { protocol, host, pathname } = new URL(url);
  if (protocol !== "file:" || host !== "" || /%2f/i.test(pathname)) {
    throw new TypeError(`${url} is no URL of a file of this machine`);
  }
  return decodeURIComponent(pathname);
}

export function pathToFileURL(path: string): URL {
  const url = new URL("file:///");
  const end = path.endsWith("/") ? "/" : "";
  url.pathname = withoutEnd(resolve(path)).replace(/[%\\\n\r\t]/g, encodeURIComponent) + end;
  return url;
}

function withoutEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end--;
  return path.slice(0, end);
}
