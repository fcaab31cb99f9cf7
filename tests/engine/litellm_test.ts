import assert from "node:assert/strict";
import { startWire } from "../../bench/wires.ts";
import { exists } from "../../src/platform/files.ts";
import { agent } from "../support/agent.ts";
import { call, type Reply, say, startBackend, think } from "../support/backend.ts";
import { needs } from "../support/needs.ts";
import { poll } from "../support/processes.ts";

// The LiteLLM proxy (PyPI, `litellm[proxy]`) is a server of both protocols that is not of this project. SVC_LITELLM names
// the program where it is not on the PATH.

const LITELLM = Deno.env.get("SVC_LITELLM") ??
  (Deno.env.get("PATH") ?? "").split(":").map((folder) => `${folder}/litellm`).find(exists);
const KEY = "sk-of-the-test-0123456789abcdef";

/** One turn: thinking, a call, an answer. */
const script = (usage: Record<string, unknown>): { replies: Reply[]; loop: true } => ({
  loop: true,
  replies: [
    { ...say(["It is ", "alpha."]), when: { tool_result: "alpha" }, usage },
    think(["I ", "look."], { ...call("file_read", { path: "a.txt" }), usage }),
  ],
});

Deno.test({
  name: "both protocols work through the LiteLLM proxy, also where it translates them [4.10]",
  ...needs("the LiteLLM proxy is not installed", LITELLM !== undefined),
  async fn() {
    const claude = startWire(
      "messages",
      script({ input_tokens: 100, cache_read_input_tokens: 900 }),
    );
    const usage = { input_tokens: 1000, input_tokens_details: { cached_tokens: 900 } };
    const gpt = startWire("responses", script(usage));
    await using chat = startBackend(script({ prompt_tokens: 1000, completion_tokens: 10 }));
    const folder = await Deno.makeTempDir();
    const port = freePort();
    const model = (model_name: string, model: string, api_base: string) => (
      { model_name, litellm_params: { model, api_base, api_key: "k" } }
    );
    const config = {
      model_list: [
        model("claude", "anthropic/claude-sonnet-4-20250514", claude.url),
        model("gpt", "openai/gpt-5-mini", `${gpt.url}/v1`),
        model("chat", "together_ai/demo", chat.url),
      ],
    };
    await Deno.writeTextFile(`${folder}/config.yaml`, JSON.stringify(config)); // JSON is YAML
    const proxy = new Deno.Command(LITELLM!, {
      args: ["--config", `${folder}/config.yaml`, "--host", "127.0.0.1", "--port", `${port}`],
      env: { LITELLM_MASTER_KEY: KEY, LITELLM_LOCAL_MODEL_COST_MAP: "True" },
      stdout: "null",
      stderr: "null",
    }).spawn();
    const base_url = `http://127.0.0.1:${port}`;
    try {
      await poll(() => answers(`${base_url}/health/liveliness`), (ready) => ready);
      for (const provider of ["anthropic", "openai"]) {
        for (const model of ["claude", "gpt", "chat"]) {
          await using it = await agent([], {
            files: { "a.txt": "alpha\n" },
            user: { "providers.json": JSON.stringify({ [provider]: { base_url, api_key: KEY } }) },
            config: { provider, base_url, model, wire: "native" },
          });
          const { result } = await it.turn("What is in a.txt?");
          const which = `${provider}, ${model}: ${JSON.stringify(result.errors)}`;
          assert.deepEqual([result.status, result.content], ["ok", "It is alpha."], which);
          assert.equal(result.thinking, "I look.", which);
          if (model !== "chat") assert.equal(result.usage.cached_tokens, 1800, which);
          const own = { anthropic: claude, openai: gpt }[provider]!;
          if ((model === "claude") !== (provider === "anthropic") || model === "chat") continue;
          assert.match(JSON.stringify(own.requests.at(-1)), /sealed \d/, which);
          const provided = it.workspace.connect(it.workspace.backend(), "probe");
          assert.deepEqual(await provided.check_connection(), {
            ok: true,
            message: "3 models on offer",
          });
        }
      }
      assert.match(JSON.stringify(claude.requests[1]), /cache_control/);
    } finally {
      proxy.kill("SIGTERM");
      await proxy.status;
      await Promise.all([claude.close(), gpt.close()]);
      await Deno.remove(folder, { recursive: true });
    }
  },
});

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

async function answers(url: string): Promise<boolean> {
  const answer = await fetch(url).catch(() => undefined);
  await answer?.body?.cancel();
  return answer?.ok ?? false;
}
