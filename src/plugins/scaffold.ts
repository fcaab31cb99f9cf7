import { join } from "node:path";
import { pathToFileURL } from "node:url";
import flags from "../../permissions/build.flags" with { type: "text" };
import { usageError } from "../platform/error.ts";
import api from "./api.ts" with { type: "text" };
import type { ProcessResult } from "./api.ts";
import { runDeno } from "./dependencies.ts";
import { parseManifest } from "./manifest.ts";

/** The test modules in a plugin's folder, relative to it. */
export function testFiles(folder: string): string[] {
  const found: string[] = [];
  const walk = (subfolder: string) => {
    for (const { name, isDirectory, isFile } of Deno.readDirSync(join(folder, subfolder))) {
      if (name === "node_modules" || name.startsWith(".")) continue;
      if (isDirectory) walk(join(subfolder, name));
      else if (isFile && /[_.]test\.(ts|js|mjs)$/.test(name)) found.push(join(subfolder, name));
    }
  };
  walk("");
  return found.sort();
}

/** Runs a plugin's test modules with the permissions that the plugin has in the program. */
export function runTests(
  folder: string,
  files: string[],
  packages: string[],
  signal: AbortSignal,
): Promise<ProcessResult> {
  const granted = flags.trim().split("\n");
  const imports = Object.fromEntries(packages.map((name) => [
    name,
    pathToFileURL(join(folder, "node_modules", name, "index.js")).href,
  ]));
  const map = `data:application/json,${encodeURIComponent(JSON.stringify({ imports }))}`;
  return runDeno(
    [
      "test",
      "--quiet",
      ...granted,
      "--no-config",
      "--no-lock",
      `--import-map=${map}`,
      "--",
      ...files,
    ],
    { cwd: folder, timeout: 600, signal, purpose: "running a plugin's tests" },
  );
}

/**
 * Writes a new plugin with a tool, a command, a test and the types of the plugin API into `folder`, which must
 * not exist.
 *
 * @throws SvcError `plugin_name` (exit 2) for an invalid name, `plugin_exists` (exit 2) for an existing folder.
 */
export function scaffold(folder: string, name: string, version: string): void {
  try {
    parseManifest({ name });
  } catch {
    throw usageError(
      "plugin_name",
      `${JSON.stringify(name.slice(0, 80))} cannot be the name of a plugin.`,
      "A name has up to 64 letters, digits, dots, dashes and underscores, and begins with one of the first two.",
    );
  }
  try {
    Deno.mkdirSync(join(folder, ".."), { recursive: true });
    Deno.mkdirSync(folder);
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
    throw usageError(
      "plugin_exists",
      `${folder} is there already.`,
      "Take another name or folder.",
    );
  }
  try {
    for (const [file, text] of Object.entries(files(name, version))) {
      Deno.mkdirSync(join(folder, file, ".."), { recursive: true });
      Deno.writeTextFileSync(join(folder, file), text);
    }
  } catch (error) {
    Deno.removeSync(folder, { recursive: true }); // a partial plugin would block the next attempt
    throw error;
  }
}

function files(name: string, version: string): Record<string, string> {
  const tool = `${name.replace(/\W/g, "_").toLowerCase()}_words`;
  const slash = `${name.replace(/[^A-Za-z0-9]+/g, "-").toLowerCase()}-hello`.replace(
    /^[^a-z]+/,
    "",
  );
  const manifest = {
    name,
    version: "0.1.0",
    description: "Counts the words of files.",
    polyglav_version: `>=${version}`,
    entry: "src/plugin.ts",
    requires: [],
    provides: { tools: [tool], commands: [slash] },
  };
  return {
    "manifest.json": JSON.stringify(manifest, null, 2) + "\n",
    "src/plugin.ts": MODULE.replaceAll("TOOL", tool).replaceAll("SLASH", slash),
    "tests/plugin_test.ts": TEST.replaceAll("TOOL", tool),
    "types/svc.d.ts": api,
    ".gitignore": "node_modules/\n",
  };
}

const MODULE = `import type { CommandRegistrar, ToolRegistrar } from "../types/svc.d.ts";

/** Tools that the model can call. */
export function register_tools(registry: ToolRegistrar): void {
  registry.register({
    name: "TOOL",
    description: "Count the words of a text file.",
    parameters: {
      type: "object",
      properties: { path: { type: "string", description: "The file." } },
      required: ["path"],
    },
    permission: "read", // the category that the policy decides by
    path_arg: "path", // a path outside the worktree needs an approval
    async handler({ path }, { paths }) {
      using file = await paths.open(path, { read: true });
      const text = await new Response(file.readable).text();
      return \`\${countWords(text)} words\`;
    },
  });
}

/** Slash commands of the terminal session: /SLASH */
export function register_commands(commands: CommandRegistrar): void {
  commands.register({
    name: "SLASH",
    description: "say hello",
    run: (args, { worktree }) => \`Hello \${args || "there"}, in \${worktree}.\`,
  });
}

export function countWords(text: string): number {
  return text.split(/\\s+/).filter((word) => word !== "").length;
}
`;

const TEST = `import assert from "node:assert/strict";
import { countWords, register_tools } from "../src/plugin.ts";
import type { ToolDefinition } from "../types/svc.d.ts";

Deno.test("words are counted across any white space", () => {
  assert.equal(countWords("one two\\n\\n  three\\t"), 3);
  assert.equal(countWords(""), 0);
});

Deno.test("the tool TOOL is registered in the category read", () => {
  const tools: ToolDefinition[] = [];
  register_tools({
    register: (tool) => void tools.push(tool),
    source: () => assert.fail("this plugin has no source of tools"),
  });
  assert.deepEqual(tools.map(({ name, permission }) => [name, permission]), [["TOOL", "read"]]);
});
`;
