import type { ChatMessage, ConfigView } from "../plugins/api.ts";
import type { Policy } from "../policy/policy.ts";
import type { PolicySettings } from "../policy/settings.ts";
import type { WorktreeGuard } from "../policy/paths.ts";
import type { Session } from "../sessions/session.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import type { Agents } from "./agents/agents.ts";
import { historyMessages } from "./messages.ts";
import { type AgentPrompt, systemPrompt } from "./prompt.ts";
import type { Questions } from "./questions/questions.ts";
import { coreTool } from "./tools/core.ts";

/** What an agent's model is to know of the agent. */
export interface ProviderContextOptions {
  /** Real absolute path. */
  worktree: string;
  config: ConfigView;
  guard: WorktreeGuard;
  settings: PolicySettings;
  session: Session;
  /** True when no human can approve calls: the prompt then names what will be refused. */
  headless: boolean;
  /** What the agent's role brings to the system prompt. Default: nothing. */
  role?: AgentPrompt;
  /** A job's sections of the system prompt; they stand in for the configured and the built-in one. */
  job?: string[];
  /** Where what the agent asks goes. */
  questions: Questions;
  /** Starts agents under this one. */
  agents: Agents;
}

const NO_ROLE: AgentPrompt = { identity: "", skills: "", memory: "" };

/** What the provider of one agent is sent: the system prompt and the conversation so far (specification 2.1). */
export class ProviderContext {
  readonly #options: ProviderContextOptions;
  readonly #policy: Policy;
  /** The conversation up to and including turn `#known`, so that it is not read again every turn. */
  #messages: ChatMessage[] = [];
  #known = 0;

  constructor(options: ProviderContextOptions, policy: Policy) {
    this.#options = options;
    this.#policy = policy;
  }

  /** The messages of a turn's first request; the system prompt is always the first. */
  async messages(
    prompt: string,
    index: number,
    tools: ToolRegistry,
    warn: (message: string) => void,
  ): Promise<ChatMessage[]> {
    if (index !== this.#known + 1) {
      const turns = await this.#options.session.turns();
      this.#messages = historyMessages(turns.filter((turn) => turn.index < index));
    }
    return [
      { role: "system", content: await this.#systemPrompt(tools, warn) },
      ...this.#messages,
      { role: "user", content: prompt },
    ];
  }

  /** Goes on from what a turn has made of its messages. */
  keep(messages: ChatMessage[], index: number): void {
    this.#messages = messages.slice(1);
    this.#known = index;
  }

  async #systemPrompt(tools: ToolRegistry, warn: (message: string) => void): Promise<string> {
    const { worktree, guard, config, settings, headless, role = NO_ROLE, job } = this.#options;
    const offered = tools.list().filter((tool) => this.#policy.offers(tool));
    const refused = headless ? this.#policy.refusedWithoutApproval(offered) : [];
    const obtainable = offered.some(({ name }) => name === "ask")
      ? this.#options.questions.obtainable(tools.list().map(({ permission }) => permission))
      : [];
    const has = (name: string) =>
      offered.some((tool) => coreTool(tool)?.name === name && !refused.includes(tool.permission));
    const others = await this.#options.agents.directory({
      delegate: has("delegate"),
      team: has("team"),
    });
    const { mode } = settings;
    return systemPrompt({
      worktree,
      guard,
      config,
      mode,
      role,
      job,
      others,
      refused,
      obtainable,
      warn,
    });
  }
}
