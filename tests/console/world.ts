import { join } from "node:path";
import { type AgentSnapshot, FleetPaths, SnapshotFile } from "../../src/fleet/snapshot.ts";
import { jobContext } from "../../src/jobs/context.ts";
import { beginRun, finishRun, JobRun } from "../../src/jobs/run.ts";
import { type HistoryEntry, type Job, job as jobSchema } from "../../src/jobs/schema.ts";
import { plannedRun } from "../../src/jobs/transitions.ts";
import { ownIdentity } from "../../src/platform/detached.ts";
import { call, calls, type Reply, say, usage } from "../support/backend.ts";
import { Random } from "../support/random.ts";
import { server, type TestServer } from "../server/support.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const iso = (time: number) => new Date(time).toISOString();

/** The answers of earlier runs. */
const ANSWERS: Record<string, string> = {
  "nightly-tests": "All 214 tests pass; the flaky one of yesterday did not fail.",
  links: "Looked at 318 links; all of them lead somewhere.",
  triage: "Sorted 3 new issues: two bugs and a question.",
  audit: "No dependency has a known weakness.",
};

/** The answer of a model to a job, or to a prompt. */
function when(user: string, replies: Reply[]): Reply[] {
  return replies.map((reply) => ({ ...usage(2400, 180), ...reply, when: { user } }));
}

const SCRIPT = [
  ...when("Sort the new issues", [
    calls([
      ["file_edit", {
        path: "notes/triage.md",
        old: "- #41 waits for a reporter\n",
        new: "- #41 cannot be repeated; asked for the version\n- #44 is a duplicate of #39\n",
      }],
      ["file_write", { path: "notes/labels.txt", content: "44 duplicate\n45 bug, parser\n" }],
    ]),
    call("run_command", { command: "gh issue close 44" }),
    say(
      "Sorted 5 new issues: one duplicate, two bugs, two questions. I could not close #44 myself.",
    ),
  ]),
  ...when("Write the release notes", [
    call("ask", { question: "Is the change of the default port part of 2.4, or of 3.0?" }),
    say("The notes are written up to the change of the port, which waits for your answer."),
  ]),
];

const PRICES = { "generic-compatible/*": { in: 1, out: 4 } };

/** Settings of the worktree, with the backend of a server. */
function settings(at: TestServer): Record<string, unknown> {
  return {
    base_url: at.backend.url,
    model: "test",
    stream_retries: 0,
    retry_budget: 0,
    "memory.job": false,
    prices: PRICES,
    tool_permission: { edit: "allow", bash: "deny" },
  };
}

/** A worktree with jobs, runs, asks, usage and sessions, and a server on it. */
export async function world(
  options: Parameters<typeof server>[1] = {},
): Promise<TestServer> {
  const at = await server({ replies: SCRIPT, default: say("done") }, {
    ...options,
    config: { "serve.rate_limit": 0, prices: PRICES, ...options.config },
    files: {
      "README.md": "# Harbour\n",
      "notes/triage.md": "# Triage\n\n- #41 waits for a reporter\n",
      ".svc/jobs/triage.md":
        "# triage\n\n## Task\n\nSort the new issues by what they ask for.\n\n## Done when\n\nEach has a label.\n",
      ...options.files,
    },
  });
  await at.project.write(".svc/config.json", JSON.stringify(settings(at)));
  const context = jobContext(at.workspace);
  const now = Date.now();
  const random = new Random(7);
  const add = (name: string, given: Partial<Job>, history: HistoryEntry[] = []) => {
    const { schedule = { interval: 21_600 } } = given;
    return context.register.add(
      jobSchema.parse({
        ...{ name, schedule, prompt: "go", status: "approved" },
        ...{ created_at: iso(now - 40 * DAY), ...given },
        next_run_at: plannedRun({ schedule, last_run_at: iso(now) }, now),
      }),
      history,
    );
  };
  /** Attempts at regular times, the last of them at `last`. */
  const past = (
    job: string,
    { every, count, last = now - every }: { every: number; count: number; last?: number },
    most: Partial<HistoryEntry> = {},
  ) =>
    Array.from({ length: count }, (_, n): HistoryEntry => {
      const started = last - (count - 1 - n) * every;
      const seconds = 40 + random.below(200);
      const failed = random.below(9) === 0;
      const tokens = 8000 + random.below(40_000);
      const cost = Math.round(tokens * 0.4) / 100_000;
      at.workspace.spending.ledger.append({
        ...{ time: iso(started), for: "turn", job, provider: "openai" },
        model: random.below(3) === 0 ? "gpt-large" : "gpt-small",
        ...{ in: tokens - 900, out: 900, cached: Math.round(tokens / 2), reasoning: 200, cost },
        ...{ calls: 4, chars: tokens * 4 },
      });
      return {
        ...{ started_at: iso(started), finished_at: iso(started + seconds * 1000) },
        status: failed ? "failed" : "verified",
        reason: failed ? "the command of verify ended with exit code 1" : "",
        ...{ duration: seconds, session: "", attempt: 1, cost },
        usage: { prompt_tokens: tokens - 900, completion_tokens: 900 },
        content: failed ? "" : ANSWERS[job] ?? "",
        ...!failed && most,
      };
    });
  const daily = { cron: "30 3 * * *" };
  const half = 3.5 * HOUR;
  const last = Math.floor((now - half) / DAY) * DAY + half;
  const tests = past("nightly-tests", { every: DAY, count: 28, last }, { checked: true });
  await add("nightly-tests", { schedule: daily, verify: "deno task test" }, tests);
  await add(
    "links",
    { schedule: { interval: 14_400 } },
    past("links", { every: 4 * HOUR, count: 40 }),
  );
  await add(
    "triage",
    { prompt: "Sort the new issues" },
    past("triage", { every: 6 * HOUR, count: 12 }),
  );
  await add("release-notes", { prompt: "Write the release notes" });
  await add("audit", {
    ...{ schedule: { cron: "0 5 * * 1" }, require_approval: true, status: "waiting_approval" },
  }, past("audit", { every: 7 * DAY, count: 4 }));
  await add("changelog", { status: "proposed" });
  await add("mirror", {
    enabled: true,
    status: "failed",
    blocked: { since: iso(now - 9 * HOUR), reason: "the backend refuses the key: 401" },
  }, [{
    ...{ started_at: iso(now - 9 * HOUR), finished_at: iso(now - 9 * HOUR + 2000), attempt: 1 },
    ...{ status: "failed", reason: "the backend refuses the key: 401", duration: 2 },
    ...{ session: "", content: "" },
  }]);
  for (const name of ["triage", "release-notes"]) {
    const run = await beginRun(context, name, "run");
    if (!(run instanceof JobRun)) throw new Error(run.refused);
    await finishRun(run, { clock: at.workspace.clock, signal: new AbortController().signal });
  }
  await at.post("/chat", { prompt: "What is in this project?", session: "first-look" });
  return at;
}

/** A fleet in the worktree of a server: one agent with a server that runs, and two that do not. */
export async function withFleet(at: TestServer): Promise<TestServer> {
  const agent = await server({ replies: [], default: say("All 12 notes have a title now.") }, {
    home: at.home,
  });
  const { clock, warn, paths: { state } } = at.workspace;
  const files = new FleetPaths(state);
  const own = await ownIdentity();
  const since = iso(clock.now() - 2 * DAY);
  const snapshot = (name: string, given: Partial<AgentSnapshot>): AgentSnapshot => ({
    ...{ name, dir: name, enabled: true, state: "running", healthy: false, failed_probes: 0 },
    ...{ port: null, pid: null, since, restarts: 0, failures: 0, retry_at: "", error: "" },
    ...{ launched: "", ...given },
  });
  for (const name of ["crawler", "mails"]) await at.project.write(`${name}/.keep`, "");
  await at.project.write(
    ".svc/fleet.json",
    JSON.stringify({
      agents: [
        { name: "notes", dir: agent.project.path },
        ...["crawler", "mails"].map((name) => ({ name, dir: name })),
      ],
    }),
  );
  await at.project.write(
    ".svc/fleet/notes.pid",
    `${own.pid} ${own.started} ${agent.http.port}\n`,
  );
  await at.project.write(join(".svc/logs/crawler.log"), "listening\nerror: no more memory\n");
  const retry_at = iso(clock.now() + MINUTE);
  await new SnapshotFile(files.snapshot, clock, warn).write({
    supervisor: { ...own, since },
    agents: [
      snapshot("notes", { healthy: true, pid: own.pid, port: agent.http.port }),
      snapshot("crawler", { state: "crashed", restarts: 10, error: "exited with code 137" }),
      snapshot("mails", { state: "restarting", restarts: 2, retry_at }),
    ],
  });
  await agent.workspace.asks.park({
    question: "Two notes have the same title. Which one is kept?",
    options: ["The older one", "The newer one"],
    origin: "",
  });
  return agent;
}
