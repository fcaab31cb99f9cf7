import assert from "node:assert/strict";
import { join } from "node:path";
import { costOf, Ledger, priceOf, type RequestLine } from "../../src/usage/ledger.ts";
import { DailyUsage, groupCells, summarise, sumOf } from "../../src/usage/summary.ts";
import { LedgerTotals } from "../../src/usage/totals.ts";
import { manualClock } from "../support/clock.ts";
import { project } from "../support/project.ts";

const NOON = Date.UTC(2026, 0, 2, 12);
const DAY = "2026-01-02";

function line(given: Partial<RequestLine> = {}): RequestLine {
  return {
    time: new Date(NOON).toISOString(),
    for: "turn",
    provider: "demo",
    model: "small",
    in: 10,
    out: 5,
    cached: 0,
    reasoning: 0,
    cost: null,
    calls: 0,
    chars: 40,
    ...given,
  };
}

async function scratch() {
  const place = await project();
  const warnings: string[] = [];
  const clock = manualClock(NOON);
  const open = () =>
    new Ledger({
      state: place.path,
      config: { get: () => 400 },
      clock,
      warn: (text) => void warnings.push(text),
    });
  const file = join(place.path, "usage", `${DAY}.jsonl`);
  return { place, warnings, clock, open, file, [Symbol.asyncDispose]: place[Symbol.asyncDispose] };
}

Deno.test("a line is appended to the file of its day, which its owner alone can read", async () => {
  await using it = await scratch();
  const ledger = it.open();
  ledger.append(line());
  ledger.append(line({ time: "2026-01-03T00:00:00.000Z" }));
  assert.deepEqual(ledger.days(), [DAY, "2026-01-03"]);
  assert.deepEqual(ledger.read(DAY), [line()]);
  assert.equal(Deno.statSync(it.file).mode! & 0o777, 0o600);
  assert.equal(Deno.statSync(ledger.directory).mode! & 0o777, 0o700);
});

Deno.test("broken lines are skipped with one warning, and one that was cut off swallows no other", async () => {
  await using it = await scratch();
  it.open().append(line({ in: 1 }));
  Deno.writeTextFileSync(it.file, '{"time":"2026-01-02T1', { append: true });
  it.open().append(line({ in: 2 }));
  const ledger = it.open();
  assert.deepEqual(ledger.read(DAY).map((each) => "in" in each && each.in), [1, 2]);
  ledger.read(DAY);
  assert.deepEqual(it.warnings, [`${it.file}: 1 broken line is skipped.`]);
});

Deno.test("a folder that cannot be written costs one warning", async () => {
  await using it = await scratch();
  Deno.writeTextFileSync(join(it.place.path, "usage"), "a file");
  const ledger = it.open();
  assert.equal(ledger.append(line()), false);
  ledger.append(line());
  assert.equal(it.warnings.length, 1);
  assert.match(it.warnings[0]!, /The usage of models is not recorded/);
});

Deno.test("lines are not written through a link", async () => {
  await using it = await scratch();
  const target = join(it.place.path, "other");
  Deno.writeTextFileSync(target, "kept\n");
  Deno.mkdirSync(join(it.place.path, "usage"));
  Deno.symlinkSync(target, it.file);
  assert.equal(it.open().append(line()), false);
  assert.equal(Deno.readTextFileSync(target), "kept\n");
});

Deno.test("totals read what was appended since the last look", async () => {
  await using it = await scratch();
  const one = it.open();
  const totals = new LedgerTotals(it.open());
  assert.equal(totals.of({ since: DAY }).used.tokens, 0);
  one.append(line({ job: "a", run: "r1", cost: 0.5 }));
  one.append(line({ job: "b", run: "r1", calls: 2 }));
  assert.deepEqual(totals.of({ since: DAY }).used, { tokens: 30, cost: 0.5, calls: 2 });
  assert.deepEqual(totals.of({ since: DAY, job: "a" }).used, { tokens: 15, cost: 0.5, calls: 0 });
  one.append(line({ job: "a", run: "r2" }));
  assert.equal(totals.of({ since: DAY, job: "a" }).used.tokens, 30);
  assert.equal(totals.of({ since: DAY, job: "a", run: "r2" }).used.tokens, 15);
});

Deno.test("a job's run that goes past midnight counts the days since it began", async () => {
  await using it = await scratch();
  const ledger = it.open();
  const totals = new LedgerTotals(ledger);
  ledger.append(line({ job: "a", run: "r" }));
  it.clock.set(NOON + 86_400_000);
  ledger.append(line({ time: "2026-01-03T12:00:00.000Z", job: "a", run: "r" }));
  assert.equal(totals.of({ since: DAY, job: "a", run: "r" }).used.tokens, 30);
  assert.equal(totals.of({ since: "2026-01-03" }).used.tokens, 15);
});

Deno.test("a reservation counts until it is settled, and as used when its process is gone", async () => {
  await using it = await scratch();
  const one = new LedgerTotals(it.open());
  const two = new LedgerTotals(it.open());
  const reserved = () => two.of({ since: DAY }).reserved.tokens;
  const kept = await one.locked(() => one.reserve({ tokens: 100, cost: 0 }));
  await one.locked(() => one.reserve({ tokens: 7, cost: 0 }));
  assert.equal(reserved(), 107);
  // It counts for the day on which it began.
  it.clock.set(NOON + 86_400_000);
  await one.locked(() => one.settle(line({ time: "2026-01-03T12:00:00.000Z" }), kept));
  it.clock.set(NOON);
  assert.equal(reserved(), 7);
  assert.equal(two.of({ since: DAY }).used.tokens, 15);
  one.close();
  assert.equal(reserved(), 0);
  assert.equal(two.of({ since: DAY }).used.tokens, 15 + 7);
  assert.deepEqual(
    [...Deno.readDirSync(join(it.place.path, "usage"))].map(({ name }) => name).sort(),
    [".ledger.lock", `${DAY}.jsonl`],
  );
});

Deno.test("the cost of a request is that of its tokens, cached ones by their own price", () => {
  const usage = { prompt_tokens: 1000, completion_tokens: 100, cached_tokens: 400 };
  assert.equal(costOf(usage, { in: 2, out: 10, cached: 0.5 }), 0.0024);
  assert.equal(costOf(usage, { in: 2, out: 10 }), 0.003);
  assert.equal(costOf(usage, undefined), null);
});

Deno.test("a price is looked up by provider and model, then by the provider", () => {
  const prices = { "a/m": { in: 1, out: 2 }, "a/*": { in: 3, out: 4 }, "b/m": { in: 1 } };
  const config = { get: () => prices };
  assert.deepEqual(priceOf(config, "a", "m"), { in: 1, out: 2 });
  assert.deepEqual(priceOf(config, "a", "other"), { in: 3, out: 4 });
  assert.equal(priceOf(config, "b", "m"), undefined);
  assert.equal(priceOf(config, "c", "m"), undefined);
});

Deno.test("the first request of a day removes files older than usage.keep_days", async () => {
  await using it = await scratch();
  const ledger = it.open();
  for (const time of ["2024-11-27", "2024-11-28", "2026-01-01"]) {
    ledger.append(line({ time: `${time}T00:00:00.000Z` }));
  }
  Deno.writeTextFileSync(join(ledger.directory, ".live-killed"), "");
  ledger.append(line());
  assert.deepEqual(ledger.days(), ["2024-11-28", "2026-01-01", DAY]);
  assert.equal([...Deno.readDirSync(ledger.directory)].length, 3);
});

Deno.test("the usage of days by job and model is that of svc usage, and each line is read once", async () => {
  await using it = await scratch();
  const ledger = it.open();
  const usage = new DailyUsage(it.open());
  ledger.append(line({ job: "a", cost: 0.25 }));
  ledger.append(line({ job: "a", model: "large", time: "2026-01-03T00:00:00.000Z" }));
  assert.deepEqual(usage.since(DAY).map(({ day, job, model }) => [day, job, model]), [
    [DAY, "a", "demo/small"],
    ["2026-01-03", "a", "demo/large"],
  ]);
  ledger.append(line({ in: 30, cost: 0.5 }));
  Deno.writeTextFileSync(it.file, '{"time":"2026-01-02T1', { append: true });
  const cells = usage.since(DAY);
  for (const by of ["day", "job", "model"] as const) {
    const { groups, total } = summarise(it.open(), Date.parse(DAY), by);
    assert.deepEqual([groupCells(cells, by), sumOf(cells)], [groups, total]);
  }
  assert.equal(usage.since("2026-01-03").length, 1);
  const { openSync } = Deno;
  let read = 0;
  Deno.openSync = (path, options) => {
    const file = openSync(path, options);
    const { readSync } = file;
    file.readSync = (bytes) => {
      const count = readSync.call(file, bytes);
      read += count ?? 0;
      return count;
    };
    return file;
  };
  try {
    assert.deepEqual(usage.since(DAY), cells);
  } finally {
    Deno.openSync = openSync;
  }
  assert.equal(read, '{"time":"2026-01-02T1'.length);
});
