import type { SharedCommand } from "../plugins/command_names.ts";
import type { Command } from "./command.ts";

/** A command that is loaded when it is called. */
export interface CommandEntry {
  /** One line for lists of commands. */
  readonly summary: string;
  // deno-lint-ignore no-explicit-any
  load(): Promise<Command<any>>;
}

/** The shared commands, in the order of help pages. */
export const SHARED: Readonly<Record<SharedCommand, CommandEntry>> = {
  connect: {
    summary: "connect a model provider and store its key",
    load: async () => (await import("./providers.ts")).connect,
  },
  disconnect: {
    summary: "remove the stored key and address of a provider",
    load: async () => (await import("./providers.ts")).disconnect,
  },
  model: {
    summary: "show the model in use, or choose another",
    load: async () => (await import("./providers.ts")).model,
  },
  models: {
    summary: "list models in use, or those a provider offers",
    load: async () => (await import("./providers.ts")).models,
  },
  provider: {
    summary: "show the active provider, or choose another",
    load: async () => (await import("./providers.ts")).provider,
  },
  config: {
    summary: "read and change settings",
    load: async () => (await import("./config.ts")).config,
  },
  init: {
    summary: "write the settings of a worktree",
    load: async () => (await import("./init.ts")).init,
  },
  permissions: {
    summary: "show what each tool category may do",
    load: async () => (await import("./permissions.ts")).permissions,
  },
  trust: {
    summary: "show and accept what a worktree's files open",
    load: async () => (await import("./trust.ts")).trust,
  },
  roles: {
    summary: "show and change the roles an agent can take",
    load: async () => (await import("./catalog.ts")).roles,
  },
  teams: {
    summary: "show, change and run teams of roles",
    load: async () => (await import("./teams.ts")).teams,
  },
  skills: {
    summary: "show and change skills, texts for roles",
    load: async () => (await import("./catalog.ts")).skills,
  },
  plugins: {
    summary: "list, install, update and write plugins",
    load: async () => (await import("./plugins/plugins.ts")).plugins,
  },
  mcp: {
    summary: "list, connect and disconnect MCP servers",
    load: async () => (await import("./mcp.ts")).mcpServers,
  },
  asks: {
    summary: "list, show and answer parked questions",
    load: async () => (await import("./asks.ts")).asks,
  },
  jobs: {
    summary: "schedule, run and watch jobs",
    load: async () => (await import("./jobs/jobs.ts")).jobs,
  },
  memory: {
    summary: "show and clear what roles and jobs remember",
    load: async () => (await import("./memory.ts")).memory,
  },
  sessions: {
    summary: "list, show, follow and delete saved sessions",
    load: async () => (await import("./sessions.ts")).sessions,
  },
  changes: {
    summary: "show what an agent changed in files",
    load: async () => (await import("./undo.ts")).changes,
  },
  undo: {
    summary: "take back what a turn changed in files",
    load: async () => (await import("./undo.ts")).undoTurn,
  },
  redo: {
    summary: "make changes again that were taken back",
    load: async () => (await import("./undo.ts")).redoTurn,
  },
  usage: {
    summary: "show tokens and cost of requests to models",
    load: async () => (await import("./usage.ts")).usage,
  },
  doctor: {
    summary: "examine what a run here needs",
    load: async () => (await import("./doctor.ts")).doctor,
  },
  logs: {
    summary: "show the logs of server, scheduler and fleet",
    load: async () => (await import("./logs.ts")).logs,
  },
  compact: {
    summary: "summarise old turns, so that less is sent",
    load: async () => (await import("./sessions.ts")).compactSession,
  },
};
