import * as z from "zod/mini";
import type { Workspace } from "../../engine/workspace.ts";
import { GROUPS, summarise } from "../../usage/summary.ts";
import { HttpError } from "../http.ts";
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

const DAY = 86_400_000;
const MOST_DAYS = 3660;

/** What requests to models have used. */
export function usageRoutes({ spending: { ledger }, clock }: Workspace): Route[] {
  return [{
    method: "GET",
    path: "/usage",
    summary: "The tokens and the cost of the requests to models in the last `days` (query, 7), " +
      `in groups \`by\` ${GROUPS.join(", ")} (query, day).`,
    answers: z.object({
      since: z.string(),
      by: z.enum(GROUPS),
      groups: z.array(z.object({ name: z.string(), ...sum })),
      total: z.object(sum),
    }),
    errors: { 400: "no such group, or no number of days" },
    handle({ url }) {
      const query = new URL(url).searchParams;
      const by = GROUPS.find((group) => group === (query.get("by") ?? "day"));
      const days = Number(query.get("days") ?? 7);
      if (by === undefined) throw new HttpError(400, `by is one of ${GROUPS.join(", ")}`);
      if (!(days > 0 && days <= MOST_DAYS)) throw new HttpError(400, "days is a positive number");
      return Response.json(summarise(ledger, clock.now() - days * DAY, by));
    },
  }];
}
