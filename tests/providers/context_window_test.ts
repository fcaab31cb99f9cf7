import assert from "node:assert/strict";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { json, providerOptions, TestClock, type Wire, WireServer } from "./support.ts";

/** The window that a provider finds in these documents, by path; and the requests that it took. */
async function windowIn(documents: Record<string, unknown>, model = "m1") {
  await using server = new WireServer((wire, { path }) =>
    wire.send(path in documents ? json(documents[path]) : json({}, 404))
  );
  const options = providerOptions({ base_url: server.url, model });
  const provider = new OpenAICompatibleProvider(options, new TestClock());
  const window = await provider.context_window();
  return { window, asked: server.requests.map(({ method, path }) => `${method} ${path}`) };
}

Deno.test("the window is read in the fields of real lists of models", async () => {
  const entries: [backend: string, entry: Record<string, unknown>, window: number | undefined][] = [
    ["OpenAI", { id: "m1", object: "model", owned_by: "openai" }, undefined],
    ["Groq", { id: "m1", context_window: 131_072, max_completion_tokens: 32_768 }, 131_072],
    ["Mistral", { id: "m1", max_context_length: 32_768, capabilities: {} }, 32_768],
    ["Together", { id: "m1", context_length: 8192, pricing: { input: 1 } }, 8192],
    ["vLLM", { id: "m1", owned_by: "vllm", max_model_len: 16_384 }, 16_384],
    [
      "OpenRouter",
      {
        id: "m1",
        context_length: 1_048_576,
        top_provider: { context_length: 1_000_000, max_completion_tokens: 65_536 },
      },
      1_000_000,
    ],
    ["llama.cpp", { id: "m1", meta: { n_ctx_train: 4096, n_params: 8e9 } }, 4096],
    ["llama.cpp, newer", { id: "m1", meta: { n_ctx: 2048, n_ctx_train: 4096 } }, 2048],
    [
      "Copilot",
      {
        id: "m1",
        capabilities: {
          limits: { max_context_window_tokens: 128_000, max_prompt_tokens: 64_000 },
        },
      },
      128_000,
    ],
    ["GitHub Models", { id: "openai/m1", limits: { max_input_tokens: 8000 } }, 8000],
    ["Gemini", { name: "models/m1", inputTokenLimit: 1_048_576 }, 1_048_576],
    ["Cohere", { name: "m1", context_length: 256_000 }, 256_000],
    ["Cerebras", { id: "m1", limits: { max_context_length: 65_536 } }, 65_536],
    ["DeepInfra", { id: "m1", metadata: { context_length: 40_960, max_tokens: 512 } }, 40_960],
    ["an empty field", { id: "m1", context_length: 0, max_model_len: null }, undefined],
    ["another model", { id: "m12", context_length: 5 }, undefined],
  ];
  for (const [backend, entry, expected] of entries) {
    const other = { id: "other", context_length: 7 };
    for (const list of [{ data: [other, entry] }, [other, entry], { models: [entry, other] }]) {
      const { window, asked } = await windowIn({ "/v1/models": list });
      assert.equal(window, expected, backend);
      assert.deepEqual(asked, ["GET /v1/models"]);
    }
  }
});

Deno.test("local servers are asked for the window of the loaded model", async () => {
  const list = (owned_by: string, more = {}) => ({
    "/v1/models": { data: [{ id: "m1:latest", owned_by, ...more }] },
  });
  const llama = await windowIn({
    ...list("llamacpp", { meta: { n_ctx_train: 131_072 } }),
    "/props": { default_generation_settings: { n_ctx: 8192, params: { n_predict: -1 } } },
  });
  assert.deepEqual(llama, { window: 8192, asked: ["GET /v1/models", "GET /props"] });
  const ollama = await windowIn({
    ...list("library"),
    "/api/show": {
      parameters: 'stop    "<|eot|>"\nnum_ctx                        4096',
      model_info: { "llama.context_length": 131_072 },
    },
  });
  assert.deepEqual(ollama, { window: 4096, asked: ["GET /v1/models", "POST /api/show"] });
  const untuned = await windowIn({
    ...list("library"),
    "/api/show": { parameters: "", model_info: { "qwen3.context_length": 40_960 } },
  });
  assert.equal(untuned.window, 40_960);
  const studio = await windowIn({
    ...list("organization_owner"),
    "/api/v0/models": {
      data: [{ id: "m1", max_context_length: 32_768, loaded_context_length: 4096 }],
    },
  });
  assert.equal(studio.window, 4096);
  const silent = await windowIn(list("llamacpp", { meta: { n_ctx_train: 131_072 } }));
  assert.equal(silent.window, 131_072);
});

Deno.test("a list that cannot be read, or does not come, is no window and no error", async () => {
  assert.equal((await windowIn({})).window, undefined);
  assert.equal((await windowIn({ "/v1/models": "no list" })).window, undefined);
  await using server = new WireServer((wire: Wire) => wire.gone());
  const clock = new TestClock();
  const options = providerOptions({ base_url: server.url });
  const asked = new OpenAICompatibleProvider(options, clock).context_window();
  await server.asked;
  await clock.expire(5000);
  assert.equal(await asked, undefined);
});

Deno.test("an aborted question for the window is asked again", async () => {
  await using server = new WireServer((wire) =>
    wire.number === 1 ? wire.gone() : wire.send(json([{ id: "m1", max_model_len: 9000 }]))
  );
  const options = providerOptions({ base_url: server.url });
  const provider = new OpenAICompatibleProvider(options, new TestClock());
  const stop = new AbortController();
  const asked = provider.context_window(stop.signal);
  await server.asked;
  stop.abort(new Error("enough"));
  assert.equal(await asked, undefined);
  assert.equal(await provider.context_window(), 9000);
});
