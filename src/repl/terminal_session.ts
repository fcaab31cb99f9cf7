import type { AskStore } from "../asks/store.ts";
import type { Io } from "../commands/io.ts";
import { ROOT_RUN } from "../engine/events.ts";
import { VERSION } from "../platform/environment.ts";
import { oneLine, stripControl, visible } from "../platform/terminal.ts";
import { factLines, wrapped } from "../platform/text.ts";
import type { BackendRequest } from "../providers/resolve.ts";
import type { Part } from "../sessions/schema.ts";
import { SESSION_NEEDS } from "../engine/workspace.ts";
import { reported, runLoop } from "./loop.ts";
import { onSignals, type Opened, type Shell } from "./shell.ts";

/** Milliseconds until plugins are loaded and the sandbox is tried in the background; the prompt is drawn by then. */
const AHEAD = 50;

/** Names of what is not trusted that are shown at the start. */
const SOME = 8;

/** Runs an interactive session at a terminal. Returns the exit code. */
export async function runTerminal(
  { shell, cancellation, announce, asking, options }: Opened,
): Promise<number> {
  const { workspace, conversation, input, output, style, io } = shell;
  const signals = onSignals(cancellation);
  const asks = new AsksWatch(workspace.asks, io);
  const closing = new AbortController();
  let open = true;
  let sandbox = "";
  const tellSandbox = () => {
    if (sandbox !== "") announce(sandbox);
    sandbox = "";
  };
  try {
    for (const line of bannerLines(shell)) output.line(style.dim(line));
    if (conversation.name !== undefined) {
      await reported(shell, () => Promise.resolve(introduce(shell)));
    }
    if (options.pick) {
      const { choose } = await import("./commands/sessions.ts");
      await reported(shell, () => choose(shell));
    }
    if (workspace.trust.pending && !workspace.config.get("unattended")) {
      const { askAtStart } = await import("../commands/trust.ts");
      await reported(shell, async () => {
        const left = await askAtStart(workspace, io);
        const more = left.length > SOME ? `, and ${left.length - SOME} more` : "";
        if (left.length > 0) {
          io.note(`not trusted: ${left.slice(0, SOME).join(", ")}${more} (/trust)`);
        }
      });
    }
    const { provider, base_url, model } = workspace.backendRequest();
    if (provider === "" && base_url === "" && model === "" && !workspace.config.get("unattended")) {
      await reported(shell, () => welcome(shell));
    } else if (model.includes("/") && conversation.approves) {
      await reported(shell, () => approve(model, shell));
    }
    // Prepares what the first message needs while the operator types.
    workspace.clock.sleep(AHEAD, closing.signal).then(() => {
      void workspace.load(SESSION_NEEDS).catch(() => {});
      void import("../engine/start.ts");
      void Promise.all([workspace.sandbox.kind(), roleModel(shell)]).then(([kind, model]) => {
        sandbox = [`sandbox: ${kind ?? "none"}`, ...model].join(" · ");
        // Otherwise after the turn.
        if (open && input.reading && !asking()) tellSandbox();
      });
    }, () => {});
    await runLoop({
      shell,
      between() {
        tellSandbox();
        asks.look();
      },
      prompt: () => promptText(shell),
      async complete(line, cursor) {
        const { complete } = await import("./commands/complete.ts");
        return await complete(line, cursor, shell);
      },
      ending: signals.ending,
    });
  } finally {
    open = false;
    closing.abort();
    await conversation.close();
    output.status(undefined);
    output.fresh();
    input.close();
    signals.release();
  }
  if (conversation.name !== undefined && signals.code() === 0) {
    // `svc --continue` resumes this session.
    output.line(style.dim(`Session ${conversation.name} is saved; go on with: svc --continue`));
  }
  return signals.code();
}

/** What the session begins with: version, model, mode, role and folder, then where to find help. */
export function bannerLines({ workspace, conversation, output }: Shell): string[] {
  const { config, paths: { worktree } } = workspace;
  const { home } = workspace.environment;
  const folder = `${worktree}/`.startsWith(`${home}/`)
    ? `~${worktree.slice(home.length)}`
    : worktree;
  const facts = [
    `svc ${VERSION}`,
    modelName(workspace.backendRequest()),
    `mode ${config.get("mode")}`,
    config.get("unattended") ? "unattended" : "",
    conversation.role === "" ? "" : `role ${conversation.role}`,
    folder,
  ].map(oneLine);
  return [
    ...factLines(facts, output.columns()),
    ...factLines(["/help lists commands", "Ctrl-D leaves"], output.columns()),
  ];
}

function modelName({ provider, base_url, model }: BackendRequest): string {
  if (model === "") return provider || base_url || "no model";
  return provider === "" ? model : `${provider}/${model}`;
}

/** The model of the session's role, where it is another one than the banner has. */
async function roleModel({ workspace, conversation }: Shell): Promise<string[]> {
  if (conversation.role === "") return [];
  const backend = await conversation.backend().catch(() => undefined);
  if (backend === undefined || backend.model === workspace.backendRequest().model) return [];
  return [`model: ${oneLine(modelName(backend))}`];
}

/** Prints the state of a resumed session. */
export function introduce({ workspace, conversation, io }: Shell): void {
  const name = conversation.name!;
  if (workspace.sessions.read(name) === undefined) {
    io.note(`Session ${name} begins with your next message.`);
    return;
  }
  const document = conversation.open().document(); // also closes a turn whose process died
  const { turns, role } = document;
  const count = turns.length === 1 ? "1 turn" : `${turns.length} turns`;
  const as = role === "" ? "" : `, role ${role}`;
  io.note(`Session ${name}: ${count}${as}. See them with /history.`);
  const isPrompt = (part: Part) => part.type === "user";
  const last = turns.findLast(({ parts }) => parts.some(isPrompt));
  const prompt = last?.parts.find(isPrompt);
  if (prompt !== undefined && "text" in prompt) {
    io.note(`last: #${last!.index} [${last!.status}] ${stripControl(prompt.text).slice(0, 200)}`);
  }
}

/** The first start without a provider: connects one, selects the demo model, or is skipped. */
export async function welcome(shell: Shell): Promise<void> {
  const { workspace, input, output, style, io } = shell;
  const say = (line: string) => output.line(wrapped(line, output.columns()));
  output.line("");
  say(style.bold("Welcome.") + " No model provider is connected yet.");
  say("  1  connect one: its name or address, then its key");
  say("  2  try the built-in demo model: a few rules, no key, no language model");
  say("  Enter skips this; /connect does it later.");
  const answer = await input.read({ prompt: "1, 2, a provider, or Enter: ", remember: false });
  if (answer.type !== "line") return;
  const choice = answer.text.trim();
  if (choice !== "" && choice !== "2" && choice !== "demo") {
    const { runSlash } = await import("./commands/slash.ts");
    await runSlash("connect", choice === "1" ? "" : choice, shell);
  } else if (choice !== "") {
    workspace.config.override("provider", "demo");
    io.note("The demo model answers in this session. Try: how many lines does README.md have?");
  } else {
    io.note("Skipped. /connect connects a provider, /help lists everything else.");
  }
}

/** Asks for the approval of the model that the settings name (specification 5.2), unless it is approved. */
async function approve(named: string, { workspace, operator }: Shell): Promise<void> {
  const { models } = workspace;
  if (models.list().some(({ provider, model }) => `${provider}/${model}` === named)) return;
  await workspace.load({ providers: "all" }); // their names are the beginnings of refs
  const { ref } = workspace.backendRequest();
  if (ref === undefined) return;
  const { approveModels } = await import("../providers/model_approval.ts");
  const { approvalQuestion } = await import("../engine/agents.ts");
  const ask = approvalQuestion(operator, workspace);
  await approveModels([ref], models, { granted: false, ask });
}

/** The colors that a mode of the configuration can have in the prompt; others count as yellow. */
const COLORS = ["red", "green", "yellow", "blue", "magenta", "cyan"] as const;

/** The prompt: mode, focused run and role when they differ from the default. */
export function promptText({ workspace: { config }, conversation, focus, style }: Shell): string {
  const mode = config.get("mode");
  const color = COLORS.find((each) => each === config.get("modes")[mode]?.color);
  const run = focus.current();
  const role = run?.role ?? conversation.role;
  const words = [
    mode === "build" ? "" : style[color ?? "yellow"](oneLine(mode)),
    config.get("unattended") ? style.yellow("unattended") : "",
    focus.run === ROOT_RUN ? "" : style.cyan(`#${focus.run}`),
    role !== "" && (config.get("prompt_role") || focus.run !== ROOT_RUN)
      ? style.cyan(oneLine(role))
      : "",
  ].filter((word) => word !== "");
  return [...words, style.bold("› ")].join(" ");
}

/** Announces parked asks (specification 2.7): their number first, then each new one. */
export class AsksWatch {
  readonly #asks: AskStore;
  readonly #io: Pick<Io, "note">;
  #stamp = "";
  #known: Set<number> | undefined;

  constructor(asks: AskStore, io: Pick<Io, "note">) {
    this.#asks = asks;
    this.#io = io;
  }

  /** Reads the asks if the file has changed. */
  look(): void {
    const stamp = this.#changed();
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    const pending = this.#asks.list("pending");
    const before = this.#known;
    this.#known = new Set(pending.map(({ id }) => id));
    if (before === undefined) {
      const waiting = pending.length === 1
        ? "1 question waits"
        : `${pending.length} questions wait`;
      if (pending.length > 0) this.#io.note(`${waiting} for your answer: /asks`);
      return;
    }
    for (const { id, question, origin } of pending) {
      if (before.has(id)) continue;
      this.#io.note(`Ask #${id} (session ${origin}): ${oneLine(visible(question))}`);
      this.#io.note(`Answer it with: /asks answer ${id} <text>`);
    }
  }

  /** A stamp of size and modification time; the file is not read. */
  #changed(): string {
    try {
      const { mtime, size } = Deno.statSync(this.#asks.path);
      return `${mtime?.getTime()} ${size}`;
    } catch {
      return "";
    }
  }
}
