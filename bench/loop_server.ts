import { Workspace } from "../src/engine/workspace.ts";
import { processEnvironment } from "../src/platform/environment.ts";
import { startServer } from "../src/server/server.ts";

// The server of a worktree, in a process that also looks how long its event loop is held. Each line on
// standard input is answered with the longest stretch since the one before, and the memory.

const workspace = Workspace.open({
  path: Deno.args[0]!,
  environment: processEnvironment(),
  warn() {},
});
await workspace.load({ tools: "all", providers: "all", roles: "all", skills: "all" });
const server = startServer({ workspace, host: "127.0.0.1", port: 0, insecure: false });

/** Milliseconds that the thread waited for a processor: the machine's doing, not ours. */
function waited(): number {
  const path = `/proc/self/task/${Deno.pid}/schedstat`;
  return Number(Deno.readTextFileSync(path).split(" ")[1]) / 1e6;
}

let longest = 0;
let over = 0;
let [at, then] = [performance.now(), waited()];
setInterval(() => {
  const [now, wait] = [performance.now(), waited()];
  const held = now - at - (wait - then);
  longest = Math.max(longest, held);
  if (held > 10) over++;
  [at, then] = [now, wait];
}, 1);

// deno-lint-ignore no-console
console.log(server.url);
for await (const _ of Deno.stdin.readable) {
  // deno-lint-ignore no-console
  console.log(JSON.stringify({ longest, over, memory: Deno.memoryUsage() }));
  longest = over = 0;
}
await server.stop();
Deno.exit();
