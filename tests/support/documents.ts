/** The code blocks of the documents, and transcripts of a shell that tests play. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { poll } from "./processes.ts";
import { commandLine, processOptions } from "./program.ts";
import type { Project } from "./project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The code blocks of a document in these languages: `sh|console`. */
export function blocks(path: string, languages: string): string[] {
  const text = Deno.readTextFileSync(join(ROOT, path));
  const found = text.matchAll(new RegExp(`^ *\`\`\`(?:${languages})\\n(.*?)^ *\`\`\``, "gms"));
  return [...found].map(([, code = ""]) => code);
}

/** The only block of a document that has this text. */
export function blockWith(path: string, languages: string, text: string): string {
  const found = blocks(path, languages).filter((code) => code.includes(text));
  assert.equal(found.length, 1, `${path} has ${found.length} blocks with ${text}`);
  return found[0]!;
}

/** Runs a script of `sh` where a user works; its output and its errors are one text. */
export type Shell = (script: string) => Promise<{ code: number; text: string }>;

/** A shell in the folder of a project, in which `svc` is the program of these tests. */
export async function projectShell(
  work: Project,
  env: Record<string, string> = {},
): Promise<Shell> {
  const words = commandLine([]).map((word) => `'${word}'`).join(" ");
  await work.write("bin/svc", `#!/bin/sh\nexec ${words} "$@"\n`);
  await Deno.chmod(join(work.path, "bin/svc"), 0o755);
  const PATH = `${join(work.path, "bin")}:/usr/local/bin:/usr/bin:/bin`;
  return shellOf("sh", [], processOptions({ cwd: work.path, env: { PATH, ...env } }));
}

/** A shell as a process of this machine. */
export function shellOf(command: string, args: string[], options: Deno.CommandOptions): Shell {
  return async (script) => {
    const { code, stdout } = await new Deno.Command(command, {
      ...options,
      args: [...args, "-c", `exec 2>&1\n${script}`],
      stdin: "null",
    }).output();
    return { code, text: new TextDecoder().decode(stdout) };
  };
}

/**
 * Types the commands of a transcript, and compares what each prints with what the document shows: all of it, with
 * `...` for any text, or nothing where the document leaves it out. A last `&` leaves a command running until the end.
 */
export async function play(sh: Shell, code: string): Promise<void> {
  const running: string[] = [];
  try {
    for (const { command, printed } of transcript(code)) {
      if (command.endsWith("&")) {
        const script = `out=$(mktemp -p "$HOME"); (exec ${
          command.slice(0, -1)
        }) >"$out" 2>&1 & echo "$!" "$out"`;
        const [id = "", output] = (await sh(script)).text.trim().split(" ");
        running.push(id);
        await poll(
          async () => (await sh(`cat '${output}'`)).text,
          (text) => text.includes(printed),
        );
        await sh(`rm '${output}'`);
      } else if (/ status\b/.test(command)) { // as shown once what was started is ready
        await poll(async () => (await sh(command)).text, (text) => isPrinted(text, printed));
      } else assertPrinted((await sh(command)).text, printed);
    }
  } finally {
    for (const id of running) {
      await sh(`kill ${id}; while kill -0 ${id} 2>/dev/null; do sleep 0.05; done`);
    }
  }
}

/** The commands of a transcript and the lines that each prints. */
function transcript(code: string): { command: string; printed: string }[] {
  return code.split(/^\$ /m).slice(1).map((part) => {
    const [command = "", ...lines] = part.split("\n");
    return { command, printed: lines.join("\n").trim() };
  });
}

/** A text with everything that differs from run to run replaced. */
function stable(text: string): string {
  return text.trim()
    .replace(/\b(ses|job)_\d{8}_\d{6}_\w{6}/g, "$1_ID")
    .replace(/\d{4}-\d\d-\d\d(T[\d:.]+Z| \d\d:\d\d:\d\d UTC)/g, "TIME")
    .replace(/\b\d[\d.]* ?(ms|µs|s|min|h|d)\b/g, "SPAN")
    .replace(/\bnow\b|\b(in )?SPAN( ago)?/g, "SPAN")
    .replace(/\bprocess \d+/g, "process PID")
    .replace(/^(\w+ +yes +\d+ +)\d+ +/gm, "$1PID ")
    .replace(/ +$/gm, "").replace(/ {2,}/g, "  ");
}

function assertPrinted(actual: string, printed: string): void {
  if (printed === "") return;
  const parts = stable(printed).split("...").map((part) =>
    part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  );
  assert.match(stable(actual), new RegExp(`^${parts.join("[^]*")}$`));
}

function isPrinted(actual: string, printed: string): boolean {
  try {
    assertPrinted(actual, printed);
    return true;
  } catch {
    return false;
  }
}

/** A port that is free now. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
