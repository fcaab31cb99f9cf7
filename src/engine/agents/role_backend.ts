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
  { workspace, caller, operator, approve_models }: {
    workspace: Workspace;
    /** The caller's backend. */
    caller: Backend;
    operator: Operator;
    approve_models: boolean;
  },
): Promise<Backend[]> {
  const backends = models.map((model) => roleBackend(model, caller, workspace));
  const refs = backends.flatMap(({ ref }) => ref ?? []);
  const ask = approvalQuestion(operator, workspace);
  await approveModels(refs, workspace.models, { granted: approve_models, ask });
  return backends;
}

/** Asks the operator to approve models; undefined where the operator cannot be asked. */
export function approvalQuestion(
  operator: Operator,
  { config }: Workspace,
): ((models: ModelRef[]) => Promise<boolean>) | undefined {
  if (operator.approveModels === undefined || config.get("unattended")) return undefined;
  return (models) => operator.approveModels!(models.map(refText));
}

function refText({ provider, model }: ModelRef): string {
  return `${provider}/${model}`;
}
