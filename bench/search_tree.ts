/** The word that is searched: it occurs in one line of one file in 1000. */
export const NEEDLE = "keelhaul";

export const FILES = 20_000;
/** One file in so many contains the word. */
const APART = 1000;
export const MATCHES = FILES / APART;
const FILES_IN_FOLDER = 10;
const FOLDERS_IN_FOLDER = 8;
const WORDS =
  "const let return import from function class await async string number value result error path"
    .split(" ");

/**
 * Makes a worktree of 20,000 source files below `root`, about 100 MB, always the same: nested folders,
 * file sizes like those of source code, a folder of 2,000 further files that `.gitignore` hides, and one
 * binary file in fifty.
 */
export function makeTree(root: string): void {
  Deno.mkdirSync(`${root}/.git`, { recursive: true });
  Deno.writeTextFileSync(`${root}/.gitignore`, "/dist/\n*.log\n!keep.log\n");
  const next = sequence();
  const folders = FILES / FILES_IN_FOLDER;
  for (let folder = 0; folder < folders; folder++) {
    writeFolder(`${root}/src${folderPath(folder)}`, folder * FILES_IN_FOLDER, next);
  }
  for (let folder = 0; folder < folders / 10; folder++) {
    writeFolder(`${root}/dist/${folder}`, folder * FILES_IN_FOLDER, next);
  }
}

/** Folder 0 holds folders 1 to 8, folder 1 holds 9 to 16, and so on. */
function folderPath(folder: number): string {
  const parent = Math.floor((folder - 1) / FOLDERS_IN_FOLDER);
  return folder === 0 ? "" : `${folderPath(parent)}/part${folder}`;
}

function writeFolder(folder: string, first: number, next: () => number): void {
  Deno.mkdirSync(folder, { recursive: true });
  for (let i = first; i < first + FILES_IN_FOLDER; i++) {
    const binary = i % 50 === 7;
    // Most files are small and a few are large: 1 to 8 kB, and one in twenty up to 40.
    const lines = 30 + next() % 170 + (next() % 20 === 0 ? next() % 1000 : 0);
    let text = binary ? "\0" : "";
    for (let line = 0; line < lines; line++) text += sentence(next);
    if (i % APART === 500) text += `// ${NEEDLE} ${i}\n`;
    Deno.writeTextFileSync(`${folder}/file${i}.${binary ? "bin" : "ts"}`, text);
  }
}

function sentence(next: () => number): string {
  let line = " ".repeat(2 * (next() % 4));
  for (let i = next() % 10; i >= 0; i--) line += `${WORDS[next() % WORDS.length]} `;
  return `${line}x${next() % 1000};\n`;
}

/** A linear congruential generator; its low bits are not random enough. */
function sequence(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state >>> 8;
  };
}
