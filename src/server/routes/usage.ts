import * as z from "zod/mini";
import { duration } from "../../commands/turn.ts";
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

/** What requests to models have used. */
export function usageRoutes({ spending: { ledger }, clock }: Workspace): Route[] {
  return [{
    method: "GET",
    path: "/usage",
    summary:
      "The tokens and the cost of the requests to models. Query parameters: `since`, how far back, " +
      `such as 12h or 30d (7d); \`by\`, a group for each ${GROUPS.join(", ")} (day).`,
    answers: z.object({
      since: z.string(),
      by: z.enum(GROUPS),
      groups: z.array(z.object({ name: z.string(), ...sum })),
      total: z.object(sum),
    }),
    errors: { 400: "no such group, or no duration" },
    handle({ url }) {
      const query = new URL(url).searchParams;
      const by = GROUPS.find((group) => group === (query.get("by") ?? "day"));
      const since = duration().parse(query.get("since") ?? "7d");
      if (by === undefined) throw new HttpError(400, `by is one of ${GROUPS.join(", ")}`);
      if (!since.success) throw new HttpError(400, "since is a duration such as 12h or 7d");
      return Response.json(summarise(ledger, clock.now() - since.value * 1000, by));
    },
  }];
}
