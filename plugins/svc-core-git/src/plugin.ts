import type { ToolRegistrar } from "../../../src/plugins/api.ts";
import { git } from "./git.ts";
import { gitCommit } from "./git_commit.ts";

export function register_tools(registry: ToolRegistrar): void {
  registry.register(git);
  registry.register(gitCommit);
}
