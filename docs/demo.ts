// deno-lint-ignore-file no-console
/**
 * `deno task demo`: one real headless turn in a scratch project, on the built-in demo model. No key, and
 * no network beyond the loopback.
 *
 * @module
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const svc = fileURLToPath(new URL("../main.ts", import.meta.url));
const scratch = await Deno.makeTempDir({ prefix: "svc-demo-" });
await Deno.writeTextFile(
  join(scratch, "README.md"),
  "# Tide tables\n\nHigh water at the old harbour, day by day.\n\n- data/ holds a file per month\n- times are local\n",
);
const prompt = "how many lines does README.md have?";

console.log(`A scratch project: ${scratch}\n`);
console.log(`$ svc run --provider demo --output text --verbose -p "${prompt}"`);
const { code } = await new Deno.Command(Deno.execPath(), {
  args: [
    "run",
    "--no-prompt",
    "--allow-read",
    `--allow-write=${scratch}`,
    "--allow-net=127.0.0.1",
    "--allow-run",
    "--allow-env=HOME,NO_COLOR",
    svc,
    ...["run", "--provider", "demo", "--output", "text", "--verbose", "-p", prompt],
  ],
  cwd: scratch,
  stdin: "null",
}).spawn().status;
if (code !== 0) Deno.exit(code);

const sessions = join(scratch, ".svc", "sessions");
const [log] = [...Deno.readDirSync(sessions)].map((entry) => entry.name)
  .filter((name) => name.endsWith(".json"));
console.log(`
The whole turn, tool call and permission decision included, is in its session log:
  ${join(sessions, log!)}

Type next, here in the clone:
  npx -y deno@${Deno.version.deno} task svc run --provider demo -p "list the files"
  npx -y deno@${Deno.version.deno} task svc --help
`);
