import type { Action } from "../../plugins/api.ts";
import { type AskPolicy, askPolicy } from "../../policy/roles.ts";
import type { Grants } from "../../policy/gate.ts";
import { actionOf } from "../../policy/policy.ts";
import type { PermissionEntry } from "../../sessions/schema.ts";
import type { Agent, CallHooks, Lead, Tree } from "../agents/agent.ts";

/** What an agent wants to know. */
export interface Question {
  question: string;
  context: string;
  options: string[];
}

const GO_ON = "Go on with what you know, or say in your answer what you need to know.";

/** Where the questions of one agent go (specification 4.8 `ask`). */
export class Questions {
  readonly #tree: Tree;
  readonly #agent: Agent;
  readonly #grants: Grants;
  readonly #policy: AskPolicy;

  constructor(tree: Tree, agent: Agent, grants: Grants) {
    this.#tree = tree;
    this.#agent = agent;
    this.#grants = grants;
    this.#policy = askPolicy(tree.workspace.config, agent.role?.ask_policy);
  }

  /**
   * Asks what to do: the agents above, the nearest first, then the human, who is the operator or, in an
   * unattended run, whoever reads the inbox.
   *
   * @returns the answer, `[parked] ...`, or a text that starts with `Error:` when nobody answers
   */
  async direction(question: Question, asking: CallHooks): Promise<string> {
    const { direction } = this.#policy;
    if (direction === "deny") {
      return `Error: ask has no one to answer: ask_policy lets this agent ask nobody. ${GO_ON}`;
    }
    let below: Lead = this.#agent;
    for (let lead = below.lead; lead !== undefined; below = lead, lead = lead.lead) {
      const answer = await this.#consult(lead, below, question, asking);
      if (answer !== undefined) return answer;
    }
    if (direction === "lead") {
      return "Error: ask has no one to answer: no agent above can, and ask_policy does not let this one " +
        `ask a human. ${GO_ON}`;
    }
    if (this.#unattended) return await this.#park(question, asking);
    const { run, session } = this.#agent;
    const { signal, emit } = asking;
    emit({ type: "ask_routed", run, question: question.question, to: "human" });
    const from = this.#agent.lead === undefined ? "" : `${session.name} asks: `;
    const answer = await this.#tree.operator.ask({
      ...question,
      question: from + question.question,
      run,
      session: session.name,
      signal,
    });
    return answer ??
      "Error: ask has no one to answer: nobody is there, and this run does not park questions. " +
        GO_ON;
  }

  /**
   * Asks for leave for calls of a category. It is given by the caller's ceiling or by the human, never above
   * what the agent was started under, for one call or for the rest of this run, and to this agent alone.
   */
  async leave(category: string, question: Question, asking: CallHooks): Promise<string> {
    const { own, limit } = this.#actions(category);
    if (own === "allow" || this.#grants.has(category)) {
      return `Calls of the category ${category} are open to you already; no leave is needed.`;
    }
    if (limit === "deny") {
      const reason =
        `nobody in this run can give leave for ${category}: it is denied to all of them`;
      return this.#denied(category, "denied", reason, asking);
    }
    if (this.#policy.permission === "deny") {
      return this.#denied(category, "denied", "ask_policy gives this agent no leave", asking);
    }
    if (this.#ceilingGives(limit)) return this.#give(category, "once", "ceiling", asking);
    if (this.#unattended) return await this.#park(question, asking, category);
    const { run, session } = this.#agent;
    const { signal, emit } = asking;
    emit({ type: "ask_routed", run, question: question.question, to: "human" });
    const { granted, scope, by } = await this.#tree.operator.confirm({
      tool: "ask",
      input: { ...question, kind: "permission", permission: category },
      category,
      reason: `leave for ${category} is asked for: ${question.question}`,
      preview: question.context,
      run,
      session: session.name,
      signal,
    });
    // A flag that approves calls has not been asked whether a role may have what it is denied.
    const answered = by === "operator" || own === "ask";
    if (granted && answered && !signal.aborted) return this.#give(category, scope, by, asking);
    if (by === "operator") {
      return this.#denied(category, "declined", "the operator said no", asking);
    }
    const text = this.#denied(category, "declined", "nobody is there to give leave", asking);
    return text.replace(/^Error: /, "Error: ask has no one to answer: ");
  }

  /** The categories of calls that would be refused, and that leave can be had for in this run. */
  obtainable(categories: Iterable<string>): string[] {
    const { headless } = this.#tree;
    if (this.#policy.permission === "deny") return [];
    const human = !headless && !this.#unattended;
    return [...new Set(categories)].filter((category) => {
      const { own, limit } = this.#actions(category);
      if (own === "allow" || limit === "deny") return false;
      return this.#ceilingGives(limit) || (human && own === "deny");
    });
  }

  get #unattended(): boolean {
    return this.#tree.workspace.config.get("unattended");
  }

  #actions(category: string): { own: Action; limit: Action } {
    const { own, limit } = this.#agent.authority;
    return { own: actionOf(own, category), limit: actionOf(limit, category) };
  }

  /** Whether the caller's ceiling decides, and allows. A root run has no caller. */
  #ceilingGives(limit: Action): boolean {
    return this.#policy.permission === "auto" && this.#agent.lead !== undefined &&
      limit === "allow";
  }

  async #consult(
    lead: Lead,
    below: Lead,
    question: Question,
    { signal, emit, spend }: CallHooks,
  ): Promise<string | undefined> {
    const { workspace, runs } = this.#tree;
    emit({
      type: "ask_routed",
      run: this.#agent.run,
      question: question.question,
      to: lead.run,
    });
    const taskOf = ({ run }: Lead) => runs.resolve(`#${run}`)?.task ?? "";
    const provider = workspace.connect(lead.backend, lead.session.id || lead.session.name);
    try {
      const { consult } = await import("./consult.ts");
      return await consult({
        ...question,
        provider,
        clock: workspace.clock,
        signal,
        spend,
        identity: lead.role?.prompt.identity ?? "",
        task: taskOf(lead),
        role: below.role?.name ?? "",
        delegated: taskOf(below),
      });
    } finally {
      await provider.close?.();
    }
  }

  async #park(question: Question, { emit }: CallHooks, permission = ""): Promise<string> {
    const { run, session } = this.#agent;
    const { id } = await this.#tree.workspace.asks.park({
      ...question,
      origin: session.name,
      kind: permission === "" ? "direction" : "permission",
      permission,
    });
    emit({ type: "ask", run, id, question: question.question });
    return `[parked] Ask #${id} waits for a human; the answer will be added to this session. ` +
      "Go on without it where you can, and do not ask again; otherwise end here and say what waits.";
  }

  #give(category: string, scope: "once" | "always", by: string, asking: CallHooks): string {
    this.#grants.give(category, { scope, by });
    this.#record(category, { decision: "granted", scope, granted_by: by }, "leave given", asking);
    return scope === "once"
      ? `Granted: your next call of the category ${category}, and that one only.`
      : `Granted: calls of the category ${category}, for the rest of this run.`;
  }

  #denied(
    category: string,
    decision: "denied" | "declined",
    reason: string,
    asking: CallHooks,
  ): string {
    this.#record(category, { decision }, reason, asking);
    return `Error: permission denied: no leave for ${category}: ${reason}. Do not ask for it again; find ` +
      "another way or say what is missing.";
  }

  #record(
    category: string,
    outcome: Pick<PermissionEntry, "decision" | "scope" | "granted_by">,
    reason: string,
    { emit }: CallHooks,
  ): void {
    const { run, session } = this.#agent;
    const action = outcome.decision === "denied" ? "deny" : "ask";
    const entry = { tool: "ask", action, path: "", permission: category, ...outcome } as const;
    session.recordPermission(entry);
    const { decision } = outcome;
    emit({
      type: "permission",
      run,
      tool: "ask",
      action,
      decision,
      path: "",
      reason: `${category}: ${reason}`,
    });
  }
}
