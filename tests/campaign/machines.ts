/**
 * Schedulers, servers and workers of one project on PostgreSQL, each a process with a folder and a home of its own, as
 * on machines of their own. Jobs become due and runs are accepted while processes are killed and stopped, connections
 * are cut, the server restarts, and some clocks are wrong.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { Workspace } from "../../src/engine/workspace.ts";
import { type JobContext, jobContext } from "../../src/jobs/context.ts";
import { type Job, job } from "../../src/jobs/schema.ts";
import { withTables } from "../store/support.ts";
import { buildFlags } from "../support/flags.ts";
import type { Ending, Postgres } from "../support/postgres.ts";
import { commandLine, processOptions, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { Random } from "../support/random.ts";

const CHILD = fileURLToPath(new URL("./child.ts", import.meta.url));
const MINUTE = 60_000;
/** Notes the due time of each run of a job that begins. */
const BEGUN = `
  CREATE TABLE begun (n bigserial, job text, due text);
  CREATE FUNCTION note_begun() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO begun (job, due) VALUES (NEW.key, OLD.value->>'next_run_at');
    RETURN NULL;
  END $$;
  CREATE TRIGGER begun AFTER UPDATE ON svc.records FOR EACH ROW WHEN (
    NEW.kind = 'job' AND OLD.value->'running' IS NULL AND NEW.value->'running' IS NOT NULL
  ) EXECUTE FUNCTION note_begun()`;
/** Milliseconds after which a lease that is not renewed has certainly expired, with some reserve. */
export const LONGER_THAN_A_LEASE = 18_000;

export interface MachinesOptions {
  seed: number;
  schedulers: number;
  servers: number;
  workers: number;
  /** Runs of a worker at a time. */
  concurrency: number;
  /** Whether the clocks of some machines are minutes ahead or behind. */
  wrong: boolean;
  /** Jobs that are due once each. */
  jobs: number;
  /** Jobs that are due each minute, by a cron expression and by an interval in turn. */
  recurring: number;
  /** Accepted runs (`POST /runs`). */
  runs: number;
  /** Milliseconds in which the jobs become due and the runs are accepted. */
  span: number;
  /** What happens to the processes and to PostgreSQL, one after another; milliseconds after the one before. */
  blows: { after: number; blow: Blow }[];
  /** Milliseconds that the model thinks. */
  delay: number;
  tell?: (line: string) => void;
}

/** Blows of all kinds, in no order. */
export function manyBlows(count: number, random: Random): MachinesOptions["blows"] {
  const kinds: Blow[] = ["cut", "cut", "fast", "immediate", "kill"];
  kinds.push("kill worker", "kill worker", "stop worker", "kill scheduler", "kill server");
  return Array.from({ length: count }, () => {
    return { after: 2000 + random.below(6000), blow: random.one(kinds) };
  });
}

export type Blow =
  | "kill worker"
  | "stop worker"
  | "kill scheduler"
  | "kill server"
  | "cut"
  | Ending;

/** A request to the model. */
interface Asked {
  marker: string;
  machine: string;
  at: number;
  /** When it was answered; undefined: its client went before. */
  answered?: number;
}

/** A marker whose machine was killed or stopped while it asked, and when another one asked for it. */
export interface Takeover {
  marker: string;
  from: string;
  seconds: number;
}

// deno-lint-ignore no-explicit-any
type Json = any;

export interface Outcome {
  /** When each job was due, in milliseconds. */
  due: Map<string, number>;
  /** Attempts in the history of each job, the oldest first. */
  attempts: Map<string, Json[]>;
  /** The due times of the runs of each recurring job, in the order of their begins. */
  begun: Map<string, string[]>;
  runs: Json[];
  asked: Asked[];
  takeovers: Takeover[];
  /** All sessions, from the files of `svc store export`. */
  sessions: Map<string, Json>;
  /** The same from each server and some workers. */
  views: { from: string; session: string; document: Json }[];
  /** How the processes ended that were told to at the end, with their last lines. */
  ended: { name: string; code: number; lines: string[] }[];
  seconds: number;
}

/** Plays a campaign on a database of a server. */
export async function machines(postgres: Postgres, options: MachinesOptions): Promise<Outcome> {
  const store = await postgres.database();
  await using model = new Model(options.delay);
  await using stack = new AsyncDisposableStack();
  const campaign = new Campaign(postgres, store, model, options, stack);
  return await campaign.run();
}

/** One process and its folder. */
class Machine {
  readonly lines: string[] = [];
  address = Promise.withResolvers<string>();
  #child: Deno.ChildProcess | undefined;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(
    readonly name: string,
    readonly place: Project,
    readonly home: Project,
    readonly store: string,
    readonly args: string[],
    /** Milliseconds by which its clock is wrong; `older`: svc is of an earlier version. */
    readonly offset: number | "older",
  ) {}

  start(): void {
    this.address = Promise.withResolvers<string>();
    const clock = this.offset === "older" ? ["0", "0"] : [`${Date.now() + this.offset}`, "1"];
    const [command, ...args] = this.offset === 0 ? commandLine(this.args) : [
      Deno.execPath(),
      ...["run", "--no-check", ...buildFlags(), CHILD, ...clock, ...this.args],
    ];
    const child = new Deno.Command(command!, {
      args,
      ...this.options(),
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    this.#child = child;
    const read = async (stream: ReadableStream<Uint8Array>) => {
      for await (const text of stream.pipeThrough(new TextDecoderStream())) {
        for (const line of text.split("\n").filter((line) => line !== "")) {
          this.lines.push(line);
          const [, url] = /listening on (\S+?)\/?$/.exec(line) ?? [];
          if (url !== undefined) this.address.resolve(url);
        }
      }
    };
    const reading = this.#reading = Promise.all([read(child.stdout), read(child.stderr)]);
    child.status.then(async ({ code }) => {
      await reading;
      // As a supervisor does: a process that does not find PostgreSQL at its start ends.
      const again = code === 2 && /cannot be reached/.test(this.lines.slice(-3).join());
      if (again && this.#child === child && this.offset !== "older") this.start();
    });
  }

  options(): Deno.CommandOptions {
    const env = { SVC_STORE: this.store };
    return processOptions({ cwd: this.place.path, home: this.home.path, env });
  }

  signal(signal: Deno.Signal): void {
    try {
      this.#child?.kill(signal);
    } catch {
      // It has ended by itself, which its exit code shows.
    }
  }

  async ended(): Promise<number> {
    const { code } = await this.#child!.status;
    await this.#reading;
    this.#child = undefined;
    return code;
  }

  get runs(): boolean {
    return this.#child !== undefined;
  }

  /** The result of a command in its folder. */
  async svc(...args: string[]): Promise<string> {
    const env = { SVC_STORE: this.store };
    const options = { cwd: this.place.path, home: this.home.path, env };
    const { code, stdout, stderr } = await svc(args, options);
    assert.equal(code, 0, `${this.name}: svc ${args.join(" ")}: ${stderr}`);
    return stdout;
  }
}

class Campaign {
  readonly #machines: Machine[] = [];
  readonly #accepted: string[] = [];
  readonly #hit: { machine: string; at: number; markers: string[] }[] = [];
  readonly #random: Random;
  readonly #due = new Map<string, number>();
  readonly #database: string;
  #context: JobContext | undefined;
  /** Machines that are killed or stopped at the moment. */
  readonly #down = new Set<Machine>();

  constructor(
    readonly postgres: Postgres,
    readonly store: string,
    readonly model: Model,
    readonly options: MachinesOptions,
    readonly stack: AsyncDisposableStack,
  ) {
    this.#random = new Random(options.seed);
    this.#database = new URL(store).pathname.slice(1);
  }

  async run(): Promise<Outcome> {
    const { options } = this;
    const origin = Date.now() + 2000;
    await this.#prepare(origin);
    const begun = performance.now();
    await Promise.all([this.#accept(), this.#strike(), this.#older()]);
    await this.#settled();
    const seconds = (performance.now() - begun) / 1000;
    const views = await this.#views();
    const ended = await this.#end();
    const attempts = new Map<string, Json[]>();
    const entries = await this.#records("attempt");
    for (const name of [...this.#jobs(), ...this.#recurring()]) {
      const own = entries.filter(({ key }) => key.startsWith(`${name}/`)).map(({ value }) => value);
      attempts.set(name, own);
    }
    const runs = (await this.#records("run")).map(({ value }) => value);
    const sessions = await this.#exported();
    options.tell?.(`${this.model.asked.length} requests in ${seconds.toFixed(1)} s`);
    const takeovers = this.#takeovers();
    const due = this.#due;
    return {
      due,
      attempts,
      begun: await this.#begun(),
      runs,
      asked: this.model.asked,
      takeovers,
      sessions,
      views,
      ended,
      seconds,
    };
  }

  #jobs(): string[] {
    return Array.from({ length: this.options.jobs }, (_, number) => `job-${number}`);
  }

  #recurring(): string[] {
    return Array.from({ length: this.options.recurring }, (_, number) => `each-minute-${number}`);
  }

  /** Puts the jobs into the store and starts all machines. */
  async #prepare(origin: number): Promise<void> {
    const { schedulers, servers, workers, concurrency, span, jobs } = this.options;
    await withTables(this.store);
    await this.postgres.query(BEGUN, [], this.#database);
    const first = await this.#machine("first", [], 0);
    const workspace = Workspace.open({
      path: first.place.path,
      environment: { home: first.home.path, cwd: first.place.path, get: () => undefined },
      overrides: { store: this.store, project: "night" },
    });
    const { store } = this.#context = jobContext(workspace);
    const { records } = await store!.open();
    const rows: Job[] = [];
    for (const [number, name] of this.#jobs().entries()) {
      const due = Math.round(origin + number * span / jobs);
      this.#due.set(name, due);
      const at = new Date(due).toISOString();
      rows.push(job.parse({
        name,
        schedule: { at },
        next_run_at: at,
        prompt: `[${name}] go`,
        session: number % 2 === 0 ? "" : `lane-${number % 16}`,
        status: "approved",
        retries: 20,
        backoff: 1,
        created_at: new Date(origin - MINUTE).toISOString(),
      }));
    }
    for (const [number, name] of this.#recurring().entries()) {
      rows.push(job.parse({
        name,
        schedule: number % 2 === 0 ? { cron: "* * * * *" } : { interval: 60 },
        next_run_at: new Date(origin).toISOString(),
        prompt: `[${name}] go`,
        status: "approved",
        retries: 20,
        backoff: 1,
        created_at: new Date(origin - MINUTE).toISOString(),
      }));
    }
    const copy = store!.copies().find(({ name }) => name === "job")!;
    await records.put(copy, rows.map((value) => ({ kind: "job", key: value.name, value })));
    this.stack.defer(() => workspace.close());
    const offset = (number: number) => this.options.wrong ? [0, 3, -4][number % 3]! * MINUTE : 0;
    for (let number = 0; number < schedulers; number++) {
      const args = ["jobs", "daemon", "--no-work", "--tick", "1"];
      await this.#machine(`scheduler-${number}`, args, offset(number));
    }
    for (let number = 0; number < servers; number++) {
      await this.#machine(`server-${number}`, ["serve", "--port", "0", "--no-work"], 0);
    }
    for (let number = 0; number < workers; number++) {
      await this.#machine(
        `worker-${number}`,
        ["worker", "--port", "0", "--concurrency", `${concurrency}`],
        offset(number + 1),
      );
    }
    for (const machine of this.#machines.slice(1)) machine.start();
    this.stack.defer(async () => {
      for (const machine of this.#machines.filter(({ runs }) => runs)) {
        machine.signal("SIGKILL");
        await machine.ended();
      }
    });
  }

  async #machine(
    name: string,
    args: string[],
    offset: number | "older",
  ): Promise<Machine> {
    const config = {
      project: "night",
      base_url: this.model.url(name),
      model: "test",
      plugins: [],
      stream_retries: 0,
      retry_budget: 0,
      "memory.job": false,
      "jobs.grace": 5,
      "serve.grace": 5,
    };
    const place = this.stack.use(
      await project({ ".svc/config.json": JSON.stringify(config) }),
    );
    const home = this.stack.use(await project());
    const machine = new Machine(name, place, home, this.store, args, offset);
    this.#machines.push(machine);
    return machine;
  }

  #of(role: string): Machine[] {
    return this.#machines.filter(({ name }) => name.startsWith(role));
  }

  /** Sends the runs to any server, again until one has accepted it. */
  async #accept(): Promise<void> {
    const { runs, span } = this.options;
    for (let number = 0; number < runs; number++) {
      const body = { prompt: `[run-${number}] go`, session: `talk-${number % 8}` };
      for (;;) {
        const server = this.#random.one(this.#of("server"));
        const address = await Promise.race([server.address.promise, pause(2000)]);
        if (address === undefined || this.#down.has(server)) continue;
        const response = await fetch(`${address}/runs`, {
          method: "POST",
          headers: { "content-type": "application/json", "idempotency-key": `order-${number}` },
          body: JSON.stringify(body),
          signal: AbortSignal.timeout(20_000),
        }).catch(() => undefined);
        const answer = await response?.json().catch(() => undefined);
        if (response?.ok && answer?.id) {
          this.#accepted.push(answer.id);
          break;
        }
        await pause(response?.status === 429 ? 500 : 200);
      }
      await pause(span / runs);
    }
  }

  async #strike(): Promise<void> {
    for (const { after, blow } of this.options.blows) {
      await pause(after);
      this.options.tell?.(blow);
      if (blow === "cut") await this.postgres.cut(this.#database);
      else if (["fast", "immediate", "kill"].includes(blow)) {
        await this.postgres.restart(blow as Ending);
      } else await this.#hitMachine(...blow.split(" ") as [string, string]);
    }
  }

  /** Kills or stops a machine; a worker while it has a turn. */
  async #hitMachine(how: string, role: string): Promise<void> {
    const up = () => this.#of(role).filter((machine) => !this.#down.has(machine));
    let machine = this.#random.one(up());
    for (let tries = 0; role === "worker" && tries < 200; tries++) {
      const busy = up().filter(({ name }) => this.model.asking(name).length > 0);
      if (busy.length > 0) {
        machine = this.#random.one(busy);
        break;
      }
      await pause(10);
    }
    const markers = this.model.asking(machine.name);
    this.#hit.push({ machine: machine.name, at: Date.now(), markers });
    this.#down.add(machine);
    if (how === "stop") {
      machine.signal("SIGSTOP");
      setTimeout(() => {
        machine.signal("SIGCONT");
        this.#down.delete(machine);
      }, LONGER_THAN_A_LEASE);
      return;
    }
    machine.signal("SIGKILL");
    await machine.ended();
    setTimeout(() => {
      machine.start();
      this.#down.delete(machine);
    }, this.#random.below(3000));
  }

  /** Returns when every job has run and every accepted run has ended. */
  async #settled(): Promise<void> {
    for (let left = "";; await pause(250)) {
      const jobs = await this.#records("job").catch(() => undefined);
      const runs = await this.#records("run").catch(() => undefined);
      if (jobs === undefined || runs === undefined) continue;
      const often = this.#recurring();
      const open = [
        ...jobs.filter(({ key, value }) =>
          value.running !== undefined || value.next_run_at && !often.includes(key)
        ).map(({ value }) => `${value.name} ${value.status}`),
        ...this.#accepted.filter((id) => {
          const run = runs.find(({ value }) => value.id === id)?.value;
          return !["done", "failed", "cancelled"].includes(run?.state);
        }),
      ];
      if (open.length === 0 && this.#down.size === 0 && await this.#over(jobs)) return;
      const now = `left: ${open.length}, down: ${[...this.#down].map(({ name }) => name)}`;
      if (now !== left) this.options.tell?.(left = now);
    }
  }

  async #records(kind: string): Promise<{ key: string; value: Json }[]> {
    return await this.postgres.query(
      "SELECT key, value FROM svc.records WHERE kind = $1 AND value IS NOT NULL ORDER BY key",
      [kind],
      this.#database,
    );
  }

  /** Has no recurring job run again. @returns whether none would have any more */
  async #over(jobs: { value: Json }[]): Promise<boolean> {
    const next_run_at = new Date(Date.now() + 1e10).toISOString();
    const soon = jobs.filter(({ value }) => Date.parse(value.next_run_at) < Date.now() + 1e9);
    for (const { value } of soon) {
      await this.#context!.register.change(
        value.name,
        ({ running }) => running === undefined ? { set: { next_run_at } } : undefined,
      );
    }
    return soon.length === 0;
  }

  async #begun(): Promise<Outcome["begun"]> {
    const rows = await this.postgres.query("SELECT * FROM begun ORDER BY n", [], this.#database);
    return new Map(
      this.#recurring().map((name) => [
        name,
        rows.filter(({ job }) => job === name).map(({ due }) => due),
      ]),
    );
  }

  /** Every session from every server, and from a worker. */
  async #views(): Promise<Outcome["views"]> {
    const views: Outcome["views"] = [];
    for (const server of this.#of("server")) {
      const address = await server.address.promise;
      const names: string[] = await (await fetch(`${address}/sessions`)).json()
        .then(({ sessions }) => sessions);
      for (const session of names) {
        const document = await (await fetch(`${address}/sessions/${session}`)).json();
        views.push({ from: server.name, session, document });
      }
    }
    const worker = this.#random.one(this.#of("worker"));
    for (const { session } of views.slice(0, 3)) {
      await worker.svc("export", session, "--out", "-");
      const document = JSON.parse(await worker.place.read(`.svc/sessions/${session}.json`));
      views.push({ from: worker.name, session, document });
    }
    return views;
  }

  /** A worker of an earlier version, for which the tables are too new, ends at once. */
  async #older(): Promise<void> {
    const worker = await this.#machine("older", ["worker"], "older");
    while (!/newer/.test(worker.lines.join("\n"))) {
      worker.start();
      assert.equal(await worker.ended(), 2, worker.lines.join("\n"));
      await pause(this.options.span / 4);
    }
  }

  async #end(): Promise<Outcome["ended"]> {
    const ended: Outcome["ended"] = [];
    for (const machine of this.#machines.filter(({ runs }) => runs)) {
      machine.signal("SIGTERM");
      const code = await machine.ended();
      ended.push({ name: machine.name, code, lines: machine.lines.slice(-5) });
    }
    return ended;
  }

  /** The sessions in the files that `svc store export` writes into an empty folder. */
  async #exported(): Promise<Outcome["sessions"]> {
    const first = this.#machines[0]!;
    await first.svc("store", "export", "out");
    const folder = `${first.place.path}/out/.svc/sessions`;
    const sessions = new Map<string, Json>();
    for (const { name } of Deno.readDirSync(folder)) {
      const [, session] = /^([^.].*)\.json$/.exec(name) ?? [];
      if (session === undefined) continue;
      sessions.set(session, JSON.parse(Deno.readTextFileSync(`${folder}/${name}`)));
    }
    return sessions;
  }

  /** How long it took until another machine asked for what a machine was asking for when it was hit. */
  #takeovers(): Takeover[] {
    return this.#hit.flatMap(({ machine, at, markers }) =>
      markers.flatMap((marker) => {
        const next = this.model.asked.find((asked) => asked.marker === marker && asked.at > at);
        return next === undefined
          ? []
          : [{ marker, from: machine, seconds: (next.at - at) / 1000 }];
      })
    );
  }
}

/** A model whose answers are numbered; it knows which machine asks by the path of its address. */
class Model implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(readonly delay: number) {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {}, onError: () => new Response(null) },
      (request) => this.#answer(request),
    );
  }

  url(machine: string): string {
    return `http://127.0.0.1:${this.#server.addr.port}/${machine}/v1`;
  }

  /** What a machine asks for at the moment. */
  asking(machine: string): string[] {
    return this.asked.filter((asked) => asked.machine === machine && asked.answered === undefined)
      .map(({ marker }) => marker);
  }

  async #answer(request: Request): Promise<Response> {
    if (request.method === "GET") return Response.json({ object: "list", data: [{ id: "test" }] });
    const { messages }: { messages: { role: string; content: unknown }[] } = await request.json();
    const prompt = messages.findLast(({ role }) => role === "user");
    const [, marker = "?"] = /\[([\w-]+)\]/.exec(JSON.stringify(prompt?.content)) ?? [];
    const [, machine = "?"] = new URL(request.url).pathname.split("/");
    const asked: Asked = { marker, machine, at: Date.now() };
    const number = this.asked.push(asked);
    await pause(this.delay);
    const choice = {
      index: 0,
      delta: { role: "assistant", content: `${marker} answer ${number}.` },
    };
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const events = [
      { choices: [choice] },
      { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage },
    ];
    const text = events.map((event) =>
      `data: ${JSON.stringify({ id: `c${number}`, model: "test", ...event })}\n\n`
    );
    asked.answered = Date.now();
    return new Response(text.join("") + "data: [DONE]\n\n", {
      headers: { "content-type": "text/event-stream" },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), ms));
}

/** Everything that is not as it has to be, as sentences. */
export function faults(outcome: Outcome): string[] {
  const { attempts, begun, runs, asked, sessions, views, ended, takeovers } = outcome;
  const found: string[] = [];
  const claims = new Map<string, string>();
  for (const [job, history] of attempts) {
    const verified = history.filter(({ status }) => status === "verified");
    const due = begun.get(job) ?? ["once"];
    if (verified.length !== due.length) {
      found.push(`${job} ended ok ${verified.length} times, and was due ${due.length} times`);
    }
    if (due.some((time, index) => index > 0 && time <= due[index - 1]!)) {
      found.push(`${job} was due at ${due}`);
    }
    const runs = Map.groupBy(history, ({ session }) => session).values();
    const wrong = [...begun.has(job) ? runs : [history]].map((run) =>
      run.map(({ attempt }) => attempt)
    ).find((numbers) => numbers.sort((a, b) => a - b).some((number, i) => number !== i + 1));
    if (wrong) {
      found.push(`the attempts of ${job} are numbered ${wrong}: ${JSON.stringify(history)}`);
    }
    const requests = asked.filter(({ marker }) => marker === job).length;
    if (requests > history.length) {
      found.push(`${job} has ${history.length} attempts and made ${requests} requests`);
    }
    for (const { content, session } of verified) claims.set(content, session);
  }
  for (const { id, state, reason, error, session, request } of runs) {
    if (!["done", "failed"].includes(state)) found.push(`${id} is ${state}`);
    else if (state === "failed" && reason !== "interrupted") {
      found.push(`${id} failed: ${reason}: ${error}`);
    }
    const [, marker] = /\[([\w-]+)\]/.exec(request.prompt)!;
    const texts = textsOf(sessions.get(session)).filter((text) => text.startsWith(`${marker} `));
    if (state === "done" && texts.length !== 1) {
      found.push(`${marker} is done and has ${texts.length} answers`);
    }
  }
  const answers = new Map<string, string>();
  for (const [session, document] of sessions) {
    for (const text of textsOf(document)) {
      if (answers.has(text)) found.push(`"${text}" is in ${answers.get(text)} and in ${session}`);
      answers.set(text, session);
    }
  }
  for (const [content, session] of claims) {
    const at = answers.get(content);
    if (at !== session) found.push(`"${content}" is in ${at}, and not in ${session}`);
  }
  for (const { from, session, document } of views) {
    if (!isDeepStrictEqual(document, sessions.get(session))) {
      found.push(`${session} from ${from} differs from its export`);
    }
  }
  for (const { name, code, lines } of ended) {
    if (code !== 0) found.push(`${name} ended with ${code}: ${lines.join(" / ")}`);
  }
  for (const { marker, from, seconds } of takeovers) {
    if (seconds > 30) found.push(`${marker} of ${from} was taken over after ${seconds} s`);
  }
  return found;
}

/** All answers in the turns of a session. */
function textsOf(document: Json): string[] {
  return JSON.stringify(document ?? null).match(/[\w-]+ answer \d+\./g) ?? [];
}
