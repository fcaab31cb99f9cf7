import type { Workspace } from "../engine/workspace.ts";
import { unusableUnder } from "../policy/deno_permissions.ts";
import { type JobContext, openForJob } from "./attempt.ts";
import { type Job, job as jobSchema } from "./schema.ts";

/**
 * Gives up, for the rest of the process, the Deno permissions that no job of the register can use under its
 * mode, role and overrides, nor a job without any. One that cannot be looked at may need them all.
 *
 * @returns what was given up: a job that comes to need it later waits for another process
 */
export async function withdrawForJobs(context: JobContext): Promise<Deno.PermissionName[]> {
  const plain = jobSchema.parse({ name: "job", schedule: { interval: 3600 } });
  const kinds = new Map([plain, ...context.register.list()].map((job) => [kindOf(job), job]));
  let names: Deno.PermissionName[] | undefined;
  for (const job of kinds.values()) {
    const unused = await unusedBy(context, job);
    names = (names ?? unused).filter((name) => unused.includes(name));
  }
  const held = (names ?? []).filter((name) =>
    Deno.permissions.querySync({ name }).state === "granted"
  );
  for (const name of held) Deno.permissions.revokeSync({ name });
  return held;
}

/** Jobs that are alike in all that decides over their rights are of one kind. */
function kindOf({ mode, role, tool_permission, tools_deny }: Job): string {
  return JSON.stringify([mode, role, tool_permission, tools_deny]);
}

async function unusedBy(context: JobContext, job: Job): Promise<Deno.PermissionName[]> {
  let workspace: Workspace | undefined;
  try {
    ({ workspace } = await openForJob({ ...context, warn: () => {} }, job));
    const role = job.role === "" ? undefined : await workspace.role(job.role);
    return unusableUnder(workspace.authority(role), workspace.tools.list(), { yes: false });
  } catch {
    return [];
  } finally {
    await workspace?.close();
  }
}
