/**
 * Writes docs/specification.md from the names of the tests and `sections.ts`:
 * `deno task specification`. The name of a test that shows a sentence of the specification ends with its
 * sections, as in `POST /chat with a null session starts a fresh one [4.1, 2.1]`.
 */
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Section, SECTIONS } from "./sections.ts";

const ROOT = dirname(dirname(fileURLToPath(new URL(".", import.meta.url))));
const FOLDERS = ["examples", "plugins", "tests"];
const DOCUMENT = join(ROOT, "docs/specification.md");

const INTRODUCTION = `# The specification, section by section

svc implements a specification of nine sections. This document says, for each numbered section, what
svc does, where it deviates and why, and which tests show it: each line is the name of a test, with
its file. It is generated from the names of the tests and from
[tests/support/sections.ts](../tests/support/sections.ts) by \`deno task specification\`; a test
checks that it is complete. How names and sections belong together is in [testing.md](testing.md).
`;

/** A test whose name ends with sections of the specification. */
export interface Shown {
  /** Its path in the repository. */
  file: string;
  /** Its name without the sections; what a template inserts is an ellipsis. */
  sentence: string;
  sections: string[];
}

/** The document as it has to be. */
export function specification(): string {
  return render(SECTIONS, shownSentences());
}

/** The document as it is. */
export function writtenSpecification(): string {
  return Deno.readTextFileSync(DOCUMENT);
}

/** A sentence for each gap: sections without a test, unknown sections, incomplete deviations. */
export function gaps(sections: Section[] = SECTIONS, shown: Shown[] = shownSentences()): string[] {
  const numbered = sections.filter(({ number }) =>
    !sections.some((other) => other.number.startsWith(`${number}.`))
  );
  const known = new Set(numbered.map(({ number }) => number));
  return [
    ...shown.flatMap(({ file, sentence, sections }) =>
      sections.filter((one) => !known.has(one)).map((one) =>
        `${file}: the test "${sentence}" names section ${one}, which does not exist`
      )
    ),
    ...numbered.flatMap(({ number, deviations = [] }) => {
      const sentences = testsOf(number, shown).map(({ sentence }) => sentence);
      return [
        ...sentences.length ? [] : [`section ${number} has no test`],
        ...deviations.flatMap(({ what, why, test }) => [
          ...why.trim() ? [] : [`section ${number}: the deviation "${what}" has no reason`],
          ...sentences.includes(test)
            ? []
            : [`section ${number}: the deviation "${what}" has no test "${test} [${number}]"`],
        ]),
      ];
    }),
  ];
}

export function render(sections: Section[], shown: Shown[]): string {
  const deviating = sections.filter(({ deviations = [] }) => deviations.length > 0);
  const links = deviating.map((one) => `[${one.number}](#${slug(heading(one))})`).join(", ");
  return [
    INTRODUCTION,
    ...links === "" ? [] : [`Sections with deviations: ${links}.\n`],
    ...sections.map((section) => {
      const { number, text, deviations = [] } = section;
      const tests = testsOf(number, shown);
      const shownBy = (sentence: string) => {
        const { file } = tests.find((one) => one.sentence === sentence) ?? { file: "?" };
        return `${escaped(sentence)} ([${basename(file, "_test.ts")}](../${file}))`;
      };
      return [
        `${number.includes(".") ? "###" : "##"} ${heading(section)}\n`,
        ...text ? [`${text}\n`] : [],
        ...deviations.map(({ what, why, test }) =>
          `**Deviation:** ${what} **Reason:** ${why} **Shown by:** ${shownBy(test)}.\n`
        ),
        ...tests.map(({ sentence }) => `- ${shownBy(sentence)}`),
        ...tests.length ? [""] : [],
      ].join("\n");
    }),
  ].join("\n").trimEnd() + "\n";
}

function heading({ number, title }: Section): string {
  return `${number}. ${title}`;
}

/** The anchor of a heading, as GitHub and GitLab make it. */
function slug(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^\w\s-]/g, "").replaceAll(" ", "-");
}

function testsOf(section: string, shown: Shown[]): Shown[] {
  return shown.filter(({ sections }) => sections.includes(section));
}

/** The tagged names of one test file. */
export function sentencesOf(file: string, text: string): Shown[] {
  const named =
    /(?:Deno\.test\(|\.step\(|\bname:)\s*(["'`])((?:\\.|(?!\1)[^\\])*?) \[([\d., ]+)\]\1/g;
  return [...text.matchAll(named)].map(([, , name, sections]) => ({
    file,
    sentence: name!.replaceAll(/\$\{[^}]*\}/g, "…").replaceAll(/\\(.)/g, "$1"),
    sections: sections!.split(/, */),
  }));
}

function shownSentences(): Shown[] {
  return FOLDERS.flatMap(testFiles).flatMap((file) =>
    sentencesOf(file, Deno.readTextFileSync(join(ROOT, file)))
  );
}

function testFiles(folder: string): string[] {
  return [...Deno.readDirSync(join(ROOT, folder))].flatMap(({ name, isDirectory }) => {
    if (isDirectory) return testFiles(`${folder}/${name}`);
    return name.endsWith("_test.ts") ? [`${folder}/${name}`] : [];
  }).sort();
}

/** Text in which Markdown sees no marks, code in backticks apart. */
function escaped(text: string): string {
  return text.replaceAll(/`[^`]*`|[\\*<[]/g, (mark) => mark.length > 1 ? mark : `\\${mark}`);
}

if (import.meta.main) Deno.writeTextFileSync(DOCUMENT, specification());
