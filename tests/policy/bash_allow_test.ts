import assert from "node:assert/strict";
import { bashListObjection, commandPrefix } from "../../src/policy/bash_allow.ts";

const isAllowed = (command: string, allow: string[]) =>
  bashListObjection(command, allow) === undefined;

const LIST = [
  "git status",
  "git diff",
  "git log",
  "ls",
  "echo",
  "grep",
  "cat",
  "cd",
  "test",
  "[",
  "printf",
  "npm test",
  "./build.sh",
  "timeout 5 make",
  "/usr/bin/id",
];

const ALLOWED = [
  "ls",
  "  ls  ",
  "\tls\t-l",
  "ls -la src",
  "git status",
  "git status -s",
  "git  \t status",
  "git status && git diff",
  "git status||git diff",
  "git status;ls",
  "ls ;",
  "ls &",
  "ls & ls",
  "ls | grep x | cat",
  "ls |& grep x",
  "ls&&ls||ls;ls|ls&ls",
  "echo 'a; rm -r b'",
  'echo "a && rm -r b"',
  'echo "a | rm" \'$(rm)\' "\\$(rm)" "\\`rm\\`"',
  "echo a\\;b\\ \\&\\&\\ rm",
  "echo '`rm`' '${x@P}' '<(rm)' '>x' '# no'",
  'echo $HOME ${HOME} "$HOME" "a ${HOME} b"',
  'echo "costs 5 $" "$ 5"',
  'grep "foo$" a',
  "echo a#b",
  "echo *.ts src/{a,b}/?.[ch] ~/x a~",
  "echo }",
  'git log --format="%h %s" HEAD~2 HEAD^ HEAD@\\{1\\}',
  'echo \'wow!\' "wow!" "a != b"',
  "[ a != b ]",
  "[ ! -f x ]",
  "test -f x && ls",
  "printf '%s\\n' a",
  "cd src && ls",
  "npm test -- --watch",
  "./build.sh --all",
  "timeout 5 make all",
  "/usr/bin/id -u",
  "'ls' -l",
  '"git" "status"',
  "l\\s",
  "git 'status'",
  "echo grüße 日本語 'naïve'",
  "ls -- ''",
  "echo a=b PATH=x --flag=$HOME",
  "cat 'a\tb'",
];

/** Commands that run, or may run in some sh or bash, something that the list does not name. */
const REFUSED = [
  // other programs, and names that look alike
  "rm -r src",
  "git",
  "git push",
  "git statusx",
  "gitx status",
  "git-status",
  "git -C /tmp status",
  "lsx",
  "LS",
  "xls",
  "/tmp/ls",
  "./ls",
  "../ls",
  "/usr/bin/git status",
  "npm run test",
  "npm testx",
  "build.sh",
  "././build.sh",
  "timeout 50 make",
  "timeout 5 rm",
  "gіt status", // a Cyrillic letter
  "ｌｓ", // full-width letters
  // substitutions
  "ls $(rm x)",
  "ls `rm x`",
  'ls "$(rm x)"',
  'ls "`rm x`"',
  "ls \"a'$(rm x)'\"",
  "ls a$(rm x)b",
  "$(rm x)",
  "`rm x`",
  "ls <(rm x)",
  "ls >(rm x)",
  "ls \\\\$(rm x)",
  'ls "\\\\$(rm x)"',
  "ls ${x:-$(rm x)}",
  "ls ${x:=rm}",
  "ls ${x@P}",
  "ls ${!x}",
  "ls ${x[$(rm)]}",
  "ls ${x/a/b}",
  "ls ${#x}",
  "ls ${",
  "ls ${}",
  "ls ${x",
  "ls $((a[$(rm x)]))",
  "ls $((1+1))",
  "ls $[1+1]",
  "ls $[a[$(rm x)]]",
  "ls ${ rm x; }",
  "ls ${| rm x; }",
  "ls $'\\x3b rm'",
  'ls $"x"',
  "ls $'a\\'; rm x #'",
  "ls $1 $@ $* $?",
  "ls $",
  'ls "$(',
  // what runs is not spelled out
  "$HOME",
  "$SHELL -c rm",
  "${SHELL} -c rm",
  '"$SHELL" -c rm',
  "l$x",
  "git $x",
  "git ${x}status",
  "l?",
  "/bin/r*",
  "l[s]",
  "{ls,-l}",
  "git {status,push}",
  "~/ls",
  "~ls",
  "git s*",
  // built-in commands that run or redefine
  "eval ls",
  "eval rm x",
  "exec ls",
  "exec rm x",
  "source x",
  ". ./x",
  "builtin eval rm",
  "command rm x",
  "command ls",
  "alias ls=rm; ls",
  "alias ls='rm x'",
  "hash -p /tmp/evil ls; ls",
  "enable -f /tmp/evil.so ls",
  "trap 'rm x' EXIT; ls",
  "export PATH=/tmp; ls",
  "set -- x; ls",
  "shopt -s expand_aliases; ls",
  "read PATH; ls",
  "declare -x PATH=/tmp; ls",
  "typeset PATH=/tmp",
  "mapfile -C 'rm x' -c 1 a",
  "compgen -C 'rm x'",
  "jobs -x rm x",
  "let 'a[$(rm x)]=1'",
  "unset PATH",
  "cd /tmp && ./build.sh",
  "./build.sh; pushd /tmp",
  "test -v 'a[$(rm x)]'",
  "[ -v 'a[$(rm x)]' ]",
  "[ ! -v 'a[$(rm x)]' ]",
  "test x -a -v 'a[$(rm x)]'",
  "printf -v PATH /tmp",
  "printf -vPATH /tmp",
  'printf "-"v PATH /tmp',
  "printf {-v,PATH} /tmp",
  "printf $x",
  "printf -*",
  "printf -v 'a[$(rm x)]' y",
  // prefixes that run another command
  "env ls",
  "env rm x",
  "sudo ls",
  "doas ls",
  "nice ls",
  "nohup ls",
  "xargs ls",
  "ls | xargs rm",
  "timeout 9 ls",
  "stdbuf -o0 ls",
  "setsid ls",
  "strace ls",
  "watch ls",
  "ssh host ls",
  "sh -c ls",
  "bash -c 'rm x'",
  "busybox rm x",
  "find . -exec rm {} +",
  "ls | sh",
  "awk 'BEGIN{system(\"rm x\")}'",
  // comments, history, unfinished words
  "ls # rm",
  "ls; # x",
  "#ls",
  "ls #",
  "ls !!",
  "ls !rm",
  'ls "!rm"',
  "ls x!$",
  "ls 'a",
  'ls "a',
  'ls "a\\"',
  "ls \\",
  "ls a\\",
  "ls 'a' 'b",
  '"ls -l"',
  "'git status'",
  "git\\ status",
  "'' ls",
  '"" rm',
  "%1",
  "@ls",
  "-ls",
];

Deno.test("bash_allow allows commands that show what they run when all of it is listed [2.13]", () => {
  for (const command of ALLOWED) {
    assert.equal(bashListObjection(command, LIST), undefined, JSON.stringify(command));
  }
});

Deno.test("nothing slips past the list of bash_allow [2.13]", () => {
  for (const command of REFUSED) {
    assert.equal(isAllowed(command, LIST), false, JSON.stringify(command));
  }
});

Deno.test("with bash_allow several lines and here-documents are refused for good, the rest can be asked for [4.8]", () => {
  for (const command of ["ls\nls", "ls\r", "cat << EOF", "cat <<-'EOF'", "cat <<< x"]) {
    assert.equal(bashListObjection(command, LIST)?.final, true, command);
  }
  for (const command of ["rm x", "ls > x", "ls $(ls)", "", "'"]) {
    assert.equal(bashListObjection(command, LIST)?.final, false, command);
  }
});

Deno.test("the objection names the part or the construct", () => {
  const reason = (command: string) => bashListObjection(command, LIST)?.reason;
  assert.equal(reason("ls; rm 'x y'"), '"rm x y" does not begin with an allowed command');
  assert.equal(reason("ls > x"), "the command is refused: it holds a redirection");
  assert.equal(reason("ls `x`"), "the command is refused: it holds a command substitution");
  assert.equal(reason("$X y"), 'what "$X y" runs is not spelled out');
});

Deno.test("an empty list, or one of useless entries, allows nothing", () => {
  for (const list of [[], [""], [" "], ["*"], ["ls *"], ["ls; ls"], ["ls >"], ["eval"], ["time"]]) {
    for (const command of ["ls", "eval ls", "time ls", "ls x", "ls *"]) {
      assert.equal(isAllowed(command, list), false, `${list} ${command}`);
    }
  }
});

Deno.test("a wrapper runs others only when the list says so", () => {
  assert.equal(isAllowed("env git status", ["env git"]), true);
  assert.equal(isAllowed("env rm x", ["env git"]), false);
  assert.equal(isAllowed("sudo ls", ["sudo"]), true);
  for (const never of ["eval ls", "exec ls", "command ls", "if", "{", "!", "A=1 ls"]) {
    assert.equal(commandPrefix(never), undefined, never);
    assert.equal(isAllowed(never, [never]), false, never);
  }
});

Deno.test("a list entry is read as a shell would", () => {
  assert.deepEqual(commandPrefix('npm run "my test"'), ["npm", "run", "my test"]);
  assert.equal(isAllowed("npm run 'my test' -v", ['npm run "my test"']), true);
  assert.equal(isAllowed("npm run my test", ['npm run "my test"']), false);
});

Deno.test("a very long command is judged at once", () => {
  const long = "ls a;".repeat(20_000);
  assert.equal(isAllowed(long, LIST), true);
  assert.equal(isAllowed(`${long} rm x`, LIST), false);
  assert.equal(isAllowed(`ls ${"'".repeat(99_999)}`, LIST), false);
});
