import assert from "node:assert/strict";
import { site } from "../policy/support.ts";
import { length, Random, SEED } from "../support/random.ts";
import { CANARY, fileTools, isRefusal, snapshot } from "./support.ts";
import type { Swap } from "./swap_worker.ts";

/** File tools that use a path while a thread replaces a component of it. */
const RACES = length(5600, 560);

/** What is swapped at `place`, and the path that the tools are given. */
interface Case {
  name: string;
  place: string;
  /** Makes the two entries, in the worktree. */
  first: (entry: string) => void;
  second: (entry: string) => void;
  path: string;
  tools: string[];
}

const FILES = ["file_read", "grep", "file_write", "append", "file_edit"];
const directory = (entry: string) => {
  Deno.mkdirSync(`${entry}/deep`, { recursive: true });
  for (const name of ["file", "deep/file", "config.json"]) {
    Deno.writeTextFileSync(`${entry}/${name}`, "mine");
  }
};
const file = (entry: string) => Deno.writeTextFileSync(entry, "mine");
const link = (target: string) => (entry: string) => Deno.symlinkSync(target, entry);

const CASES: Case[] = [
  {
    name: "a directory and a link to one outside",
    ...{ place: "at", path: "at/file", first: directory, second: link("../outside") },
    tools: FILES,
  },
  {
    name: "a parent directory and a link",
    ...{ place: "at", path: "at/deep/file", first: directory, second: link("../outside") },
    tools: FILES,
  },
  {
    name: "a directory that is listed and a link",
    ...{ place: "at", path: "at/deep", first: directory, second: link("../outside") },
    tools: ["list_dir", "glob", "grep"],
  },
  {
    name: "a directory for a new file and a link",
    ...{ place: "at", path: "at/new/file", first: directory, second: link("../outside") },
    tools: ["file_write", "append"],
  },
  {
    name: "a file and a link to one outside",
    ...{ place: "at", path: "at", first: file, second: link("../outside/file") },
    tools: FILES,
  },
  {
    name: "a file and a link to none outside",
    ...{ place: "at", path: "at", first: file, second: link("../outside/none") },
    tools: ["file_write", "append", "file_edit"],
  },
  {
    name: "a file and a hard link to the keys",
    ...{ place: "at", path: "at", first: file },
    second: (entry) => Deno.linkSync(`${entry}/../../.config/svc/providers.json`, entry),
    tools: FILES,
  },
  {
    name: "a directory and a link to .svc",
    ...{ place: "at", path: "at/config.json", first: directory, second: link(".svc") },
    tools: ["file_write", "append", "file_edit"],
  },
];

function args(tool: string, path: string): [string, Record<string, unknown>] {
  switch (tool) {
    case "append":
      return ["file_write", { path, content: "changed", mode: "a" }];
    case "file_write":
      return [tool, { path, content: "mine, changed" }];
    case "file_edit":
      return [tool, { path, old: "e", new: "e!" }];
    default:
      return [tool, { path, pattern: tool === "glob" ? "**" : "." }];
  }
}

let races = 0;

for (const { name, place: at, path, first, second, tools } of CASES) {
  Deno.test(`races: nothing escapes when a thread swaps ${name}`, async () => {
    using place = site();
    const { worktree, outside, user } = place;
    for (const folder of [outside, `${worktree}/.svc`]) {
      Deno.mkdirSync(`${folder}/deep`, { recursive: true });
      for (const each of ["file", "config.json", `deep/${CANARY}`, "deep/file"]) {
        Deno.writeTextFileSync(`${folder}/${each}`, folder === outside ? CANARY : "settings");
      }
    }
    for (const path of [`${user}/providers.json`, `${outside}/new`]) {
      Deno.writeTextFileSync(path, CANARY);
    }
    first(`${worktree}/first`);
    second(`${worktree}/second`);
    const guarded = [outside, user, `${worktree}/.svc`];
    const before = snapshot(...guarded);
    await using _swapping = await startSwapping(worktree, at);
    const call = fileTools(place, {});
    const random = new Random();
    let [refused, done] = [0, 0];
    for (let race = 0; race < RACES / CASES.length || refused === 0 || done === 0; race++) {
      const result = await call(...args(random.one(tools), path));
      races++;
      if (isRefusal(result)) refused++;
      else done++;
      assert.ok(!result.includes(CANARY), result);
      const after = snapshot(...guarded);
      // An empty file may be left where the link led; no content ever is.
      for (const entry of after.filter((each) => !before.includes(each))) {
        assert.match(entry, /: $/);
        Deno.removeSync(entry.slice(0, -2));
      }
      assert.deepEqual(before.filter((entry) => !after.includes(entry)), []);
    }
  });
}

/** Starts the thread; resolves once it swaps. */
async function startSwapping(root: string, place: string) {
  const state = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(new URL("./swap_worker.ts", import.meta.url), { type: "module" });
  const ended = new Promise((resolve) => worker.onmessage = resolve);
  const [first, second] = [`${root}/first`, `${root}/second`];
  const swap: Swap = { place: `${root}/${place}`, first, second, seed: SEED, shared: state.buffer };
  worker.postMessage(swap);
  while (Atomics.load(state, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  return {
    async [Symbol.asyncDispose]() {
      Atomics.store(state, 1, 1);
      await ended;
      worker.terminate();
    },
  };
}

Deno.test("the races are as many as the review had", () => {
  // deno-lint-ignore no-console
  console.log(`${races} races, SVC_TEST_SEED=${SEED}`);
  assert.ok(races >= RACES);
});
