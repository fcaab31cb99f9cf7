import { resolve } from "node:path";
import { exists } from "../platform/files.ts";
import { within } from "./paths.ts";
import { splitShellLine, type Word } from "./shell.ts";

/**
 * Why the words after a list entry make a listed `git` write a file, run a program or read what is outside the
 * worktree; undefined when they do not. Other programs are not looked into: {@linkcode opens} says what they open.
 *
 * @param words the whole command
 * @param listed how many of its words the list entry spells out
 */
export function gitObjection(words: Word[], listed: number): string | undefined {
  // The entry may name a wrapper: `timeout 5 git log`.
  const git = words.slice(0, listed).findIndex(({ value }) => programOf(value) === "git");
  if (git < 0) return undefined;
  const subcommand = words.findIndex(({ value }, index) => index > git && !value.startsWith("-"));
  const name = words[subcommand]?.value ?? "";
  for (const [index, word] of words.entries()) {
    if (index < listed) continue;
    const shown = JSON.stringify(word.value.slice(0, 80));
    // A pattern may expand to a file name that begins with a dash, and `$_` to any earlier word.
    if (!word.literal && (name === "diff" || /^[-*?[{~]|\$/.test(word.value))) {
      return `what ${shown} expands to is not spelled out`;
    }
    const global = index < subcommand && word.value.startsWith("-");
    if (global ? !GLOBAL.includes(word.value) : isRefused(word.value, name)) {
      return `the option ${shown} of git may write a file or run a program`;
    }
    // Git compares two files of the disk when one of them is outside the repository.
    if (name === "diff" && /^\/|(^|\/)\.\.(\/|$)/.test(word.value)) {
      return `${shown} leads git diff out of the worktree`;
    }
  }
  return undefined;
}

/** Options before the subcommand that change nothing of what git runs. */
const GLOBAL = ["--no-pager", "--no-optional-locks", "--literal-pathspecs", "--version"];

/** Options that write files, run programs, select another repository, or read files outside the worktree. */
const REFUSED =
  ("config config-env contents exec exec-path ext-diff git-dir ignore-revs-file ignore-submodules " +
    "no-index open-files-in-pager output output-directory paginate pathspec-from-file receive-pack " +
    "recurse-submodules separate-git-dir submodule template textconv upload-pack work-tree").split(
      " ",
    );

/** Git accepts any unique beginning of a long option, so each beginning is refused, except for this option. */
const HARMLESS = "text";

function isRefused(word: string, subcommand: string): boolean {
  const [, name] = /^--([^=]+)/.exec(word) ?? [];
  if (name !== undefined) {
    return name !== HARMLESS && REFUSED.some((option) => option.startsWith(name));
  }
  // Errors quote the lines of the file that `grep -f` and `blame -S` read. Short options may share a word.
  if (subcommand === "grep") return /^-[a-zA-Z0-9]*[Of]/.test(word);
  if (subcommand === "blame") return /^-[a-zA-Z0-9]*[OS]/.test(word);
  if (subcommand === "rebase" && /^-[a-zA-Z]*x/.test(word)) return true;
  return word.startsWith("-O") || (/^-[cu]/.test(word) && !READING.has(subcommand));
}

/** Subcommands of git that only read the repository once the options above are refused. */
const READING = new Set(
  ("blame cat-file cherry count-objects describe diff diff-files diff-index diff-tree for-each-ref grep log " +
    "ls-files ls-tree merge-base name-rev rev-list rev-parse shortlog show show-branch show-ref status version " +
    "whatchanged").split(" "),
);

/** Subcommands that change the repository, its worktree and its remotes. */
const CHANGING = words(
  "add branch checkout cherry-pick clean commit fetch gc merge mv pull push rebase remote reset restore revert rm " +
    "stash switch tag",
);

/** Subcommands whose arguments name the file or the folder that they write. */
const WRITING = words("am apply archive bundle clone format-patch init worktree");

/** Settings by which a listed git runs no program that a repository names. */
const SETTINGS = {
  "safe.bareRepository": "explicit",
  "core.fsmonitor": "false",
  "core.hooksPath": "/dev/null",
  "core.pager": "cat",
  "core.alternateRefsCommand": ":",
  "diff.ignoreSubmodules": "dirty",
  "gpg.program": "false",
  "gpg.openpgp.program": "false",
  "gpg.x509.program": "false",
  "gpg.ssh.program": "false",
  "log.showSignature": "false",
  "status.submoduleSummary": "false",
};

/** The environment variables of a command line that the list covers. Other programs ignore them. */
export const LISTED_ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_EDITOR: ":",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
  GIT_CONFIG_COUNT: String(Object.keys(SETTINGS).length),
  ...Object.fromEntries(
    Object.entries(SETTINGS).flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value],
    ]),
  ),
};

/**
 * Whether the repository that git finds from a directory configures what the settings above cannot switch off:
 * filters, drivers, an external diff, included files, another worktree.
 *
 * @param directory real path, in the worktree
 * @param worktree real path; repositories above it are the user's
 */
export function configuresPrograms(directory: string, worktree: string): boolean {
  for (let at = directory;; at = at.slice(0, at.lastIndexOf("/"))) {
    if (exists(`${at}/.git`)) return isOddRepository(at, worktree);
    if (at === worktree || !at.startsWith(`${worktree}/`)) return false;
  }
}

function isOddRepository(folder: string, worktree: string): boolean {
  const text = (name: string) => {
    try {
      return Deno.readTextFileSync(`${folder}/${name}`);
    } catch {
      return "";
    }
  };
  // A file in place of the directory: a linked worktree, whose repository is the user's own and elsewhere.
  const [, elsewhere] = /^gitdir:\s*(.*?)\s*$/m.exec(text(".git")) ?? [];
  if (elsewhere !== undefined) return within(worktree, resolve(folder, elsewhere));
  return exists(`${folder}/.git/commondir`) ||
    ["config", "config.worktree"].some((name) => ODD_SETTING.test(text(`.git/${name}`)));
}

/** Names of programs, of further configuration, of another worktree, and of remotes that a `git log` may fetch from. */
const ODD_SETTING =
  /^\s*\[\s*include|(^|\])\s*(external|textconv|command|cmd|clean|smudge|process|driver|partialClone|promisor|worktree)\s*=/im;

/** Programs that change no file, whatever their arguments are. */
const READERS = words(
  "ls pwd cd echo printf test [ true false whoami id which cat cmp cut diff du egrep fgrep grep head nl od stat tac " +
    "tail wc basename dirname realpath readlink md5sum sha1sum sha256sum",
);

/** Whether a command line changes no file: all its commands are known, and only read. */
export function onlyReads(line: string): boolean {
  const split = splitShellLine(line);
  return "parts" in split && split.parts.every(([program, ...rest]) => {
    if (program!.value !== "git") return READERS.has(program!.value);
    return READING.has(rest[0]?.value ?? "") && gitObjection([program!, ...rest], 1) === undefined;
  });
}

/**
 * What a list entry opens in addition to the command that it names; empty when it opens nothing. A program that
 * svc does not know is said to open whatever it does.
 *
 * @param prefix the words of the entry
 */
export function opens(prefix: string[]): string {
  const [first = "", second = ""] = prefix;
  const name = programOf(first);
  if (name === "git") {
    if (READING.has(second)) return "";
    if (second === "" || second.startsWith("-")) {
      return "every command of git: it changes any file and runs programs";
    }
    if (CHANGING.has(second)) {
      return "changes of the repository, and the programs that it configures";
    }
    return WRITING.has(second) ? ANY_FILE : ANYTHING; // such as `bisect run`, `config`, and aliases
  }
  if (first.includes("/") && !first.startsWith("/")) return FILES;
  for (const [effect, programs] of PROGRAMS) if (programs.has(name)) return effect;
  return `whatever ${name} does, which svc does not know`;
}

/** Whether a list entry opens any program: of a program that runs what its arguments say. */
export function runsAnything(prefix: string[]): boolean {
  return opens(prefix) === ANYTHING;
}

const ANYTHING = "any program, with anything on the machine";
const FILES =
  "programs in files of the worktree, which an agent may edit, and those that its arguments name";
const ANY_FILE = "changes of any file";

/** What programs open, by the effect. The first set opens nothing. */
const PROGRAMS: [string, Set<string>][] = [
  ["", words("ls pwd cd echo printf test [ true false whoami uname id which hostname sleep")],
  [
    ANYTHING,
    words(
      "ack ag awk bash bun busybox csh dash deno doas docker ed emacs env expect fd fdfind find fish flock gawk gdb " +
        "go ionice irb jshell kubectl ksh less lua man mawk more nano nawk nc ncat nice node nohup parallel perl " +
        "php pip pip3 pipx podman python python2 python3 rg rsync ruby script sed setsid sh socat sort split ssh stdbuf strace " +
        "su sudo systemctl systemd-run tar taskset time timeout tmux ts-node tsx uv vi view vim watch xargs zip zsh",
    ),
  ],
  [
    FILES,
    words(
      "ant bazel bundle cargo cmake composer ctest dotnet eslint gcc g++ gmake gradle jest just make meson mocha mvn " +
        "ninja npm npx nox pnpm poetry prettier pytest rake rspec sbt swift tox tsc vitest yarn zig",
    ),
  ],
  [
    ANY_FILE,
    words(
      "chmod chown cp dd file iconv install ln mkdir mv patch rm rmdir shred shuf tee touch tree truncate uniq unzip " +
        "xxd yq",
    ),
  ],
  ["the network, and files that it may read or write", words("curl ftp scp sftp telnet wget")],
  [
    "reading any file, keys included",
    words(
      "base32 base64 cat cksum cmp column comm cut date diff du egrep expand fgrep fmt fold grep head hexdump join " +
        "jq md5sum nl od paste rev sha1sum sha256sum strings tac tail tr wc zcat zgrep",
    ),
  ],
];

function words(text: string): Set<string> {
  return new Set(text.split(" "));
}

function programOf(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}
