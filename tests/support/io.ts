import { main } from "../../src/cli/main.ts";
import type { Io } from "../../src/commands/io.ts";
import { type Ended, processOptions, type ProgramOptions } from "./program.ts";
import { trusting } from "./trust.ts";

/** The input and output of a command that runs in this process: questions get no answer, output is kept. */
export function testIo(
  { home, cwd }: { home: string; cwd: string },
  answers: Partial<Io> = {},
): Io & { printed: string; notes: string[] } {
  const io: ReturnType<typeof testIo> = {
    environment: {
      home,
      cwd,
      get: (name) => name === "PATH" ? "/usr/local/bin:/usr/bin:/bin" : trusting(name),
    },
    program: "svc ",
    printed: "",
    notes: [],
    out: (text) => void (io.printed += text),
    note: (line) => void io.notes.push(line),
    isTerminal: () => false,
    readInput: () => Promise.resolve(""),
    readLine: () => Promise.resolve(undefined),
    readHidden: () => Promise.resolve(undefined),
    confirm: () => Promise.resolve(false),
    onInterrupt: () => ({ signal: new AbortController().signal, release() {} }),
    ...answers,
  };
  return io;
}

/** Runs the program as `svc` of program.ts does, but in this process, which takes a tenth of the time. */
export async function inProcess(args: string[], options: ProgramOptions): Promise<Ended> {
  const { env } = processOptions(options);
  // A run gives up permissions that it cannot use; the other tests of the file keep them.
  Deno.permissions.revokeSync = (descriptor) => Deno.permissions.querySync(descriptor);
  const input = options.stdin ?? "";
  const io = testIo({ home: env!.HOME!, cwd: options.cwd }, {
    readInput: () => Promise.resolve(input),
    readBytes: () => Promise.resolve(new TextEncoder().encode(input)),
  });
  const { home, cwd } = io.environment;
  const code = await main(args, { ...io, environment: { home, cwd, get: (name) => env![name] } });
  return { code, stdout: io.printed, stderr: io.notes.map((line) => `${line}\n`).join("") };
}

/** Runs the program in this process, in a folder that is also its home. */
export async function runMain(
  folder: string,
  ...args: string[]
): Promise<{ code: number; out: string; notes: string[] }> {
  const io = testIo({ home: folder, cwd: folder });
  const code = await main(args, io);
  return { code, out: io.printed, notes: io.notes };
}
