/** A directory of programs that only record their arguments, and a directory to run shells in. */
export interface ShellStubs extends Disposable {
  /** The names and contents of the files in the working directory. */
  files(): string[];
  /**
   * Runs each line in a real shell.
   *
   * @returns for each line, the programs that ran, each as its name and arguments
   */
  run(shell: string, lines: string[]): string[][][];
}

/** Ends when all processes of the line have closed its output, those in the background included. */
const DRIVER = `while IFS= read -r -d '' line <&3; do
  printf '\\0' >> "$RECORD"
  "$SHELL" -c "$line" 3<&- < /dev/null 2>&1 | /bin/cat > /dev/null
done 3< "$LINES"`;

/**
 * @param programs names of the programs on the PATH
 * @param local names of further ones in the working directory
 */
export function shellStubs(programs: string[], local: string[]): ShellStubs {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "svc-shell-" }));
  const [bin, work, record, input] = ["bin", "work", "record", "lines"].map((n) => `${root}/${n}`);
  const stub = '#!/bin/sh\nIFS="\x1f"\nprintf "%s\\n" "${0##*/}\x1f$*" >> "$RECORD"\n';
  for (const [folder, names] of [[bin!, programs], [work!, local]] as const) {
    Deno.mkdirSync(folder);
    for (const name of names) Deno.writeTextFileSync(`${folder}/${name}`, stub, { mode: 0o755 });
  }
  return {
    files: () =>
      Array.from(
        Deno.readDirSync(work!),
        ({ name, isFile }) =>
          isFile ? `${name}: ${Deno.readTextFileSync(`${work}/${name}`)}` : name,
      ).sort(),
    run(shell, lines) {
      Deno.writeTextFileSync(record!, "");
      Deno.writeTextFileSync(input!, lines.map((line) => `${line}\0`).join(""));
      const env = { PATH: bin!, RECORD: record!, LINES: input!, SHELL: shell, HOME: root };
      new Deno.Command("/bin/bash", {
        args: ["-c", DRIVER],
        cwd: work,
        clearEnv: true,
        env: { ...env, X: "; evil", Y: "evil", Z: "$(evil)", N: "Y" },
        stdin: "null",
      }).outputSync();
      return Deno.readTextFileSync(record!).split("\0").slice(1).map((text) =>
        text.split("\n").slice(0, -1).map((call) => call.split("\x1f"))
      );
    },
    [Symbol.dispose]: () => Deno.removeSync(root, { recursive: true }),
  };
}
