import type { Masked } from "./masked.ts";

/** What a request asks for. */
export type Intent =
  | { kind: "list"; path: string; deep: boolean }
  | { kind: "read"; paths: string[]; offset?: number; limit?: number }
  | { kind: "count"; paths: string[] }
  | { kind: "find"; text: string; path: string; regex: boolean }
  | { kind: "glob"; pattern: string; path: string }
  | { kind: "write"; path: string; content: string; append: boolean }
  | { kind: "edit"; path: string; old: string; new: string; all: boolean }
  | { kind: "run"; command: string; cwd: string }
  | { kind: "hello" | "thanks" | "help" | "unknown" }
  /** Understood but for an operand. */
  | { kind: "unclear"; question: string };

/** Reads one clause of a request; undefined when it is not for this rule. */
export type Rule = (clause: string, masked: Masked) => Intent | undefined;
