/** `<folder> <source>`: installs a plugin into `local` of the folder; an error is printed as JSON. */
import { installPlugin } from "../../src/plugins/install.ts";
import { readSource } from "../../src/plugins/source.ts";

const [path, source] = Deno.args as [string, string];
try {
  await installPlugin({
    source: readSource(source, path, path),
    root: { origin: "local", path: `${path}/local`, within: path },
    version: "1.4.0",
    deps: false,
    signal: new AbortController().signal,
  });
} catch (error) {
  const { code, message } = error as { code: string; message: string };
  Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify({ code, message })));
}
