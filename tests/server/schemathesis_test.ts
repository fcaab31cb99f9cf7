import assert from "node:assert/strict";
import { createJob } from "../../src/jobs/create.ts";
import { jobContext } from "../../src/jobs/context.ts";
import { needs } from "../support/needs.ts";
import { project } from "../support/project.ts";
import { server } from "./support.ts";

// Schemathesis (PyPI) sends valid and invalid requests that it derives from the OpenAPI document, and checks each answer
// against the document. CI installs it; elsewhere SVC_SCHEMATHESIS names the program.

const VERSION = "4.32.5";
/** Seconds that its installation may take. */
const PATIENCE = 90;

const program = Deno.env.get("SVC_SCHEMATHESIS") ??
  (Deno.env.get("CI") === "true" ? await installed() : undefined);
const available = needs("schemathesis cannot be had", program !== undefined);

const TOKEN = "t".repeat(32);

/** What exists on the server: the values of the paths' parameters. */
const EXISTING = `
[[operations]]
include-path-regex = "^/asks/"
parameters = { "path.id" = "1" }
[[operations]]
include-path-regex = "^/sessions/"
parameters = { "path.name" = "mine" }
[[operations]]
include-path-regex = "^/sessions/[^/]+/undo"
warnings = false
[[operations]]
include-path-regex = "^/hooks/"
warnings = false
[[operations]]
include-path-regex = "^/jobs/"
parameters = { "path.name" = "nightly" }
`;

Deno.test({
  name: "schemathesis finds no fault without a token [4.1, 7.1]",
  ...available,
  fn: () => fuzz(""),
});

Deno.test({
  name: "schemathesis finds no fault with a token [4.1, 7.1]",
  ...available,
  fn: () => fuzz(TOKEN),
});

/** Runs Schemathesis against a server that has a session, a job and an ask; with a token, it requires that. */
async function fuzz(token: string): Promise<void> {
  await using home = await project({ tokens: `${TOKEN}\n`, "schemathesis.toml": EXISTING });
  Deno.chmodSync(`${home.path}/tokens`, 0o600);
  await using at = await server(undefined, {
    mcp: true,
    files: { ".svc/config.json": "{}" },
    config: {
      "serve.token_file": token && `${home.path}/tokens`,
      "mcp_server.allow_ask": false, // no generated command is run
      prices: { "*": { in: 1, out: 1 } },
    },
  });
  await at.project.write(
    ".svc/config.json",
    JSON.stringify({ base_url: at.backend.url, model: "test", memory_enabled: false }),
  );
  const schedule = { interval: 3600 };
  await createJob(jobContext(at.workspace), { name: "nightly", schedule, prompt: "report" });
  at.workspace.sessions.open("mine").close();
  await at.workspace.asks.park({ question: "Which?", origin: "mine" });

  const { code, stdout } = await new Deno.Command(program!, {
    args: [
      ...["--config-file", `${home.path}/schemathesis.toml`, "run"],
      ...["--seed", "1", "--max-examples", "3", "--continue-on-failure"],
      ...token ? ["--header", `Authorization: Bearer ${token}`] : [],
      `${at.http.url}/openapi.json`,
    ],
    cwd: home.path,
    env: { NO_COLOR: "1" },
    stderr: "inherit",
  }).output();
  const report = new TextDecoder().decode(stdout);
  assert.equal(code, 0, report);
  assert.ok(!/WARNINGS/.test(report), report);
  assert.equal(at.workspace.asks.need(1).status, "answered");
  const { register } = jobContext(at.workspace);
  assert.notEqual(register.history("nightly").length, 0);
}

/** Installs Schemathesis into a temporary environment; undefined where that is not possible. */
async function installed(): Promise<string | undefined> {
  const folder = Deno.makeTempDirSync({ prefix: "svc-schemathesis-" });
  addEventListener("unload", () => Deno.removeSync(folder, { recursive: true }));
  const signal = AbortSignal.timeout(PATIENCE * 1000);
  const ends = async (command: string, ...args: string[]) => {
    const options = { args, signal, stdout: "null", stderr: "null" } as const;
    return (await new Deno.Command(command, options).output()).success;
  };
  try {
    const pip = ["-m", "pip", "install", "--quiet", "--retries", "0", "--timeout", "10"];
    const made = await ends("python3", "-m", "venv", folder) &&
      await ends(`${folder}/bin/python`, ...pip, `schemathesis==${VERSION}`);
    return made ? `${folder}/bin/schemathesis` : undefined;
  } catch {
    return undefined; // there is no Python
  }
}
