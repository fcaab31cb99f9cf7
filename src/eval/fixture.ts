import { join } from "node:path";
import * as z from "zod/mini";
import { errorMessage, SvcError } from "../platform/error.ts";
import type { ConfigView } from "../plugins/api.ts";
import { actionOf } from "../policy/policy.ts";
import { policySettings } from "../policy/settings.ts";
import { type Opening, openingOf } from "../policy/openings.ts";
import { readJson } from "../platform/files.ts";

const names = z.array(z.string());
const count = z.int().check(z.nonnegative());

/** What a file has to be after the work: its text, absent, a JSON value, or a text with and without some pieces. */
const expectedFile = z.union([
  z.string(),
  z.null(),
  z.strictObject({ json: z.unknown() }),
  z.strictObject({ has: z._default(names, []), lacks: z._default(names, []) }),
]);

const schema = z.strictObject({
  id: z.string().check(z.regex(/^[\w.-]{1,100}$/)),
  description: z._default(z.string(), ""),
  /** The prompt. */
  task: z.string().check(z.minLength(1)),
  /** Further prompts, each in the resumed session; `/compact` summarises the conversation. */
  then: z._default(z.array(z.string().check(z.minLength(1))), []),
  /** Files of the fixture's worktree: relative path to content. */
  files: z._default(z.record(z.string(), z.string()), {}),
  /** Names of tools in the expected order of calls. */
  expected: z._default(names, []),
  verifier: z._default(
    z.strictObject({
      /** Allows no other calls than `expected`. */
      exact: z._default(z.boolean(), false),
      must_include: z._default(names, []),
      avoid: z._default(names, []),
      max_calls: z.optional(count),
      min_calls: z.optional(count),
      /** By tool: arguments that one of its calls must have. */
      args: z._default(z.record(z.string(), z.record(z.string(), z.unknown())), {}),
      /** By relative path: what has to be there after the work. */
      files: z._default(z.record(z.string(), expectedFile), {}),
      /** The only files that may differ afterwards. */
      only: z.optional(names),
      /** A command for `sh` that has to end with exit code 0 after the work. */
      command: z.optional(z.string().check(z.minLength(1))),
      /** Files for the command, which the agent never sees: names in `.svc/check/`, and their content. */
      check_files: z._default(z.record(z.string().check(z.regex(/^\w[\w.-]*$/)), z.string()), {}),
    }),
    { exact: false, must_include: [], avoid: [], args: {}, files: {}, check_files: {} },
  ),
  tool_permission: z._default(z.record(z.string(), z.enum(["allow", "ask", "deny"])), {}),
  tools_deny: z._default(names, []),
});

/** A task with the tool calls that a good agent makes for it; docs/eval.md has the format. */
export type Fixture = z.infer<typeof schema>;

/**
 * Validates one fixture.
 *
 * @throws SvcError `bad_fixture` with the name of the invalid field
 */
export function readFixture(value: unknown, source: string): Fixture {
  const read = schema.safeParse(value);
  if (read.success) {
    const { files, verifier } = read.data;
    const outside = [files, verifier.files].flatMap(Object.keys).find((path) => !isInside(path));
    if (outside !== undefined) {
      throw bad(
        source,
        `files names ${JSON.stringify(outside)}, which is no place in the worktree`,
      );
    }
    const paths = Object.keys(files);
    const both = paths.find((path) => paths.some((other) => other.startsWith(`${path}/`)));
    if (both === undefined) return read.data;
    throw bad(source, `files has ${JSON.stringify(both)} as a file and as a folder`);
  }
  const [issue] = read.error.issues;
  const where = issue!.path.join(".") || "it";
  throw bad(source, `${where}: ${issue!.message}`);
}

function bad(source: string, problem: string): SvcError {
  return new SvcError("bad_fixture", `The fixture ${source} cannot be used: ${problem}.`);
}

/** Whether a relative path stays in the worktree and outside of `.svc`. */
function isInside(path: string): boolean {
  const parts = path.split("/");
  return parts.every((part) => part !== "" && part !== "." && part !== "..") &&
    parts[0] !== ".svc" && !path.includes("\0") && !path.includes("\\");
}

/** The sources of fixtures, lowest precedence first. */
export interface Sources {
  /** Fixtures that plugins have registered. */
  plugins: { owner: string; fixture: unknown }[];
  /** Folders whose `*.json` files hold one fixture each, or an array of them. */
  folders: string[];
  /** Whether a fixture of the last folder, the worktree's, is used. */
  accepts: (fixture: Fixture) => boolean;
  warn: (message: string) => void;
}

/** All fixtures, sorted by id. A later source replaces fixtures of an earlier one. Invalid ones are warned about. */
export function loadFixtures({ plugins, folders, accepts, warn }: Sources): Fixture[] {
  const found = new Map<string, Fixture>();
  const add = (value: unknown, source: string, local = false) => {
    try {
      const fixture = readFixture(value, source);
      if (local && !accepts(fixture)) {
        warn(`The fixture ${fixture.id} is left out, not being trusted; see svc trust.`);
        return;
      }
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
        for (const each of [readJson(path)].flat()) add(each, path, folder === folders.at(-1));
      } catch (error) {
        warn(`The fixture file ${path} cannot be read: ${errorMessage(error)}`);
      }
    }
  }
  return [...found.values()].sort((a, b) => a.id < b.id ? -1 : 1);
}

/** The opening of a fixture that runs a command, or with wider permissions than the configuration. */
export function fixtureOpening(config: ConfigView, fixture: Fixture): Opening | undefined {
  const settings = policySettings(config, "build");
  const order = ["deny", "ask", "allow"];
  const wider = Object.entries(fixture.tool_permission).filter(([category, action]) =>
    order.indexOf(action) > order.indexOf(actionOf(settings, category))
  );
  const { command } = fixture.verifier;
  const opens = [
    ...wider.map((pair) => pair.join(": ")),
    ...command === undefined ? [] : [`the command ${command}`],
  ];
  const text = `runs a fixture with ${opens.join(", ")}`;
  return opens.length === 0 ? undefined : openingOf(`fixture:${fixture.id}`, text, fixture);
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
