import assert from "node:assert/strict";
import { Workspace } from "../../src/engine/workspace.ts";
import { type Fixture, readFixture } from "../../src/eval/fixture.ts";
import { type FixtureResult, runFixture } from "../../src/eval/run_fixture.ts";
import { judgeWork } from "../../src/eval/work.ts";
import { TemporaryWorktrees } from "../../src/eval/worktrees.ts";
import { WORK } from "../../plugins/svc-core-eval/src/work.ts";
import { call, calls, type Reply, say, startBackend } from "../support/backend.ts";
import { project } from "../support/project.ts";
import { trusting } from "../support/trust.ts";

const edit = (path: string, old: string, now: string) => call("file_edit", { path, old, new: now });
const write = (path: string, content: string) => call("file_write", { path, content });
const sh = (command: string) => call("run_command", { command });
const done = say("Done.");

/** By fixture: the replies of a model that does the work, and of one that only seems to, and why that one fails. */
const SOLUTIONS: Record<string, { right: Reply[]; lazy: Reply[]; why: RegExp }> = {
  "work-rename-across-files": {
    right: [
      edit("src/sums.ts", "function total", "function sumOf"),
      calls([
        ["file_edit", { path: "src/app.ts", old: "total", new: "sumOf", count: 2 }],
        ["file_edit", { path: "src/report/month.ts", old: "{ total }", new: "{ sumOf }" }],
        ["file_edit", { path: "src/report/month.ts", old: "total(days)", new: "sumOf(days)" }],
      ]),
      done,
    ],
    lazy: [edit("src/sums.ts", "function total", "function sumOf"), done],
    why: /src\/app\.ts lacks/,
  },
  "work-same-change-in-many-files": {
    right: [
      edit("services/mail.json", '"timeout": 30', '"timeout": 30, "retries": 3'),
      edit("services/search.json", '"timeout": 5', '"retries": 3, "timeout": 5'),
      edit("services/web.json", '"timeout": 60', '"timeout": 60, "retries": 3'),
      done,
    ],
    lazy: [
      edit("services/mail.json", '"timeout": 30', '"timeout": 30, "retries": 3'),
      edit("services/search.json", '"timeout": 5', '"timeout": 5, "retries": 3'),
      edit("services/web.json", '"timeout": 60', '"timeout": 60, "retries": 3'),
      edit("services/clock.json", "{}", '{ "retries": 3 }'),
      done,
    ],
    why: /changed services\/clock\.json/,
  },
  "work-needle-in-a-long-log": {
    right: [call("grep", { pattern: "ERROR" }), write("answer.txt", "nightly-41 E9024\n"), done],
    lazy: [write("answer.txt", "nightly-1 E0001\n"), done],
    why: /answer\.txt is not as expected/,
  },
  "work-long-output": {
    right: [sh("sh report.sh | sed -n 's/CHECKSUM //p' > answer.txt"), done],
    lazy: [sh("sh report.sh | tail -n 1 > answer.txt"), done],
    why: /the check ended with exit code 1/,
  },
  "work-mend-a-failing-test": {
    right: [
      write(
        "lib/slug.sh",
        "slug() {\n  printf '%s' \"$1\" | tr 'A-Z' 'a-z' | tr -s ' ' '-' | sed 's/^-//; s/-$//'\n}\n",
      ),
      done,
    ],
    lazy: [write("test.sh", "exit 0\n"), done],
    why: /changed test\.sh/,
  },
  "work-two-causes": {
    right: [
      edit("max.sh", '[ "$1" \\< "$2" ]', '[ "$1" -lt "$2" ]'),
      edit("range.sh", '$(( $(max "$1" 1) - 1 ))', '"$(max "$1" 1)"'),
      done,
    ],
    lazy: [edit("range.sh", " - 1 ))", " ))"), done],
    why: /the check ended/,
  },
  "work-resume-after-compaction": {
    right: [
      write("name.txt", "Bramble\n"),
      done,
      say("The release is Bramble, its port is 8471. name.txt is made."),
      write("port.txt", "8471\n"),
      done,
    ],
    lazy: [
      write("name.txt", "Bramble\n"),
      done,
      say("A file was made."),
      write("port.txt", "8080\n"),
      done,
    ],
    why: /port\.txt is not as expected/,
  },
  "work-continue-after-compaction": {
    right: [
      write("first.txt", "alder"),
      done,
      write("second.txt", "birch"),
      done,
      say("first.txt (alder) and second.txt (birch) are made; third.txt (cedar) is next."),
      write("third.txt", "cedar"),
      done,
    ],
    lazy: [write("first.txt", "alder"), done, done, say("Nothing."), done],
    why: /second\.txt is missing/,
  },
  "work-resume-a-session": {
    right: [
      edit("palette.txt", "background: ivory\ntext: grey", "background: black\ntext: white"),
      done,
      edit("palette.txt", "background: black", "background: ivory"),
      done,
    ],
    lazy: [
      edit("palette.txt", "background: ivory\ntext: grey", "background: black\ntext: white"),
      done,
      edit("palette.txt", "background: black\ntext: white", "background: ivory\ntext: grey"),
      done,
    ],
    why: /palette\.txt is not as expected/,
  },
  "work-write-a-program": {
    right: [
      write(
        "longest.sh",
        "awk 'length($0) > n || NR == 1 { n = length($0); line = $0 } END { if (NR) print line }'\n",
      ),
      done,
    ],
    lazy: [write("longest.sh", "sort | head -n 1\n"), done],
    why: /the check ended/,
  },
  "work-edit-nested-json": {
    right: [
      edit(
        "settings.json",
        '"cache": true,\n      "pool": 20',
        '"cache": false,\n      "pool": 20',
      ),
      done,
    ],
    lazy: [
      edit(
        "settings.json",
        '"pool": 20\n    },\n    "cache": true',
        '"pool": 20\n    },\n    "cache": false',
      ),
      done,
    ],
    why: /settings\.json is not as expected/,
  },
  "work-csv-to-json": {
    right: [write("totals.json", '{"west": 201, "north": 157, "south": 93}'), done],
    lazy: [write("totals.json", '{"north": 150, "south": 75}'), done],
    why: /totals\.json is not as expected/,
  },
  "work-remove-dead-code": {
    right: [
      edit("tools.sh", "lower() { tr 'A-Z' 'a-z'; }\nfirst() { head -n 1; }\n", ""),
      done,
    ],
    lazy: [
      write("tools.sh", "upper() { tr 'a-z' 'A-Z'; }\n"), // `last` is called by a variable
      done,
    ],
    why: /tools\.sh lacks "last\(\)"; the check ended/,
  },
  "work-move-a-file": {
    right: [
      sh("mkdir lib && mv util/greet.sh lib/ && sed -i 's/util/lib/' morning.sh evening.sh"),
      done,
    ],
    lazy: [sh("mkdir lib && mv util/greet.sh lib/ && sed -i 's/util/lib/' morning.sh"), done],
    why: /the check ended/,
  },
  "work-keep-line-ends": {
    right: [edit("server.ini", "port = 80", "port = 8080"), done],
    lazy: [
      write("server.ini", "[server]\nhost = example.org\nport = 8080\n\n[log]\nlevel = info\n"),
      done,
    ],
    why: /server\.ini is not as expected/,
  },
  "work-keep-characters": {
    right: [edit("menu.txt", "Käsespätzle · 9,50 €", "Käsespätzle · 10,50 €"), done],
    lazy: [edit("menu.txt", "Käse‑Spätzle · 9,50 €", "Käse‑Spätzle · 10,50 €"), done],
    why: /menu\.txt is not as expected/,
  },
  "work-indentation": {
    right: [edit("cart.py", "result += price", "result += price * count"), done],
    lazy: [
      edit(
        "cart.py",
        "                result += price",
        "        result += price * count",
      ),
      done,
    ],
    why: /cart\.py lacks.*the check ended/,
  },
  "work-tabs-in-a-makefile": {
    right: [
      write(
        "Makefile",
        ".PHONY: all clean\n\nall:\n\tmkdir -p out\n\techo done > out/done\n\nclean:\n\trm -rf out\n",
      ),
      done,
    ],
    lazy: [
      write(
        "Makefile",
        ".PHONY: all clean\n\nall:\n\tmkdir -p out\n\techo done > out/done\n\nclean:\n    rm -rf out\n",
      ),
      done,
    ],
    why: /the check ended/,
  },
  "work-which-setting-counts": {
    right: [edit("override/eu.conf", "300", "500"), done],
    lazy: [edit("regions/eu.conf", "200", "500"), done],
    why: /override\/eu\.conf is not as expected; changed regions\/eu\.conf/,
  },
  "work-regenerate": {
    right: [edit("colours.txt", "blue\n", "blue\ngreen\n"), sh("sh build.sh"), done],
    lazy: [edit("colours.txt", "blue\n", "blue\ngreen\n"), done],
    why: /pretty\.txt is not as expected/,
  },
  "work-nothing-to-do": {
    right: [call("grep", { pattern: "recieve" }), write("answer.txt", "0\n"), done],
    lazy: [edit("notes.txt", "recieve", "receive"), write("answer.txt", "1\n"), done],
    why: /answer\.txt is not as expected; changed notes\.txt/,
  },
  "work-merge-conflict": {
    right: [write("list.txt", "apples\npears\nplums\nfigs\nnuts\n"), done],
    lazy: [write("list.txt", "apples\npears\nnuts\n"), done],
    why: /list\.txt is not as expected/,
  },
  "work-one-line-of-many": {
    right: [edit("features.txt", "feature_17 group_64 off", "feature_17 group_64 on"), done],
    lazy: [edit("features.txt", "feature_17 group_6 off", "feature_17 group_6 on"), done],
    why: /features\.txt is not as expected/,
  },
  "work-blanks-in-names": {
    right: [write("count.sh", 'cat "$1"/*.txt | wc -l | tr -d " "\n'), done],
    lazy: [write("count.sh", "echo 3\n"), write("data/number two.txt", ""), done],
    why: /changed data\/number two\.txt/,
  },
};

/** Runs a fixture with a model that gives these replies. */
async function run(fixture: Fixture, replies: Reply[], of: Workspace): Promise<FixtureResult> {
  await using backend = startBackend(replies);
  const worktrees = new TemporaryWorktrees();
  try {
    return await runFixture(fixture, {
      environment: of.environment,
      backend: { base_url: backend.url, model: "m", "sandbox.mode": "off" },
      denied: [],
      pluginsOf: of,
      worktrees,
      warn: (message) => assert.fail(message),
      timeout: 60,
      signal: new AbortController().signal,
    });
  } finally {
    worktrees.close();
  }
}

Deno.test("each bundled piece of work passes for a model that does it, and fails for one that only seems to", async () => {
  await using place = await project();
  const of = Workspace.open({
    path: place.path,
    environment: {
      home: place.path,
      cwd: place.path,
      get: (name) => name === "PATH" ? Deno.env.get(name) : trusting(name),
    },
    overrides: { "sandbox.mode": "off" },
  });
  const fixtures = WORK.map((each) => readFixture(each, each.id));
  assert.ok(fixtures.length >= 20);
  assert.deepEqual(fixtures.map(({ id }) => id), Object.keys(SOLUTIONS));
  for (const fixture of fixtures) {
    const { right, lazy, why } = SOLUTIONS[fixture.id]!;
    const nothing = Array(right.length).fill(done);
    const passed = await run(fixture, right, of);
    assert.deepEqual([passed.reasons, passed.pass], [[], true], fixture.id);
    const failed = await run(fixture, lazy, of);
    assert.equal(failed.pass, false, fixture.id);
    assert.match(failed.reasons.join("; "), why, fixture.id);
    const idle = await run(fixture, nothing, of);
    assert.equal(idle.pass, false, `${fixture.id}: nothing was done`);
    for (const each of [passed, failed]) {
      assert.equal(each.errors, 0, `${fixture.id}: a call failed`);
    }
  }
  await of.close();
});

Deno.test("the files of a check are written through no link that an agent has made of .svc", async () => {
  await using place = await project({ "documents/check/letter.txt": "Dear" });
  await Deno.mkdir(`${place.path}/worktree`);
  await Deno.symlink(`${place.path}/documents`, `${place.path}/worktree/.svc`);
  const fixture = readFixture({ id: "a", task: "do", verifier: { command: "true" } }, "test");
  const workspace = {
    paths: { worktree: `${place.path}/worktree` },
    sandbox: { run: () => assert.fail("nothing is run") },
  } as unknown as Workspace;
  const reasons = await judgeWork(fixture, workspace, new AbortController().signal);
  assert.deepEqual(reasons, ["replaced .svc"]);
  assert.equal(await place.read("documents/check/letter.txt"), "Dear");
});
