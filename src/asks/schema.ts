import * as z from "zod/mini";

/** What an ask wants: a direction, or leave for something (specification 2.7). */
export type AskKind = "direction" | "permission";

/** A question for a human: an entry of `.svc/asks.json` (specification 2.7). */
export interface Ask {
  id: number;
  question: string;
  context: string;
  options: string[];
  /** The session that parked it. */
  origin: string;
  kind: AskKind;
  /** What leave is asked for, when the kind is `permission`. */
  permission: string;
  status: "pending" | "answered";
  /** Empty until answered, and so is `answered_at`. */
  answer: string;
  created_at: string;
  answered_at: string;
}

/** The schema of an entry. It is made when there are entries: most runs have none. */
export function askSchema(): z.ZodMiniType<Ask> {
  const text = z._default(z.string(), "");
  return z.object({
    id: z.int().check(z.positive()),
    question: z.string(),
    context: text,
    options: z._default(z.array(z.string()), []),
    origin: text,
    kind: z._default(z.enum(["direction", "permission"]), "direction"),
    permission: text,
    status: z.enum(["pending", "answered"]),
    answer: text,
    created_at: text,
    answered_at: text,
  });
}
