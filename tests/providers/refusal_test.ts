import assert from "node:assert/strict";
import type { FailureKind } from "../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { data, eventsOf, head, json, providerOptions, TestClock, WireServer } from "./support.ts";

// What real backends answer when a conversation is too long, a quota is used up or an account is closed, and the
// outcome of each: the window in tokens, the seconds until the backend answers again.

interface Row {
  backend: string;
  status: number;
  body: unknown;
  headers?: Record<string, string>;
  kind: FailureKind;
  window?: number;
  /** Seconds from now. */
  after?: number;
}

/** The time of the test's clock. */
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

const OPENAI_LENGTH = (message: string, code: string | null = "context_length_exceeded") => ({
  error: { message, type: "invalid_request_error", param: "messages", code },
});
const VLLM = (message: string) => ({
  object: "error",
  message,
  type: "BadRequestError",
  param: null,
  code: 400,
});
const ANTHROPIC = (type: string, message: string) => ({
  type: "error",
  error: { type, message },
  request_id: "req_011",
});
const said = (message: string, code: string | number | null = null, type = "error") => ({
  error: { message, type, param: null, code },
});

function overflow(
  backend: string,
  status: number,
  body: unknown,
  window?: number,
): Row {
  return { backend, status, body, kind: "overflow", window };
}

function quota(
  backend: string,
  status: number,
  body: unknown,
  kind: FailureKind | number,
  headers: Record<string, string> = {},
): Row {
  return typeof kind === "number"
    ? { backend, status, body, headers, kind: "announced", after: kind }
    : { backend, status, body, headers, kind };
}

const ROWS: Row[] = [
  overflow(
    "OpenAI",
    400,
    OPENAI_LENGTH(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 173172 tokens. " +
        "Please reduce the length of the messages.",
    ),
    128_000,
  ),
  overflow(
    "OpenAI, with max_tokens",
    400,
    OPENAI_LENGTH(
      "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens (3120 in the messages, " +
        "1000 in the completion). Please reduce the length of the messages or completion.",
    ),
    4097,
  ),
  overflow(
    "OpenAI, newer models",
    400,
    OPENAI_LENGTH(
      "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 303456 tokens. Please " +
        "reduce the length of the messages.",
    ),
    272_000,
  ),
  overflow(
    "OpenAI, without a code",
    400,
    OPENAI_LENGTH("Input tokens exceed the configured limit of 272,000 tokens.", null),
    272_000,
  ),
  overflow(
    "OpenAI, through a gateway",
    400,
    said("Your input exceeds the context window of this model. Please adjust your input."),
  ),
  overflow(
    "OpenAI, more than a minute's tokens at once",
    429,
    said(
      "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 30601. The " +
        "input or output tokens must be reduced in order to run successfully.",
      "rate_limit_exceeded",
      "tokens",
    ),
    30_000,
  ),
  overflow(
    "Anthropic",
    400,
    ANTHROPIC("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
    200_000,
  ),
  overflow(
    "Anthropic, with max_tokens",
    400,
    ANTHROPIC(
      "invalid_request_error",
      "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000, decrease input length or " +
        "`max_tokens` and try again",
    ),
    200_000,
  ),
  overflow(
    "Anthropic, too many bytes",
    413,
    ANTHROPIC("request_too_large", "Request exceeds the maximum size"),
  ),
  overflow(
    "Anthropic, long context not included",
    403,
    ANTHROPIC("billing_error", "Extra usage is required for long context requests."),
  ),
  overflow(
    "Groq",
    400,
    said("Please reduce the length of the messages or completion.", null, "invalid_request_error"),
  ),
  overflow(
    "Groq, more than a minute's tokens at once",
    413,
    said(
      "Request too large for model `llama-3.1-8b-instant` in organization `org_01` service tier `on_demand` on tokens " +
        "per minute (TPM): Limit 6000, Requested 7591, please reduce your message size and try again.",
      "rate_limit_exceeded",
      "tokens",
    ),
    6000,
  ),
  overflow(
    "Mistral",
    400,
    {
      object: "error",
      message: {
        detail: [{
          type: "value_error",
          loc: ["body"],
          msg: "Prompt contains 40112 tokens and 0 draft tokens, too large for model with 32768 " +
            "maximum context length",
        }],
      },
      type: "invalid_request_prompt",
    },
    32_768,
  ),
  overflow(
    "Together",
    422,
    said(
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 " +
        "`max_new_tokens`",
      null,
      "invalid_request_error",
    ),
    8193,
  ),
  overflow(
    "Text Generation Inference",
    422,
    {
      error:
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5102. The prompt is too long",
      error_type: "validation",
    },
  ),
  overflow(
    "Fireworks",
    400,
    {
      error: {
        object: "error",
        type: "invalid_request_error",
        message: "The prompt is too long: 150012, model maximum context length: 131071",
      },
    },
    131_071,
  ),
  overflow(
    "DeepSeek",
    400,
    said(
      "This model's maximum context length is 131072 tokens. However, you requested 140013 tokens (131821 in the " +
        "messages, 8192 in the completion). Please reduce the length of the messages or completion.",
      "invalid_request_error",
      "invalid_request_error",
    ),
    131_072,
  ),
  overflow(
    "xAI",
    400,
    {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
    131_072,
  ),
  overflow(
    "Gemini",
    400,
    [{
      error: {
        code: 400,
        message:
          "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        status: "INVALID_ARGUMENT",
      },
    }],
    1_048_575,
  ),
  overflow(
    "OpenRouter",
    400,
    {
      error: {
        message:
          "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens " +
          '(42832 of text input). Please reduce the length of either one, or use the "middle-out" transform.',
        code: 400,
      },
    },
    32_768,
  ),
  overflow(
    "OpenRouter, the message of the backend behind it",
    400,
    {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: {
          raw:
            '{"object":"error","message":"Input length 131393 exceeds the maximum allowed input length of 131040 ' +
            'tokens.","type":"BadRequestError"}',
          provider_name: "Poolside",
        },
      },
    },
    131_040,
  ),
  overflow(
    "LiteLLM",
    400,
    said(
      "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: " +
        "OpenAIException - Requested token count exceeds the model's maximum context length of 131072 tokens.",
      "400",
    ),
    131_072,
  ),
  overflow(
    "vLLM",
    400,
    VLLM(
      "This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and your prompt " +
        "contains at least 134145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the " +
        "input prompt or the number of requested output tokens. (parameter=input_tokens, value=134145)",
    ),
    262_144,
  ),
  overflow(
    "vLLM, with max_tokens",
    400,
    said(
      "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 65536 tokens " +
        "and your request has 57879 input tokens (8192 > 65536 - 57879). None",
      400,
      "BadRequestError",
    ),
    65_536,
  ),
  overflow("vLLM, no room left", 400, VLLM("max_tokens must be at least 1, got -186.")),
  overflow(
    "vLLM, a long prompt",
    400,
    VLLM(
      "The decoder prompt (length 25938) is longer than the maximum model length of 4096. Make sure that " +
        "`max_model_len` is no smaller than the number of text tokens.",
    ),
    4096,
  ),
  overflow(
    "SGLang",
    400,
    VLLM("The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
    40_960,
  ),
  overflow(
    "llama.cpp",
    400,
    {
      error: {
        code: 400,
        message: "request (35999 tokens) exceeds the available context size (32768 tokens), try " +
          "increasing it",
        type: "exceed_context_size_error",
        n_prompt_tokens: 35_999,
        n_ctx: 32_768,
      },
    },
    32_768,
  ),
  overflow(
    "llama.cpp, as a server error",
    500,
    {
      error: {
        code: 500,
        message:
          "the request exceeds the available context size. try increasing the context size or enable " +
          "context shift",
        type: "exceed_context_size_error",
        n_prompt_tokens: 1407,
        n_ctx: 256,
      },
    },
    256,
  ),
  overflow(
    "llama-cpp-python",
    500,
    said("Requested tokens (2285) exceed context window of 2048", null, "internal_server_error"),
    2048,
  ),
  overflow(
    "Ollama",
    400,
    said("prompt too long; exceeded max context length by 1203 tokens", null, "api_error"),
  ),
  overflow("Ollama, embedded", 500, { error: "the input length exceeds the context length" }),
  overflow(
    "LM Studio",
    400,
    {
      error:
        "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with " +
        "context length of only 32768 tokens, which is not enough.",
    },
    32_768,
  ),
  overflow(
    "LM Studio, n_keep",
    400,
    { error: "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)" },
    7424,
  ),
  overflow(
    "LM Studio, the initial prompt",
    400,
    {
      error:
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load " +
        "the model with a larger context length, or provide a shorter input",
    },
  ),
  overflow(
    "Cohere",
    400,
    {
      message:
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5090. Try using a " +
        "shorter prompt",
    },
    4081,
  ),
  overflow("Bedrock", 400, { message: "Input is too long for requested model." }),
  overflow(
    "Bedrock, newer models",
    400,
    said(
      "prompt tokens (1200008) exceed model maximum (1050000) for openai.gpt-5.6-terra",
      "validation_error",
    ),
    1_050_000,
  ),
  overflow(
    "Cerebras",
    400,
    {
      message:
        "Please reduce the length of the messages or completion. Current length is 42328 while limit is 40000",
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded",
    },
    40_000,
  ),
  overflow(
    "DashScope",
    400,
    said(
      "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 204800]",
      "invalid_parameter_error",
      "invalid_request_error",
    ),
    204_800,
  ),
  overflow(
    "Moonshot",
    400,
    said(
      "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
      null,
      "invalid_request_error",
    ),
    262_144,
  ),
  overflow("Zhipu", 400, { error: { code: "1261", message: "Prompt 超长" } }),
  overflow(
    "Z.AI",
    400,
    { error: { code: "1210", message: "tokens in request more than max tokens allowed" } },
  ),
  overflow("MiniMax", 400, said("invalid params, context window exceeds limit (2013)", "2013")),
  overflow(
    "GitHub Models",
    413,
    {
      error: {
        code: "tokens_limit_reached",
        message: "Request body too large for gpt-5-mini model. Max size: 4000 tokens.",
        details: "Request body too large for gpt-5-mini model. Max size: 4000 tokens.",
      },
    },
    4000,
  ),
  overflow(
    "Copilot",
    400,
    {
      error: {
        message: "prompt token count of 138898 exceeds the limit of 64000",
        code: "model_max_prompt_tokens_exceeded",
      },
    },
    64_000,
  ),
  overflow(
    "Copilot, without a code",
    400,
    said("prompt token count of 93854 exceeds the limit of 90000", ""),
    90_000,
  ),
  overflow(
    "TabbyAPI",
    400,
    { detail: "Prompt length 9012 is greater than max_seq_len 8192" },
    8192,
  ),
  overflow(
    "Vertex",
    400,
    said(
      "Unable to submit request because the input token count is 1100000 but model only supports up to 1048576. Reduce " +
        "the input token count and try again.",
    ),
    1_048_576,
  ),
  overflow(
    "MLC",
    400,
    said("Request prompt has 9012 tokens in total, larger than the model input length limit 8192."),
    8192,
  ),
  overflow(
    "SiliconFlow",
    400,
    {
      code: 20_015,
      message: "length of prompt_tokens (9012) must be less than max_seq_len (8192).",
    },
    8192,
  ),
  overflow(
    "Cloudflare Workers AI",
    400,
    {
      errors: [{
        message:
          "AiError: The estimated number of input and maximum output tokens (9012) exceeded this model context " +
          "window limit (8192).",
        code: 5021,
      }],
    },
    8192,
  ),
  overflow(
    "watsonx",
    400,
    {
      errors: [{
        code: "invalid_input_argument",
        message:
          "the number of input tokens 9012 cannot exceed the total tokens limit 8192 for this model",
      }],
    },
    8192,
  ),
  overflow(
    "Volcengine",
    400,
    said("Total tokens of image and text exceed max message tokens", "InvalidParameter"),
  ),
  overflow("mlx-serve", 400, said("Prompt exceeds maximum context length")),
  overflow(
    "a web server in between",
    413,
    "<html><title>413 Request Entity Too Large</title></html>",
  ),

  quota(
    "OpenAI",
    429,
    said(
      "You exceeded your current quota, please check your plan and billing details. For more information on this error, " +
        "read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
      "insufficient_quota",
      "insufficient_quota",
    ),
    "permanent",
  ),
  quota(
    "OpenAI, billing",
    400,
    said("Billing hard limit has been reached", "billing_hard_limit_reached"),
    "permanent",
  ),
  quota(
    "OpenAI, tokens a minute",
    429,
    said(
      "Rate limit reached for gpt-4o-mini in organization org-1 on tokens per min (TPM): Limit 100000, Used 96749, " +
        "Requested 19126. Please try again in 114h18m0s.",
      "rate_limit_exceeded",
      "tokens",
    ),
    114.3 * 3600,
  ),
  quota(
    "OpenAI, in its headers",
    429,
    said("Rate limit reached for requests", "rate_limit_exceeded", "requests"),
    360,
    {
      "x-ratelimit-limit-requests": "200",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-remaining-tokens": "149000",
      "x-ratelimit-reset-requests": "6m0s",
      "x-ratelimit-reset-tokens": "1h2m3s",
    },
  ),
  quota(
    "OpenAI, overloaded",
    503,
    said("That model is currently overloaded with other requests.", null, "server_error"),
    "transient",
  ),
  quota(
    "Azure",
    429,
    {
      error: {
        code: "429",
        message:
          "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-05-01-preview have " +
          "exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 86400 seconds.",
      },
    },
    86_400,
  ),
  quota(
    "Azure, short",
    429,
    { error: { code: "429", message: "Rate limit is exceeded. Try again in 2 seconds." } },
    2,
  ),
  quota(
    "Azure, peak load",
    429,
    {
      error: {
        code: "RATE_LIMITED",
        message:
          "The system is currently experiencing high demand and cannot process your request. Your request " +
          "exceeds the maximum usage size allowed during peak load. Please retry after 20 seconds.",
      },
    },
    20,
  ),
  quota(
    "Azure, in milliseconds",
    429,
    { error: { code: "429", message: "Too Many Requests" } },
    1.25,
    { "retry-after": "2", "retry-after-ms": "1250" },
  ),
  quota(
    "Anthropic",
    429,
    ANTHROPIC(
      "rate_limit_error",
      "This request would exceed your organization's rate limit of 30,000 input tokens per minute. Please reduce the " +
        "prompt length or the maximum tokens requested, or try again later.",
    ),
    55,
    {
      "anthropic-ratelimit-requests-remaining": "49",
      "anthropic-ratelimit-requests-reset": "2026-01-02T03:04:06Z",
      "anthropic-ratelimit-input-tokens-remaining": "0",
      "anthropic-ratelimit-input-tokens-reset": "2026-01-02T03:05:00Z",
    },
  ),
  quota(
    "Anthropic, without a time",
    429,
    ANTHROPIC(
      "rate_limit_error",
      "This request would exceed the rate limit for your organization of 20,000 input tokens per minute.",
    ),
    "transient",
  ),
  quota("Anthropic, overloaded", 529, ANTHROPIC("overloaded_error", "Overloaded"), "transient"),
  quota(
    "Anthropic, no credit",
    400,
    ANTHROPIC(
      "invalid_request_error",
      "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase " +
        "credits.",
    ),
    "permanent",
  ),
  quota(
    "Anthropic, spend limit",
    400,
    ANTHROPIC(
      "invalid_request_error",
      "You have reached your specified API usage limits. You will regain access on 2026-02-01 at 00:00 UTC.",
    ),
    29 * 86_400 + 20 * 3600 + 55 * 60 + 55,
  ),
  quota(
    "Anthropic, subscription",
    429,
    ANTHROPIC("rate_limit_error", `Claude AI usage limit reached|${NOW / 1000 + 7200}`),
    7200,
  ),
  quota(
    "Anthropic, subscription, by the clock",
    429,
    ANTHROPIC("rate_limit_error", "You've hit your session limit · resets 8:30pm (Asia/Tokyo)"),
    8 * 3600 + 25 * 60 + 55,
  ),
  quota(
    "OpenAI, subscription, by the clock",
    429,
    said(
      "You've hit your usage limit. Upgrade your plan to continue, or try again at 7:58 PM UTC.",
    ),
    16 * 3600 + 53 * 60 + 55,
  ),
  quota(
    "Anthropic, unified limit",
    429,
    ANTHROPIC("rate_limit_error", "This request would exceed your account's rate limit."),
    3600,
    {
      "anthropic-ratelimit-unified-status": "rejected",
      "anthropic-ratelimit-unified-reset": String(NOW / 1000 + 3600),
    },
  ),
  quota(
    "Anthropic, two windows",
    429,
    ANTHROPIC("rate_limit_error", "This request would exceed your account's rate limit."),
    3600,
    {
      "anthropic-ratelimit-unified-5h-status": "rejected",
      "anthropic-ratelimit-unified-5h-reset": String(NOW / 1000 + 3600),
      "anthropic-ratelimit-unified-7d-status": "allowed_warning",
      "anthropic-ratelimit-unified-7d-reset": String(NOW / 1000 + 400_000),
    },
  ),
  quota(
    "Groq",
    429,
    said(
      "Rate limit reached for model `llama3-70b-8192` in organization `org_01` on tokens per day (TPD): Limit 500000, " +
        "Used 500370, Requested 252. Please try again in 1m47.5854s.",
      "rate_limit_exceeded",
      "tokens",
    ),
    107.586,
  ),
  quota(
    "Groq, minutes",
    429,
    said(
      "Rate limit reached on tokens per day (TPD). Please try again in 9m38s.",
      "rate_limit_exceeded",
    ),
    578,
  ),
  quota(
    "Groq, a model that is gone",
    400,
    said(
      "The model `mixtral-8x7b-32768` has been decommissioned and is no longer supported.",
      "model_decommissioned",
      "invalid_request_error",
    ),
    "permanent",
  ),
  quota(
    "Groq, the limit of the output",
    400,
    said(
      "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the " +
        "`context_window` for this model",
      null,
      "invalid_request_error",
    ),
    "permanent",
  ),
  quota(
    "Mistral",
    429,
    {
      object: "error",
      message: "Rate limit exceeded",
      type: "rate_limited",
      param: null,
      code: "1300",
    },
    "transient",
  ),
  quota(
    "Mistral, capacity",
    429,
    {
      object: "error",
      message: "Service tier capacity exceeded for this model.",
      type: "service_tier_capacity_exceeded",
      code: "3505",
    },
    "transient",
  ),
  quota(
    "Together",
    429,
    said(
      "You have reached the rate limit specific to this model. The maximum rate limit for this model is 6.0 queries and " +
        "180000 tokens per minute.",
      null,
      "model_rate_limit",
    ),
    "transient",
  ),
  quota(
    "Fireworks, suspended",
    412,
    said(
      "Account acme is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.",
      "PRECONDITION_FAILED",
    ),
    "permanent",
  ),
  quota(
    "DeepSeek, no balance",
    402,
    said("Insufficient Balance", "invalid_request_error", "unknown_error"),
    "permanent",
  ),
  quota(
    "xAI, no credit",
    429,
    {
      code: "Some resource has been exhausted",
      error:
        "Your team 16f2151a has either used all available credits or reached its monthly spending limit. To continue " +
        "making API requests, please purchase more credits or raise your spending limit.",
    },
    "permanent",
  ),
  quota(
    "xAI, no credit yet",
    403,
    {
      code: "The caller does not have permission to execute the specified operation",
      error: "Your newly created teams doesn't have any credits yet.",
    },
    "permanent",
  ),
  quota(
    "Gemini",
    429,
    [{
      error: {
        code: 429,
        message:
          "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: " +
          "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count, limit: 250000",
        status: "RESOURCE_EXHAUSTED",
        details: [
          { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [] },
          { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "38s" },
        ],
      },
    }],
    38,
  ),
  quota(
    "Gemini, through a gateway",
    429,
    {
      error: {
        message:
          '{\n  "error": {\n    "code": 429,\n    "message": "You exceeded your current quota, please check your plan ' +
          'and billing details.\\nPlease retry in 11.5s.",\n    "status": "RESOURCE_EXHAUSTED"\n  }\n}\n',
        code: 429,
        status: "Too Many Requests",
      },
    },
    11.5,
  ),
  quota(
    "Gemini, without a time",
    429,
    [{
      error: {
        code: 429,
        message: "Resource has been exhausted (e.g. check quota).",
        status: "RESOURCE_EXHAUSTED",
      },
    }],
    "transient",
  ),
  quota(
    "OpenRouter, no credit",
    402,
    {
      error: {
        message:
          "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can " +
          "only afford 27342.",
        code: 402,
        metadata: { provider_name: null },
      },
    },
    "permanent",
  ),
  quota(
    "OpenRouter, free models",
    429,
    {
      error: {
        message:
          "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day",
        code: 429,
        metadata: {
          headers: {
            "X-RateLimit-Limit": "50",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": String(Date.UTC(2026, 0, 3)),
          },
        },
      },
    },
    20 * 3600 + 55 * 60 + 55,
  ),
  quota(
    "OpenRouter, the backend behind it",
    429,
    {
      error: {
        message: "Provider returned error",
        code: 429,
        metadata: {
          raw:
            '{"error":{"message":"Your account org-1 <ak-2> is suspended due to insufficient balance, please recharge ' +
            'your account","type":"exceeded_current_quota_error"}}',
        },
      },
    },
    "permanent",
  ),
  quota(
    "LiteLLM, all deployments",
    429,
    said(
      "No deployments available for selected model, Try again in 60 seconds. Passed model=gpt-4o.",
      "429",
      "None",
    ),
    60,
  ),
  quota(
    "LiteLLM, budget",
    400,
    said(
      "Budget has been exceeded! Current cost: 10.02, Max budget: 10.0",
      "400",
      "budget_exceeded",
    ),
    "permanent",
  ),
  quota(
    "Bedrock",
    429,
    { message: "Too many tokens, please wait before trying again." },
    "transient",
  ),
  quota(
    "Bedrock, the limit of the output",
    400,
    {
      message:
        "The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value " +
        "that is lower than 2048.",
    },
    "permanent",
  ),
  quota(
    "Cerebras",
    429,
    {
      message: "Tokens per minute limit exceeded - too many tokens processed.",
      type: "too_many_tokens_error",
      param: "quota",
      code: "token_quota_exceeded",
    },
    11.38,
    {
      "x-ratelimit-remaining-requests-day": "14370",
      "x-ratelimit-reset-requests-day": "33011.382867",
      "x-ratelimit-remaining-tokens-minute": "0",
      "x-ratelimit-reset-tokens-minute": "11.38",
    },
  ),
  quota(
    "SambaNova",
    429,
    { error: { code: null, message: "Rate limit exceeded", type: "rate_limit_exceeded" } },
    30,
    { "x-ratelimit-reset-requests": String(NOW / 1000 + 30) },
  ),
  quota(
    "DashScope, tokens a minute",
    429,
    said(
      "Allocated quota exceeded, please increase your quota limit. For details, see: " +
        "https://help.aliyun.com/zh/model-studio/error-code#token-limit",
      "insufficient_quota",
      "insufficient_quota",
    ),
    "transient",
  ),
  quota(
    "DashScope, overdue",
    400,
    said(
      "Access denied, please make sure your account is in good standing.",
      "Arrearage",
      "Arrearage",
    ),
    "permanent",
  ),
  quota(
    "Moonshot",
    429,
    said(
      "Your account reached max request: 3, please try again after 1 seconds",
      null,
      "rate_limit_reached_error",
    ),
    1,
  ),
  quota(
    "Moonshot, no balance",
    403,
    said(
      "Your account org-1 is not active, organization <org-1> exceeded current quota, please check your plan and " +
        "billing details",
      null,
      "exceeded_current_quota_error",
    ),
    "permanent",
  ),
  quota(
    "Moonshot, overloaded",
    429,
    said(
      "The engine is currently overloaded, please try again later",
      null,
      "engine_overloaded_error",
    ),
    "transient",
  ),
  quota(
    "Zhipu, no balance",
    429,
    { error: { code: "1113", message: "余额不足或无可用资源包,请充值。" } },
    "permanent",
  ),
  quota(
    "Z.AI, no balance",
    429,
    {
      error: {
        code: "1113",
        message: "Insufficient balance or no resource package. Please recharge.",
      },
    },
    "permanent",
  ),
  quota(
    "Z.AI, five hours",
    429,
    {
      error: {
        code: "1308",
        message: "Usage limit reached for 5 hour. Your limit will reset at 2026-01-02 07:04:05",
      },
    },
    4 * 3600,
  ),
  quota(
    "GitHub Models",
    429,
    {
      error: {
        code: "RateLimitReached",
        message:
          "Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 55555 seconds before retrying.",
        details: "Rate limit of 50 per 86400s exceeded for UserByModelByDay.",
      },
    },
    55_555,
  ),
  quota(
    "GitHub Models, secondary limit",
    403,
    {
      message:
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    },
    60,
    { "retry-after": "60" },
  ),
  quota(
    "Copilot",
    429,
    {
      error: {
        message: "Sorry, you have exceeded your Copilot token usage.",
        code: "rate_limited",
      },
    },
    "transient",
  ),
  quota(
    "Copilot, month",
    402,
    { error: { message: "You have no quota", code: "quota_exceeded" } },
    "permanent",
  ),
  quota(
    "ChatGPT subscription",
    429,
    {
      error: {
        type: "usage_limit_reached",
        message: "The usage limit has been reached",
        plan_type: "plus",
        resets_at: NOW / 1000 + 13_872,
        resets_in_seconds: 13_872,
      },
    },
    13_872,
  ),
  quota(
    "ChatGPT subscription, in words",
    429,
    said("You've hit your usage limit. Upgrade to Pro or try again in 5 days 22 hours 11 minutes."),
    5 * 86_400 + 22 * 3600 + 11 * 60,
  ),
  quota(
    "Perplexity",
    401,
    said("You exceeded your current quota, please check your plan.", 401, "insufficient_quota"),
    "permanent",
  ),
  quota(
    "Cohere, a trial key",
    429,
    {
      message:
        "You are using a Trial key, which is limited to 40 API calls / minute. You can continue to use the Trial key.",
    },
    "transient",
  ),
  quota(
    "NVIDIA NIM",
    402,
    { detail: "Cloud credits expired - Please contact NVIDIA representatives" },
    "permanent",
  ),
  quota(
    "Hugging Face router",
    402,
    { error: "You have exceeded your monthly included credits for Inference Providers." },
    "permanent",
  ),
  quota(
    "Text Generation Inference",
    429,
    { error: "Model is overloaded", error_type: "overloaded" },
    "transient",
  ),
  quota(
    "Ollama",
    503,
    said("server busy, please try again. maximum pending requests exceeded", null, "api_error"),
    "transient",
  ),
  quota(
    "Ollama, no such model",
    404,
    said('model "llama9" not found', null, "api_error"),
    "permanent",
  ),
  quota(
    "llama.cpp, loading",
    503,
    { error: { code: 503, message: "Loading model", type: "unavailable_error" } },
    "transient",
  ),
  quota(
    "New API, no channel",
    503,
    said(
      "No available channel for model gpt-x under group default",
      "model_not_found",
      "new_api_error",
    ),
    "permanent",
  ),
  quota(
    "LocalAI, no such model",
    500,
    said("could not load model: the model llama9 does not exist", 500, "api_error"),
    "permanent",
  ),
  quota("Cloudflare", 524, "<html><title>524: A timeout occurred</title></html>", "transient"),
  quota("a wrong key", 401, said("Incorrect API key provided", "invalid_api_key"), "permanent"),
  quota("a proxy", 503, "upstream connect error", 120, { "retry-after": "120" }),
  quota(
    "a proxy, with a date",
    503,
    "try later",
    90,
    { "retry-after": new Date(NOW + 90_000).toUTCString() },
  ),
  quota("a date that has passed", 429, "", "transient", {
    "retry-after": new Date(NOW - 5000).toUTCString(),
  }),
  quota("Retry-After: 0", 429, "", "transient", { "retry-after": "0" }),
  quota("Retry-After: soon", 429, "", "transient", { "retry-after": "soon" }),
  quota(
    "a body that repeats the request",
    422,
    {
      detail: [{
        type: "missing",
        loc: ["body", "model"],
        msg: "Field required",
        input: { messages: [{ role: "user", content: "Why context_length_exceeded?" }] },
      }],
    },
    "permanent",
  ),
  quota(
    "an id that is too long",
    400,
    said(
      "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a " +
        "string with length 43 instead.",
      "string_above_max_length",
      "invalid_request_error",
    ),
    "permanent",
  ),
];

for (const { backend, status, body, headers, kind, window, after } of ROWS) {
  Deno.test(`refusal: ${backend} (${status}) is ${kind}`, async () => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const report = typeof body === "string"
      ? head(status, { "content-type": "text/html", ...headers }) + text
      : json(body, status, headers);
    await using server = new WireServer((wire) => wire.send(report));
    const options = providerOptions({ base_url: server.url, retry_budget: 0 });
    const clock = new TestClock((ms) => ms < 1000);
    const [event, ...others] = await eventsOf(new OpenAICompatibleProvider(options, clock));
    assert.equal(others.length, 0);
    assert.ok(event?.type === "error");
    const seconds = event.retry_at && Math.round(event.retry_at - NOW) / 1000;
    assert.deepEqual(
      { kind: event.kind, window: event.window, after: seconds },
      { kind, window, after },
    );
    assert.equal(event.code, status);
    assert.equal(server.requests.length, 1);
  });
}

Deno.test("the refusal of a stream that has begun is read like an answer's", async () => {
  const rows = ROWS.filter(({ status, body, kind, headers = {} }) =>
    typeof body === "object" && body !== null && "error" in body && kind !== "transient" &&
    Object.keys(headers).length === 0 && status !== 402 && status !== 404
  );
  assert.ok(rows.length > 50);
  for (const { backend, body, kind, window } of rows) {
    await using server = new WireServer((wire) => wire.send(head(), data(body)));
    const options = providerOptions({ base_url: server.url, retry_budget: 0 });
    const clock = new TestClock((ms) => ms < 1000);
    const [event] = await eventsOf(new OpenAICompatibleProvider(options, clock));
    assert.ok(event?.type === "error");
    assert.deepEqual([event.kind, event.window], [kind, window], backend);
    assert.equal(server.requests.length, 1);
  }
});
