/** Pieces of work, each judged by the files and the behaviour that it leaves. Ids begin with `work-`. */

const EDIT = { edit: "allow" };
const RUN = { edit: "allow", bash: "allow" };

const lines = (...all: string[]) => all.map((line) => `${line}\n`).join("");
const numbered = (count: number, line: (n: number) => string) =>
  Array.from({ length: count }, (_, at) => `${line(at + 1)}\n`).join("");

/** A log with one failure, which neither its beginning nor its end shows. */
const SERVICE_LOG = numbered(
  20_000,
  (n) => n === 13_377 ? "ERROR job=nightly-41 code=E9024" : `INFO request ${n} took ${n % 97} ms`,
);

/** Prints 30,000 lines; the one that is asked for follows from its calculation alone. */
const REPORT = lines(
  "awk 'BEGIN {",
  "  for (n = 1; n <= 30000; n++) {",
  "    x = (x * 73 + n * 29 + 11) % 100003",
  '    if (n == 14000) print "CHECKSUM " x; else print "row " n " value " (x % 7)',
  "  }",
  "}'",
);

const SLUG = lines(
  "# slug TEXT: lower case, words joined by one dash, none at either end.",
  "slug() {",
  "  printf '%s' \"$1\" | tr 'A-Z' 'a-z' | tr ' ' '-'",
  "}",
);

/** A test of a shell function: pairs of an argument and the expected output. */
const shellTest = (source: string, name: string, pairs: [string, string][]) =>
  lines(
    `. ./${source}`,
    "failed=0",
    ...pairs.map(([given, expected]) =>
      `[ "$(${name} '${given}')" = '${expected}' ] || { echo "FAIL ${name} '${given}'"; failed=1; }`
    ),
    "exit $failed",
  );

const CRLF = "[server]\r\nhost = example.org\r\nport = 80\r\n\r\n[log]\r\nlevel = info\r\n";

const PYTHON = lines(
  "class Cart:",
  "    def __init__(self):",
  "        self.items = []",
  "",
  "    def total(self):",
  "        result = 0",
  "        for price, count in self.items:",
  "            if count > 0:",
  "                result += price",
  "        return result",
);

const BIG = numbered(5000, (n) => `set feature_${n % 50} group_${Math.ceil(n / 50)} off`);

export const WORK = [
  {
    id: "work-rename-across-files",
    description: "Renames a function in the file that defines it and in all that use it.",
    task: "Rename the function total to sumOf in the whole project, also where it is used.",
    files: {
      "src/sums.ts": lines(
        "export function total(numbers: number[]): number {",
        "  return numbers.reduce((sum, each) => sum + each, 0);",
        "}",
      ),
      "src/app.ts": lines(
        'import { total } from "./sums.ts";',
        "",
        "export default total([1, 2]);",
      ),
      "src/report/month.ts": lines(
        'import { total } from "../sums.ts";',
        "",
        "export const month = (days: number[]) => `total: ${total(days)}`;",
      ),
    },
    tool_permission: EDIT,
    verifier: {
      only: ["src/sums.ts", "src/app.ts", "src/report/month.ts"],
      files: {
        "src/sums.ts": { has: ["export function sumOf(numbers"], lacks: ["total"] },
        "src/app.ts": { has: ["{ sumOf }", "export default sumOf([1, 2])"], lacks: ["total"] },
        "src/report/month.ts": { has: ["{ sumOf }", "`total: ${sumOf(days)}`"] },
      },
    },
  },
  {
    id: "work-same-change-in-many-files",
    description: "Makes one change in several JSON files and leaves a fourth alone.",
    task: "Add retries with the value 3 to the settings of every service in services/ that has a " +
      "timeout. Change nothing else.",
    files: {
      "services/mail.json": '{\n  "name": "mail",\n  "settings": { "timeout": 30 }\n}\n',
      "services/search.json":
        '{\n  "name": "search",\n  "settings": { "timeout": 5, "size": 10 }\n}\n',
      "services/web.json": '{\n  "name": "web",\n  "settings": { "timeout": 60 }\n}\n',
      "services/clock.json": '{\n  "name": "clock",\n  "settings": {}\n}\n',
    },
    tool_permission: EDIT,
    verifier: {
      only: ["services/mail.json", "services/search.json", "services/web.json"],
      files: {
        "services/mail.json": { json: { name: "mail", settings: { timeout: 30, retries: 3 } } },
        "services/search.json": {
          json: { name: "search", settings: { timeout: 5, size: 10, retries: 3 } },
        },
        "services/web.json": { json: { name: "web", settings: { timeout: 60, retries: 3 } } },
      },
    },
  },
  {
    id: "work-needle-in-a-long-log",
    description: "Finds the one failure in a log that is too long to read.",
    task:
      "Which job failed in service.log, and with which code? Write the name of the job and the code, " +
      "separated by a blank, into answer.txt.",
    files: { "service.log": SERVICE_LOG },
    tool_permission: EDIT,
    verifier: { only: ["answer.txt"], files: { "answer.txt": "nightly-41 E9024" } },
  },
  {
    id: "work-long-output",
    description: "Gets a figure out of the middle of a command's 30,000 lines.",
    task:
      "Run report.sh with sh. Write the number of its line CHECKSUM, and nothing else, into answer.txt.",
    files: { "report.sh": REPORT },
    tool_permission: RUN,
    verifier: {
      only: ["answer.txt"],
      command: 'test "$(tr -d \'[:space:]\' < answer.txt)" = "$(sh .svc/check/report.sh | ' +
        "sed -n 's/CHECKSUM //p')\"",
      check_files: { "report.sh": REPORT },
    },
  },
  {
    id: "work-mend-a-failing-test",
    description: "Mends the code and not the test.",
    task: "sh test.sh fails. Mend the code so that it passes.",
    files: {
      "lib/slug.sh": SLUG,
      "test.sh": shellTest("lib/slug.sh", "slug", [["Hello World", "hello-world"], [
        "a  b",
        "a-b",
      ]]),
    },
    tool_permission: RUN,
    verifier: {
      only: ["lib/slug.sh"],
      command: "sh .svc/check/test.sh",
      check_files: {
        "test.sh": shellTest("lib/slug.sh", "slug", [
          ["Hello World", "hello-world"],
          ["a  b", "a-b"],
          ["X    Y  z", "x-y-z"],
          [" Two ", "two"],
        ]),
      },
    },
  },
  {
    id: "work-two-causes",
    description: "Mends a test that fails for two reasons, in two files.",
    task: "sh test.sh fails. Find out why, mend the code, and leave the test as it is.",
    files: {
      "max.sh": lines("max() {", '  if [ "$1" \\< "$2" ]; then echo "$2"; else echo "$1"; fi', "}"),
      "range.sh": lines(
        ". ./max.sh",
        "# range N: the numbers from 1 to N, at least 1.",
        "range() {",
        '  seq 1 $(( $(max "$1" 1) - 1 )) | tr "\\n" " " | sed "s/ $//"',
        "}",
      ),
      "test.sh": shellTest("range.sh", "range", [["3", "1 2 3"], ["10", "1 2 3 4 5 6 7 8 9 10"]]),
    },
    tool_permission: RUN,
    verifier: {
      only: ["max.sh", "range.sh"],
      command: "sh .svc/check/test.sh && sh .svc/check/max.sh",
      check_files: {
        "test.sh": shellTest("range.sh", "range", [
          ["3", "1 2 3"],
          ["12", "1 2 3 4 5 6 7 8 9 10 11 12"],
          ["0", "1"],
        ]),
        "max.sh": lines(". ./max.sh", '[ "$(max 9 10)" = 10 ] && [ "$(max 10 9)" = 10 ]'),
      },
    },
  },
  {
    id: "work-resume-after-compaction",
    description: "Knows after a compaction what it was told before.",
    task:
      "The release is called Bramble, and its server listens on port 8471. Create name.txt with the " +
      "name of the release. You will need the port later.",
    then: ["/compact", "Create port.txt with the port of the server."],
    files: {},
    tool_permission: EDIT,
    verifier: {
      only: ["name.txt", "port.txt"],
      files: { "name.txt": "Bramble", "port.txt": "8471" },
    },
  },
  {
    id: "work-continue-after-compaction",
    description: "Goes on with a list of steps after a compaction.",
    task:
      "Three files are to be made, one at each request: first.txt with the word alder, second.txt " +
      "with the word birch, third.txt with the word cedar. Make the first one now.",
    then: ["Make the next one.", "/compact", "Make the next one."],
    files: {},
    tool_permission: EDIT,
    verifier: {
      only: ["first.txt", "second.txt", "third.txt"],
      files: { "first.txt": "alder", "second.txt": "birch", "third.txt": "cedar" },
    },
  },
  {
    id: "work-resume-a-session",
    description: "Takes back, in a later turn, one of two changes of an earlier one.",
    task: "In palette.txt, change the background to black and the text to white.",
    then: ["The background was right as it was. Take that change back, and keep the other."],
    files: { "palette.txt": lines("background: ivory", "text: grey", "accent: teal") },
    tool_permission: EDIT,
    verifier: {
      only: ["palette.txt"],
      files: { "palette.txt": lines("background: ivory", "text: white", "accent: teal") },
    },
  },
  {
    id: "work-write-a-program",
    description: "Writes a small program to a description.",
    task:
      "Write longest.sh, a POSIX shell script: it reads lines from standard input and prints the " +
      "longest one; of several that are as long, the first; nothing when there is no line.",
    files: { "README.md": "# Tools\n\nEach is a script for sh.\n" },
    tool_permission: RUN,
    verifier: {
      only: ["longest.sh"],
      command: "sh .svc/check/test.sh",
      check_files: {
        "test.sh": lines(
          `[ "$(printf 'a\\nccc\\nbb\\n' | sh longest.sh)" = ccc ] || exit 1`,
          `[ "$(printf 'one\\ntwo\\nsix\\n' | sh longest.sh)" = one ] || exit 1`,
          `[ "$(printf 'x  y z\\nab\\n' | sh longest.sh)" = 'x  y z' ] || exit 1`,
          `[ -z "$(sh longest.sh < /dev/null)" ] || exit 1`,
        ),
      },
    },
  },
  {
    id: "work-edit-nested-json",
    description: "Changes one value deep in a JSON file.",
    task: "In settings.json, turn the cache of the production database off.",
    files: {
      "settings.json": JSON.stringify(
        {
          test: { database: { cache: true, pool: 2 }, cache: true },
          production: { database: { cache: true, pool: 20 }, cache: true },
        },
        null,
        2,
      ) + "\n",
    },
    tool_permission: EDIT,
    verifier: {
      only: ["settings.json"],
      files: {
        "settings.json": {
          json: {
            test: { database: { cache: true, pool: 2 }, cache: true },
            production: { database: { cache: false, pool: 20 }, cache: true },
          },
        },
      },
    },
  },
  {
    id: "work-csv-to-json",
    description: "Computes sums from tables and writes them as JSON.",
    task:
      "sales/ has a table for each month. Write totals.json: an object with the sum of `amount` for " +
      "each region over all months.",
    files: {
      "sales/january.csv": lines("region,amount", "north,120", "south,75", "north,30"),
      "sales/february.csv": lines("amount,region", "18,south", "200,west"),
      "sales/march.csv": lines("region,amount", "west,1", "north,7"),
    },
    tool_permission: EDIT,
    verifier: {
      only: ["totals.json"],
      files: { "totals.json": { json: { north: 157, south: 93, west: 201 } } },
    },
  },
  {
    id: "work-remove-dead-code",
    description: "Removes what nothing uses, and only that.",
    task: "Remove the functions of tools.sh that no script of this project uses.",
    files: {
      "tools.sh": lines(
        "upper() { tr 'a-z' 'A-Z'; }",
        "lower() { tr 'A-Z' 'a-z'; }",
        "first() { head -n 1; }",
        "last() { tail -n 1; }",
      ),
      "shout.sh": lines(". ./tools.sh", 'echo "$1" | upper'),
      "end.sh": lines(". ./tools.sh", 'cmd=last; printf "a\\nb\\n" | "$cmd"'),
    },
    tool_permission: EDIT,
    verifier: {
      only: ["tools.sh"],
      files: { "tools.sh": { has: ["upper()", "last()"], lacks: ["lower()", "first()"] } },
      command: '[ "$(sh shout.sh hi)" = HI ] && [ "$(sh end.sh)" = b ]',
    },
  },
  {
    id: "work-move-a-file",
    description: "Moves a file and mends what refers to it.",
    task: "Move util/greet.sh to lib/greet.sh. What uses it has to work as before.",
    files: {
      "util/greet.sh": lines('greet() { echo "Hello, $1!"; }'),
      "morning.sh": lines(". ./util/greet.sh", 'greet "morning"'),
      "evening.sh": lines("folder=util", '. "./$folder/greet.sh"', 'greet "evening"'),
    },
    tool_permission: RUN,
    verifier: {
      only: ["util/greet.sh", "lib/greet.sh", "morning.sh", "evening.sh"],
      files: { "util/greet.sh": null, "lib/greet.sh": { has: ["greet()"] } },
      command:
        '[ "$(sh morning.sh)" = "Hello, morning!" ] && [ "$(sh evening.sh)" = "Hello, evening!" ]',
    },
  },
  {
    id: "work-keep-line-ends",
    description: "Edits a file with the line ends of Windows and keeps them.",
    task: "In server.ini, change the port to 8080.",
    files: { "server.ini": CRLF },
    tool_permission: EDIT,
    verifier: {
      only: ["server.ini"],
      files: { "server.ini": CRLF.replace("port = 80\r", "port = 8080\r") },
    },
  },
  {
    id: "work-keep-characters",
    description: "Edits a text with characters that are easily confused.",
    task: "In menu.txt, change the price of the Käsespätzle from 9,50 € to 10,50 €.",
    files: {
      "menu.txt": lines(
        "Käse‑Spätzle · 9,50 €",
        "Käsespätzle · 9,50 €",
        "“Kaiserschmarrn” · 8,00 €",
      ),
    },
    tool_permission: EDIT,
    verifier: {
      only: ["menu.txt"],
      files: {
        "menu.txt": lines(
          "Käse‑Spätzle · 9,50 €",
          "Käsespätzle · 10,50 €",
          "“Kaiserschmarrn” · 8,00 €",
        ),
      },
    },
  },
  {
    id: "work-indentation",
    description: "Mends a line of Python at its depth.",
    task: "Cart.total in cart.py ignores the count of an item. Mend that line.",
    files: { "cart.py": PYTHON },
    tool_permission: EDIT,
    verifier: {
      only: ["cart.py"],
      files: {
        "cart.py": {
          has: ["\n            if count > 0:\n                result += "],
          lacks: ["+= price\n"],
        },
      },
      command: "grep -Eq '^ {16}result \\+= (price \\* count|count \\* price)$' cart.py && " +
        '[ "$(wc -l < cart.py)" -eq 10 ]',
    },
  },
  {
    id: "work-tabs-in-a-makefile",
    description: "Adds a rule to a makefile, with a tab.",
    task: "Add a rule `clean` to the Makefile that removes the folder out, and make it phony.",
    files: {
      "Makefile": lines(".PHONY: all", "", "all:", "\tmkdir -p out", "\techo done > out/done"),
    },
    tool_permission: EDIT,
    verifier: {
      only: ["Makefile"],
      files: { "Makefile": { has: ["\nall:\n\tmkdir -p out\n\techo done > out/done\n"] } },
      command:
        "awk '/^clean:/ { rule = 1; next } rule && /^\\t[@-]?rm -(r|rf|fr) (\\.\\/)?out\\/?$/ { found = 1 } " +
        "/^\\.PHONY:.*[ \\t]clean([ \\t]|$)/ { phony = 1 } END { exit !(found && phony) }' Makefile",
    },
  },
  {
    id: "work-which-setting-counts",
    description: "Changes the one of many settings that has an effect.",
    task:
      "README.md says which file decides. Change the limit of the region eu to 500 there, and nowhere else.",
    files: {
      "README.md":
        "A file in override/ replaces the one of the same name in regions/, which replaces default.conf.\n",
      "default.conf": "limit=100\n",
      ...Object.fromEntries(
        ["af", "as", "eu", "na", "oc", "sa"].map((name) => [`regions/${name}.conf`, "limit=200\n"]),
      ),
      "override/eu.conf": "limit=300\n",
      "override/na.conf": "limit=300\n",
    },
    tool_permission: EDIT,
    verifier: { only: ["override/eu.conf"], files: { "override/eu.conf": "limit=500" } },
  },
  {
    id: "work-regenerate",
    description: "Changes the source of a generated file and generates it anew.",
    task:
      "In the list of colours, green is missing after blue. pretty.txt is generated: see build.sh.",
    files: {
      "colours.txt": lines("red", "blue", "yellow"),
      "build.sh": lines("sort colours.txt | sed 's/^/* /' > pretty.txt"),
      "pretty.txt": lines("* blue", "* red", "* yellow"),
    },
    tool_permission: RUN,
    verifier: {
      only: ["colours.txt", "pretty.txt"],
      files: {
        "colours.txt": lines("red", "blue", "green", "yellow"),
        "pretty.txt": lines("* blue", "* green", "* red", "* yellow"),
      },
    },
  },
  {
    id: "work-nothing-to-do",
    description: "Says that what it is to mend is right already.",
    task:
      "Correct the spelling of `recieve` in the files of docs/. Write the number of places that you have " +
      "corrected into answer.txt.",
    files: {
      "docs/post.md": "You receive a letter.\n",
      "docs/rules.md": "Whoever receives it answers it.\n",
      "notes.txt": "recieve\n",
    },
    tool_permission: EDIT,
    verifier: { only: ["answer.txt"], files: { "answer.txt": "0" } },
  },
  {
    id: "work-merge-conflict",
    description: "Resolves a conflict so that both changes stay.",
    task: "list.txt has a merge conflict. Resolve it: both sides stay, those of main first.",
    files: {
      "list.txt": lines(
        "apples",
        "<<<<<<< main",
        "pears",
        "=======",
        "plums",
        "figs",
        ">>>>>>> topic",
        "nuts",
      ),
    },
    tool_permission: EDIT,
    verifier: {
      only: ["list.txt"],
      files: { "list.txt": lines("apples", "pears", "plums", "figs", "nuts") },
    },
  },
  {
    id: "work-one-line-of-many",
    description: "Changes one of 5,000 lines that look alike.",
    task: "In features.txt, switch feature_17 of group_64 on.",
    files: { "features.txt": BIG },
    tool_permission: EDIT,
    verifier: {
      only: ["features.txt"],
      files: {
        "features.txt": BIG.replace("set feature_17 group_64 off", "set feature_17 group_64 on"),
      },
    },
  },
  {
    id: "work-blanks-in-names",
    description: "Mends a script that fails for names with blanks.",
    task:
      "count.sh FOLDER prints the number of lines of all .txt files of a folder. It fails for names with " +
      "blanks. Mend it.",
    files: {
      "count.sh": lines(
        "total=0",
        "for file in $(ls $1/*.txt); do",
        "  total=$((total + $(wc -l < $file)))",
        "done",
        "echo $total",
      ),
      "data/one.txt": "a\nb\n",
      "data/number two.txt": "c\n",
    },
    tool_permission: RUN,
    verifier: {
      only: ["count.sh"],
      command: "sh .svc/check/test.sh",
      check_files: {
        "test.sh": lines(
          'd="$(mktemp -d)/a b"; mkdir "$d"; printf "1\\n2\\n" > "$d/x y.txt"; printf "3\\n" > "$d/z.txt"',
          '[ "$(sh count.sh data)" = 3 ] && [ "$(sh count.sh "$d")" = 3 ]',
        ),
      },
    },
  },
];
