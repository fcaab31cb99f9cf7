import * as z from "zod/mini";
import type { Workspace } from "../../engine/workspace.ts";
import { GROUPS, summarise } from "../../usage/summary.ts";
import { readQuery, writtenDuration } from "../http.ts";
import type { Route } from "../route.ts";

const sum = {
  requests: z.int(),
  in: z.int(),
  cached: z.int(),
  out: z.int(),
  reasoning: z.int(),
  cost: z.nullable(z.number()),
  unpriced: z.int(),
};

const usageQuery = z.object({
  since: z.prefault(writtenDuration, "7d"),
  by: z._default(z.enum(GROUPS, { error: `one of ${GROUPS.join(", ")}` }), "day"),
});

/** What requests to models have used. */
export function usageRoutes({ spending: { ledger }, clock }: Workspace): Route[] {
  return [{
    method: "GET",
    path: "/usage",
    summary:
      "The tokens and the cost of the requests to models: `since`, how far back; `by`, in which groups.",
    query: usageQuery,
    answers: z.object({
      since: z.string(),
      by: z.enum(GROUPS),
      groups: z.array(z.object({ name: z.string(), ...sum })),
      total: z.object(sum),
    }),
    statuses: { 400: "no such group, or no duration" },
    async handle(request) {
      await ledger.refresh();
      const { since, by } = readQuery(request, usageQuery);
      return Response.json(summarise(ledger, clock.now() - since * 1000, by));
    },
  }];
}
