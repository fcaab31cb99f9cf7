/**
 * Whether `version` lies in a manifest's range: clauses joined by commas, all of which have to hold, as
 * in `>=1.2,<2.0` (specification 2.9). A clause is read as Python packages write it, where `>1.2` means
 * later than 1.2.0; what is not of that shape (`^1.2`, `1.x`, `>=1 <2 || >=3`) is a semver range.
 *
 * @returns undefined when the range cannot be read.
 */
export async function inRange(version: string, range: string): Promise<boolean | undefined> {
  // 20 ms that only a plugin with a range costs. The names of a CommonJS module are lost in the bundle.
  const { default: semver } = await import("semver");
  let every = true;
  for (const clause of range.split(",").map((text) => text.trim())) {
    const { text, negate } = translate(clause);
    if (clause === "" || semver.validRange(text) === null) return undefined;
    every &&= semver.satisfies(version, text, { includePrerelease: true }) !== negate;
  }
  return every;
}

const CLAUSE = /^(>=|<=|>|<|==|!=|~=)\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(\.\*)?$/;

/** A Python clause as a semver range. */
function translate(clause: string): { text: string; negate: boolean } {
  const match = CLAUSE.exec(clause);
  if (match === null) return { text: clause, negate: false };
  const [, operator, major = "0", minor, patch, wildcard] = match;
  const full = `${major}.${minor ?? 0}.${patch ?? 0}`;
  const negate = operator === "!=";
  if (operator === "~=") { // the last part given may grow
    if (minor === undefined || wildcard) return { text: "invalid", negate };
    const next = patch === undefined ? `${+major + 1}.0.0` : `${major}.${+minor + 1}.0`;
    return { text: `>=${full} <${next}-0`, negate };
  }
  if (operator === "==" || negate) {
    const open = wildcard !== undefined && patch === undefined;
    return { text: open ? [major, minor ?? "x", "x"].join(".") : full, negate };
  }
  // A release candidate of 2.0 is not below 2.0.
  const bound = operator === "<" ? `${full}-0` : full;
  return { text: wildcard ? "invalid" : `${operator}${bound}`, negate };
}
