import type { FixtureRegistrar } from "../../../src/plugins/api.ts";
import { FIXTURES } from "./fixtures.ts";

export function register_fixtures(fixtures: FixtureRegistrar): void {
  for (const fixture of FIXTURES) fixtures.register(fixture);
}
