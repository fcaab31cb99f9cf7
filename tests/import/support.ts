import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { main } from "../../src/cli/main.ts";
import type { ImportReport } from "../../src/commands/import_polyglav.ts";
import { testIo } from "../support/io.ts";

const FIXTURES = fileURLToPath(new URL("fixtures", import.meta.url));

export const VERSIONS = ["0.37.0", "0.49.0"];

/** A copy of a fixture: a worktree, and a home without files of svc. */
export interface Moved extends AsyncDisposable {
  path: string;
  home: string;
  /** The folders of the earlier program. */
  state: string;
  user: string;
  svc(...args: string[]): Promise<Outcome>;
  /** The same without the trust that tests have in every worktree. */
  untrusting(...args: string[]): Promise<Outcome>;
  /** Runs `svc import polyglav --output json` with more arguments. */
  import(...args: string[]): Promise<ImportReport & { applied: boolean; code: number }>;
}

export interface Outcome {
  code: number;
  out: string;
  notes: string[];
}

/** @param version of the fixture; empty: there are no files */
export async function moved(version: string, backend = "http://127.0.0.1:9"): Promise<Moved> {
  const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "svc-test-" }));
  const [path, home] = [join(root, "worktree"), join(root, "home")];
  for (const folder of [path, home]) await Deno.mkdir(folder);
  if (version !== "") {
    copy(
      join(FIXTURES, `polyglav-${version}`),
      root,
      (text) =>
        text.replaceAll("/home/ada/project", path).replaceAll("http://backend.example", backend),
    );
  }
  const run = async (args: string[], env?: (name: string) => string | undefined) => {
    const io = testIo({ home, cwd: path });
    const environment = { home, cwd: path, get: env ?? io.environment.get };
    const code = await main(args, { ...io, environment });
    return { code, out: io.printed, notes: io.notes };
  };
  return {
    path,
    home,
    state: join(path, ".polyglav"),
    user: join(home, ".config", "polyglav"),
    svc: (...args) => run(args),
    untrusting: (...args) => run(args, (name) => name === "PATH" ? "/usr/bin:/bin" : undefined),
    async import(...args) {
      const { code, out, notes } = await run(
        ["import", "polyglav", "--output", "json", ...args],
        () => undefined,
      );
      if (out === "") throw new Error(notes.join("\n"));
      return { ...JSON.parse(out), code };
    },
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

function copy(from: string, to: string, change: (text: string) => string): void {
  for (const [file, text] of files(from)) {
    Deno.mkdirSync(dirname(join(to, file)), { recursive: true });
    Deno.writeTextFileSync(join(to, file), change(text));
  }
}

/** The files below a folder with their texts, without those that hold locks; links as `-> <target>`. */
export function files(folder: string): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (inner: string) => {
    for (const { name, isDirectory, isSymlink } of Deno.readDirSync(join(folder, inner))) {
      const file = join(inner, name);
      if (isSymlink) found.set(file, `-> ${Deno.readLinkSync(join(folder, file))}`);
      else if (isDirectory) visit(file);
      else if (!name.endsWith(".lock")) found.set(file, Deno.readTextFileSync(join(folder, file)));
    }
  };
  visit("");
  return new Map([...found].sort());
}

/** The items of a report as `<state> <kind> <name>`. */
export function lines({ items }: ImportReport, ...states: string[]): string[] {
  return items.filter(({ state }) => states.length === 0 || states.includes(state))
    .map(({ state, kind, name }) => `${state} ${kind} ${name}`);
}

/** Writes files into a folder; a value that is no text is written as JSON. */
export function write(folder: string, content: Record<string, unknown>): void {
  for (const [file, value] of Object.entries(content)) {
    Deno.mkdirSync(dirname(join(folder, file)), { recursive: true });
    const text = typeof value === "string" ? value : JSON.stringify(value);
    Deno.writeTextFileSync(join(folder, file), text);
  }
}
