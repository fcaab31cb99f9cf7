import { join } from "node:path";
import type { JobContext } from "../../src/jobs/context.ts";
import { JobRegister } from "../../src/jobs/register.ts";
import { type Job, job } from "../../src/jobs/schema.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { type Reply, type Script, startBackend, type TestBackend } from "../support/backend.ts";
import { type ManualClock, manualClock } from "../support/clock.ts";
import { type Project, project } from "../support/project.ts";
import { TRUSTED, trusting } from "../support/trust.ts";

/** A worktree with jobs and a scripted backend. */
export interface TestJobs extends AsyncDisposable {
  project: Project;
  backend: TestBackend;
  register: JobRegister;
  context: JobContext;
  clock: ManualClock;
  warnings: string[];
  /** The reports that the plugin `recorder` has received. */
  told(): Told[];
  /** The register as it is on disk. */
  // deno-lint-ignore no-explicit-any
  disk(): { jobs: any[] };
  add(...jobs: (Partial<Job> & { name: string })[]): Promise<void>;
}

/** A report or event that a service has received. */
// deno-lint-ignore no-explicit-any
export type Told = any;

/** Settings of a worktree whose scripted backend is asked once for each turn. */
export function scripted({ url }: TestBackend): Record<string, unknown> {
  return {
    base_url: url,
    model: "test",
    stream_retries: 0,
    retry_budget: 0,
    "memory.job": false,
  };
}

export const START = Date.UTC(2026, 0, 2, 3, 4, 5);

/** A due job with the given fields. */
export function aJob(given: Partial<Job> & { name: string }): Job {
  return job.parse({
    schedule: { interval: 3600 },
    prompt: "go",
    task_file: "",
    status: "approved",
    created_at: new Date(START).toISOString(),
    next_run_at: new Date(START).toISOString(),
    ...given,
  });
}

/** A plugin whose `report` service appends what it receives to `told.jsonl`. */
export const RECORDER = `
const write = (value) => Deno.writeTextFileSync(new URL("../../../told.jsonl", import.meta.url),
  JSON.stringify(value) + "\\n", { append: true });
export function register_services(services) {
  services.register("report", {
    report: (payload) => write(payload),
    job_event: (event) => write(event),
  });
}
`;

export async function jobs(
  script: Script | Reply[],
  options: {
    files?: Record<string, string>;
    config?: Record<string, unknown>;
    clock?: Clock;
    recorder?: boolean;
    /** Called with each request; the answer waits for it. */
    onRequest?: () => void | Promise<void>;
  } = {},
): Promise<TestJobs> {
  const backend = startBackend(script, { onRequest: options.onRequest });
  const place = await project({
    ".svc/config.json": JSON.stringify({
      ...scripted(backend),
      "jobs.timeout": 0, // a sleep of the manual clock ends at once
      ...(options.recorder && { plugins: [] }),
      ...options.config,
    }),
    ...(options.recorder && {
      ".svc/plugins/recorder/manifest.json": '{ "name": "recorder", "entry": "plugin.js" }',
      ".svc/plugins/recorder/plugin.js": RECORDER,
    }),
    ...options.files,
  });
  const home = await project();
  const clock = manualClock(START);
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const state = join(place.path, ".svc");
  const register = new JobRegister({ state, clock, warn });
  return {
    project: place,
    backend,
    register,
    clock,
    warnings,
    context: {
      worktree: place.path,
      state,
      environment: {
        home: home.path,
        cwd: place.path,
        get: (name) => name === "PATH" ? Deno.env.get("PATH") : trusting(name),
      },
      register,
      trust: TRUSTED,
      clock: options.clock ?? clock,
      warn,
    },
    told() {
      try {
        return Deno.readTextFileSync(join(place.path, "told.jsonl")).trim().split("\n")
          .map((line) => JSON.parse(line));
      } catch {
        return [];
      }
    },
    disk: () => JSON.parse(Deno.readTextFileSync(register.path)),
    async add(...all) {
      for (const each of all) await register.add(aJob(each));
    },
    async [Symbol.asyncDispose]() {
      await backend.close();
      await place[Symbol.asyncDispose]();
      await home[Symbol.asyncDispose]();
    },
  };
}
