/** A scripted scenario: what the server answers, request by request. The format is in README.md. */
export interface Script {
  replies: Reply[];
  /** Used replies become usable again when none is left for a request. */
  loop?: boolean;
  /** Served when no reply is left. */
  default?: Reply;
  /** The ids that `GET /v1/models` lists, or how else it answers. */
  models?: string[] | Reply;
}

/**
 * One reply: a completion, exact bytes (`raw`), an HTTP answer (`status`) or a redirect, and how it is
 * delivered.
 */
export interface Reply {
  /** Serves only requests that match. */
  when?: When;
  /** Requests that this reply serves (1). */
  repeat?: number;

  /** The answer. An array: one event, and one write, for each piece. */
  text?: string | string[];
  /** Reasoning before the answer. */
  thinking?: string | string[];
  /** The field that carries the reasoning (`reasoning_content`). */
  reasoning_key?: "reasoning_content" | "reasoning";
  tool_calls?: ScriptedCall[];
  /** Answers with a part of the request instead of `text`. */
  echo?: Echo;
  /** The finish reason; null leaves it out. Default: `tool_calls` or `stop`. */
  finish?: string | null;
  usage?: Record<string, unknown>;
  /** false: no `[DONE]`. A number: that many. */
  done?: boolean | number;
  /** Ends the stream cleanly after the content: no finish reason, usage or `[DONE]`. */
  end_early?: boolean;

  /** The exact body; an array: one write for each piece. */
  raw?: string | string[] | { base64: string };

  /** HTTP status, with `body` as its text or JSON document. */
  status?: number;
  body?: unknown;

  redirect?: { status?: number; location: string };

  headers?: Record<string, string>;
  /** Milliseconds before the first byte. */
  delay_ms?: number;
  /** Milliseconds between writes; every event becomes a write of its own. */
  chunk_delay_ms?: number;
  /** Cuts the whole body into writes of this many bytes. */
  split_bytes?: number;
  /** Breaks the connection: after the content, amid a JSON document, or after that many writes. */
  cut?: boolean | { after: number };
  /** Sends the content, or without any not even headers; then keeps silent until the client goes. */
  hang?: boolean;
}

/** What a request must have for a reply to serve it; texts are looked for, `model` is compared. */
export interface When {
  /** In the last user message. */
  user?: string;
  /** In a system message. */
  system?: string;
  /** In a tool result after the last user message. */
  tool_result?: string;
  model?: string;
}

export interface ScriptedCall {
  name: string;
  /** An object, or the raw text. */
  arguments?: Record<string, unknown> | string;
  id?: string;
  /** Number of deltas that the arguments arrive in (1). */
  fragments?: number;
}

/** The parts of a request that a reply can answer with. */
export type Echo = typeof ECHOES[number];
export const ECHOES = ["last_user", "system", "messages", "tools", "headers", "body"] as const;
