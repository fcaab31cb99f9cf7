/**
 * Joins the chunks of a bundle that are loaded together, since each file of a program takes Deno 0.2 ms of
 * its start. `deno bundle` makes a chunk for each set of dynamic imports that share a module: 80 of them for
 * one turn. Here the modules are sorted by the starts below instead, and those of the same starts are one
 * file. All other chunks stay as they are. It fails when a start loads Deno's Node layer, which takes 7 ms and
 * 8 MB.
 *
 * Arguments: the folder of the bundle, with source maps; the folder to write.
 */
import { rollup } from "rollup";

/** What a person waits for, and the sources that are loaded for it, with all that they import. */
const STARTS: Record<string, RegExp> = {
  turn:
    /\/src\/(cli\/(run|stdin)|commands\/command|catalog\/catalog)\.ts$|\/svc-core-(?!demo|eval|lsp)\w+\/src\/plugin\.ts$/,
  prompt: /\/src\/repl\/(main|terminal_session)\.ts$/,
  sessions: /\/src\/commands\/sessions\.ts$/,
};

const [from, to] = Deno.args as [string, string];
const main = `${from}/main.js`;
/** The names of the starts of each chunk, by its path. */
const starts = new Map<string, string>();

const bundle = await rollup({
  input: main,
  external: /^node:/,
  treeshake: false,
  plugins: [{
    name: "starts",
    transform: (code) =>
      code
        // Deno's Node layer is loaded with the first CommonJS module, and not with each start.
        .replace(
          /import\{createRequire as (\w+)\} from "node:module";/,
          'const $1=url=>id=>process.getBuiltinModule("node:module").createRequire(url)(id);',
        )
        // One character outside ASCII has V8 keep two bytes of each character of its file. The bundler leaves those
        // of patterns alone, which read the escape as the character, also out of a `String.raw`.
        .replace(
          /[\u0080-\uffff]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
        ),
    buildEnd() {
      const paths = [...this.getModuleIds()].filter((path) => path.endsWith(".js"));
      const mark = (name: string, path: string) => {
        const names = starts.get(path) ?? "";
        if (names.includes(name)) return;
        if (/^node:(?!path$|url$)/.test(path)) {
          this.error(`${name} loads ${path}: import it when used`);
        }
        starts.set(path, `${names}_${name}`);
        this.getModuleInfo(path)?.importedIds.forEach((imported) => mark(name, imported));
      };
      mark("main", main);
      for (const [name, pattern] of Object.entries(STARTS)) {
        for (const path of paths) {
          const { sources } = JSON.parse(Deno.readTextFileSync(`${path}.map`));
          if (sources.some((source: string) => pattern.test(source))) mark(name, path);
        }
      }
    },
  }],
});
await bundle.write({
  dir: to,
  compact: true,
  hoistTransitiveImports: false,
  chunkFileNames: "[name].js",
  // The entry stays alone: while it runs the program, nothing that it loads can import it.
  manualChunks: (path) => path === main ? undefined : starts.get(path)?.slice(1),
});
