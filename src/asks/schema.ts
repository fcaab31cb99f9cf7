import * as z from "zod/mini";

const entry = () => {
  const text = z._default(z.string(), "");
  return z.object({
    id: z.int().check(z.positive()),
    question: z.string(),
    context: text,
    options: z._default(z.array(z.string()), []),
    /** The session that parked it. */
    origin: text,
    /** What is wanted: a direction, or leave for what `permission` names. */
    kind: z._default(z.enum(["direction", "permission"]), "direction"),
    permission: text,
    status: z.enum(["pending", "answered"]),
    /** Empty until answered, and so is `answered_at`. */
    answer: text,
    created_at: text,
    answered_at: text,
  });
};

/** A question for a human: an entry of `.svc/asks.json` (specification 2.7). */
export type Ask = z.infer<ReturnType<typeof entry>>;

/** The schema of an entry. It is made when there are entries: most runs have none. */
export function askSchema(): z.ZodMiniType<Ask> {
  return entry();
}
