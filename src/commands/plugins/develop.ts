import { join, resolve } from "node:path";
import { SvcError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import { VERSION } from "../../platform/version.ts";
import { readRequirement } from "../../plugins/dependencies.ts";
import { runTests, testFiles } from "../../plugins/own_tests.ts";
import { scaffold } from "../../plugins/scaffold.ts";
import { addToLists } from "./enabled.ts";
import { needPlugin, type PluginsContext, rootOf } from "./find.ts";
import { registered } from "./view.ts";

/** `svc plugins new` */
export async function newPlugin(
  { workspace, io }: PluginsContext,
  { name, global, folder: given }: { name: string; global: boolean; folder?: string },
): Promise<number> {
  const origin = global ? "global" : "local";
  const folder = given === undefined
    ? join(rootOf(origin, workspace).path, name)
    : resolve(io.environment.cwd, given);
  scaffold(folder, name, VERSION);
  io.note(`Wrote the plugin ${name} into ${folder}; begin with src/plugin.ts.`);
  if (given === undefined) {
    await addToLists(workspace, name, origin);
    io.note(`It is enabled. Try it with: svc plugins test ${name}`);
  } else io.note(`Install it with: svc plugins install ${given}`);
  return 0;
}

/** `svc plugins test`: whether plugins load, and what their own tests say. */
export async function testPlugins(
  { workspace, io }: PluginsContext,
  name: string | undefined,
): Promise<number> {
  const review = await workspace.reviewPlugins();
  const { plugins } = review.contributions;
  const chosen = name === undefined
    ? plugins.filter(({ origin, status }) => origin !== "bundled" && status !== "disabled")
    : [needPlugin(plugins, name)];
  if (chosen.length === 0) {
    io.note("There is no plugin to test; begin one with: svc plugins new <name>");
  }
  let code = 0;
  for (const { name, status, reason, path, origin, manifest } of chosen) {
    const brings = Object.entries(registered(review, name))
      .map(([kind, names]) => `${kind} ${names.join(", ")}`).join("; ");
    const said = reason || brings || "registers nothing";
    io.out(stripControl(`${name}: ${status}: ${said}`).replace(/\s+/g, " ") + "\n");
    if (status !== "loaded") code = 1;
    const files = origin === "bundled" || !isFolder(path) ? [] : testFiles(path);
    if (files.length === 0 || status === "incompatible") continue;
    const packages = manifest.requires.map((each) => readRequirement(each).name);
    const interrupt = io.onInterrupt();
    try {
      const ended = await runTests(path, files, packages, interrupt.signal);
      io.out(stripControl(ended.output));
      if (ended.cancelled) throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
      if (ended.code !== 0) code = 1;
    } finally {
      interrupt.release();
    }
  }
  return code;
}

function isFolder(path: string): boolean {
  return Deno.statSync(path).isDirectory;
}
