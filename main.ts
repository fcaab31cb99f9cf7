import { main } from "./src/cli/main.ts";

const code = await main(Deno.args, undefined, {
  repl: async () => (await import("./src/repl/main.ts")).repl,
  serve: async () => (await import("./src/server/main.ts")).serve,
});
Deno.exit(code);
