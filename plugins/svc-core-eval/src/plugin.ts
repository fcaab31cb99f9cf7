import type { FixtureRegistrar } from "../../../src/plugins/api.ts";
import { WORK } from "./work.ts";

export function register_fixtures(fixtures: FixtureRegistrar): void {
  for (const fixture of [...FIXTURES, ...WORK]) fixtures.register(fixture);
}

/** A log of 2,000 lines, more than one call should read. */
const LARGE = Array.from({ length: 2000 }, (_, at) => `entry ${at + 1}\n`).join("");

const SOURCES = {
  "src/app.ts": 'import { total } from "./sums.ts";\n\nconsole.log(total([1, 2, 3]));\n',
  "src/sums.ts": "export function total(numbers: number[]): number {\n" +
    "  return numbers.reduce((sum, each) => sum + each, 0);\n}\n",
  "README.md": "# Sums\n\nAdds numbers.\n",
};

/** Five everyday tasks of an agent, each with the tool calls that solve it. */
const FIXTURES = [
  {
    id: "read-file-lines",
    description: "Counts the lines of one file with one call.",
    task: "How many lines does notes.txt have?",
    files: { "notes.txt": "one\ntwo\nthree\n" },
    expected: ["file_read"],
    verifier: { exact: true, args: { file_read: { path: "notes.txt" } } },
  },
  {
    id: "find-then-read",
    description: "Finds a file by its name, then reads it.",
    task: "Find the file called sums.ts, then read it.",
    files: SOURCES,
    expected: ["glob", "file_read"],
    verifier: { max_calls: 4, args: { file_read: { path: "src/sums.ts" } } },
  },
  {
    id: "list-directory",
    description: "Lists one folder without opening its files.",
    task: "List the files in src.",
    files: SOURCES,
    expected: ["list_dir"],
    verifier: { avoid: ["file_read", "grep"], max_calls: 2 },
  },
  {
    id: "grep-symbol",
    description: "Looks for a name by searching, not by opening file after file.",
    task: "Where is total defined in src?",
    files: SOURCES,
    expected: ["grep"],
    verifier: { must_include: ["grep"], max_calls: 3 },
  },
  {
    id: "page-large-file",
    description: "Reads the wanted window of a large file, not all of it.",
    task: "Show lines 1200 to 1210 of events.log.",
    files: { "events.log": LARGE },
    expected: ["file_read"],
    verifier: { max_calls: 2, args: { file_read: { path: "events.log", offset: 1200 } } },
  },
];
