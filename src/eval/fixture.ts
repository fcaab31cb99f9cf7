import * as z from "zod/mini";
import { SvcError } from "../platform/error.ts";

const names = z.array(z.string());
const count = z.int().check(z.nonnegative());

const schema = z.strictObject({
  id: z.string().check(z.regex(/^[\w.-]{1,100}$/)),
  description: z._default(z.string(), ""),
  /** The prompt. */
  task: z.string().check(z.minLength(1)),
  /** Files of the worktree it runs in: relative path to content. */
  files: z._default(z.record(z.string(), z.string()), {}),
  /** Names of tools in the order in which they are to be called. */
  expected: z._default(names, []),
  verifier: z._default(
    z.strictObject({
      /** The calls are those of `expected` and no others. */
      exact: z._default(z.boolean(), false),
      must_include: z._default(names, []),
      avoid: z._default(names, []),
      max_calls: z.optional(count),
      min_calls: z.optional(count),
      /** By tool: arguments that one of its calls has to have. */
      args: z._default(z.record(z.string(), z.record(z.string(), z.unknown())), {}),
    }),
    { exact: false, must_include: [], avoid: [], args: {} },
  ),
  tool_permission: z._default(z.record(z.string(), z.enum(["allow", "ask", "deny"])), {}),
  tools_deny: z._default(names, []),
});

/** A task with what a good agent would call for it; reads as `svc eval` documents it. */
export type Fixture = z.infer<typeof schema>;

/**
 * Reads one fixture.
 *
 * @throws SvcError `bad_fixture` that names the field at fault
 */
export function readFixture(value: unknown, source: string): Fixture {
  const read = schema.safeParse(value);
  if (read.success) {
    const outside = Object.keys(read.data.files).find((path) => !isInside(path));
    if (outside !== undefined) {
      throw bad(
        source,
        `files names ${JSON.stringify(outside)}, which is no place in the worktree`,
      );
    }
    const paths = Object.keys(read.data.files);
    const both = paths.find((path) => paths.some((other) => other.startsWith(`${path}/`)));
    if (both === undefined) return read.data;
    throw bad(source, `files has ${JSON.stringify(both)} as a file and as a folder`);
  }
  const [issue] = read.error.issues;
  const where = issue!.path.join(".") || "it";
  throw bad(source, `${where}: ${issue!.message}`);
}

function bad(source: string, problem: string): SvcError {
  return new SvcError("bad_fixture", `The fixture ${source} cannot be used: ${problem}.`);
}

/** A relative path that goes nowhere but down, and not into svc's own folder. */
function isInside(path: string): boolean {
  const parts = path.split("/");
  return parts.every((part) => part !== "" && part !== "." && part !== "..") &&
    parts[0] !== ".svc" && !path.includes("\0") && !path.includes("\\");
}
