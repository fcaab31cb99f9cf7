import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { COMMANDS } from "../../src/cli/main.ts";
import { parseCommand } from "../../src/commands/command.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import { respond } from "../../plugins/svc-core-demo/src/rules.ts";
import { testIo } from "../support/io.ts";
import { blocks, freePort, play, projectShell } from "../support/documents.ts";
import { type Project, project } from "../support/project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DOCUMENTS = [
  "README.md",
  ...[...Deno.readDirSync(join(ROOT, "docs"))]
    .map(({ name }) => `docs/${name}`).filter((path) => path.endsWith(".md")).sort(),
];

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
      // `svc 0.2.0 · ...` is the banner of a session.
      if (words === undefined || name === "" || /^[-.\d]/.test(name)) continue;
      checked++;
      const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
      if (entry === undefined) {
        wrong.push(`${path}: ${line}: there is no command ${name}`);
        continue;
      }
      try {
        await parseCommand(await entry.load({}), [name, ...args], io);
      } catch (error) {
        wrong.push(`${path}: ${line}: ${(error as Error).message}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(checked > 60, `${checked} command lines`);
});

const [TURN, JOBS, SERVE, FLEET] = blocks("README.md", "console") as [
  string,
  string,
  string,
  string,
];
const DEMO = { ".svc/config.json": '{"provider": "demo"}' };

/** Plays a transcript in a project, which the document calls /srv/site. */
async function playIn(work: Project, code: string): Promise<void> {
  await play(await projectShell(work), code.replaceAll("/srv/site", work.path));
}

Deno.test("README.md: the first turn prints what the document shows", async () => {
  const text =
    "# Site\n\nThe web site of the harbour, and what it needs to be built.\n\nBuild it with make.\nIt goes to build/.\n";
  await using work = await project({ "README.md": text });
  await playIn(work, TURN);
});

Deno.test("README.md: the job prints what the document shows", async () => {
  await using work = await project({ ...DEMO, "README.md": "a\nb\nc\n" });
  await playIn(work, JOBS);
});

Deno.test("README.md: the server answers as the document shows", async () => {
  await using work = await project({ ...DEMO, "README.md": "one\nabcd\nabcde\n" });
  await playIn(work, SERVE.replaceAll("8787", `${freePort()}`));
});

Deno.test("README.md: the fleet prints what the document shows", async () => {
  const [[, settings]] = Object.entries(DEMO) as [[string, string]];
  await using work = await project({
    "docs/.svc/config.json": settings,
    "site/.svc/config.json": settings,
  });
  const port = freePort();
  const sh = await projectShell(work, { SVC_FLEET_PORT: `${port}-${port + 1}` });
  const code = FLEET.replaceAll("/srv/agents", work.path)
    .replace("8780", `${port}`).replace("8781", `${port + 1}`);
  try {
    await play(sh, code);
  } finally {
    await play(sh, "$ svc fleet down\n...");
  }
});

Deno.test("docs/plugins.md: a new plugin and its test print what the document shows", async () => {
  await using work = await project();
  await playIn(work, blocks("docs/plugins.md", "console")[0]!);
});

Deno.test("docs/demo-model.md names every tool, and the one that each request of its table calls", async () => {
  const page = Deno.readTextFileSync(join(ROOT, "docs/demo-model.md"));
  await using work = await project();
  const environment = { home: work.path, cwd: work.path, get: () => undefined };
  const workspace = Workspace.open({ path: work.path, environment, warn() {} });
  await workspace.load({ tools: "all" });
  const tools = workspace.tools.schema(() => true);
  await workspace.close();
  const names = tools.map((tool) => tool.function.name).filter((name) => !name.startsWith("mcp_"));
  const [, listed] = /`tool_calls` name tools of svc: ([^]*?), those of plugins/.exec(page)!;
  assert.deepEqual([...listed!.matchAll(/`(\w+)`/g)].map(([, name]) => name).sort(), names.sort());
  const rows = [...page.matchAll(/^\| (.*?) +\| `(\w+)` +\|$/gm)];
  assert.ok(rows.length > 5);
  for (const [, requests, tool] of rows) {
    for (const content of requests!.replaceAll("\\", "").split(" · ")) {
      const { calls } = respond([{ role: "user", content }], tools);
      assert.equal(calls[0]?.name, tool, content);
    }
  }
});
