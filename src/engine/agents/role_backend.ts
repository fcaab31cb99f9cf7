import type { Operator } from "../../policy/operator.ts";
import { approveModels } from "../../providers/model_approval.ts";
import type { ModelRef } from "../../providers/resolve.ts";
import { type Backend, roleBackend } from "../../providers/resolve.ts";
import type { Workspace } from "../workspace.ts";

/**
 * The backends that serve the models of roles, in their order; a role without a model is served by the
 * caller's. Models that are not approved yet are asked for in one question, where somebody may be asked
 * (specification 5.2).
 *
 * @throws SvcError `model_not_approved` (exit 2); then none of them is approved
 */
export async function roleBackends(
  models: string[],
  { workspace, own, operator, approve_models }: {
    workspace: Workspace;
    /** The caller's. */
    own: Backend;
    operator: Operator;
    approve_models: boolean;
  },
): Promise<Backend[]> {
  const backends = models.map((model) => roleBackend(model, own, workspace));
  const attended = !workspace.config.get("unattended");
  const ask = operator.approveModels && attended
    ? (pending: ModelRef[]) => operator.approveModels!(pending.map(refText))
    : undefined;
  const refs = backends.flatMap(({ ref }) => ref ?? []);
  await approveModels(refs, workspace.models, { granted: approve_models, ask });
  return backends;
}

function refText({ provider, model }: ModelRef): string {
  return `${provider}/${model}`;
}
