import assert from "node:assert/strict";
import { jobContext } from "../../src/jobs/context.ts";
import { createJob } from "../../src/jobs/create.ts";
import { moveGate } from "../../src/jobs/transitions.ts";
import { HookSecrets } from "../../src/server/hooks.ts";
import { needs } from "../support/needs.ts";
import { until } from "../support/processes.ts";
import { server } from "./support.ts";

const present = ["curl", "openssl", "bash"].every((program) => {
  try {
    return new Deno.Command(program, { args: ["--help"], stdout: "null", stderr: "null" })
      .outputSync() !== undefined;
  } catch {
    return false;
  }
});

/** The shell examples of a section of docs/http-api.md. */
async function examples(heading: string): Promise<string[]> {
  const text = await Deno.readTextFile(new URL("../../docs/http-api.md", import.meta.url));
  const [, section = ""] = new RegExp(`\n## ${heading}\n(.*?)\n## `, "s").exec(text) ?? [];
  return Array.from(section.matchAll(/```sh\n(.*?)```/gs), ([, code]) => code!);
}

async function shell(code: string, url: string, env: Record<string, string> = {}): Promise<string> {
  const quiet = 'curl() { command curl -sS "$@"; echo; }\nsvc() { echo "$HOOK_SECRET"; }\n';
  const script = quiet + code.replaceAll("localhost:8787", url);
  const { stdout, stderr, success } = await new Deno.Command("bash", {
    args: ["-e", "-c", script],
    env,
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test({
  name: "the examples of docs/http-api.md about runs and hooks work",
  ...needs("curl or openssl is not here", present),
  async fn() {
    await using at = await server(undefined, { files: { ".svc/config.json": "{}" } });
    const config = { base_url: at.backend.url, model: "test", memory_enabled: false };
    await at.project.write(".svc/config.json", JSON.stringify(config));
    const context = jobContext(at.workspace);
    await createJob(context, { name: "nightly", schedule: { interval: 3600 }, prompt: "look" });
    await moveGate(context, "nightly", "approve");
    const url = `127.0.0.1:${at.http.port}`;

    const [accept, message] = await examples("Runs that continue without a client");
    const shown = await shell(accept!, url);
    assert.match(shown, /^\{"id":"run_[^"]+","state":"(queued|running|done)"/);
    assert.match(shown, /^id: 1\.0\nevent: turn_started\n/m);
    assert.match(shown, /^id: over\nevent: result\ndata: \{.*"content":"done".*"session":"mine"/m);
    assert.match(shown, /^\{"runs":\[/m);
    assert.match(
      await shell(message!, url),
      /"(messages":\["leave the drafts alone"|error":"the run has ended)/,
    );

    const [hook] = await examples("Hooks");
    const HOOK_SECRET = await new HookSecrets(at.workspace).make("nightly");
    const { id } = JSON.parse(await shell(hook!, url, { HOOK_SECRET }));
    await until(async () => (await at.get(`/runs/${id}`)).body.state === "done");
  },
});
