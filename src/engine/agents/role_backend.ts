import type { Operator } from "../../policy/operator.ts";
import { approveModels } from "../../providers/approvals.ts";
import { type ModelRef, parseModelRef } from "../../providers/refs.ts";
import { type Backend, resolveBackend } from "../../providers/resolve.ts";
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
  const { providers, connections } = workspace;
  const refs = models.map((model) => parseModelRef(model, providers, connections));
  const attended = !workspace.config.get("unattended");
  const ask = operator.approveModels && attended
    ? (pending: ModelRef[]) => operator.approveModels!(pending.map(refText))
    : undefined;
  await approveModels(refs, workspace.models, { granted: approve_models, ask });
  return refs.map(({ provider, model }) => {
    if (model === "") return own;
    if (provider === "" || provider === own.provider) return { ...own, model };
    return resolveBackend({ provider, model, base_url: "" }, providers, connections);
  });
}

function refText({ provider, model }: ModelRef): string {
  return `${provider}/${model}`;
}
