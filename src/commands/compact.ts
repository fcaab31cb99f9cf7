import { argument, command } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { string } from "@optique/core/valueparser";
import { compact } from "../engine/compaction.ts";
import { stripControl } from "../platform/terminal.ts";
import { approveModels } from "../providers/approvals.ts";
import { defineCommand, says } from "./command.ts";
import { pathOption } from "./options.ts";
import { findSession } from "./session.ts";
import { openWorkspace } from "./workspace.ts";

/** `svc compact`: what `/compact` does (specification 4.7), for scripts. */
export const compactSession = defineCommand({
  parser: command(
    "compact",
    object({ name: argument(string({ metavar: "SESSION" })), path: pathOption }),
    {
      description: says(
        "Have the model summarise a session up to its last turns (setting compact_keep) and print the " +
          "summary. The log keeps every turn; the model is sent the summary in their place.",
      ),
    },
  ),
  examples: ["svc compact nightly", "svc compact '#k3x9qa'"],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    const { name } = findSession(workspace, values.name);
    await workspace.load({ providers: "all" });
    const backend = workspace.backend();
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
