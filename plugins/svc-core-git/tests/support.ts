import assert from "node:assert/strict";
import { type Project, project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { Sandbox } from "../../../src/platform/sandbox.ts";
import * as plugin from "../src/plugin.ts";

export const tools = pluginTools(plugin);

/** Runs git like a user, without any settings of a user. */
export async function run(cwd: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command("git", {
    args: ["-c", "protocol.file.allow=always", ...args],
    cwd,
    env: {
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_AUTHOR_NAME: "Ann",
      GIT_AUTHOR_EMAIL: "ann@example.org",
      GIT_COMMITTER_NAME: "Ann",
      GIT_COMMITTER_EMAIL: "ann@example.org",
    },
  }).output();
  const text = new TextDecoder();
  assert.equal(code, 0, text.decode(stderr));
  return text.decode(stdout).trim();
}

/** A worktree that is a repository with one commit of these files. */
export async function repository(files: Record<string, string>): Promise<Project> {
  const work = await project(files);
  await run(work.path, "init", "--quiet", "--initial-branch=main");
  await run(work.path, "config", "user.name", "Bob");
  await run(work.path, "config", "user.email", "bob@example.org");
  await run(work.path, "add", "--all");
  await run(work.path, "commit", "--quiet", "--message=first");
  return work;
}

/** The result of one call, by an svc that was started with `env` in addition. */
export async function call(
  work: { path: string },
  name: string,
  args: Record<string, unknown>,
  env: Record<string, string> = {},
): Promise<string> {
  const context = toolContext({ worktree: work.path });
  const sandbox = new Sandbox({
    worktree: work.path,
    environment: {
      home: work.path,
      cwd: work.path,
      get: (name) => env[name] ?? Deno.env.get(name),
    },
    clock: systemClock,
    settings: () => ({ mode: "off", deny_read: [], write: [], network: true, env: [] }),
    hidden: [],
    warn: () => {},
  });
  const run: typeof context.run = (request) => sandbox.run(request, context.signal);
  const outcome = await tools.call(name, args, { ...context, run });
  return outcome.output;
}
