import { join } from "node:path";
import type { Paths } from "../platform/environment.ts";
import { errorMessage } from "../platform/error.ts";
import { entriesOf, statIfExists } from "../platform/files.ts";
import { readMarkdown, type Scope } from "./files.ts";

/** A folder that holds skills as folders, and the root that their links must stay in. */
export interface SkillRoot {
  root: string;
  folder: string;
}

/** The folders with the skills of a layer, those that win last. */
export function skillRoots(scope: Scope, { worktree, state, user }: Paths): SkillRoot[] {
  const home = join(user, "..", "..");
  return scope === "global"
    ? [{ root: home, folder: join(home, ".agents", "skills") }, {
      root: user,
      folder: join(user, "skills"),
    }]
    : [{ root: worktree, folder: join(worktree, ".agents", "skills") }, {
      root: worktree,
      folder: join(state, "skills"),
    }];
}

/** The file of a skill that is a folder. */
export const SKILL_FILE = "SKILL.md";

/** A skill that is a folder. */
export interface FolderSkill {
  name: string;
  description: string;
  /** The body of its file. */
  text: string;
  /** Absolute. */
  folder: string;
  /** Whether its own header keeps it out of prompts, so that only a role or a person names it. */
  hidden: boolean;
}

/** The names of the folders with a skill's file, in alphabetical order. */
export function skillFolders(folder: string): string[] {
  return visible(folder).filter((name) => hasFile(join(folder, name)));
}

/** The paths of the folders next to them that have no such file, and so are no skills. */
export function foldersWithoutSkill({ folder }: SkillRoot): string[] {
  return visible(folder).map((name) => join(folder, name))
    .filter((path) => statIfExists(path)?.isDirectory === true && !hasFile(path));
}

function visible(folder: string): string[] {
  return entriesOf(folder).map(({ name }) => name).filter((name) => !name.startsWith(".")).sort();
}

function hasFile(folder: string): boolean {
  return statIfExists(join(folder, SKILL_FILE))?.isFile === true;
}

/** The skills that are folders, in the format of agentskills.io. One that cannot be used is left out with a warning. */
export function readFolderSkills(
  { root, folder }: SkillRoot,
  warn: (message: string) => void,
): FolderSkill[] {
  return skillFolders(folder).flatMap((name) => {
    const file = join(folder, name, SKILL_FILE);
    try {
      const { fields, body } = frontmatter(readMarkdown(root, file, warn));
      const { description = "", "disable-model-invocation": off } = fields;
      if (body === "") throw new Error(`${file} has no text after its header.`);
      return [{
        name,
        description,
        text: body,
        folder: join(folder, name),
        hidden: off === "true",
      }];
    } catch (error) {
      warn(`${errorMessage(error)} The skill ${name} is left out.`);
      return [];
    }
  });
}

/**
 * The header of a skill's file (`name: value` lines between two lines of dashes) and the text after it. A header is
 * read as other agents read it, also where it is no valid YAML: a description may have a colon in it.
 */
export function frontmatter(text: string): {
  /** The lines of the header; undefined without one. */
  header?: string;
  fields: Record<string, string>;
  body: string;
} {
  const header = /^\uFEFF?---[ \t]*\r?\n([^]*?)(?:\r?\n|^)---[ \t]*(?:\r?\n|$)/.exec(text);
  if (header === null) return { fields: {}, body: text.trim() };
  const fields: Record<string, string> = {};
  let name = "";
  let folded = true;
  for (const line of header[1]!.split(/\r?\n/)) {
    const field = /^([\w-]+):(?:[ \t]+(.*))?$/.exec(line);
    if (field !== null) {
      name = field[1]!;
      const value = (field[2] ?? "").trim();
      const block = /^[|>][+-]?$/.test(value);
      folded = !value.startsWith("|");
      fields[name] = block ? "" : unquoted(value);
    } else if (name !== "" && !line.startsWith("#")) {
      const rest = line.trim();
      fields[name] = `${fields[name]}${folded ? " " : "\n"}${rest}`.trim();
    }
  }
  return { header: header[1]!, fields, body: text.slice(header[0].length).trim() };
}

function unquoted(value: string): string {
  if (/^'.*'$/.test(value)) return value.slice(1, -1).replaceAll("''", "'");
  if (!/^".*"$/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value.slice(1, -1);
  }
}

/** Characters of a name, of a description and of a note on compatibility. */
const LIMITS = { name: 64, description: 1024, compatibility: 500 };
const FIELDS = [
  ...["name", "description", "license", "compatibility", "metadata", "allowed-tools"],
  "disable-model-invocation",
];

/** A line of a header whose value YAML reads otherwise, or not at all, without quotes. */
const UNQUOTED = /^[\w-]+:[ \t]+(?:(?!["'|>]).*(?::(?:\s|$)|\s#)|[%@`&*!?,\]}])/;

/**
 * What is wrong with a skill's folder by the format of agentskills.io, a sentence each; empty when nothing is.
 *
 * @param folder absolute
 */
export function skillProblems(folder: string, name: string): string[] {
  let text: string;
  try {
    text = readMarkdown(folder, join(folder, SKILL_FILE), () => {});
  } catch (error) {
    return [errorMessage(error)];
  }
  const problems: string[] = [];
  const { header, fields, body } = frontmatter(text);
  if (header === undefined) {
    return ["It does not begin with a header: a line ---, name, description, another line ---."];
  }
  const odd = header.split(/\r?\n/).find((line) => UNQUOTED.test(line));
  if (odd !== undefined) {
    problems.push(
      `Its header is no valid YAML, which other agents may refuse; put quotes around: ${odd}`,
    );
  }
  const own = fields.name ?? "";
  if (own === "") problems.push("name is missing.");
  else if (own !== name) problems.push(`name is "${own}", and its folder is "${name}".`);
  if (own !== "" && !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(own)) {
    problems.push("name may have lower-case letters, digits and single dashes between them.");
  }
  if ((fields.description ?? "") === "") problems.push("description is missing.");
  for (const [field, most] of Object.entries(LIMITS)) {
    const { length } = fields[field] ?? "";
    if (length > most) {
      problems.push(`${field} has ${length} characters; at most ${most} are allowed.`);
    }
  }
  for (const field of Object.keys(fields).filter((field) => !FIELDS.includes(field))) {
    problems.push(`${field} is no field of the header.`);
  }
  if (body === "") problems.push("There is no text after the header.");
  for (const [, target = ""] of body.matchAll(/\]\((?!\w+:|#)([^)\s#]+)/g)) {
    if (statIfExists(join(folder, target)) === undefined) {
      problems.push(`It refers to ${target}, which is not there.`);
    }
  }
  return problems;
}
