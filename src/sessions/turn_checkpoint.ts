import { type Change, type Checkpoints, type Kept, same } from "./checkpoints.ts";
import { Baseline } from "./git_changes.ts";

/** Begins to keep what a turn changes. First ends a turn of the session whose process has ended. */
export async function beginCheckpoint(
  checkpoints: Checkpoints,
  turn: number,
): Promise<TurnCheckpoint> {
  await settle(checkpoints);
  checkpoints.open(turn);
  return new TurnCheckpoint(checkpoints, turn);
}

/** Finds what a turn has changed whose process has ended. The caller knows that no turn runs. */
export async function settle(checkpoints: Checkpoints): Promise<void> {
  const turn = checkpoints.running();
  if (turn === undefined) return;
  checkpoints.check();
  await TurnCheckpoint.resume(checkpoints, turn).end(true);
}

/** What one turn changes. Calls may overlap: several agents work in a turn. */
export class TurnCheckpoint {
  readonly #checkpoints: Checkpoints;
  readonly #turn: number;
  readonly #kept = new Map<string, Promise<void>>();
  readonly #before = new Map<string, Kept | null>();
  readonly #agents = new Map<string, Set<string>>();
  readonly #commandAgents = new Set<string>();
  #baseline: Promise<Baseline | string> | undefined;

  constructor(checkpoints: Checkpoints, turn: number) {
    this.#checkpoints = checkpoints;
    this.#turn = turn;
  }

  /** What a turn whose process has ended had kept. */
  static resume(checkpoints: Checkpoints, turn: number): TurnCheckpoint {
    const resumed = new TurnCheckpoint(checkpoints, turn);
    for (const each of checkpoints.lines()) {
      if (each.turn !== turn) continue;
      if (each.type === "keep") {
        resumed.#before.set(each.path, each.before);
        resumed.#agents.set(each.path, new Set(each.agents));
      } else if (each.type === "commands") {
        resumed.#baseline = Promise.resolve(
          each.unknown ?? Baseline.read(checkpoints, turn) ?? "the comparison was not finished",
        );
      }
    }
    return resumed;
  }

  /**
   * Keeps a file before a tool changes it.
   *
   * @param path absolute, without links
   * @param agent the session of the sub-agent that changes it. Default: the turn's own agent
   */
  async keep(path: string, agent?: string): Promise<void> {
    const name = this.#checkpoints.name(path);
    let keeping = this.#kept.get(name);
    if (keeping === undefined) this.#kept.set(name, keeping = this.#keep(path, name, agent));
    await keeping;
    if (agent !== undefined && this.#before.has(name)) {
      this.#agents.getOrInsertComputed(name, () => new Set()).add(agent);
    }
  }

  async #keep(path: string, name: string, agent?: string): Promise<void> {
    const before = await this.#checkpoints.capture(path);
    if (before === undefined) return;
    const agents = agent === undefined ? {} : { agents: [agent] };
    this.#checkpoints.append({ type: "keep", turn: this.#turn, path: name, before, ...agents });
    this.#before.set(name, before);
  }

  /** Before a program runs that may change any file: notes what the worktree contains, once a turn. */
  async scan(agent?: string): Promise<void> {
    if (agent !== undefined) this.#commandAgents.add(agent);
    await (this.#baseline ??= this.#scan());
  }

  async #scan(): Promise<Baseline | string> {
    const checkpoints = this.#checkpoints;
    const { options: { git } } = checkpoints;
    const found = typeof git === "string" ? git : await Baseline.take(checkpoints, this.#turn, git);
    const unknown = typeof found === "string" ? { unknown: found } : {};
    checkpoints.append({ type: "commands", turn: this.#turn, ...unknown });
    return found;
  }

  /** Notes what the turn has changed. */
  async end(interrupted = false): Promise<void> {
    const checkpoints = this.#checkpoints;
    await Promise.allSettled(this.#kept.values());
    const found: Change[] = [];
    for (const [path, before] of this.#before) {
      if (interrupted && !checkpoints.isInside(path)) continue;
      const after = await checkpoints.capture(checkpoints.path(path));
      const agents = [...this.#agents.get(path) ?? []];
      add(found, { path, before, after: after ?? null, ...agents.length > 0 && { agents } });
    }
    const baseline = await this.#baseline?.catch(() => undefined);
    let unknown = typeof baseline === "string" ? baseline : undefined;
    if (baseline instanceof Baseline) {
      const changed = await baseline.compare();
      if (typeof changed === "string") unknown = changed;
      else {
        const agents = [...this.#commandAgents];
        for (const each of changed) {
          if (this.#before.has(each.path)) continue;
          add(found, { ...each, ...agents.length > 0 && { agents } });
        }
      }
    }
    const changes = found.sort((one, other) => one.path < other.path ? -1 : 1);
    if (changes.length > 0 || unknown !== undefined) {
      checkpoints.append({
        type: "end",
        turn: this.#turn,
        changes,
        ...unknown !== undefined && { unknown },
        ...interrupted && { interrupted: true as const },
      });
    }
    if (baseline instanceof Baseline) {
      checkpoints.drop(baseline.files.values(), checkpoints.lines());
    }
    Baseline.remove(checkpoints, this.#turn);
    checkpoints.close();
    checkpoints.prune();
  }
}

function add(changes: Change[], found: Change): void {
  if (!same(found.before, found.after)) changes.push(found);
}
