/** Lanes of work that are left alone for days, with a vendor that has troubles, on a fast clock, with kills. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { main } from "../../src/cli/main.ts";
import type { Io } from "../../src/commands/io.ts";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { RECORDER } from "../jobs/support.ts";
import { buildFlags } from "../support/flags.ts";
import { testIo } from "../support/io.ts";
import { processOptions } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { Random } from "../support/random.ts";
import { FastClock } from "./clock.ts";
import { DAY, type Exchange, HOUR, troubles, Vendor } from "./vendor.ts";

export const START = Date.UTC(2026, 0, 5);
const CHILD = fileURLToPath(new URL("./child.ts", import.meta.url));
/** How much faster the clock of a process runs that is to be killed. */
const FACTOR = 60;
const serve = async () => (await import("../../src/server/main.ts")).serve;

export interface MonthOptions {
  days: number;
  kills: number;
  seed: number;
  /** Characters of the file that is read with each entry. */
  data: number;
  /** Tokens of a prompt, with its answer, at most. */
  window: number;
  tell?: (line: string) => void;
}

/** One piece of work of a lane: a turn, a team's, or the run of a job. */
export interface Step {
  lane: string;
  from: number;
  to: number;
  status: string;
  reason: string;
  verified: boolean;
  /** It was reported as verified, and its check has not passed for it. */
  refuted: boolean;
  content: string;
}

export interface Month {
  options: MonthOptions;
  steps: Step[];
  exchanges: Exchange[];
  /** Lanes with a step that had not ended a day after the last one. */
  hung: string[];
  killed: number;
  /** The lanes with a lasting session, and whether the code word of the first day is known on the last. */
  recalled: Map<string, boolean>;
  /** Hours of each day in which the vendor answers. */
  served: number[];
  megabytes: number;
  sessions: number;
  /** What was written to standard error, with how often. */
  notes: Map<string, number>;
}

interface Lane {
  /** A job's. */
  schedule?: string;
  /** Between two steps of a lane that is no job. */
  minutes?: number;
  /** It has one session that lasts. */
  session?: boolean;
  chat?: boolean;
  verify?: boolean;
  command?: string[];
  args?: string[];
  verb?: string;
}

export const LANES: Readonly<Record<string, Lane>> = {
  "fresh-a": { schedule: "--interval=3600", verify: true },
  "fresh-b": { schedule: "--cron=0 */2 * * *" },
  "last-a": { schedule: "--interval=3600", session: true, verify: true },
  "last-b": { schedule: "--cron=10 */2 * * *", session: true },
  "nova": { schedule: "--cron=30 */3 * * *", session: true, args: ["--model", "nova"] },
  "greedy": { schedule: "--cron=20 */3 * * *", session: true, verb: "Read" },
  "loop-a": { minutes: 60, session: true, verify: true, args: ["--wait", "6h"] },
  "loop-b": { minutes: 120, session: true },
  "chat-a": { minutes: 120, session: true, chat: true },
  "chat-b": { minutes: 180, session: true, chat: true },
  "team": { minutes: 720, command: ["teams", "run", "pair"] },
  "report": { minutes: 1440, args: ["--schema", "schema.json"], verb: "Report" },
};
export const LASTING = Object.keys(LANES).filter((lane) => LANES[lane]!.session);

const JOBS = Object.keys(LANES).filter((lane) => LANES[lane]!.schedule);
const RUNS = Object.keys(LANES).filter((lane) => lane.startsWith("loop"));

export async function month(options: MonthOptions): Promise<Month> {
  const random = new Random(options.seed);
  const clock = new FastClock(START);
  using _ = clock.install();
  const windows = troubles(START, options.days, random);
  await using vendor = new Vendor(clock, windows, random, options.window);
  await using place = await worktree(vendor.url, options);
  await using home = await project();
  const campaign = new Campaign(options, random, clock, vendor, place, home.path);
  await campaign.begin();
  return await clock.run(campaign.run());
}

/** A command that runs until it is stopped. */
interface Service {
  stop: AbortController;
  address: Promise<string>;
  ended: Promise<number>;
}

class Campaign {
  readonly #steps: Step[] = [];
  readonly #notes = new Map<string, number>();
  readonly #recalled = new Map<string, boolean>();
  /** Lanes with a step that runs. */
  readonly #open = new Set<string>();
  /** Verified steps of each lane. */
  readonly #verified = new Map<string, number>();
  readonly #ends: number;
  #killed = 0;
  #daemon!: Service;
  #server!: Service;

  constructor(
    readonly options: MonthOptions,
    readonly random: Random,
    readonly clock: FastClock,
    readonly vendor: Vendor,
    readonly place: Project,
    readonly home: string,
  ) {
    this.#ends = START + options.days * DAY;
  }

  /** Before time moves, since the clock cannot see that modules are loaded: tells each lane its code word. */
  async begin(): Promise<void> {
    for (const job of JOBS) await this.#add(job);
    this.#daemon = this.#start("jobs", "daemon", "--tick", "600");
    this.#server = this.#start("serve", "--port", "0");
    for (const lane of LASTING) {
      await this.#prompt(lane, `Remember: the code word of ${lane} is ${word(lane)}.`);
    }
    await this.#prompt("team", "Do the first entry.");
  }

  async run(): Promise<Month> {
    const { clock, vendor, options } = this;
    const lanes = Object.keys(LANES).map((lane) => this.#lane(lane));
    const late = clock.sleep(this.#ends + DAY - clock.now());
    await Promise.race([Promise.all([...lanes, this.#watch(), this.#kills()]), late]);
    const hung = [...this.#open];
    for (const lane of LASTING) this.#recalled.set(lane, await this.#recalls(lane));
    for (const service of [this.#daemon, this.#server]) {
      await Promise.race([this.#stop(service), clock.sleep(HOUR)]);
    }
    const files = [...walk(join(this.place.path, ".svc"))];
    const answers = (day: number, hour: number) =>
      [undefined, "stall"].includes(vendor.trouble(START + day * DAY + hour * HOUR));
    return {
      options,
      steps: this.#steps,
      exchanges: vendor.exchanges,
      hung,
      killed: this.#killed,
      recalled: this.#recalled,
      served: Array.from(
        { length: options.days },
        (_, day) =>
          Array.from({ length: 24 }, (_, hour) => answers(day, hour)).filter(Boolean).length,
      ),
      megabytes: files.reduce((sum, { size }) => sum + size, 0) / 1e6,
      sessions: files.filter(({ path }) => /\/sessions\/[^/.][^/]*\.json$/.test(path)).length,
      notes: this.#notes,
    };
  }

  async #add(job: string): Promise<void> {
    const { schedule = "", session, verify, args = [], verb = "Do" } = LANES[job]!;
    const { code, notes } = await this.#main("jobs", "add", job, schedule, ...[
      ...["--prompt", `[${job}] ${verb} the next entry.`, "--approval", "auto", ...args],
      ...session ? ["--session", job] : [],
      ...verify ? ["--verify", `sh check.sh ${job}`] : [],
    ]);
    if (code !== 0) throw new Error(notes.join("\n"));
  }

  /** Takes the steps of a lane until the end; those of jobs are the scheduler's. */
  async #lane(lane: string): Promise<void> {
    const { minutes = 0, verb = "Do" } = LANES[lane]!;
    for (let at = START; minutes > 0 && at < this.#ends; at += minutes * 60_000) {
      await this.#until(at);
      this.#open.add(lane);
      this.#steps.push(await this.#prompt(lane, `${verb} the next entry.`));
      this.#open.delete(lane);
    }
  }

  async #recalls(lane: string): Promise<boolean> {
    const late = new AbortController();
    for (let tries = 0; tries < 5; tries++) {
      const asked = this.#prompt(lane, "What is the code word?");
      const step = await Promise.race([asked, this.clock.sleep(HOUR * 6, late.signal)]);
      if (step?.status === "ok") return step.content.includes(word(lane));
      await this.clock.sleep(HOUR);
    }
    return false;
  }

  /** A turn of a lane. */
  async #prompt(lane: string, text: string): Promise<Step> {
    const { session, chat, verify, args = [], command = ["run"] } = LANES[lane]!;
    const from = this.clock.now();
    const prompt = `[${lane}] ${text}`;
    // deno-lint-ignore no-explicit-any
    let result: any;
    if (chat) {
      const body = JSON.stringify({ prompt, session: lane });
      const headers = { "content-type": "application/json" };
      const address = await this.#server.address;
      result = await fetch(`${address}/chat`, { method: "POST", headers, body })
        .then((response) => response.json(), (error) => ({ reason: `${error}` }));
    } else {
      const { code, out } = await this.#main(...command, ...args, ...[
        ...session ? ["--session-id", lane] : [],
        ...verify && text.startsWith("Do") ? ["--verify", `sh check.sh ${lane}`] : [],
        prompt,
      ]);
      result = out === "" ? { reason: `exit code ${code}` } : JSON.parse(out);
    }
    const { status = "error", errors, verified = false, content = "" } = result;
    const reason = result.reason || errors?.[0]?.message || "";
    return this.#step({ lane, from, to: this.clock.now(), status, reason, verified, content });
  }

  /** Every verified step needs a check of its lane that has passed. */
  #step(step: Omit<Step, "refuted">): Step {
    if (!step.verified) return { ...step, refuted: false };
    const { lane } = step;
    const passed = Deno.readTextFileSync(join(this.place.path, "passed.txt")).split("\n");
    const verified = (this.#verified.get(lane) ?? 0) + 1;
    this.#verified.set(lane, verified);
    return { ...step, refuted: verified > passed.filter((name) => name === lane).length };
  }

  async #until(at: number): Promise<void> {
    if (at > this.clock.now()) await this.clock.sleep(at - this.clock.now());
  }

  /** Reads the reports of jobs as they come. */
  async #watch(): Promise<void> {
    const told = join(this.place.path, "told.jsonl");
    for (let at = START; at <= this.#ends; at += HOUR / 2) {
      await this.#until(at);
      if ((at - START) % DAY === 0) {
        const counts = `${this.#steps.length} steps, ${this.vendor.exchanges.length} requests`;
        this.options.tell?.(`${(at - START) / DAY} days: ${counts}`);
      }
      if (!await Deno.rename(told, `${told}.read`).then(() => true, () => false)) continue;
      const lines = (await Deno.readTextFile(`${told}.read`)).trim().split("\n");
      for (const report of lines.map((line) => JSON.parse(line))) {
        if (report.event !== "job.run.completed") continue;
        const { job: lane, reason, content, started_at, finished_at } = report;
        const [from, to] = [started_at, finished_at].map((time) => Date.parse(time));
        const ok = report.status === "verified";
        const verified = report.verified ?? (ok && LANES[lane]!.verify === true);
        const status = ok ? "ok" : "error";
        this.#steps.push(
          this.#step({ lane, from: from!, to: to!, status, reason, verified, content }),
        );
      }
    }
  }

  /** Kills a turn and a scheduler in turn, each as a process of its own, at seeded times. */
  async #kills(): Promise<void> {
    const { clock, random, options: { kills }, vendor } = this;
    for (let kill = 0; kill < kills; kill++) {
      const at = (kill + 0.3 + random.next() / 2) * (this.#ends - START) / kills;
      await this.#until(START + Math.ceil(at / HOUR) * HOUR);
      while (vendor.trouble() !== undefined) await clock.sleep(HOUR);
      const lane = RUNS.find((lane) => !this.#open.has(lane));
      if (kill % 2 === 0 && lane !== undefined) {
        await this.#kill("run", "--session-id", lane, `[${lane}] Do the next entry.`);
        continue;
      }
      await this.#stop(this.#daemon);
      await clock.sleep(HOUR); // jobs become due
      await this.#kill("jobs", "daemon");
      this.#daemon = this.#start("jobs", "daemon", "--tick", "600");
    }
  }

  /** Starts a process, and kills it a moment after one of its first requests or answers. */
  async #kill(...args: string[]): Promise<void> {
    const { clock, vendor, random } = this;
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-check", ...buildFlags(), CHILD, `${clock.now()}`, `${FACTOR}`, ...args],
      ...processOptions({ cwd: this.place.path, home: this.home }),
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const begun = Date.now();
    let ended = false;
    let left = random.below(3);
    const moment = random.below(30);
    const phase = random.one(["request", "answered"] as const);
    const kill = () => {
      if (ended) return;
      child.kill("SIGKILL");
      this.#killed++;
    };
    vendor.watch = (now) => {
      if (now === phase && left-- === 0) setTimeout(kill, moment);
    };
    const limit = setTimeout(kill, 20_000); // a scheduler may have nothing to do
    await child.status;
    ended = true;
    clearTimeout(limit);
    vendor.watch = () => {};
    clock.skip((Date.now() - begun) * FACTOR);
  }

  #start(...args: string[]): Service {
    const stop = new AbortController();
    const address = Promise.withResolvers<string>();
    const io = this.#io({
      onInterrupt: () => ({ signal: stop.signal, release() {} }),
      note: (line) => {
        const [, url] = /^listening on (\S+?)\/?$/.exec(line) ?? [];
        if (url !== undefined) address.resolve(url);
        this.#note(line);
      },
      out: (line) => this.options.tell?.(`  ${line.trimEnd()}`),
    });
    return { stop, address: address.promise, ended: main(args, io, { serve }) };
  }

  async #stop({ stop, ended }: Service): Promise<void> {
    stop.abort(new DOMException("Interrupted.", "AbortError"));
    await ended;
  }

  async #main(...args: string[]): Promise<{ code: number; out: string; notes: string[] }> {
    const notes: string[] = [];
    let out = "";
    const note = (line: string) => {
      notes.push(line);
      this.#note(line);
    };
    const code = await main(args, this.#io({ note, out: (text) => void (out += text) }));
    return { code, out, notes };
  }

  #io(given: Partial<Io>): Io {
    return testIo({ home: this.home, cwd: this.place.path }, given);
  }

  #note(line: string): void {
    const kind = line.replace(/\d+/g, "N").slice(0, 300);
    this.#notes.set(kind, (this.#notes.get(kind) ?? 0) + 1);
  }
}

/** The tokens of a run of a job at most. */
export function budgetOf({ window }: MonthOptions): number {
  return 6 * window;
}

function word(lane: string): string {
  return `${lane.replace("-", "")}-${lane.length * 37}`;
}

function worktree(base_url: string, options: MonthOptions): Promise<Project> {
  const settings = {
    base_url,
    model: "atlas",
    tool_permission: { bash: "allow" },
    "sandbox.mode": "off",
    plugins: [],
    "budget.job_run": { tokens: budgetOf(options) },
    "sessions.keep_days": 7,
    "sessions.keep_count": 200,
  };
  const known: readonly string[] = CONFIG_KEYS;
  return project({
    ".svc/config.json": JSON.stringify(
      Object.fromEntries(Object.entries(settings).filter(([key]) => known.includes(key))),
    ),
    ".svc/plugins/recorder/manifest.json": '{ "name": "recorder", "entry": "plugin.js" }',
    ".svc/plugins/recorder/plugin.js": RECORDER,
    ".svc/roles.json": JSON.stringify({
      maker: { system_prompt: "You make entries." },
      judge: { system_prompt: "You review entries." },
    }),
    ".svc/teams.json": JSON.stringify({
      pair: {
        stages: ["maker", { role: "judge", task_hint: "[team] Review the entry." }],
        loop: { from: "maker", until: "judge" },
      },
    }),
    "check.sh": 'grep -qx ok "out/$1.txt" && rm "out/$1.txt" && echo "$1" >> passed.txt\n',
    "passed.txt": "",
    "data.txt": "All work and no play makes a dull file.\n".repeat(Math.ceil(options.data / 40)),
    "schema.json": JSON.stringify({
      type: "object",
      properties: { lane: { const: "report" }, done: { type: "boolean" } },
      required: ["lane", "done"],
    }),
  });
}

function* walk(folder: string): Generator<{ path: string; size: number }> {
  for (const { name, isDirectory } of Deno.readDirSync(folder)) {
    const path = join(folder, name);
    if (isDirectory) yield* walk(path);
    else yield { path, size: Deno.lstatSync(path).size };
  }
}
