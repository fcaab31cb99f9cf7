import type { Clock } from "../../src/platform/clock.ts";
import type { SessionDocument, Turn } from "../../src/sessions/schema.ts";
import type { Session, TurnLog } from "../../src/sessions/session.ts";
import { SessionStore } from "../../src/sessions/store.ts";

/** A clock that advances one second with every read. The test ends its sleeps. */
export class StepClock implements Clock {
  #now = Date.UTC(2026, 0, 2, 3, 4, 5);
  #sleepers: (() => void)[] = [];
  onSleep = () => {};

  now(): number {
    this.#now += 1000;
    return this.#now;
  }

  sleep(_ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      this.#sleepers.push(resolve);
      this.onSleep();
    });
  }

  wake(): void {
    for (const resolve of this.#sleepers.splice(0)) resolve();
  }
}

export interface Place {
  directory: string;
  clock: StepClock;
  warnings: string[];
  store: SessionStore;
  /** Another store of the same directory, as another process has one. */
  another(): SessionStore;
  file(name: string): string;
  text(name: string): string;
  json(name: string): SessionDocument;
  names(): string[];
}

/** Runs a test on a store in a directory of its own. */
export async function inPlace(body: (place: Place) => void | Promise<void>): Promise<void> {
  const directory = Deno.makeTempDirSync({ prefix: "svc-sessions-" });
  const clock = new StepClock();
  const warnings: string[] = [];
  const another = () =>
    new SessionStore({
      directory,
      version: "0.1.0",
      clock,
      warn: (message) => warnings.push(message),
    });
  const file = (name: string) => `${directory}/${name}.json`;
  const text = (name: string) => Deno.readTextFileSync(file(name));
  try {
    await body({
      directory,
      clock,
      warnings,
      store: another(),
      another,
      file,
      text,
      json: (name) => JSON.parse(text(name)),
      names: () =>
        [...Deno.readDirSync(directory)].map(({ name }) => name).filter((name) => name !== ".ids")
          .sort(),
    });
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
}

export const HEAD = { model: "m1", provider: "demo", mode: "build", reasoning: "medium" };

export async function begin(session: Session): Promise<TurnLog> {
  await session.acquireTurn();
  return session.beginTurn(HEAD);
}

/** The texts of a turn's parts. */
export function texts(turn: Turn | undefined): string[] {
  return (turn?.parts ?? []).map((part) => part.type === "tool" ? part.output : part.text);
}
