import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Workspace } from "../engine/workspace.ts";
import { lstatIfExists, removeTree } from "../platform/files.ts";
import type { Fixture } from "./fixture.ts";

/** Seconds that the command of a fixture may take. */
const TIMEOUT = 60;

/**
 * Judges what an agent has left in the worktree of a fixture.
 *
 * @returns why it does not pass, one phrase each
 */
export async function judgeWork(
  { files, verifier }: Pick<Fixture, "files" | "verifier">,
  { paths: { worktree }, sandbox }: Pick<Workspace, "paths" | "sandbox">,
  signal: AbortSignal,
): Promise<string[]> {
  const reasons = Object.entries(verifier.files).flatMap(([path, expected]) =>
    fileReasons(path, expected, textOf(join(worktree, path)))
  );
  if (verifier.only !== undefined) {
    const { only } = verifier;
    const paths = new Set([...Object.keys(files), ...filesIn(worktree)]);
    const touched = [...paths].filter((path) =>
      !only.includes(path) && textOf(join(worktree, path)) !== files[path]
    );
    if (touched.length > 0) reasons.push(`changed ${touched.slice(0, 3).join(", ")}`);
  }
  const { command } = verifier;
  if (command === undefined) return reasons;
  const state = join(worktree, ".svc");
  // Where the sandbox leaves it open, a command can have made it a link to a folder of the user.
  if (lstatIfExists(state)?.isDirectory === false) return [...reasons, "replaced .svc"];
  const folder = join(state, "check");
  removeTree(folder);
  for (const [name, content] of Object.entries(verifier.check_files)) {
    Deno.mkdirSync(dirname(join(folder, name)), { recursive: true });
    Deno.writeTextFileSync(join(folder, name), content, { createNew: true });
  }
  const ended = await sandbox.run(
    { command: ["sh", "-c", command], cwd: worktree, timeout: TIMEOUT },
    signal,
  );
  if (ended.timed_out) reasons.push(`the check did not end within ${TIMEOUT} seconds`);
  else if (ended.code !== 0) reasons.push(`the check ended with exit code ${ended.code}`);
  return reasons;
}

type Expected = Fixture["verifier"]["files"][string];

function fileReasons(path: string, expected: Expected, text: string | undefined): string[] {
  if (expected === null) return text === undefined ? [] : [`${path} is still there`];
  if (text === undefined) return [`${path} is missing`];
  if (typeof expected === "string") {
    return text.trimEnd() === expected.trimEnd() ? [] : [`${path} is not as expected`];
  }
  if ("json" in expected) {
    try {
      if (isDeepStrictEqual(JSON.parse(text), expected.json)) return [];
    } catch {
      return [`${path} is no JSON`];
    }
    return [`${path} is not as expected`];
  }
  return [
    ...expected.has.filter((piece) => !text.includes(piece)).map((piece) => lacks(path, piece)),
    ...expected.lacks.filter((piece) => text.includes(piece)).map((piece) =>
      `${path} has ${JSON.stringify(piece.slice(0, 80))}`
    ),
  ];
}

function lacks(path: string, piece: string): string {
  return `${path} lacks ${JSON.stringify(piece.slice(0, 80))}`;
}

/** The text of a regular file; undefined for anything else. */
function textOf(path: string): string | undefined {
  try {
    return Deno.lstatSync(path).isFile ? Deno.readTextFileSync(path) : undefined;
  } catch {
    return undefined;
  }
}

/** The relative paths of everything in a worktree that is no folder, without those of svc. */
function filesIn(worktree: string, folder = ""): string[] {
  return [...Deno.readDirSync(join(worktree, folder))].flatMap(({ name, isDirectory }) => {
    const path = folder === "" ? name : `${folder}/${name}`;
    if (path === ".svc") return [];
    return isDirectory ? filesIn(worktree, path) : [path];
  });
}
