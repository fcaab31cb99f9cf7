import { argument, command, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { string } from "@optique/core/valueparser";
import { join, resolve } from "node:path";
import { SvcError } from "../platform/error.ts";
import { writeFileAtomic } from "../platform/files.ts";
import { within } from "../policy/real_path.ts";
import { exportMarkdown } from "../sessions/markdown.ts";
import type { Workspace } from "../engine/workspace.ts";
import { defineCommand, says } from "./command.ts";
import { pathOption } from "./options.ts";
import { findSession } from "./session.ts";
import { openWorkspace } from "./workspace.ts";

/** `svc export` (specification 4.4): a session as Markdown. */
export const exportSession = defineCommand({
  parser: command(
    "export",
    object({
      name: argument(string({ metavar: "SESSION" })),
      out: optional(option("--out", string({ metavar: "FILE" }), {
        description: says("Where to write; - is standard output. Default: .svc/exports/<name>.md"),
      })),
      path: pathOption,
    }),
    { description: says("Write a session as Markdown. A session is a name or a #id.") },
  ),
  examples: ["svc export nightly", "svc export '#k3x9qa' --out -"],
  run({ name, out, path }, io) {
    const workspace = openWorkspace(path, io);
    const session = findSession(workspace, name);
    const markdown = exportMarkdown(session.document);
    if (out === "-") {
      io.out(markdown);
    } else {
      const file = out === undefined
        ? exportFile(session.name, workspace)
        : resolve(io.environment.cwd, out);
      writeFileAtomic(file, markdown);
      io.note(`Written to ${file}`);
    }
    return Promise.resolve(0);
  },
});

/**
 * `.svc/exports/<name>.md`. The name is the one that was looked up, since the document may hold any, and
 * a link in the worktree does not decide where svc writes.
 */
function exportFile(name: string, { guard, paths }: Workspace): string {
  const file = join(paths.state, "exports", `${name}.md`);
  if (within(guard.locate(paths.state).real, guard.locate(file).real)) return file;
  throw new SvcError("export_link", `${file} leads out of ${paths.state}.`, {
    hint: "Remove that link, or name a file with --out.",
  });
}
