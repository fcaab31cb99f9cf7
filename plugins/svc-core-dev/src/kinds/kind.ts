import type { Target } from "../target.ts";

export type Task = "test" | "lint" | "format";

type Words = (target: Target | undefined, folder: string) => string[] | undefined;

/** A kind of project, and what runs its tests, linter and formatter. */
export interface ProjectKind {
  kind: string;
  commands: Partial<Record<Task, Words>>;
}

/** What a kind may look at beside its own file. */
export interface Surroundings {
  /** The first of these that is there, in the project's folder or those around it in the worktree. */
  first(files: string[]): Promise<string | undefined>;
}

export type KindOf = (text: string, around: Surroundings) => ProjectKind | Promise<ProjectKind>;
