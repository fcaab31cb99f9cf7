import { main } from "./src/cli/main.ts";

// Only a native executable has ffi, for the Landlock helper that it starts itself as.
if (Deno.build.standalone) {
  if (Deno.args[0] === "--landlock") {
    (await import("./src/platform/landlock.ts")).landlock(Deno.args.slice(1));
    Deno.exit(0);
  }
  Deno.permissions.revokeSync({ name: "ffi" });
}
const code = await main(Deno.args, undefined, {
  repl: async () => (await import("./src/repl/main.ts")).repl,
  serve: async () => (await import("./src/server/main.ts")).serve,
  acp: async () => (await import("./src/acp/main.ts")).acp,
});
Deno.exit(code);
