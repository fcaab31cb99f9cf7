/** An edit as a model may write it, and what becomes of the file; undefined: it has to be refused. */
export interface Case {
  name: string;
  /** Default: `file_edit` */
  tool?: "apply_patch";
  path: string;
  file: string;
  args: Record<string, unknown>;
  wanted: string | undefined;
}

interface Sample {
  path: string;
  /** The unit of indentation. */
  unit: string;
  /** Lines around the edit. */
  before: string;
  old: string;
  new: string;
  after: string;
  /** Lines are added next to the blank line. */
  at_blank?: true;
  /** Blanks mean something here. */
  strict?: true;
}

const SAMPLES: Sample[] = [
  {
    path: "a.ts",
    unit: "  ",
    before: "export class Cart {\n  readonly items: Item[] = [];\n\n",
    old:
      "  total(): number {\n    let sum = 0;\n    for (const { price } of this.items) sum += price;\n\n    return sum;\n  }\n",
    new:
      "  total(): number {\n    let sum = 0;\n    for (const { price, count } of this.items) {\n      sum += price * count;\n    }\n\n    return sum;\n  }\n",
    after: '\n  get label(): string {\n    return "it\'s <b>" + this.items.length;\n  }\n}\n',
  },
  {
    path: "a.py",
    unit: "    ",
    strict: true,
    before: "class Cart:\n    def __init__(self):\n        self.items = []\n\n",
    old:
      "    def total(self):\n        sum = 0\n        for item in self.items:\n            sum += item.price\n\n        return sum\n",
    new:
      "    def total(self):\n        sum = 0\n        for item in self.items:\n            if item.count:\n                sum += item.price * item.count\n\n        return sum\n",
    after: '\n    def label(self):\n        return "it\'s <b>" + str(len(self.items))\n',
  },
  {
    path: "a.go",
    unit: "\t",
    before: "package cart\n\ntype Cart struct {\n\tItems []Item\n}\n\n",
    old:
      "func (c *Cart) Total() int {\n\tsum := 0\n\tfor _, item := range c.Items {\n\t\tsum += item.Price\n\t}\n\n\treturn sum\n}\n",
    new:
      "func (c *Cart) Total() int {\n\tsum := 0\n\tfor _, item := range c.Items {\n\t\tif item.Count > 0 {\n\t\t\tsum += item.Price * item.Count\n\t\t}\n\t}\n\n\treturn sum\n}\n",
    after: '\nfunc (c *Cart) Label() string {\n\treturn "it\'s <b>" + name(c)\n}\n',
  },
  {
    path: "a.rs",
    unit: "    ",
    before: "pub struct Cart {\n    items: Vec<Item>,\n}\n\nimpl Cart {\n",
    old:
      "    pub fn total(&self) -> u32 {\n        let mut sum = 0;\n        for item in &self.items {\n            sum += item.price;\n        }\n\n        sum\n    }\n",
    new:
      "    pub fn total(&self) -> u32 {\n        let mut sum = 0;\n        for item in &self.items {\n            sum += item.price * item.count;\n        }\n\n        sum.max(1)\n    }\n",
    after:
      '\n    pub fn label(&self) -> String {\n        format!("it\'s <b>{}", self.items.len())\n    }\n}\n',
  },
  {
    path: "A.java",
    unit: "    ",
    before: "class Cart {\n    private final List<Item> items = new ArrayList<>();\n\n",
    old:
      "    int total() {\n        int sum = 0;\n        for (Item item : items) {\n            sum += item.price();\n        }\n\n        return sum;\n    }\n",
    new:
      "    int total() {\n        int sum = 0;\n        for (Item item : items) {\n            // one line more\n            sum += item.price() * item.count();\n        }\n\n        return sum;\n    }\n",
    after: '\n    String label() {\n        return "it\'s <b>" + items.size();\n    }\n}\n',
  },
  {
    path: "a.c",
    at_blank: true,
    unit: "\t",
    before: '#include "cart.h"\n\n',
    old:
      "int total(const struct cart *cart)\n{\n\tint sum = 0;\n\tfor (size_t i = 0; i < cart->count; i++)\n\t\tsum += cart->items[i].price;\n\n\treturn sum;\n}\n",
    new:
      "int total(const struct cart *cart)\n{\n\tint sum = 0;\n\tfor (size_t i = 0; i < cart->count; i++) {\n\t\tsum += cart->items[i].price;\n\t\tsum += cart->items[i].tax;\n\t}\n\n\treturn sum;\n}\n",
    after: '\nconst char *label(void)\n{\n\treturn "it\'s <b>";\n}\n',
  },
  {
    path: "a.rb",
    unit: "  ",
    before: "class Cart\n  attr_reader :items\n\n",
    old:
      "  def total\n    sum = 0\n    items.each do |item|\n      sum += item.price\n    end\n\n    sum\n  end\n",
    new:
      "  def total\n    sum = 0\n    items.each do |item|\n      next unless item.count\n      sum += item.price * item.count\n    end\n\n    sum\n  end\n",
    after: '\n  def label\n    "it\'s <b>#{items.size}"\n  end\nend\n',
  },
  {
    path: "a.yaml",
    unit: "  ",
    strict: true,
    before: "name: cart\njobs:\n",
    old: "  build:\n    runs-on: ubuntu\n    steps:\n      - run: make\n\n      - run: make test\n",
    new:
      "  build:\n    runs-on: ubuntu\n    steps:\n      - run: make all\n      - run: make lint\n\n      - run: make test\n",
    after: '\n  label:\n    name: "it\'s <b>"\n',
  },
  {
    path: "a.html",
    unit: "  ",
    before: "<!doctype html>\n<html>\n<body>\n",
    old:
      '  <ul class="items">\n    <li>one</li>\n    <li>two &amp; more</li>\n\n    <li>three</li>\n  </ul>\n',
    new:
      '  <ul class="items">\n    <li>one</li>\n    <li>two &amp; less</li>\n    <li>new</li>\n\n    <li>three</li>\n  </ul>\n',
    after: "\n  <p>it's</p>\n</body>\n</html>\n",
  },
  {
    path: "a.css",
    unit: "  ",
    before: ":root {\n  --gap: 4px;\n}\n\n@media print {\n",
    old: "  .item {\n    color: black;\n    margin: 0;\n\n    padding: var(--gap);\n  }\n",
    new:
      "  .item {\n    color: black;\n    background: white;\n    margin: 1px;\n\n    padding: var(--gap);\n  }\n",
    after: '\n  .label::before {\n    content: "it\'s <b>";\n  }\n}\n',
  },
  {
    path: "a.sh",
    unit: "  ",
    before: "#!/bin/sh\nset -eu\n\n",
    old:
      "total() {\n  sum=0\n  for price in $PRICES; do\n    sum=$((sum + price))\n  done\n\n  echo $sum\n}\n",
    new:
      "total() {\n  sum=0\n  for price in $PRICES; do\n    test $price -gt 0 || continue\n    sum=$((sum + price))\n  done\n\n  echo $sum\n}\n",
    after: '\nlabel() {\n  echo "it\'s <b>"\n}\n',
  },
  {
    path: "Makefile",
    unit: "\t",
    strict: true,
    before: "CC = cc\n\nall: cart\n\n",
    old: "cart: cart.o\n\t$(CC) -o cart cart.o\n\tstrip cart\n\nclean:\n\trm -f cart\n",
    new:
      "cart: cart.o item.o\n\t$(CC) -o cart cart.o item.o\n\tstrip cart\n\nclean:\n\trm -f cart *.o\n",
    after: '\nlabel:\n\techo "it\'s <b>"\n',
  },
];

/** The cases: each kind of writing, in each language. */
export function corpus(): Case[] {
  return SAMPLES.flatMap((sample) => casesOf(sample));
}

function casesOf(sample: Sample): Case[] {
  const { path, unit, before, old, new: next, after, strict, at_blank } = sample;
  const file = before + old + after;
  const wanted = before + next + after;
  const cases: Case[] = [];
  const add = (name: string, given: Partial<Case> & { old?: string; next?: string }) => {
    const { old: from = old, next: to = next, ...rest } = given;
    const args = { old: from, new: to };
    cases.push({ name: `${path}: ${name}`, path, file, args, wanted, ...rest });
  };
  const lines = (text: string, change: (line: string, index: number) => string) =>
    text.replace(/\n$/, "").split("\n").map(change).join("\n") + "\n";
  const both = (change: (text: string) => string) => ({ old: change(old), next: change(next) });
  const common = /^[ \t]*/.exec(old)![0];
  const full = (change: (line: string) => string) => (text: string) =>
    lines(text, (line) => line === "" ? line : change(line));

  add("as it is", {});
  add("without the last line end", { old: old.slice(0, -1), next: next.slice(0, -1) });
  add("Windows line ends", {
    file: file.replaceAll("\n", "\r\n"),
    wanted: wanted.replaceAll("\n", "\r\n"),
  });
  add("a byte order mark", { file: `\ufeff${file}`, wanted: `\ufeff${wanted}` });
  if (common !== "") {
    add("from the margin", both(full((line) => line.slice(common.length))));
    add("the first line from the margin", {
      old: old.slice(common.length),
      next: next.slice(common.length),
    });
  }
  add("shifted to the right", both(full((line) => `    ${line}`)));
  const spaces = unit === "\t" ? "    " : "\t";
  add(
    "other units",
    both(full((line) => {
      const indent = /^[ \t]*/.exec(line)![0];
      return spaces.repeat(indent.length / unit.length) + line.slice(indent.length);
    })),
  );
  for (const [what, mark] of [["a bar", "|"], ["a tab", "\t"], ["an arrow", "→"]]) {
    const numbered = (text: string) => lines(text, (line, i) => `${i + 9}${mark}${line}`);
    add(`numbered lines with ${what}`, both(numbered));
    add(`numbered lines with ${what} in old`, { old: numbered(old) });
  }
  add(
    "padded numbers",
    both((text) => lines(text, (line, i) => `${i + 97}`.padStart(6) + `\t${line}`)),
  );
  add("half of the new lines numbered", {
    old: lines(old, (line, i) => `${i + 9}|${line}`),
    next: lines(next, (line, i) => i % 2 === 0 ? `${i + 9}|${line}` : line),
    wanted: undefined,
  });
  add("escaped as JSON", both((text) => JSON.stringify(text).slice(1, -1)));
  add("trailing blanks in the file", {
    file: before + full((line) => `${line}  `)(old) + after,
    wanted: before + lines(next, (line) =>
      old.split("\n").includes(line) && line !== "" ? `${line}  ` : line) +
      after,
  });
  add("trailing blanks in old and new", {
    ...both(full((line) => `${line} `)),
    wanted: before + lines(next, (line) =>
      old.split("\n").includes(line) || line === "" ? line : `${line} `) +
      after,
  });
  add("without the blank line", {
    ...both((text) => text.replace("\n\n", "\n")),
    wanted: strict || at_blank ? undefined : wanted,
  });
  add("one more blank line", {
    ...both((text) => text.replace("\n\n", "\n\n\n")),
    wanted: strict ? undefined : wanted,
  });
  const quoted = after.split("\n").find((line) => line.includes("it's"))!;
  const edited = quoted.replace("it's", "it was");
  add("other quotation marks", {
    file: file.replace("it's", "it\u2019s"),
    old: `${quoted}\n`,
    next: `${edited}\n`,
    wanted: file.replace("it's", "it was"),
  });
  const alike: [name: string, theirs: string, mine: string, same: boolean][] = [
    ["other dashes", "it\u2013s", "it-s", true],
    ["other double quotation marks", "it \u201cis\u201d", 'it "is"', true],
    ["a character without width", "it\u200bs", "its", true],
    ["a composed character", "caf\u00e9", "cafe\u0301", true],
    ["a ligature", "\ufb01ts", "fits", false],
    ["a wide character", "\uff49ts", "its", false],
    ["a superscript", "it\u00b2", "it2", false],
  ];
  for (const [name, theirs, mine, same] of alike) {
    add(name, {
      file: file.replace("it's", theirs),
      old: `${quoted.replace("it's", mine)}\n`,
      next: `${edited}\n`,
      wanted: same ? file.replace("it's", "it was") : undefined,
    });
  }
  if (quoted.trim().includes(" ")) {
    add("a space that does not break", {
      file: file.replace(quoted, quoted.replace(/(?<=\S) (?=\S)/, "\u00a0")),
      old: `${quoted}\n`,
      next: `${edited}\n`,
      wanted: file.replace("it's", "it was"),
    });
  }
  if (quoted.includes("<") && path !== "a.html") {
    const entities = (text: string) =>
      text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
        .replaceAll('"', "&quot;");
    add("entities", {
      old: entities(quoted),
      next: entities(edited),
      wanted: file.replace("it's", "it was"),
    });
  }
  const single = old.split("\n")[1]!;
  const indent = /^[ \t]*/.exec(single)![0];
  const bare = single.slice(indent.length);
  if (file.split(bare).length === 2 && indent !== "") {
    const more = `${bare}\n${bare.replace(/\w/, "x")}`;
    const placed = `${indent}${bare}\n${indent}${bare.replace(/\w/, "x")}`;
    const opens = /[{([:]$|\bdo$/.test(bare);
    add("two lines from the margin for one behind its indentation", {
      old: bare,
      next: more,
      wanted: opens ? undefined : file.replace(single, placed),
    });
    if (!opens) {
      add("two lines, the second one in its place, for one behind its indentation", {
        old: bare,
        next: `${bare}\n${indent}${bare.replace(/\w/, "x")}`,
        wanted: file.replace(single, placed),
      });
    }
  }
  const refused = (name: string, from: string, more: Partial<Case> = {}) =>
    add(name, { old: from, wanted: undefined, ...more });
  refused("another word", old.replace(/\b(sum|cart|item|run|color|li)\b/, "other"));
  refused("numbers that do not rise", lines(old, (line, i) => `${99 - i}|${line}`));
  const indents = [...new Set(rowsOf(old).map((line) => /^[ \t]*/.exec(line)![0]))]
    .sort((one, other) => one.length - other.length);
  const turned = (line: string) => {
    const own = /^[ \t]*/.exec(line)![0];
    return indents.at(-1 - indents.indexOf(own))! + line.slice(own.length);
  };
  refused("the indentation in another order", rowsOf(old).map(turned).join("\n") + "\n");
  refused("upper case", old.toUpperCase());
  refused("two blanks inside", full((line) => line.replace(/(?<=\S) (?=\S)/, "  "))(old));
  refused(
    "the first and the last line only",
    old.split("\n").filter((_, i, all) => i === 0 || i >= all.length - 2).join("\n"),
  );
  refused("twice in the file", old, { file: before + old + old + after });
  refused("twice, but for the indentation", full((line) => `      ${line}`)(old), {
    file: before + old + full((line) => unit + line)(old) + after,
  });
  refused("made already", `${old.replace(/\n$/, "")} # was so\n`, { file: wanted });
  add("all of several places", {
    file: before + old + old + after,
    args: { old, new: next, count: 0 },
    wanted: before + next + next + after,
  });
  add("the first of several places", {
    file: before + old + old + after,
    args: { old, new: next, count: 1 },
    wanted: before + next + old + after,
  });
  add("two edits", {
    args: { edits: [{ old, new: next }, { old: `${quoted}\n`, new: `${edited}\n` }] },
    wanted: wanted.replace("it's", "it was"),
  });
  add("two edits of which one has no place", {
    args: { edits: [{ old, new: next }, { old: "nowhere", new: "there" }] },
    wanted: undefined,
  });
  cases.push(...patchesOf(sample, quoted, edited));
  return cases;
}

/** The lines of a text that have any. */
function rowsOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** Patches as models write them for `apply_patch`. */
function patchesOf(sample: Sample, quoted: string, edited: string): Case[] {
  const { path, before, old, new: next, after } = sample;
  const file = before + old + after;
  const wanted = before + next + after;
  const rows = (text: string) => text.replace(/\n$/, "").split("\n");
  const marked = (mark: string, text: string) => rows(text).map((line) => mark + line);
  /** The changed lines, with the lines around them that both have. */
  const changed = (from: string, to: string, context = 3) => {
    const [a, b] = [rows(from), rows(to)];
    let [head, tail] = [0, 0];
    while (a[head] === b[head]) head++;
    while (a.at(-1 - tail) === b.at(-1 - tail) && tail < Math.min(a.length, b.length) - head) {
      tail++;
    }
    const around = (lines: string[]) => lines.map((line) => ` ${line}`);
    return [
      ...around(a.slice(Math.max(0, head - context), head)),
      ...a.slice(head, a.length - tail).map((line) => `-${line}`),
      ...b.slice(head, b.length - tail).map((line) => `+${line}`),
      ...around(a.slice(a.length - tail, a.length - tail + context)),
    ];
  };
  const cases: Case[] = [];
  const add = (name: string, lines: string[], given: Partial<Case> = {}) => {
    const input = ["*** Begin Patch", `*** Update File: ${path}`, ...lines, "*** End Patch"];
    cases.push({
      ...{ name: `${path}: a patch: ${name}`, tool: "apply_patch", path, file, wanted },
      ...{ args: { input: input.join("\n") }, ...given },
    });
  };
  const hunk = changed(file, wanted);
  const whole = [...marked("-", old), ...marked("+", next)];
  const head = rows(old)[0]!;
  add("three lines around", ["@@", ...hunk]);
  add("no lines around", ["@@", ...whole]);
  add("a head", [`@@ ${head.trim()}`, ...hunk]);
  add("Windows line ends", ["@@", ...hunk], {
    file: file.replaceAll("\n", "\r\n"),
    wanted: wanted.replaceAll("\n", "\r\n"),
  });
  add("empty lines without their blank", ["@@", ...hunk.map((line) => line === " " ? "" : line)]);
  add("two changes", ["@@", ...whole, "@@", `-${quoted}`, `+${edited}`], {
    wanted: wanted.replace("it's", "it was"),
  });
  add("trailing blanks", ["@@", ...hunk.map((line) => line.startsWith("+") ? line : `${line} `)]);
  const shifted = (line: string) =>
    line.slice(1).trim() === "" ? line : `${line[0]}    ${line.slice(1)}`;
  add("shifted to the right", ["@@", ...whole.map(shifted)]);
  add("the head of two places", [`@@ ${head.trim()}`, ...whole.slice(1)], {
    file: before + old + old + after,
    wanted: undefined,
  });
  add("two places", ["@@", ...whole], { file: before + old + old + after, wanted: undefined });
  add("another word", ["@@", ...whole.map((line) => line.replace(/^(-.*?)\w+/, "$1other"))], {
    wanted: undefined,
  });
  add("two changes of which one has no place", ["@@", ...whole, "@@", "-nowhere", "+there"], {
    wanted: undefined,
  });
  add("cut off", ["@@", ...hunk], {
    args: { input: ["*** Begin Patch", `*** Update File: ${path}`, "@@", ...hunk].join("\n") },
    wanted: undefined,
  });
  add("made already", ["@@", ...whole], { file: wanted, wanted: undefined });
  return cases;
}
