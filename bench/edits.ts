/**
 * The edits of the corpus of svc-core-edit, made by the edit tools of svc, pi and opencode. Prints a table:
 *
 *     deno run --allow-all bench/edits.ts
 *
 * pi's tool is called directly, in Node. opencode is one executable, so it makes the edits as calls of a scripted turn.
 */
import { type Case, corpus } from "../plugins/svc-core-edit/tests/corpus.ts";
import * as plugin from "../plugins/svc-core-edit/src/plugin.ts";
import { startBackend } from "../tests/support/backend.ts";
import { pluginTools } from "../tests/support/tool.ts";
import { toolContext } from "../tests/support/tool_context.ts";
import { opencode, PEERS } from "./contestants.ts";
import { installPeers, MODULES } from "./peers.ts";
import versions from "./peers.json" with { type: "json" };

/** Edits of one place, which all three tools have a form for. */
const CASES = corpus().filter(({ tool, args }) =>
  tool === undefined && args.count === undefined && args.edits === undefined
);

/** Makes the edits of the files `<folder>/<number of the case>/<path>`. */
type Editor = (folder: string) => Promise<void>;

const edited = ({ args }: Case) => args as { old: string; new: string };
const fileOf = (folder: string, i: number) => `${folder}/${i}/${CASES[i]!.path}`;

const svc: Editor = async (folder) => {
  const tools = pluginTools(plugin);
  const context = toolContext({ worktree: folder });
  for (const [i, each] of CASES.entries()) {
    await tools.call("file_edit", { path: fileOf(folder, i), ...edited(each) }, context);
  }
};

const pi: Editor = async (folder) => {
  const edits = CASES.map((each, i) => ({
    path: fileOf(folder, i),
    edits: [{ oldText: edited(each).old, newText: edited(each).new }],
  }));
  await Deno.writeTextFile(`${folder}/edits.json`, JSON.stringify(edits));
  const script = `
    import { readFileSync } from "node:fs";
    import { createEditTool } from "${MODULES}/${PEERS.pi}/dist/core/tools/edit.js";
    const tool = createEditTool("${folder}");
    for (const edit of JSON.parse(readFileSync("${folder}/edits.json", "utf8"))) {
      await tool.execute("call", edit).catch(() => {}); // a refusal
    }`;
  const args = ["--input-type=module", "--eval", script];
  const { success } = await new Deno.Command(`${MODULES}/${PEERS.node}/bin/node`, { args })
    .output();
  if (!success) throw new Error("pi's tool cannot be called");
};

const inOpencode: Editor = async (folder) => {
  const calls = (name: string, args: (each: Case, i: number) => Record<string, unknown>) => ({
    tool_calls: CASES.map((each, i) => ({
      name,
      arguments: { filePath: fileOf(folder, i), ...args(each, i) },
    })),
  });
  const contestant = opencode(MODULES, versions[PEERS.opencode]);
  await using backend = startBackend({
    replies: [
      calls("read", () => ({})),
      calls("edit", (each) => ({ oldString: edited(each).old, newString: edited(each).new })),
      { text: "Done." },
    ],
    default: contestant.aside,
  });
  const home = await Deno.makeTempDir();
  const place = { home, worktree: folder };
  const { command, cwd, env } = await contestant.turn(backend.url, "Edit.", place);
  const options = { args: command.slice(1), cwd, env, clearEnv: true, stdin: "null" } as const;
  const { success, stderr } = await new Deno.Command(command[0]!, options).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr).slice(-500));
  await Deno.remove(home, { recursive: true });
};

/** Has an editor make all edits, and counts what became of the files. */
async function judge(edit: Editor): Promise<number[]> {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  for (const [i, { path, file }] of CASES.entries()) {
    await Deno.mkdir(`${folder}/${i}`);
    await Deno.writeTextFile(`${folder}/${i}/${path}`, file);
  }
  await edit(folder);
  const counts = { applied: 0, refused: 0, missed: 0, wrong: 0 };
  for (const [i, { file, wanted }] of CASES.entries()) {
    const bytes = await Deno.readFile(fileOf(folder, i));
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    if (text === file) counts[wanted === undefined ? "refused" : "missed"]++;
    else counts[text === wanted ? "applied" : "wrong"]++;
  }
  await Deno.remove(folder, { recursive: true });
  return Object.values(counts);
}

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) {
  await installPeers();
  say(
    `${CASES.length} edits, of which ${
      CASES.filter(({ wanted }) => wanted !== undefined).length
    } are certain\n`,
  );
  say("| tool | applied rightly | refused rightly | refused though certain | wrong |");
  say("| --- | --- | --- | --- | --- |");
  const editors = {
    "svc `file_edit`": svc,
    [`pi ${versions[PEERS.pi]} \`edit\``]: pi,
    [`opencode ${versions[PEERS.opencode]} \`edit\``]: inOpencode,
  };
  for (const [name, editor] of Object.entries(editors)) {
    say(`| ${[name, ...await judge(editor)].join(" | ")} |`);
  }
}
