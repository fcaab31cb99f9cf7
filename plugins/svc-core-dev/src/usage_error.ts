/** A call that cannot be run as it is; the message is the result. */
export class UsageError extends Error {}
