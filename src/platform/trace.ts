import type { Attributes, AttributeValue, Context, Span as Recorded } from "@opentelemetry/api";

let api: typeof import("@opentelemetry/api") | undefined;
let content = false;

/**
 * Loads the OpenTelemetry API where Deno exports telemetry (`OTEL_DENO`). Elsewhere nothing is loaded, and the other
 * functions do nothing.
 */
export async function loadTelemetry(): Promise<void> {
  if (api !== undefined || !(Symbol.for("opentelemetry.js.api.1") in globalThis)) return;
  api = await import("@opentelemetry/api");
  try {
    content = Deno.env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT") === "true";
  } catch {
    // the executable may not read it
  }
}

/** A piece of work that OpenTelemetry exports. */
export class Span {
  readonly #api: NonNullable<typeof api>;
  readonly #span: Recorded;
  readonly #context: Context;

  /** Use {@linkcode startSpan}. */
  constructor(
    given: { api: NonNullable<typeof api>; span: Recorded; context: Context },
  ) {
    this.#api = given.api;
    this.#span = given.span;
    this.#context = given.context;
  }

  /** Runs an action as a part of this work: its spans and the requests that it sends are children of this one. */
  run<T>(action: () => T): T {
    return this.#api.context.with(this.#context, action);
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(attributes);
  }

  /** Adds what people have written and models have answered. It is exported only on request. */
  setContent(name: string, value: () => unknown): void {
    if (content) this.#span.setAttribute(name, JSON.stringify(value()));
  }

  /** @param error the kind of error that ended it. Default: none did */
  end(error?: AttributeValue): void {
    if (error !== undefined) {
      this.#span.setAttribute("error.type", error);
      this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}

/**
 * Begins a span with the names of OpenTelemetry's conventions for generative AI. Its parent is the span that
 * {@linkcode Span.run} is in.
 *
 * @param given.client whether another program does the work
 * @param given.caller `traceparent` and `tracestate` of a caller in another process, which is the parent then
 * @returns undefined where nothing is exported
 */
export function startSpan(
  name: string,
  attributes: Attributes,
  { client = false, caller }: { client?: boolean; caller?: Record<string, unknown> } = {},
): Span | undefined {
  if (api === undefined) return undefined;
  const { trace, context, propagation, SpanKind } = api;
  const { traceparent, tracestate = "" } = caller ?? {};
  const parent = typeof traceparent === "string" && typeof tracestate === "string"
    ? propagation.extract(context.active(), { traceparent, tracestate })
    : context.active();
  const kind = client ? SpanKind.CLIENT : SpanKind.INTERNAL;
  const span = trace.getTracer("svc").startSpan(name, { kind, attributes }, parent);
  return new Span({ api, span, context: trace.setSpan(parent, span) });
}

/** `traceparent` and `tracestate` for a program that continues the current span; empty where nothing is exported. */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  api?.propagation.inject(api.context.active(), headers);
  return headers;
}

/** A stream of events that a span covers. */
export async function* within<T, R>(
  span: Span,
  stream: AsyncGenerator<T, R>,
): AsyncGenerator<T, R> {
  try {
    while (true) {
      const step = await span.run(() => stream.next());
      if (step.done) return step.value;
      yield step.value;
    }
  } finally {
    await span.run(() => stream.return(undefined as R));
  }
}
