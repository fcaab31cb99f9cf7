import { join, resolve } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import { SvcError, usageError } from "../platform/error.ts";
import { writeFileAtomic } from "../platform/files.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import { within } from "../policy/paths.ts";
import { amount } from "../usage/ledger.ts";
import { usageBySession } from "../usage/summary.ts";
import type { Appended } from "../sessions/look.ts";
import type { SessionDocument } from "../sessions/schema.ts";
import { defineCommand, outputOption, pathOption, textOption } from "./command.ts";
import { listText, printLists, relative, shortened, table } from "./format.ts";
import { type Io, toJson } from "./io.ts";
import { nameOf, pathOf } from "./names.ts";
import { duration } from "./turn.ts";
import { findSession, noSession, openShared, openWorkspace } from "./workspace.ts";
import { argument, command, integer, option, optional, string, withDefault } from "./options.ts";

const common = { output: outputOption, path: pathOption };
const saved = argument(nameOf("sessions", "SESSION"), "The name of a session, or its #<id>.");
const COUNT = /^(all|[1-9]\d{0,8})$/;
const days = (flag: `--${string}`, metavar: "DAYS" | "N", description: string) =>
  optional(option(flag, integer(metavar, 0), description));

const sessionsParser = command("sessions", [
  command("list", {
    action: "list",
    count: withDefault(
      argument(string("N", COUNT), "How many, or all; default: 20."),
      "20",
    ),
    prefix: textOption(
      "--prefix",
      "TEXT",
      "Only those whose name begins with it; ses_, sub_ and job_ are the kinds.",
    ),
    since: optional(
      option("--since", duration, "Only those written in this time, such as 12h or 7d."),
    ),
    ...common,
  }, "List the sessions that were written last."),
  command(
    "show",
    { action: "show", name: saved, ...common },
    "Show a session's turns, tools and links; as JSON, the whole log.",
  ),
  command("tail", {
    action: "tail",
    name: saved,
    lines: withDefault(
      option(
        "-n/--lines",
        integer("N", 0),
        "How many of its last parts to begin with; default: 20.",
      ),
      20,
    ),
    follow: option("-f/--follow", "Go on as the session is written, until interrupted."),
    ...common,
  }, "Print the last parts of a session, also of one that runs."),
  command("delete", {
    action: "delete",
    name: saved,
    force: option("--force", "Also when a question waits that its agent has parked."),
    path: pathOption,
  }, "Delete a session with its files."),
  command(
    "prune",
    {
      action: "prune",
      keep_days: days("--keep-days", "DAYS", "Days since the last write; 0: no limit."),
      keep_count: days(
        "--keep-count",
        "N",
        "The newest ones of each job, and of what no job ran; 0: all.",
      ),
      dry_run: option("--dry-run", "Only say what would be deleted."),
      ...common,
    },
    "Delete what the settings sessions.keep_days and sessions.keep_count no longer keep, as the " +
      "scheduler does every hour. Sessions that run, that a job continues, or with a question that " +
      "waits for an answer stay.",
  ),
  command("export", {
    action: "export",
    name: saved,
    out: optional(
      argument(pathOf("FILE"), "Where to write; - prints it. Default: .svc/exports/<name>.md"),
    ),
    path: pathOption,
  }, "Write a session as Markdown."),
  command("repair", {
    action: "repair",
    name: saved,
    into: textOption("--into", "NAME", "Write what can be kept as a new session."),
    ...common,
  }, "Show what can be kept of a damaged session."),
  command("preview", { action: "show", name: saved, ...common }, "The same as show."),
], "List saved sessions, show, follow, delete and export them.");

/** `svc sessions`, `/sessions` (specification 4.7). */
export const sessions = defineCommand({
  parser: sessionsParser,
  bare: "list",
  bareTakes: (word) => COUNT.test(word),
  examples: [
    "svc sessions",
    "svc sessions list all --output json",
    "svc sessions show nightly",
    "svc sessions tail nightly -f",
    "svc sessions prune --keep-days 30 --dry-run",
    "svc sessions delete nightly",
  ],
  async run(values, io) {
    if (values.action === "export") return await exportSession.run(values, io);
    const workspace = await openShared(values.path, io);
    switch (values.action) {
      case "list":
        return await list(values, workspace, io);
      case "show": {
        const { name, document } = await findSession(workspace, values.name);
        const lines = () => previewLines(name, document).map((line) => `${line}\n`).join("");
        io.out(values.output === "json" ? toJson(document, 2) + "\n" : lines());
        return 0;
      }
      case "tail":
        return await tail(values, workspace, io);
      case "delete":
        return await remove(values, workspace, io);
      case "prune":
        return await prune(values, workspace, io);
      case "repair":
        return await repair(values, workspace, io);
    }
  },
});

/** Widest prompt in a list, in characters; a narrow terminal cuts more. */
const PROMPT = 60;

async function list(
  { count, prefix, since: back, output }: {
    count: string;
    prefix?: string;
    since?: number;
    output: string;
  },
  workspace: Workspace,
  io: Io,
): Promise<number> {
  const { sessions, clock, spending } = workspace;
  const page = await sessions.index({
    prefix,
    since: back === undefined ? undefined : clock.now() - back * 1000,
    limit: count === "all" ? undefined : Number(count),
  });
  const { total } = page;
  const summaries = await page.summaries();
  const used = await usageBySession(spending.ledger, summaries);
  const found = summaries.map((summary) => {
    const { in: read = 0, out = 0, cost = null } = used.get(summary.name) ?? {};
    return { ...summary, tokens: read + out, cost };
  });
  if (output === "json") {
    io.out(toJson(found, 2) + "\n");
    return 0;
  }
  const active = io.inUse?.()[0];
  const rows = found.map((each) => [
    `${each.name === active ? "*" : " "} ${oneLine(each.name)}`,
    each.running
      ? `running${each.worker === undefined ? "" : ` on ${each.worker}`}`
      : relative(Date.parse(each.updated_at), clock.now()),
    each.turns === 1 ? "1 turn" : `${each.turns} turns`,
    bytes(each.bytes),
    each.cost !== null ? amount(each.cost) : each.tokens > 0 ? `${each.tokens} tokens` : "",
    oneLine([each.role, each.job && `job ${each.job}`].filter((word) => word !== "").join(", ")),
    shortened(oneLine(each.first_prompt), PROMPT),
  ]);
  const head = ["  SESSION", "WRITTEN", "TURNS", "SIZE", "USED", "ROLE", "FIRST PROMPT"];
  printLists(io, listText(io, head, rows));
  if (total === 0) io.note("There are no saved sessions.");
  else if (total > summaries.length) {
    io.note(`${summaries.length} of ${total}; the others: svc sessions all`);
  }
  return 0;
}

function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  return size < 1_000_000 ? `${Math.round(size / 1000)} kB` : `${(size / 1e6).toFixed(1)} MB`;
}

/** What a session contains (specification 4.7 `/sessions preview`). */
function previewLines(name: string, document: SessionDocument): string[] {
  const { turns, parent_id, sub_sessions, role, job, created_at, updated_at } = document;
  const parts = turns.flatMap(({ parts }) => parts);
  const counts = (words: string[]) =>
    [...Map.groupBy(words, (word) => word)].map(([word, all]) => `${word} ${all.length}`)
      .join(", ");
  const prompt = parts.find(({ type }) => type === "user");
  const lines = {
    session: name,
    created: `${created_at}, last written: ${updated_at}`,
    turns: `${turns.length}`,
    parts: counts(parts.map(({ type }) => type)),
    tools: counts(parts.flatMap((part) => part.type === "tool" ? [part.name] : [])),
    role,
    job,
    parent: parent_id,
    "sub-sessions": sub_sessions.join(", "),
    begins: prompt?.type === "user" ? shortened(prompt.text, 200) : "",
  };
  return Object.entries(lines).filter(([label, value]) => label !== "job" || value)
    .map(([label, value]) => oneLine(`${label}: ${value || "-"}`));
}

/** Milliseconds between two looks at a session that is followed. */
const LOOK = 250;

async function tail(
  { name: given, lines, follow, output }: {
    name: string;
    lines: number;
    follow: boolean;
    output: string;
  },
  workspace: Workspace,
  io: Io,
): Promise<number> {
  const { sessions, clock } = workspace;
  const name = await sessions.locate(given);
  const follower = sessions.follow(name);
  const begun = follower?.read();
  if (follower === undefined || begun === undefined) throw noSession(given, workspace);
  const show = (entries: Appended[]) => {
    for (const entry of entries) {
      io.out(output === "json" ? toJson(entry) + "\n" : appendedLine(entry));
    }
  };
  show(lines === 0 ? [] : begun.slice(-lines));
  if (!follow) return 0;
  const { signal, release } = io.onInterrupt();
  try {
    while (!signal.aborted) {
      await clock.sleep(LOOK, signal).catch(() => {});
      await sessions.current(name);
      const more = follower.read();
      if (more === undefined) {
        io.note(`Session ${name} was deleted.`);
        return 0;
      }
      show(more);
    }
    return 0;
  } finally {
    release();
  }
}

/** Characters of a tool's arguments, and of its result, in a line. */
const TOOL = 100;

function appendedLine(entry: Appended): string {
  if ("turn" in entry) return `--- turn ${entry.turn} ended: ${entry.status}\n`;
  const { part } = entry;
  const time = part.timestamp.slice(11, 19);
  const said = part.type === "tool"
    ? `${oneLine(part.name)} ${shortened(oneLine(JSON.stringify(part.input)), TOOL)} -> ` +
      (part.is_error ? "! " : "") + shortened(oneLine(part.output), TOOL)
    : stripControl(part.text).trimEnd();
  return `${time} ${part.type}: ${said}\n`;
}

async function remove(
  { name: given, force }: { name: string; force: boolean },
  workspace: Workspace,
  io: Io,
): Promise<number> {
  const { sessions, asks } = workspace;
  const name = await sessions.locate(given);
  if (!sessions.list().includes(name)) throw noSession(given, workspace);
  if (io.inUse?.().includes(name)) {
    const hint = "Begin another first: /session new";
    throw usageError("session_active", `Session ${name} is in use here.`, hint);
  }
  const waiting = asks.list("pending").find(({ origin }) => origin === name);
  if (waiting !== undefined && !force) {
    throw usageError(
      "session_waits",
      `The question #${waiting.id} of session ${name} waits for an answer.`,
      `Answer it with: svc asks answer ${waiting.id}. To delete the session anyway: --force`,
    );
  }
  // A person at a terminal session types names by completion; elsewhere the whole name was given.
  if (io.live !== undefined && !await io.confirm(`Delete session ${name} for good?`)) {
    io.note("Nothing was deleted.");
    return 0;
  }
  await sessions.delete(name);
  io.note(`Session ${name} is deleted.`);
  return 0;
}

async function repair(
  { name: given, into, output }: { name: string; into?: string; output: string },
  workspace: Workspace,
  io: Io,
): Promise<number> {
  const { sessions } = workspace;
  const name = await sessions.locate(given);
  const found = await sessions.repair(name, into);
  if (found === undefined) {
    if (!sessions.list().includes(name)) throw noSession(given, workspace);
    throw usageError(
      "no_repair",
      `Nothing of session ${name} can be kept: svc did not write its file.`,
      "The file stays as it is.",
    );
  }
  const { document: { turns }, lost } = found;
  const parts = turns.flatMap((turn) => turn.parts).length;
  if (output === "json") {
    io.out(toJson({ turns: turns.length, parts, lost_lines: lost }, 2) + "\n");
    return 0;
  }
  const counts = `${turns.length} turns with ${parts} parts`;
  io.out(
    lost.length === 0
      ? `${counts}; nothing is damaged.\n`
      : `${counts} can be kept; these lines of the file cannot: ${lost.join(", ")}.\n`,
  );
  if (into !== undefined) await sessions.publish(into);
  if (into !== undefined) io.note(`Session ${into} is written; ${name} stays as it is.`);
  else if (lost.length > 0) {
    io.note(`Write it as a new session with: svc sessions repair ${name} --into ${name}-repaired`);
  }
  return 0;
}

async function prune(
  given: { keep_days?: number; keep_count?: number; dry_run: boolean; output: string },
  workspace: Workspace,
  io: Io,
): Promise<number> {
  const { pruneWorktree } = await import("../jobs/prune.ts");
  const { keep_days, keep_count, dry_run } = given;
  const named = keep_days !== undefined || keep_count !== undefined;
  const pruned = await pruneWorktree(workspace, {
    dry_run,
    given: named ? { keep_days: keep_days ?? 0, keep_count: keep_count ?? 0 } : undefined,
  });
  if (pruned === undefined) {
    throw usageError(
      "no_retention",
      "Nothing says which sessions to keep.",
      "Pass --keep-days or --keep-count, or set them: svc config set sessions.keep_days 30",
    );
  }
  if (given.output === "json") {
    io.out(toJson(pruned, 2) + "\n");
    return 0;
  }
  const now = workspace.clock.now();
  io.out(table(pruned.map(({ name, updated_at, bytes: size }) => [
    oneLine(name),
    relative(Date.parse(updated_at), now),
    bytes(size),
  ])));
  const size = bytes(pruned.reduce((sum, { bytes }) => sum + bytes, 0));
  const count = pruned.length === 1 ? "1 session" : `${pruned.length} sessions`;
  io.note(dry_run ? `${count} would be deleted: ${size}.` : `${count} deleted: ${size}.`);
  return 0;
}

/** `svc compact`, `/compact` (specification 4.7): summarise the old turns of a session. */
export const compactSession = defineCommand({
  parser: command(
    "compact",
    {
      name: optional(
        argument(
          nameOf("sessions", "SESSION"),
          "In a terminal session, the default is the focused one.",
        ),
      ),
      path: pathOption,
    },
    "Have the model summarise a session up to its last turns (setting compact_keep) and print the " +
      "summary. The log keeps every turn; the model is sent the summary instead of them.",
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
    const { name } = await findSession(workspace, given);
    await workspace.load({ providers: "all", roles: "all", skills: "all" });
    const { model } = await sessionRole(workspace, { session: name }) ?? {};
    const backend = workspace.backend({ role_model: model });
    const { ref } = backend;
    await approveModels(ref === undefined ? [] : [ref], workspace.models, { granted: false });
    const session = workspace.sessions.open(name);
    const meter = workspace.spending.meter({ session: session.name });
    const provider = workspace.connect(backend, session.id || session.name, meter);
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
  parser: command("export", {
    name: argument(nameOf("sessions", "SESSION")),
    out: textOption(
      "--out",
      pathOf("FILE"),
      "Where to write; - is standard output. Default: .svc/exports/<name>.md",
    ),
    path: pathOption,
  }, "Write a session as Markdown. A session is a name or a #id."),
  examples: ["svc export nightly", "svc export '#k3x9qa' --out -"],
  async run({ name, out, path }: { name: string; out?: string; path: string }, io) {
    const { exportMarkdown } = await import("../sessions/export.ts");
    const workspace = openWorkspace(path, io);
    const session = await findSession(workspace, name);
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
