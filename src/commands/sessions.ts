import { join, resolve } from "node:path";
import { object } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { argument, command } from "@optique/core/primitives";
import type { Workspace } from "../engine/workspace.ts";
import { SvcError, usageError } from "../platform/error.ts";
import { writeFileAtomic } from "../platform/files.ts";
import { stripControl } from "../platform/terminal.ts";
import { within } from "../policy/paths.ts";
import { defineCommand, pathOption, text, textOption } from "./command.ts";
import { nameOf, pathOf } from "./names.ts";
import { findSession, openWorkspace } from "./workspace.ts";

/** `svc compact`, `/compact` (specification 4.7): summarise the old turns of a session. */
export const compactSession = defineCommand({
  parser: command(
    "compact",
    object({
      name: optional(argument(nameOf("sessions", "SESSION"), {
        description: text("In a terminal session, the default is the focused one."),
      })),
      path: pathOption,
    }),
    {
      description: text(
        "Have the model summarise a session up to its last turns (setting compact_keep) and print the " +
          "summary. The log keeps every turn; the model is sent the summary instead of them.",
      ),
    },
  ),
  examples: ["svc compact nightly", "svc compact '#k3x9qa'"],
  async run(values, io) {
    const { compact } = await import("../engine/compaction.ts");
    const { sessionRole } = await import("../engine/start.ts");
    const { approveModels } = await import("../providers/model_approval.ts");
    const workspace = openWorkspace(values.path, io);
    const given = values.name ?? io.session?.();
    if (given === undefined) {
      const nothing = io.session === undefined
        ? "SESSION is missing."
        : "There is nothing to compact.";
      throw usageError("usage", nothing, `Try: ${io.program}compact --help`);
    }
    const { name } = findSession(workspace, given);
    await workspace.load({ providers: "all", roles: "all", skills: "all" });
    const { model } = await sessionRole(workspace, { session: name }) ?? {};
    const backend = workspace.backend({ role_model: model });
    const { ref } = backend;
    await approveModels(ref === undefined ? [] : [ref], workspace.models, { granted: false });
    const session = workspace.sessions.open(name);
    const provider = workspace.connect(backend, session.id || session.name);
    const interrupt = io.onInterrupt();
    const keep = workspace.config.get("compact_keep");
    try {
      const { signal } = interrupt;
      const done = await compact({ provider, session, keep, signal });
      if (done === undefined) {
        io.note(`Nothing to compact: session ${name} has no more than the ${keep} turns it keeps.`);
        return 0;
      }
      io.out(stripControl(done.summary) + "\n");
      const turns = done.turns === 1 ? "1 turn" : `${done.turns} turns`;
      io.note(`The summary stands for ${turns} of ${name}, up to turn ${done.compact_from - 1}.`);
      return 0;
    } catch (error) {
      if (!interrupt.signal.aborted) throw error;
      io.note("Cancelled: nothing was compacted.");
      return 130;
    } finally {
      interrupt.release();
      await provider.close?.();
      session.close();
    }
  },
});

/** `svc export` (specification 4.4): a session as Markdown. */
export const exportSession = defineCommand({
  parser: command(
    "export",
    object({
      name: argument(nameOf("sessions", "SESSION")),
      out: textOption(
        "--out",
        pathOf("FILE"),
        "Where to write; - is standard output. Default: .svc/exports/<name>.md",
      ),
      path: pathOption,
    }),
    { description: text("Write a session as Markdown. A session is a name or a #id.") },
  ),
  examples: ["svc export nightly", "svc export '#k3x9qa' --out -"],
  async run({ name, out, path }, io) {
    const { exportMarkdown } = await import("../sessions/export.ts");
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
    return 0;
  },
});

/**
 * `.svc/exports/<name>.md`. The name in the document is not trusted: the name that was looked up is
 * used. A link in the worktree cannot redirect the file.
 */
function exportFile(name: string, { guard, paths }: Workspace): string {
  const file = join(paths.state, "exports", `${name}.md`);
  if (within(guard.locate(paths.state).real, guard.locate(file).real)) return file;
  throw new SvcError("export_link", `${file} leads out of ${paths.state}.`, {
    hint: "Remove that link, or name a file with --out.",
  });
}
