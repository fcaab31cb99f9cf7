import type { ConfigView, ReportService, ServiceRegistrar } from "../../../src/plugins/api.ts";

/**
 * Registers `report`: posts the report of each run that has ended, or that waits for approval, and each digest to
 * `report.webhook`, when that is set (specification 6.1), and the end of a run of the server to its own webhook.
 */
export function register_services(services: ServiceRegistrar): void {
  const post = async (payload: { event: string }, config: ConfigView) => {
    const url = config.get("report.webhook");
    if (url !== "") await deliver(url, payload, config.get("report.secret"));
  };
  const webhook: ReportService = {
    report: post,
    job_event: (event, config) =>
      event.event === "job.waiting_approval" ? post(event, config) : undefined,
    digest: post,
    run_ended: (report, url, config) =>
      deliver(url, report, config.get("report.secret"), { delivery: report.run }),
  };
  services.register("report", { ...webhook });
}

/** Milliseconds before each retry. All attempts together stay below the time limit of the service. */
const WAITS = [500, 1500, 4000];
/** Milliseconds that one attempt may take. */
const LIMIT = 5000;

/**
 * Posts a payload as JSON, signed when there is a secret: `X-Svc-Signature` is then `sha256=` and the
 * HMAC-SHA256 of the body in hexadecimal. An attempt without an answer, or
 * with status 408, 429 or 5xx, is repeated with the same `X-Svc-Delivery`. Redirects are not followed: the
 * report and its signature are for the configured address only.
 *
 * @throws Error that names the host of the URL only, since the rest may be secret
 */
export async function deliver(
  url: string,
  payload: { event: string },
  secret: string,
  { sleep = later, limit = LIMIT, delivery = crypto.randomUUID() }: {
    sleep?: (ms: number) => Promise<void>;
    limit?: number;
    delivery?: string;
  } = {},
): Promise<void> {
  const host = hostOf(url);
  const body = JSON.stringify(payload);
  const headers = {
    "content-type": "application/json",
    "user-agent": "svc-webhook",
    "x-svc-event": payload.event,
    "x-svc-delivery": delivery,
    ...(secret !== "" && { "x-svc-signature": await signature(body, secret) }),
  };
  for (let attempt = 0;; attempt++) {
    const { fault, again } = await post(url, { headers, body, limit });
    if (fault === undefined) return;
    const wait = WAITS[attempt];
    if (!again || wait === undefined) {
      const times = attempt === 0 ? "" : `, after ${attempt + 1} attempts`;
      throw new Error(`the webhook at ${host} ${fault}${times}`);
    }
    await sleep(wait);
  }
}

async function signature(text: string, secret: string): Promise<string> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const bytes = (text: string) => new TextEncoder().encode(text);
  const key = await crypto.subtle.importKey("raw", bytes(secret), algorithm, false, ["sign"]);
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(text)));
  return `sha256=${digest.toHex()}`;
}

async function post(
  url: string,
  { headers, body, limit }: { headers: Record<string, string>; body: string; limit: number },
): Promise<{ fault?: string; again: boolean }> {
  try {
    const signal = AbortSignal.timeout(limit);
    const response = await fetch(url, {
      method: "POST",
      headers,
      body,
      signal,
      redirect: "manual",
    });
    await response.body?.cancel();
    if (response.ok) return { again: false };
    const { status } = response;
    if (status >= 300 && status < 400) {
      return { fault: `answers with a redirect (${status}), which is not followed`, again: false };
    }
    return { fault: `answers ${status}`, again: status >= 500 || status === 429 || status === 408 };
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    const fault = late ? `gave no answer in ${limit / 1000} seconds` : "cannot be reached";
    return { fault, again: true };
  }
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}

/** @throws Error when it is no http or https address */
function hostOf(url: string): string {
  const { protocol = "", host = "" } = URL.canParse(url) ? new URL(url) : {};
  if (protocol === "https:" || protocol === "http:") return host;
  throw new Error("report.webhook is no http or https address");
}
