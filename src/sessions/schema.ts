import * as z from "zod/mini";

/** The status of a turn (specification 3.3). */
export const turnStatus = z.enum(["running", "ok", "error", "truncated", "empty", "cancelled"]);
export type TurnStatus = z.infer<typeof turnStatus>;

const stamp = { timestamp: z.string() };

/**
 * The reply that a part comes from, so that later requests repeat it byte for byte. Parts with the same `round`
 * are one reply. On the first of them, `continued` tells where the model was asked to continue: the characters
 * of text and thinking before the request, and the request; `backend_state` has the reasoning blocks that the
 * backend expects back with the reply, and the backend.
 */
const reply = {
  round: z.optional(z.int()),
  continued: z.optional(z.array(
    z.object({ text: z.int(), thinking: z.int(), request: z.string() }),
  )),
  backend_state: z.optional(z.object({
    provider: z.string(),
    model: z.string(),
    blocks: z.array(z.record(z.string(), z.unknown())),
  })),
};

/** A call as the backend sent it, where `name` and `input` do not say it. */
const call = z.object({
  id: z.string(),
  name: z.optional(z.string()),
  arguments: z.optional(z.string()),
  extra_content: z.optional(z.record(z.string(), z.unknown())),
  /** Those of the whole reply, in logs without `backend_state`. */
  reasoning_details: z.optional(z.array(z.record(z.string(), z.unknown()))),
});

/** What was attached to a prompt or a result. Its content is in a file next to the log. */
const attachment = z.object({
  /** A path, or what else tells where it is from. */
  name: z.string(),
  /** SHA-256 of the content, in hexadecimal. */
  digest: z.string(),
  bytes: z.int(),
  /** The type of an image. Left out: it is a text. */
  media_type: z.optional(z.string()),
});
export type Attachment = z.infer<typeof attachment>;

/** One part of a turn (specification 2.2). */
export const part = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("user"),
    text: z.string(),
    attachments: z.optional(z.array(attachment)),
    ...stamp,
  }),
  z.object({ type: z.literal("text"), text: z.string(), ...reply, ...stamp }),
  z.object({ type: z.literal("thinking"), text: z.string(), ...reply, ...stamp }),
  z.object({
    type: z.literal("tool"),
    name: z.string(),
    input: z.record(z.string(), z.unknown()),
    output: z.string(),
    is_error: z.boolean(),
    analysis: z.optional(z.string()),
    call: z.optional(call),
    /** The images that the tool gave with it. */
    attachments: z.optional(z.array(attachment)),
    ...reply,
    ...stamp,
  }),
  /**
   * A slash command, or a compaction record. Of a record's two forms, one has a `summary`, which replaces the turns
   * before `compact_from`, and in that turn the replies before the part `compact_part` (0-based). The other has
   * `results_max`: tool results before the part `results_part` of the turn `results_from` are sent with at most so
   * many characters, or only those in this turn from the part `results_since` on. `window` is the context window, in
   * tokens, that a refused request has shown.
   */
  z.object({
    type: z.literal("command"),
    text: z.string(),
    summary: z.optional(z.string()),
    compact_from: z.optional(z.int()),
    compact_part: z.optional(z.int()),
    results_max: z.optional(z.int()),
    results_since: z.optional(z.int()),
    results_from: z.optional(z.int()),
    results_part: z.optional(z.int()),
    window: z.optional(z.int()),
    ...stamp,
  }),
  z.object({ type: z.literal("system"), text: z.string(), ...stamp }),
]);
export type Part = z.infer<typeof part>;
export type BackendState = NonNullable<(Part & { type: "text" })["backend_state"]>;
export type Continued = NonNullable<(Part & { type: "text" })["continued"]>[number];
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
  /** Token counts of the turn's own requests, and what they cost with those of the agents that it started. */
  usage: z.optional(z.record(z.string(), z.number())),
  cost: z.optional(z.number()),
  /** Of the first turn: where the session works, as all its requests say it at the end of the system prompt. */
  environment: z.optional(z.string()),
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
  /** What an approval of the scope `always` covers, in words. */
  covers: z.optional(z.string()),
  /** The mechanism that confines the programs of a granted call of `bash`, `dev` or `vcs`; `none` without one. */
  sandbox: z.optional(z.string()),
  /** `text` for a call that the model wrote as text (`text_calls`). */
  origin: z.optional(z.literal("text")),
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
