import assert from "node:assert/strict";
import fc from "fast-check";
import { inRange } from "../../src/plugins/manifest.ts";

const CASES: [version: string, range: string, expected: boolean | undefined][] = [
  ["1.4.0", ">=1.2.0,<2.0.0", true],
  ["1.4.0", ">= 1.2 , < 2", true],
  ["2.0.0", ">=1.2,<2.0", false],
  ["2.0.0-rc.1", ">=1.2,<2.0", false],
  ["1.1.9", ">=1.2,<2.0", false],
  ["1.2.1", ">1.2", true], // a semver range would mean 1.3.0 and later
  ["1.2.0", ">1.2", false],
  ["1.2.0", "==1.2", true],
  ["1.2.1", "==1.2", false],
  ["1.2.1", "==1.2.*", true],
  ["1.3.0", "==1.2.*", false],
  ["1.2.1", "!=1.2.1", false],
  ["1.2.2", "!=1.2.1,>=1", true],
  ["1.9.0", "~=1.4", true],
  ["2.0.0", "~=1.4", false],
  ["1.4.9", "~=1.4.2", true],
  ["1.5.0", "~=1.4.2", false],
  ["1.4.0", "<=1.4", true],
  ["1.4.0", "1.4.0", true],
  ["1.4.0", "^1.2", true],
  ["1.4.0", ">=1 <1.3 || >=1.4", true],
  ["1.4.0", "*", true],
  ["1.4.0", "newest", undefined],
  ["1.4.0", ">=1,", undefined],
  ["1.4.0", "~=1", undefined],
  ["1.4.0", ">=1.*", undefined],
];

for (const [version, range, expected] of CASES) {
  Deno.test(`${version} in "${range}": ${expected ?? "no range"}`, async () => {
    assert.equal(await inRange(version, range), expected);
  });
}

Deno.test("a half-open range of two versions holds exactly what lies between", async () => {
  const part = fc.nat({ max: 4 });
  const triple = fc.tuple(part, part, part);
  const order = (a: number[], b: number[]) => a[0]! - b[0]! || a[1]! - b[1]! || a[2]! - b[2]!;
  await fc.assert(fc.asyncProperty(triple, triple, triple, async (version, low, high) => {
    const expected = order(version, low) >= 0 && order(version, high) < 0;
    const range = `>=${low.join(".")},<${high.join(".")}`;
    assert.equal(await inRange(version.join("."), range), expected, range);
  }));
});
