import type { FleetPlaces } from "../../fleet/places.ts";
import type { Roster } from "../../fleet/roster.ts";
import type { Paths } from "../../platform/paths.ts";
import type { Io } from "../io.ts";

/** What every fleet command works on. */
export interface FleetContext {
  paths: Paths;
  places: FleetPlaces;
  roster: Roster;
  io: Io;
  warn: (message: string) => void;
}
