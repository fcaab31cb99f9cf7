import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import * as plugin from "../src/plugin.ts";
import { corpus } from "./corpus.ts";

Deno.test("edits as models write them, in twelve languages, are applied rightly or refused [4.8]", async () => {
  const tools = pluginTools(plugin);
  const cases = corpus();
  assert.ok(cases.length >= 300, `${cases.length} cases`);
  assert.equal(new Set(cases.map(({ path }) => path)).size, 12);
  const wrong: string[] = [];
  await using work = await project({});
  for (const { name, tool, path, file, args, wanted } of cases) {
    await work.write(path, file);
    const context = toolContext({ worktree: work.path });
    const { output } = await tools.call(
      tool ?? "file_edit",
      tool === undefined ? { path, ...args } : args,
      context,
    );
    const text = new TextDecoder("utf-8", { ignoreBOM: true })
      .decode(await Deno.readFile(`${work.path}/${path}`));
    if (text === (wanted ?? file) && output.startsWith("Error:") === (wanted === undefined)) {
      continue;
    }
    wrong.push(`${name}: ${output}\n${text === file ? "" : text}`);
  }
  assert.deepEqual(wrong, []);
});
