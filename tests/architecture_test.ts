import assert from "node:assert/strict";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { COMMAND_VARIABLES } from "../src/platform/sandbox.ts";
import { buildFlags } from "./support/flags.ts";

const ROOT = dirname(fileURLToPath(new URL(".", import.meta.url)));
const MODULES = modules();
const FILES = [
  "main.ts",
  ...walk("src"),
  ...walk("plugins").filter((file) => !file.includes("/tests/")),
];

interface SourceModule {
  name: string;
  front: boolean;
}

interface Import {
  from: string;
  /** A path of the repository, or the specifier as it is resolved. */
  to: string;
  typeOnly: boolean;
  /** Loaded when the code that imports it runs. */
  dynamic: boolean;
}

Deno.test("docs/architecture.md lists the modules of src", () => {
  const folders = [...Deno.readDirSync(join(ROOT, "src"))].map(({ name }) => name).sort();
  assert.deepEqual(MODULES.map(({ name }) => name).sort(), folders);
  assert.ok(MODULES.some(({ front }) => front), "the table names the front ends");
});

Deno.test("docs/architecture.md names a file and a symbol for each topic", () => {
  const row = /^\| ([^|]+?) +\| `([\w/.-]+\.ts)` +\| `([^`]+)` +\|$/gm;
  const topics = [...read("docs/architecture.md").matchAll(row)];
  assert.ok(topics.length >= 20, `only ${topics.length} topics are listed`);
  for (const [, topic, file, symbol] of topics) {
    assert.ok(read(file!).includes(symbol!), `${topic}: ${file} does not contain ${symbol}`);
  }
});

Deno.test("imports point down the table of modules, and front ends do not import each other", async () => {
  const wrong = (await imports()).filter(({ from, to, typeOnly }) => {
    if (typeOnly && to === "src/plugins/api.ts") return false;
    const [importer, imported] = [moduleOf(from), moduleOf(to)];
    if (importer === undefined || imported === undefined || importer === imported) return false;
    if (MODULES[importer]!.front && MODULES[imported]!.front) return true;
    return imported < importer;
  });
  assert.deepEqual(wrong.map(show), []);
});

Deno.test("main.ts imports the entry points of front ends and the Landlock helper", async () => {
  const own = (await imports()).filter(({ from }) => from === "main.ts").map(({ to }) => to);
  const helper = "src/platform/landlock.ts";
  assert.deepEqual(own, [
    "src/cli/main.ts",
    helper,
    "src/repl/main.ts",
    "src/server/main.ts",
    "src/acp/main.ts",
  ]);
});

Deno.test("a plugin imports its own files, packages, and the types of the plugin API", async () => {
  const wrong = (await imports()).filter(({ from, to, typeOnly }) => {
    const plugin = /^plugins\/[^/]+\//.exec(from)?.[0];
    if (plugin === undefined || to.startsWith(plugin) || /^(npm|node):/.test(to)) return false;
    return to !== "src/plugins/api.ts" || !typeOnly;
  });
  assert.deepEqual(wrong.map(show), []);
});

Deno.test("only the table of bundled plugins imports plugins", async () => {
  const importers = (await imports())
    .filter(({ from, to }) => to.startsWith("plugins/") && !from.startsWith("plugins/"))
    .map(({ from }) => from);
  assert.deepEqual([...new Set(importers)], ["src/plugins/bundled.ts"]);
});

Deno.test("code comes from this repository, npm and Deno alone, and not from Node's process modules", async () => {
  const wrong = (await imports()).filter(({ to }) =>
    /^(jsr|https?):/.test(to) || /^node:(process|fs|child_process)\b/.test(to) ||
    /^(tests|bench|docs)\//.test(to)
  );
  assert.deepEqual(wrong.map(show), []);
});

Deno.test("the process's directory and environment are read in platform and front ends only", () => {
  assert.deepEqual(using(/\bDeno\.(cwd|env|chdir)\b/, (file) => !inFrontEnd(file, "platform")), []);
});

Deno.test("only front ends print, and only they and main.ts end the process", () => {
  // The helper is a program of its own.
  const programs = ["main.ts", "src/platform/landlock.ts"];
  const inside = (file: string) => !inFrontEnd(file) && !programs.includes(file);
  assert.deepEqual(using(/\bconsole\.|\bDeno\.std(out|err)\b/, inside), []);
  const exits = using(/\bDeno\.exit\b/, inside);
  assert.deepEqual(exits, []);
});

Deno.test("every pin of the Deno version is the one of .deno-version", () => {
  const version = read(".deno-version").trim();
  assert.match(version, /^\d+\.\d+\.\d+$/);
  const pinning = ["README.md", ...walk("docs"), "deno.json", "compile.sh", ".ci/run"];
  for (const file of pinning) {
    for (const [pin] of read(file).matchAll(/deno@\d[\w.-]*/g)) {
      assert.equal(pin.replace(/\.$/, ""), `deno@${version}`, file);
    }
  }
  assert.match(read("README.md"), /deno@\d/);
});

Deno.test("packages have exact versions, and the lock file is frozen [1]", () => {
  const { imports, lock } = JSON.parse(read("deno.json"));
  for (const specifier of Object.values(imports)) {
    assert.match(specifier as string, /^npm:(@[\w-]+\/)?[\w.-]+@\d+\.\d+\.\d+(-[\w.]+)?$/);
  }
  assert.equal(lock.frozen, true);
});

Deno.test("nothing is started with every permission", () => {
  for (const file of ["deno.json", "compile.sh", ".ci/run", "README.md", ...walk("docs")]) {
    assert.doesNotMatch(read(file), /deno (run|test|compile|task)[^\n]* (-A|--allow-all)\b/, file);
  }
});

Deno.test("the profiles grant what they say", () => {
  const [build, plan, sandboxed] = [
    buildFlags("build"),
    buildFlags("plan"),
    buildFlags("sandboxed"),
  ];
  assert.deepEqual(
    sandboxed,
    build.map((flag) => flag === "--allow-run" ? "--allow-run=bwrap" : flag),
  );
  for (const flags of [build, plan, sandboxed]) {
    assert.ok(flags.includes("--no-prompt"));
    assert.ok(!flags.includes("--allow-env"), "variables are named one by one");
  }
  assert.ok(plan.includes("--allow-write=.svc"));
  assert.ok(!plan.some((flag) => flag.startsWith("--allow-run")));
});

Deno.test("the environment variables that are read are the ones that may be", () => {
  const wanted = FILES.flatMap((file) =>
    [...code(file).matchAll(/(?:environment|env)\.get\("(\w+)"\)|\bread\("([A-Z_]+)"\)/g)]
      .map(([, one, other]) => one ?? other)
  );
  for (const profile of ["build", "plan"] as const) {
    const flag = buildFlags(profile).find((flag) => flag.startsWith("--allow-env="))!;
    const granted = flag.slice("--allow-env=".length).split(",").sort();
    // "PG*": the client of PostgreSQL reads its own.
    const all = [...new Set([...wanted, ...COMMAND_VARIABLES, "PG*"])];
    assert.deepEqual(
      granted,
      all.filter((name) => !name?.startsWith("PGPASSWORD")).sort(),
      profile,
    );
  }
});

/** What files load before anything runs, themselves among them. */
async function loadedBy(files: string[]): Promise<Set<string>> {
  const loads = Map.groupBy(
    (await imports()).filter(({ typeOnly, dynamic }) => !typeOnly && !dynamic),
    ({ from }) => from,
  );
  const loaded = new Set(files);
  for (const file of loaded) for (const { to } of loads.get(file) ?? []) loaded.add(to);
  return loaded;
}

Deno.test("what a turn loads has nothing that its settings, its tools or its worktree do not ask for", async () => {
  const plugins = FILES.filter((file) => /^plugins\/[^/]+\/src\/plugin\.ts$/.test(file));
  const loaded = await loadedBy(["src/cli/run.ts", "src/engine/call.ts", ...plugins]);
  assert.ok(loaded.has("src/engine/turn.ts") && loaded.has("src/providers/chat_completions.ts"));
  const asked = [
    ...["src/acp/", "src/catalog/", "src/mcp/", "src/repl/", "src/server/", "src/store/store.ts"],
    ...["src/engine/checker.ts", "src/engine/compaction.ts", "src/engine/hooks.ts"],
    ...["src/engine/written_calls.ts", "src/providers/text_tools.ts"],
    ...["plugins/svc-core-anthropic/src/messages.ts", "plugins/svc-core-openai/src/responses.ts"],
    ...["plugins/svc-core-edit/src/patch.ts"],
  ];
  for (const path of asked) {
    assert.ok(FILES.some((file) => file.startsWith(path)), `${path} is there`);
    assert.deepEqual([...loaded].filter((file) => file.startsWith(path)), []);
  }
  const packages = [...loaded].filter((name) => name.startsWith("npm:"));
  const own = /^npm:\/?(zod|jsonc-parser|eventsource-parser|get-east-asian-width)@/;
  assert.deepEqual(packages.filter((name) => !own.test(name)), []);
});

Deno.test("the client of PostgreSQL is loaded by a store alone", async () => {
  const loads = Map.groupBy(
    (await imports()).filter(({ typeOnly, dynamic }) => !typeOnly && !dynamic),
    ({ from }) => from,
  );
  const loaded = await loadedBy(FILES.filter((file) => !file.startsWith("src/store/")));
  assert.ok(loaded.has("src/store/link.ts"));
  assert.deepEqual([...loaded].filter((name) => /^npm:\/?pg\b|^src\/store\/store/.test(name)), []);
  const of = (file: string) => loads.get(file)!.map(({ to }) => to);
  assert.ok(of("src/store/postgres.ts").some((name) => /^npm:\/?pg@/.test(name)));
});

/** The rows of the table of modules, in its order. */
function modules(): SourceModule[] {
  return [...read("docs/architecture.md").matchAll(/^\| `src\/(\w+)\/` *\| (.*) \|$/gm)]
    .map(([, name, holds]) => ({ name: name!, front: holds!.startsWith("front end") }));
}

/** The position of a file's module in the table, or undefined. */
function moduleOf(file: string): number | undefined {
  const index = MODULES.findIndex(({ name }) => file.startsWith(`src/${name}/`));
  return index < 0 ? undefined : index;
}

function inFrontEnd(file: string, ...others: string[]): boolean {
  const index = moduleOf(file);
  return index !== undefined && (MODULES[index]!.front || others.includes(MODULES[index]!.name));
}

let graph: Promise<Import[]> | undefined;

/** Every import of every file, as Deno resolves it. */
function imports(): Promise<Import[]> {
  return graph ??= readGraph();
}

async function readGraph(): Promise<Import[]> {
  const folder = await Deno.makeTempDir();
  try {
    // The graph of one module that imports them all: files that nothing imports yet count too.
    const all = join(folder, "all.ts");
    const lines = FILES.map((file) => `import ${JSON.stringify(`file://${join(ROOT, file)}`)};`);
    await Deno.writeTextFile(all, lines.join("\n"));
    const { stdout, stderr, success } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", "--config", join(ROOT, "deno.json"), all],
    }).output();
    assert.ok(success, new TextDecoder().decode(stderr));
    const modules: Module[] = JSON.parse(new TextDecoder().decode(stdout)).modules;
    const ours = modules.filter(({ specifier }) => FILES.includes(path(specifier)));
    assert.equal(ours.length, FILES.length, "the graph holds every file");
    return ours.flatMap(({ specifier, dependencies = [] }) =>
      dependencies.map((one) => edge(specifier, one))
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

interface Module {
  specifier: string;
  dependencies?: Dependency[];
}

interface Dependency {
  specifier: string;
  code?: { specifier?: string };
  type?: { specifier?: string };
  isDynamic?: boolean;
}

function edge(from: string, { specifier, code, type, isDynamic = false }: Dependency): Import {
  const to = code?.specifier ?? type?.specifier ?? specifier;
  return { from: path(from), to: path(to), typeOnly: code === undefined, dynamic: isDynamic };
}

/** A file of the repository by its path in it; anything else as it is. */
function path(specifier: string): string {
  return specifier.startsWith("file://") ? relative(ROOT, fileURLToPath(specifier)) : specifier;
}

function show({ from, to }: Import): string {
  return `${from} imports ${to}`;
}

/** The files whose code matches, comments left out. */
function using(pattern: RegExp, among: (file: string) => boolean): string[] {
  return FILES.filter((file) => among(file) && pattern.test(code(file)));
}

function code(file: string): string {
  return read(file).replace(/\/\*[^]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "");
}

function read(file: string): string {
  return Deno.readTextFileSync(join(ROOT, file));
}

function walk(folder: string): string[] {
  return [...Deno.readDirSync(join(ROOT, folder))].flatMap(({ name, isDirectory }) => {
    const file = `${folder}/${name}`;
    return isDirectory ? walk(file) : /\.(tsx?|md)$/.test(name) ? [file] : [];
  }).sort();
}
