import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { COMMANDS } from "../../src/cli/main.ts";
import { parseCommand } from "../../src/commands/command.ts";
import { testIo } from "../support/io.ts";
import { commandLine, processOptions } from "../support/program.ts";
import { poll } from "../support/processes.ts";
import { type Project, project } from "../support/project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DOCUMENTS = [
  "README.md",
  ...[...Deno.readDirSync(join(ROOT, "docs"))]
    .map(({ name }) => `docs/${name}`).filter((path) => path.endsWith(".md")).sort(),
];

/** The code blocks of a document in these languages. */
function blocks(path: string, languages: string): string[] {
  const text = Deno.readTextFileSync(join(ROOT, path));
  const found = text.matchAll(new RegExp(`^ *\`\`\`(?:${languages})\\n(.*?)^ *\`\`\``, "gms"));
  return [...found].map(([, code = ""]) => code);
}

/** The words of the first command of a line that calls svc; undefined: none does. */
function svcWords(line: string): string[] | undefined {
  const words: string[] =
    line.match(/(?:"(?:\\.|[^"])*"|'[^']*'|[^\s"'|&<>;]|(?<=\S)[<>](?=\S))+|[|&<>;]+/g) ?? [];
  const start = words.findIndex((word, at) =>
    word === "svc" && (at === 0 || /^([|&;]+|\w+=.*)$/.test(words[at - 1]!))
  );
  if (start < 0 || words.slice(0, start).some((word) => word.startsWith("#"))) return undefined;
  const rest = words.slice(start + 1);
  const end = rest.findIndex((word) => /^([|&<>;]+|#.*)$/.test(word));
  return (end < 0 ? rest : rest.slice(0, end)).map((word) => word.replace(/^(["'])(.*)\1$/s, "$2"));
}

Deno.test("every command line of svc in the documents is valid", async () => {
  const io = testIo({ home: "/", cwd: "/" });
  const wrong: string[] = [];
  let checked = 0;
  for (const path of DOCUMENTS) {
    for (const line of blocks(path, "sh|console|yaml").join("\n").split("\n")) {
      const words = svcWords(line.replace(/^\$ /, ""));
      const [name = "", ...args] = words ?? [];
      if (words === undefined || name === "" || /^[-.]/.test(name)) continue;
      checked++;
      const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
      if (entry === undefined) {
        wrong.push(`${path}: ${line}: there is no command ${name}`);
        continue;
      }
      try {
        parseCommand(await entry.load({}), [name, ...args], io);
      } catch (error) {
        wrong.push(`${path}: ${line}: ${(error as Error).message}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(checked > 60, `${checked} command lines`);
});

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
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/g, "TIME")
    .replace(/\b\d[\d.]* ?(ms|µs|s|min|h|d)\b/g, "SPAN")
    .replace(/\bnow\b|\b(in )?SPAN( ago)?/g, "SPAN")
    .replace(/\bprocess \d+/g, "process PID")
    .replace(/^(\w+ +yes +\d+ +)\d+ +/gm, "$1PID ")
    .replace(/ +$/gm, "").replace(/ {2,}/g, "  ");
}

/** `...` in the expected text stands for any text. */
function assertPrinted(actual: string, printed: string): void {
  if (printed === "") return; // the document leaves it out
  const parts = stable(printed).split("...").map((part) =>
    part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  );
  assert.match(stable(actual), new RegExp(`^${parts.join("[^]*")}$`));
}

/** Runs the commands of a transcript in a shell in which `svc` is a command; a last `&` leaves one running. */
async function play(
  work: Project,
  code: string,
  { root = "/srv/site", env = {} }: { root?: string; env?: Record<string, string> } = {},
): Promise<void> {
  const words = commandLine([]).map((word) => `'${word}'`).join(" ");
  await work.write("bin/svc", `#!/bin/sh\nexec ${words} "$@"\n`);
  await Deno.chmod(join(work.path, "bin/svc"), 0o755);
  const PATH = `${join(work.path, "bin")}:/usr/local/bin:/usr/bin:/bin`;
  const start = (script: string) =>
    new Deno.Command("sh", {
      args: ["-c", script],
      ...processOptions({ cwd: work.path, env: { PATH, ...env } }),
      stdin: "null",
      stdout: "piped",
    }).spawn();
  const running: Deno.ChildProcess[] = [];
  try {
    for (const { command, printed } of transcript(code.replaceAll(root, work.path))) {
      if (command.endsWith("&")) {
        const child = start(`exec ${command.slice(0, -1)} 2>&1`);
        running.push(child);
        await seen(child, printed);
        continue;
      }
      const once = async () => {
        const child = start(`(${command}) 2>&1`);
        const text = await new Response(child.stdout).text();
        await child.status;
        return text;
      };
      // A status becomes as shown when what was started is ready.
      if (/ status\b/.test(command)) await poll(once, (text) => isPrinted(text, printed));
      else assertPrinted(await once(), printed);
    }
  } finally {
    for (const child of running) {
      child.kill("SIGTERM");
      await child.stdout.cancel();
      await child.status;
    }
  }
}

function isPrinted(actual: string, printed: string): boolean {
  try {
    assertPrinted(actual, printed);
    return true;
  } catch {
    return false;
  }
}

/** Reads what a program prints until the text has come. */
async function seen(child: Deno.ChildProcess, wanted: string): Promise<void> {
  const decoder = new TextDecoder();
  let text = "";
  const reader = child.stdout.getReader();
  while (!text.includes(wanted)) {
    const { value, done } = await reader.read();
    assert.ok(!done, text);
    text += decoder.decode(value);
  }
  reader.releaseLock();
}

/** A port that is free now. */
function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

const [TURN, JOBS, SERVE, FLEET] = blocks("README.md", "console") as [
  string,
  string,
  string,
  string,
];
const DEMO = { ".svc/config.json": '{"provider": "demo"}' };

Deno.test("README.md: the first turn prints what the document shows", async () => {
  const text =
    "# Site\n\nThe web site of the harbour, and what it needs to be built.\n\nBuild it with make.\nIt goes to build/.\n";
  await using work = await project({ "README.md": text });
  await play(work, TURN);
});

Deno.test("README.md: the job prints what the document shows", async () => {
  await using work = await project({ ...DEMO, "README.md": "a\nb\nc\n" });
  await play(work, JOBS);
});

Deno.test("README.md: the server answers as the document shows", async () => {
  await using work = await project({ ...DEMO, "README.md": "one\nabcd\nabcde\n" });
  await play(work, SERVE.replaceAll("8787", `${freePort()}`));
});

Deno.test("README.md: the fleet prints what the document shows", async () => {
  const [[, settings]] = Object.entries(DEMO) as [[string, string]];
  await using work = await project({
    "docs/.svc/config.json": settings,
    "site/.svc/config.json": settings,
  });
  const port = freePort();
  const options = { root: "/srv/agents", env: { SVC_FLEET_PORT: `${port}-${port + 1}` } };
  try {
    await play(work, FLEET.replace("8780", `${port}`).replace("8781", `${port + 1}`), options);
  } finally {
    await play(work, "$ svc fleet down\n...", options);
  }
});

Deno.test("docs/plugins.md: a new plugin and its test print what the document shows", async () => {
  await using work = await project();
  await play(work, blocks("docs/plugins.md", "console")[0]!);
});
