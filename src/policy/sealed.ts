import type { ToolArguments, ToolDefinition } from "../plugins/api.ts";

/** Whether the tool starts programs, into which no path guard can see. */
export function runsPrograms({ permission }: ToolDefinition): boolean {
  return permission === "bash" || permission === "vcs" || permission === "dev";
}

/**
 * Whether a call names svc's state or settings in the open. What a program does with a name that it puts
 * together itself cannot be told from here; an operator who allows commands allows that.
 */
export function namesOwnFiles(args: ToolArguments): boolean {
  return OWN.test(JSON.stringify(args).normalize("NFKC").replace(/\\+["']|["']/g, ""));
}

const OWN = /(?<![\w-])\.svc(?![\w-])|\.config\/+svc(?![\w-])/i;
