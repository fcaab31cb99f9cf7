import { join } from "node:path";
import { errorMessage } from "../platform/error.ts";
import { readJson } from "../platform/files.ts";
import { type Fixture, readFixture } from "./fixture.ts";

/** Where fixtures come from, lowest precedence first. */
export interface Sources {
  /** Those that plugins registered. */
  plugins: { owner: string; fixture: unknown }[];
  /** Folders whose `*.json` files hold one fixture each, or an array of them. */
  folders: string[];
  warn: (message: string) => void;
}

/** All fixtures by id, sorted; one of a later source replaces that of an earlier. Broken ones are warned of. */
export function loadFixtures({ plugins, folders, warn }: Sources): Fixture[] {
  const found = new Map<string, Fixture>();
  const add = (value: unknown, source: string) => {
    try {
      const fixture = readFixture(value, source);
      found.set(fixture.id, fixture);
    } catch (error) {
      warn(errorMessage(error));
    }
  };
  for (const { owner, fixture } of plugins) add(fixture, `of the plugin ${owner}`);
  for (const folder of folders) {
    for (const path of jsonFiles(folder, warn)) {
      try {
        if (!Deno.statSync(path).isFile) throw new Error("it is no regular file"); // a pipe would block
        for (const each of [readJson(path)].flat()) add(each, path);
      } catch (error) {
        warn(`The fixture file ${path} cannot be read: ${errorMessage(error)}`);
      }
    }
  }
  return [...found.values()].sort((a, b) => a.id < b.id ? -1 : 1);
}

function jsonFiles(folder: string, warn: (message: string) => void): string[] {
  try {
    return [...Deno.readDirSync(folder)]
      .filter(({ name, isDirectory }) => !isDirectory && name.endsWith(".json"))
      .map(({ name }) => join(folder, name)).sort();
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      warn(`The fixtures of ${folder} cannot be read: ${errorMessage(error)}`);
    }
    return [];
  }
}
