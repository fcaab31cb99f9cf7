import * as z from "zod/mini";

/** The status of a turn (specification 3.3). */
export const turnStatus = z.enum(["running", "ok", "error", "truncated", "empty", "cancelled"]);
export type TurnStatus = z.infer<typeof turnStatus>;

const stamp = { timestamp: z.string() };

/** One part of a turn (specification 2.2). */
export const part = z.discriminatedUnion("type", [
  z.object({ type: z.literal("user"), text: z.string(), ...stamp }),
  z.object({ type: z.literal("text"), text: z.string(), ...stamp }),
  z.object({ type: z.literal("thinking"), text: z.string(), ...stamp }),
  z.object({
    type: z.literal("tool"),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
    output: z.string(),
    is_error: z.boolean(),
    analysis: z.optional(z.string()),
    ...stamp,
  }),
  z.object({
    type: z.literal("command"),
    text: z.string(),
    summary: z.optional(z.string()),
    compact_from: z.optional(z.int()),
    ...stamp,
  }),
  z.object({ type: z.literal("system"), text: z.string(), ...stamp }),
]);
export type Part = z.infer<typeof part>;
/** A part without the timestamp that the log adds. */
export type NewPart = Part extends infer P ? (P extends Part ? Omit<P, "timestamp"> : never)
  : never;

/** One turn (specification 2.2). `ended_at` is empty while the turn runs. */
export const turn = z.object({
  index: z.int(),
  started_at: z.string(),
  ended_at: z.string(),
  status: turnStatus,
  model: z.string(),
  provider: z.string(),
  mode: z.string(),
  reasoning: z.union([z.string(), z.boolean()]),
  parts: z.array(part),
});
export type Turn = z.infer<typeof turn>;

/** A turn-level error (specification 2.3). `code` is the HTTP status, or 0. */
export const sessionError = z.object({
  code: z.int(),
  message: z.string(),
  timestamp: z.string(),
});
export type SessionError = z.infer<typeof sessionError>;

/** One decision of the permission policy (specification 2.4). */
export const permissionEntry = z.object({
  tool: z.string(),
  action: z.enum(["allow", "ask", "deny"]),
  decision: z.enum(["granted", "declined", "denied"]),
  /** The path argument of the call, when it has one. */
  path: z.optional(z.string()),
  /** The category, for a call of `ask` that requests a permission grant. */
  permission: z.optional(z.string()),
  scope: z.optional(z.enum(["once", "always"])),
  granted_by: z.optional(z.string()),
  timestamp: z.string(),
});
export type PermissionEntry = z.infer<typeof permissionEntry>;

/** A session file, whole (specification 2.1). */
export const sessionDocument = z.object({
  session_name: z.string(),
  session_id: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
  parent_id: z._default(z.string(), ""),
  role: z._default(z.string(), ""),
  /** The job whose run created the session. */
  job: z.optional(z.string()),
  version: z._default(z.string(), ""),
  sub_sessions: z._default(z.array(z.string()), []),
  errors: z._default(z.array(sessionError), []),
  permissions: z._default(z.array(permissionEntry), []),
  turns: z.array(turn),
});
export type SessionDocument = z.infer<typeof sessionDocument>;
