import {
  agent,
  type AgentContext,
  type ClientCapabilities,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk";
import type {
  LoadSessionRequest,
  ResumeSessionRequest,
  SessionInfo,
} from "@agentclientprotocol/sdk";
import { isAbsolute } from "node:path";
import type { Io } from "../commands/io.ts";
import { requested } from "../commands/providers.ts";
import { Workspace } from "../engine/workspace.ts";
import { systemClock } from "../platform/clock.ts";
import { VERSION } from "../platform/environment.ts";
import { SvcError, usageError } from "../platform/error.ts";
import { oneLine } from "../platform/terminal.ts";
import { mintName } from "../sessions/names.ts";
import { EditorSession, errorText, serverEntries } from "./session.ts";

/** The arguments of `svc acp`. */
export interface AcpValues {
  role?: string;
  model?: string;
  provider?: string;
  mode?: string;
  trust: boolean;
}

/** The most bytes of one message. */
const MAX_MESSAGE = 32 * 1024 * 1024;
/** Sessions on one page of a list. */
const PAGE = 100;

/**
 * Serves one editor on standard input and output by the Agent Client Protocol, until it disconnects or an interrupt.
 *
 * @returns the exit code
 */
export async function acp(values: AcpValues, io: Io): Promise<number> {
  const interrupt = io.onInterrupt();
  // A plugin that prints must not write into the protocol.
  // deno-lint-ignore no-console
  for (const level of ["log", "info", "debug"] as const) console[level] = console.error;
  const editor = new Editor(values, io);
  const stream = ndJsonStream(Deno.stdout.writable, Deno.stdin.readable, {
    maxMessageBytes: MAX_MESSAGE,
  });
  const connection = editor.app().connect(stream);
  interrupt.signal.addEventListener("abort", () => connection.close(), { once: true });
  await connection.closed;
  await editor.close(interrupt.signal);
  interrupt.release();
  return 0;
}

/** The sessions of one editor, in the worktrees that it names. */
class Editor {
  readonly #values: AcpValues;
  readonly #io: Io;
  #capabilities: ClientCapabilities = {};
  /** By worktree: sessions are found here; those that are open have workspaces of their own. */
  readonly #homes = new Map<string, Promise<Workspace>>();
  readonly #sessions = new Map<string, EditorSession>();
  /** Sessions that were begun here; their logs begin with the first turn. */
  readonly #begun = new Set<string>();
  readonly #warned = new Set<string>();
  /** The models that backends offer, by provider and address. */
  readonly #offered = new Map<string, Promise<string[]>>();

  constructor(values: AcpValues, io: Io) {
    this.#values = values;
    this.#io = io;
  }

  app() {
    return agent({ name: "svc" })
      .onRequest("initialize", ({ params }) => {
        this.#capabilities = params.clientCapabilities ?? {};
        return {
          protocolVersion: PROTOCOL_VERSION,
          agentInfo: { name: "svc", title: "svc", version: VERSION },
          authMethods: [], // keys are stored by `svc connect`
          agentCapabilities: {
            loadSession: true,
            promptCapabilities: { image: true, embeddedContext: true },
            mcpCapabilities: { http: true },
            sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {} },
          },
        };
      })
      .onRequest("session/new", ({ params, client }) =>
        answered(async () => {
          const sessionId = mintName("ses", systemClock);
          this.#begun.add(sessionId);
          const session = await this.#open({ ...params, sessionId }, client);
          return { sessionId, ...await ready(session) };
        }))
      .onRequest("session/load", ({ params, client }) =>
        answered(async () => {
          const session = await this.#open(params, client);
          await session.replay();
          return await ready(session);
        }))
      .onRequest(
        "session/resume",
        ({ params, client }) => answered(async () => await ready(await this.#open(params, client))),
      )
      .onRequest("session/list", ({ params }) => answered(() => this.#list(params)))
      .onRequest("session/delete", ({ params: { sessionId } }) =>
        answered(async () => {
          await this.#delete(sessionId);
          return {};
        }))
      .onRequest("session/close", ({ params: { sessionId } }) =>
        answered(async () => {
          this.#need(sessionId);
          await this.#close(sessionId);
          return {};
        }))
      .onRequest("session/set_mode", ({ params: { sessionId, modeId } }) =>
        answered(async () => {
          await this.#need(sessionId).setMode(modeId);
          return {};
        }))
      .onRequest(
        "session/set_config_option",
        ({ params: { sessionId, configId, value } }) =>
          answered(() => {
            const configOptions = this.#need(sessionId).setOption(configId, value);
            return Promise.resolve({ configOptions });
          }),
      )
      .onRequest(
        "session/prompt",
        ({ params: { sessionId, prompt }, signal }) =>
          answered(() => this.#need(sessionId).prompt(prompt, signal)),
      )
      .onNotification(
        "session/cancel",
        ({ params: { sessionId } }) => this.#sessions.get(sessionId)?.cancel(),
      );
  }

  /** Cancels what runs, and waits until it has ended. @param signal ends background work early */
  async close(signal: AbortSignal): Promise<void> {
    await Promise.all(Array.from(this.#sessions.values(), (each) => each.close(signal)));
    for (const home of this.#homes.values()) {
      await (await home.catch(() => undefined))?.close(signal);
    }
  }

  async #open(
    { cwd, sessionId, mcpServers = [] }: LoadSessionRequest | ResumeSessionRequest,
    client: AgentContext,
  ): Promise<EditorSession> {
    const home = await this.#home(cwd);
    await home.sessions.current(sessionId);
    if (!this.#begun.has(sessionId) && home.sessions.stamp(sessionId) === "") {
      throw RequestError.sessionNotFound(sessionId);
    }
    const before = this.#sessions.get(sessionId);
    if (before !== undefined && before.workspace.paths.worktree !== home.paths.worktree) {
      const other = before.workspace.paths.worktree;
      refuse(`A session ${sessionId} of ${other} is open, and two of a name cannot be.`);
    }
    const servers = serverEntries(mcpServers);
    while (this.#sessions.has(sessionId)) await this.#close(sessionId); // another request may open it
    const { role, model, provider, mode, trust } = this.#values;
    const overrides = Object.entries({ model, provider, mode });
    const early: string[] = [];
    let notice = (message: string): void => void early.push(message);
    const workspace = Workspace.open({
      path: cwd,
      environment: this.#io.environment,
      trusted: trust,
      overrides: Object.fromEntries(overrides.filter(([, value]) => value !== undefined)),
      store: home.store ?? null,
      warn: (message) => {
        this.#warn(message);
        notice(message);
      },
    });
    if (servers.length > 0) {
      const { config } = workspace;
      config.override("mcp.servers", [...config.get("mcp.servers"), ...servers]); // the first of a name counts
    }
    const session = new EditorSession({
      name: sessionId,
      workspace,
      role,
      model_named: model !== undefined,
      client,
      capabilities: this.#capabilities,
      io: this.#io,
      offered: (...asked) => this.#models(...asked),
    });
    notice = (message) => session.notice({ level: "warning", message });
    early.forEach(notice);
    this.#sessions.set(sessionId, session);
    try {
      await session.load();
    } catch (error) {
      await this.#close(sessionId);
      throw error;
    }
    return session;
  }

  async #list(
    { cwd, cursor }: { cwd?: string | null; cursor?: string | null },
  ): Promise<{ sessions: SessionInfo[]; nextCursor?: string }> {
    if (this.#homes.size === 0 && !cwd) await this.#home(this.#io.environment.cwd);
    const homes = cwd ? [await this.#home(cwd)] : await Promise.all(this.#homes.values());
    const [, at = "0", from = "0"] = /^(\d{1,9})\.(\d{1,9})$/.exec(cursor ?? "0.0") ??
      refuse("The cursor is none of svc.");
    const home = homes[Number(at)];
    if (home === undefined) return { sessions: [] };
    const offset = Number(from);
    const page = await home.sessions.index({ offset, limit: PAGE });
    const sessions = (await page.summaries())
      .filter(({ name }) => !/^(sub|job)_/.test(name))
      .map(({ name, first_prompt, updated_at }): SessionInfo => ({
        sessionId: name,
        cwd: cwd ?? home.paths.worktree,
        title: oneLine(first_prompt),
        updatedAt: updated_at,
      }));
    if (offset + PAGE < page.total) return { sessions, nextCursor: `${at}.${offset + PAGE}` };
    const next = Number(at) + 1;
    return next < homes.length ? { sessions, nextCursor: `${next}.0` } : { sessions };
  }

  /** Deletes a session; nothing is done for one that does not exist. */
  async #delete(sessionId: string): Promise<void> {
    const open = this.#sessions.get(sessionId)?.workspace.paths.worktree;
    await this.#close(sessionId);
    this.#begun.delete(sessionId);
    const homes = new Map<string, Workspace>();
    for (const home of await Promise.all(this.#homes.values())) {
      await home.sessions.current(sessionId);
      const { worktree } = home.paths;
      const meant = open === undefined || open === worktree;
      if (meant && home.sessions.stamp(sessionId) !== "") homes.set(worktree, home);
    }
    if (homes.size > 1) {
      refuse(`Several folders have a session ${sessionId}; delete it with svc sessions delete.`);
    }
    for (const home of homes.values()) await home.sessions.delete(sessionId);
  }

  /** The workspace in which the sessions of a worktree are found. */
  #home(cwd: string): Promise<Workspace> {
    if (!isAbsolute(cwd)) refuse(`The working directory ${JSON.stringify(cwd)} is not absolute.`);
    const known = this.#homes.get(cwd);
    if (known !== undefined) return known;
    const { environment } = this.#io;
    const opening = (async () => {
      const home = Workspace.open({
        path: cwd,
        environment,
        trusted: this.#values.trust,
        warn: (message) => this.#warn(message),
      });
      await home.store?.follow();
      return home;
    })();
    this.#homes.set(cwd, opening);
    opening.catch(() => this.#homes.delete(cwd)); // it may be there the next time
    return opening;
  }

  /** The models of a backend, which is asked once. */
  #models(workspace: Workspace, signal: AbortSignal): Promise<string[]> {
    const backend = requested(workspace);
    const { provider, base_url } = backend;
    const key = JSON.stringify([provider, base_url]);
    const known = this.#offered.get(key);
    if (known !== undefined) return known;
    const asking = (async () => {
      const client = workspace.connect(backend, "");
      try {
        return (await client.list_models(signal)).map((model) => `${provider}/${model}`);
      } finally {
        await client.close?.();
      }
    })();
    this.#offered.set(key, asking);
    asking.catch(() => this.#offered.delete(key));
    return asking;
  }

  /** Prints a warning once. */
  #warn(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#io.note(`warning: ${message}`);
  }

  #need(sessionId: string): EditorSession {
    return this.#sessions.get(sessionId) ?? (() => {
      throw RequestError.sessionNotFound(sessionId);
    })();
  }

  async #close(sessionId: string): Promise<void> {
    const session = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    await session?.close();
  }
}

/** What the answer to the opening of a session says. More follows the answer, from which the client knows the session. */
async function ready(session: EditorSession): Promise<Awaited<ReturnType<EditorSession["load"]>>> {
  const answer = await session.load();
  systemClock.sleep(0).then(() => session.announce()).catch(() => {});
  return answer;
}

/** The answer to a request; an error of svc becomes one of the protocol, which editors show. */
async function answered<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RequestError) throw error;
    const wrong = error instanceof SvcError && error.exit === 2;
    const data = error instanceof SvcError ? { code: error.code } : undefined;
    throw new RequestError(wrong ? INVALID_PARAMS : INTERNAL_ERROR, errorText(error), data);
  }
}

const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

function refuse(message: string): never {
  throw usageError("usage", message);
}
