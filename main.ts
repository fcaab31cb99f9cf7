import { main } from "./src/cli/main.ts";

const code = await main(Deno.args, undefined, {
  repl: async () => (await import("./src/repl/main.ts")).repl,
});
Deno.exit(code);
