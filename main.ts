import { main } from "./src/cli/main.ts";

const { exit } = Deno; // plugins find another function there
const code = await main(Deno.args, undefined, {
  repl: async () => (await import("./src/repl/main.ts")).repl,
  serve: async () => (await import("./src/server/main.ts")).serve,
});
exit(code);
