import { createHash } from "node:crypto";
import * as z from "zod/mini";
import { NAME_PATTERN } from "../../catalog/schema.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { stripControl } from "../../platform/terminal.ts";
import { HookSecrets } from "../hooks.ts";
import { HttpError, readBytes } from "../http.ts";
import type { Route } from "../route.ts";
import type { Runs } from "../runs.ts";

/** Characters of a body that the job gets. */
const MOST = 64 * 1024;

/** The requests of other programs that start jobs. */
export function hookRoutes(workspace: Workspace, runs: Runs): Route[] {
  const secrets = new HookSecrets(workspace);
  return [{
    method: "POST",
    path: "/hooks/:job",
    summary:
      "Starts a job with the body as data, once for each `X-GitHub-Delivery` or `Idempotency-Key`, else for each " +
      "body. `X-Hub-Signature-256` is `sha256=` and the HMAC-SHA256 of the body in hexadecimal, with the secret of " +
      "`svc serve hook`.",
    params: { job: { type: "string", pattern: NAME_PATTERN.source } },
    headers: {
      "x-hub-signature-256": { description: "The signature of the body." },
      "x-github-delivery": { description: "The name of the delivery." },
      "x-github-event": { description: "The kind of the event; a ping starts nothing." },
      "idempotency-key": { description: "The name of the delivery, of other senders." },
    },
    signed: true,
    accepts: true,
    answers: z.object({ id: z.string() }),
    statuses: {
      204: "a ping was received",
      400: "the body broke off",
      401: "there is no such hook, or the signature is wrong",
      408: "the body took too long to arrive",
      409: "the job's state does not allow it",
      413: "the body is too large",
      429: "too many turns are waiting",
      503: "the server is stopping",
    },
    async handle(request, { job = "" }) {
      const body = await readBytes(request, workspace);
      const header = (name: string) => request.headers.get(name) ?? "";
      if (!secrets.verify(job, body, header("x-hub-signature-256"))) throw refused();
      const event = /^[\w.-]{1,64}$/.exec(header("x-github-event"))?.[0] ?? "";
      if (event === "ping") return new Response(null, { status: 204 });
      const given = header("x-github-delivery") || header("idempotency-key");
      const delivery = given || `sha256 ${createHash("sha256").update(body).digest("hex")}`;
      const hook = { job, event, data: bounded(body) };
      const accepted = await runs.acceptHook(hook, `hook ${JSON.stringify([job, delivery])}`);
      if (accepted === undefined) throw refused();
      const { run: { id }, known } = accepted;
      return Response.json({ id }, { status: known ? 200 : 202 });
    },
  }];
}

/** An unknown job and a wrong signature look the same. */
function refused(): HttpError {
  return new HttpError(401, "there is no such hook, or the signature is wrong");
}

function bounded(body: Uint8Array): string {
  const text = stripControl(new TextDecoder().decode(body));
  if (text.length <= MOST) return text;
  return `${
    text.slice(0, MOST).toWellFormed()
  }\n[cut off: the first ${MOST} of ${text.length} characters]`;
}
