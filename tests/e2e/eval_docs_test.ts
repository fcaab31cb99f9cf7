import assert from "node:assert/strict";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const PAGE = Deno.readTextFileSync(new URL("../../docs/eval.md", import.meta.url));

Deno.test("the fixture of docs/eval.md runs with the printed output", async () => {
  const [, fixture] = /```json\n(.*?)```/s.exec(PAGE)!;
  const [, command, printed] = /```console\n\$ svc (.*?)\n(.*?)```/s.exec(PAGE)!;
  await using work = await project({ ".svc/eval/hours.json": fixture! });
  const { code, stdout, stderr } = await svc(command!.split(" "), { cwd: work.path });
  assert.deepEqual([code, stderr], [0, ""]);
  const tokens = /\d+(?=\n1 of)/; // they depend on the length of the temporary folder's name
  assert.equal(stdout.replace(tokens, "N"), printed!.replace(tokens, "N"));
});
