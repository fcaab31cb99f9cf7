import assert from "node:assert/strict";
import { bashListObjection } from "../../src/policy/bash_allow.ts";
import { splitShellLine } from "../../src/policy/shell.ts";
import { FULL, Random, SEED } from "../support/random.ts";
import { shellStubs } from "../support/shell.ts";

/**
 * Command lines against `tool_permission.bash_allow`, combined from tables. `evil` is on no list; a real bash
 * runs the lines with programs that record their arguments.
 */
const LIST = [
  "ls",
  "cat",
  "git status",
  "git log",
  "echo",
  "printf",
  "test",
  "[",
  "cd",
  "./build.sh",
];
const PROGRAMS = "ls cat git evil env sudo nice nohup xargs timeout find awk sh bash make".split(
  " ",
);

/** The tables write `´` for a backtick, `¤` for a dollar, and `§` for a blank in a list of words. */
const lines = (text: string) =>
  text.trim().split("\n").map((line) => line.trim().replaceAll("´", "`").replaceAll("¤", "$"));
const words = (text: string) => lines(text.trim().replace(/\s+/g, "\n").replaceAll("§", " "));
/** All texts of the tables, one of each in turn, put into the pattern's `A` and `B`. */
const combine = (patterns: string[], a: string[], b: string[] = [""]) =>
  patterns.flatMap((pattern) =>
    a.flatMap((first) =>
      b.map((second) => pattern.replace(/[AB]/g, (letter) => letter === "A" ? first : second))
    )
  );

/** Spellings of one word that bash reads as `evil`; `Y` is `evil` and `N` is `Y` in its environment. */
const EVIL = words(String.raw`
  evil e'v'il e"v"il ev\il 'evil' "evil" ''evil e""vil ./evil ./e'v'il
  $'evil' $"evil" $'\x65vil' $'\145vil' $'\u0065vil' {evil,x} ev?l ev*l e[v]il
  $Y "$Y" e$Q""vil $(echo§evil) ´echo§evil´ "$(echo§evil)" ¤{Y} ¤{Y:-x} ¤{Q:-evil} ¤{!N} ¤{Y@E} ¤{Y%x}
`);

/** Lines in which `A` is a command of the chain. */
const CHAINS = lines(String.raw`
  A
  A; ls
  ls; A
  ls;A
  ls && A
  ls&&A
  test a = b || A
  ls | A
  ls|A
  ls |& A
  ls & A
  ls&A
  ls ; ls ; A
  echo 'a' ; A
  echo "a"&&A
  echo \;; A
  echo '\'; A
  echo "\\"; A
  echo a'b'c"d"; A
  cd . && A
  X=1 A
`);

/** Lines in which a shell runs the command `A`, although no part of the chain begins with it. */
const HIDDEN = lines(String.raw`
  $(A)
  echo $(A)
  echo "$(A)"
  echo "a'$(A)'"
  echo a$(A)b
  echo \\$(A)
  echo "\\$(A)"
  echo ´A´
  echo "´A´"
  cat <(A)
  ls >(A)
  ls > >(A)
  ls 2> >(A)
  cat < <(A)
  cat <<< $(A)
  echo ¤{q:-$(A)}
  echo ¤{q:=$(A)}
  echo ¤{q[$(A)]}
  echo ¤{Y/e/$(A)}
  echo ¤{Y:$(A)}
  echo $((a[$(A)]))
  echo $[a[$(A)]]
  echo $((1+$(A)))
  ls $'a\'; A #'
  (A)
  ( A )
  { A; }
  ! A
  ls; (A)
  if A; then ls; fi
  if ls; then A; fi
  while A; do break; done
  until ! A; do break; done
  for x in a; do A; done
  for ((;;)); do A; break; done
  case a in a) A;; esac
  f() { A; }; f
  function f { A; }; f
  ls() { A; }; ls
  [[ -n $(A) ]]
  ((a[$(A)]))
  coproc A
  time A
  eval A
  exec A
  command A
  builtin eval A
  trap A EXIT
  source <(echo A)
  . ./script A
  env A
  sudo A
  nice A
  nohup A
  timeout 9 A
  sh -c A
  bash -c A
  ls | xargs A
  find . -exec A {} +
  mapfile -C A -c 1 a <<< x
  let 'a[$(A)]=1'
  declare 'a[$(A)]=1'
  readonly x=$(A)
  export x=$(A)
  printf -v 'a[$(A)]' x
  printf -'v' 'a[$(A)]' x
  test -v 'a[$(A)]'
  test x -a -v 'a[$(A)]'
  [ -v 'a[$(A)]' ]
  [ ! -v 'a[$(A)]' ]
  x=$(A)
  x=$(A) ls
  x+=$(A) ls
  a[$(A)]=1 ls
  shopt -s expand_aliases; alias ls=A; ls
  hash -p ./evil ls; ls
  set -- A; $1
  ls # x; A
  ls !A
  echo "!A"
`);

const REDIRECTIONS = lines(`
  > x
  >x
  >> x
  >| x
  2> x
  2>&1
  &> x
  &>> x
  >& x
  < x
  <> x
  1<>x
  {fd}> x
  >&2
  3>&-
`);
const HEREDOCS = words(`<<X <<-X <<'X' <<"X" <<\\X <<$X <<<x <<<"$Y"`);
const ASSIGNMENTS = words(
  `PATH=. PATH+=:. LD_PRELOAD=./x.so BASH_ENV=./script ENV=./script IFS=/ CDPATH=..
  GIT_EXTERNAL_DIFF=./evil GIT_PAGER=./evil GIT_DIR=x PAGER=./evil SHELLOPTS=xtrace PS4=x X= X=1 a[0]=1`,
);

/** Options of listed git commands that write a file, run a program or read elsewhere, in spellings of a shell. */
const OPTIONS = lines(String.raw`
  --output=x
  --output x
  --outpu=x
  "--output=x"
  --out'put'=x
  -"-"output\=x
  --output=$Y
  --output="a b"
  {--output=x,}
  [-]-output=x
  $Y --output=x
  -- $Y --output x
  --ext-diff
  --ext-d
  --textconv
  --textc
  --no-index
  --paginate
  --recurse-submodules
  --ignore-submodules=none
  --submodule=log
  --pathspec-from-file=x
  -Ox
  -O x
  '-Ox'
`);

/** Names that are not the listed ones. */
const OTHERS = words(
  `LS Ls lsx xls ls.exe ls- /tmp/ls ../ls .ls ls/ git gitx git-status ｌｓ lѕ 1s ĺs l̲s %1 @ls -ls ~/ls ~ls
  l? l[s] l$Q /bin/r* build.sh ././build.sh ../build.sh make rm sh busybox`,
);
/** Characters that are not visible, or that a shell or a terminal takes for others. */
const INVISIBLE = [
  ..."\0\x01\x07\x08\x0b\x0c\x1b\x7f\x80\x85\x9b\xa0\xad",
  ..."\u034f\u061c\u1680\u180e\u2000\u2003\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202e\u202f",
  ..."\u205f\u2060\u2064\u2066\u2069\u3000\u3164\ufe0f\ufeff\uffa0\u{1bca0}\u{e0001}\u{e0041}\ud800",
];
const BREAKS = ["\n", "\r", "\r\n", "\\\n", "\n\n", "\v\n"];
/** Lines without a command, or without an end. */
const BROKEN = lines(String.raw`
  ;
  &
  |
  &&
  ; ls
  & ls
  | ls
  && ls
  ls &&
  ls ||
  ls |
  ls |&
  ls ;; ls
  ls & & ls
  ls &;
  ls &&& ls
  ls ||| ls
  ls && ; ls
  ls 'a
  ls "a
  ls "a\"
  ls \
  ls 'a' 'b
  ls "$(
  ls $
  ls ¤{
  ls ¤{}
  ls ¤{Y
  'ls -l'
  git\ status
  '' ls
  git 'status log'
`);

/** Commands that the list covers, in spellings that leave their words as they are. */
const COVERED = lines(String.raw`
  ls
  'ls' -l
  l\s
  l"s" -- ''
  ls -la src
  git status
  git 'status' -s
  "git"  "log" --oneline
  g''it status
  ./build.sh --all
  cat 'a; evil' "b && evil" c\;\ evil \|\ evil
  cat '$(evil)' "\$(evil)" "\´evil\´" '´evil´' '>x' '<(evil)' '# no' a#b
  ls $Y ¤{Y} "$Y" "a ¤{Y} b"
  ls "5 $" "$ 5" "x$"
  ls *.ts src/{a,b}/?.[ch] ~/x a~ }
  ls 'evil!' "evil!" "a != b" !=
  ls a=b PATH=x --flag=$Y X+=1
  ls 'a	b' grüße 日本語 'naïve'
  printf '%s\n' a
  test -f x
  [ a != b ]
  [ ! -f x ]
  echo evil
`);
const OPERATORS = words("&& || ; | & |&");

interface Line {
  text: string;
  covered: boolean;
}
const refused = (list: string[]): Line[] => list.map((text) => ({ text, covered: false }));
const TABLES: Record<string, Line[]> = {
  "chains and quotes": refused(combine(CHAINS, EVIL)),
  "substitutions, groups, keywords": refused(combine(HIDDEN, ["evil", "e'v'il x", "./evil"])),
  redirections: refused(
    combine(["ls A", "A ls", "ls a A b", "ls; echo a A", 'echo "a"A'], REDIRECTIONS),
  ),
  "here-documents": refused(
    combine(["cat A", "cat A\n$(evil)\nX", "cat A\nX\nevil", "ls; cat A; ls"], HEREDOCS),
  ),
  assignments: refused(combine(["A ls", "A", "ls; A ls", "Y=1 A ls", "export A"], ASSIGNMENTS)),
  "options of git": refused(
    combine(
      ["git log A", "git status A", "ls && git log -p A HEAD", "git log --oneline A | cat"],
      OPTIONS,
    ),
  ),
  "options before git's subcommand": refused(
    combine(
      ["git A log", "git A status", "git log; git A log"],
      words(`
    -c§core.pager=./evil -cx.y=z --config-env=x=y -C§x -Cx --git-dir=x --work-tree=x --exec-path=. -p --paginate --bare
    --namespace=x --super-prefix=x --attr-source=x --html-path --exec-path
  `),
    ),
  ),
  "formats of printf": refused(
    combine(["printf A a", "ls; printf A b c", "printf 'x' A"], [
      "%n",
      "'%n'",
      '"%5n"',
      "'%s%n'",
      "-v",
      "-vPATH",
      "$Y",
      "{-v,x}",
      "'%-5ln'",
    ]),
  ),
  "other names": refused(combine(["A", "ls; A x", "A | ls"], OTHERS)),
  "invisible characters": refused(combine(["lAs", "ls A", "lsA-l", "Als", "ls 'A'"], INVISIBLE)),
  "several lines": refused(combine(["ls A evil", "ls Aevil", "A ls", "lsA", "ls 'aAb'"], BREAKS)),
  broken: refused(["", " ", "\t", ...BROKEN]),
  covered: [
    ...COVERED,
    ...combine(["A", "  A\t", "A ;", "A &"], COVERED),
    ...combine(OPERATORS.flatMap((each) => [`A${each}ls`, `ls ${each} A`]), COVERED),
    "cd . && ls",
  ].map((text) => ({ text, covered: true })),
};

Deno.test("command lines: bash_allow covers those that run only listed commands", () => {
  let count = 0;
  for (const [name, table] of Object.entries(TABLES)) {
    const wrong = table.filter(({ text, covered }) =>
      covered !== (bashListObjection(text, LIST) === undefined)
    );
    assert.deepEqual(wrong.map(({ text }) => text), [], name);
    count += table.length;
  }
  // deno-lint-ignore no-console
  console.log(`${count} command lines, SVC_TEST_SEED=${SEED}`);
  assert.ok(count >= 438);
});

Deno.test("command lines: bash runs exactly the commands that the reader found", () => {
  using place = shellStubs(PROGRAMS, ["evil", "build.sh", "script"]);
  const before = place.files();
  const covered = sample(TABLES.covered!);
  const ran = place.run("/bin/bash", covered);
  for (const [index, line] of covered.entries()) {
    const read = splitShellLine(line);
    assert.ok("parts" in read);
    for (const call of ran[index]!) {
      const found = read.parts.some((part) => {
        const variable = part.findIndex(({ literal }) => !literal);
        const literal = part.slice(0, variable < 0 ? undefined : variable).map(({ value }) =>
          value
        );
        literal[0] = literal[0]!.replace("./", "");
        return literal.every((word, at) => word === call[at]) &&
          (variable >= 0 || call.length === Math.max(literal.length, 2));
      });
      assert.ok(found, `${line} ran ${JSON.stringify(call)}`);
    }
  }
  assert.ok(ran.flat().length >= covered.length / 2);
  assert.deepEqual(place.files(), before);
});

Deno.test("command lines: bash runs the program that the refused ones hide", () => {
  using place = shellStubs(PROGRAMS, ["evil", "build.sh", "script"]);
  const tables = [TABLES["chains and quotes"]!, TABLES["substitutions, groups, keywords"]!];
  const hostile = sample(tables.flat());
  const ran = place.run("/bin/bash", hostile);
  const hidden = ran.filter((calls) => calls.flat().some((word) => word.includes("evil"))).length;
  // A few hide it only from an interactive shell or another sh.
  assert.ok(hidden >= hostile.length * 0.9, `${hidden} of ${hostile.length}`);
});

/** Lines that can be an argument: all of them in a full run. */
function sample(table: Line[]): string[] {
  const usable = table.map(({ text }) => text).filter((text) => !text.includes("\0"));
  const random = new Random();
  return FULL ? usable : Array.from({ length: 200 }, () => random.one(usable));
}
