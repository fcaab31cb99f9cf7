import { join } from "node:path";
import * as z from "zod/mini";
import { type Clock, timestamp } from "../platform/clock.ts";
import { usageError } from "../platform/error.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import { isRecent } from "./connections.ts";
import type { ModelRef } from "./resolve.ts";

const approvedModel = z.object({
  provider: z.string(),
  model: z.string(),
  added_at: z._default(z.string(), ""),
  last_used: z._default(z.string(), ""),
});

/** A model that a ref may name: an entry of `models.json` (specification 2.12). */
export type ApprovedModel = z.infer<typeof approvedModel>;

/** `~/.config/svc/models.json`: the approved models, one entry for each provider and model. */
export class ModelStore {
  readonly #file: RegistryFile;
  readonly #clock: Clock;

  constructor(userDirectory: string, clock: Clock, warn: (message: string) => void) {
    this.#file = new RegistryFile(join(userDirectory, "models.json"), clock, warn);
    this.#clock = clock;
  }

  /** The approved models in the order of their approval. */
  list(): ApprovedModel[] {
    const models: ApprovedModel[] = [];
    for (const entry of entries(this.#file.read())) {
      const { success, data } = approvedModel.safeParse(entry);
      if (success) models.push(data);
      else this.#file.warnOnce("has an entry that is not understood");
    }
    return models;
  }

  isApproved(provider: string, model: string): boolean {
    return this.list().some((entry) => entry.provider === provider && entry.model === model);
  }

  /** Approves a model; an approved one keeps its entry. */
  async approve(provider: string, model: string): Promise<void> {
    if (this.isApproved(provider, model)) return;
    await this.#file.update((value) => {
      const all = entries(value);
      if (all.some(isEntryOf(provider, model))) return all;
      return [...all, { provider, model, added_at: timestamp(this.#clock), last_used: "" }];
    });
  }

  /** Updates `last_used` of an approved model, at most once an hour. */
  async touch(provider: string, model: string): Promise<void> {
    const used = this.list().find(isEntryOf(provider, model));
    if (used === undefined || isRecent(used.last_used, this.#clock)) return;
    const last_used = timestamp(this.#clock);
    const isUsed = isEntryOf(provider, model);
    await this.#file.update((value) =>
      entries(value).map((entry) =>
        isUsed(entry) ? { ...entry as ApprovedModel, last_used } : entry
      )
    );
  }
}

/** How the operator approves models. */
export interface ApprovalGate {
  /** Whether an explicit `--model`, `--approve-model` or a job's `approve_model` approves them. */
  granted: boolean;
  /** Asks the operator once about all of them. Omitted when there is no operator to ask. */
  ask?: (models: ModelRef[]) => Promise<boolean>;
}

/**
 * The approval gate (specification 5.2): returns when all models that a ref names are approved. Approvals
 * that are given here are recorded in `models.json`. Bare model ids need no approval.
 *
 * @throws SvcError `model_not_approved` (exit 2); then nothing is recorded.
 */
export async function approveModels(
  models: ModelRef[],
  store: ModelStore,
  gate: ApprovalGate,
): Promise<void> {
  const pending = new Map(
    models.filter(({ provider, model }) => provider !== "" && !store.isApproved(provider, model))
      .map((ref) => [`${ref.provider}/${ref.model}`, ref]),
  );
  if (pending.size === 0) return;
  if (!gate.granted && !await gate.ask?.([...pending.values()])) {
    throw usageError(
      "model_not_approved",
      `model not approved: ${[...pending.keys()].join(", ")}.`,
      gate.ask === undefined
        ? "Approve it with --approve-model, or name it yourself with --model."
        : "You declined it; say yes when it is asked for again.",
    );
  }
  for (const { provider, model } of pending.values()) await store.approve(provider, model);
}

/** The entries of the file: an array, or an object that holds it as `models`. */
function entries(value: unknown): unknown[] {
  const list = Array.isArray(value) ? value : (value as { models?: unknown } | undefined)?.models;
  return Array.isArray(list) ? list : [];
}

function isEntryOf(provider: string, model: string): (entry: unknown) => boolean {
  return (entry) => {
    const { success, data } = approvedModel.safeParse(entry);
    return success && data.provider === provider && data.model === model;
  };
}
