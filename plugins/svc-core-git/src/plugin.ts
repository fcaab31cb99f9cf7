import type {
  EnvironmentService,
  ServiceRegistrar,
  ToolRegistrar,
} from "../../../src/plugins/api.ts";
import { git } from "./git.ts";
import { gitCommit } from "./git_commit.ts";

export function register_tools(registry: ToolRegistrar): void {
  registry.register(git);
  registry.register(gitCommit);
}

export function register_services(services: ServiceRegistrar): void {
  services.register("environment", { ...state });
}

/** The branch and how many files are changed; nothing is loaded or run where there is no repository. */
const state: EnvironmentService = {
  async describe(context) {
    const { worktree } = context.paths;
    try {
      Deno.lstatSync(`${worktree}/.git`);
    } catch {
      return "";
    }
    const { openRepository } = await import("./repository.ts");
    const repository = await openRepository(worktree, context);
    const asked = ["status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty"];
    const { code, output } = await repository.run(asked, { errors: false });
    return code === 0 ? stateLine(output) : "";
  },
};

/** One line of `git status --porcelain=v2 --branch`. */
function stateLine(output: string): string {
  const head = /^# branch\.head (.*)$/m.exec(output)?.[1] ?? "";
  const [, ahead = "0", behind = "0"] = /^# branch\.ab \+(\d+) -(\d+)$/m.exec(output) ?? [];
  const changed = output.split("\n").filter((line) => /^[12u?] /.test(line)).length;
  const facts = [
    head === "(detached)" ? "no branch" : `branch ${head.slice(0, 80)}`,
    ...ahead === "0" ? [] : [`${ahead} ahead`],
    ...behind === "0" ? [] : [`${behind} behind`],
    changed === 0 ? "clean" : `${changed} changed ${changed === 1 ? "file" : "files"}`,
  ];
  return `Git: ${facts.join(", ")} when the session began`;
}
