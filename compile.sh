#!/usr/bin/env bash
# Builds the single executable of svc.
#
#   ./compile.sh [--profile build|plan|sandboxed] [--target TRIPLE] [--output PATH] [--archive | --bundle]
#                [--entry FILE]
#
#   --profile  The permissions that are built in, read from permissions/<profile>.flags. build (the
#              default) may read, write, use the network and run programs. plan runs no programs and
#              writes nowhere but into .svc of the directory it is started in. sandboxed is build, but may
#              run only bubblewrap, so that every program runs in a sandbox. None asks for more at run
#              time, and what the flags do not grant is refused whatever svc's own policy says.
#   --target   Build for another platform, such as aarch64-apple-darwin (deno compile only).
#   --output   Where the result goes. Default: dist/svc, or dist/svc-bundle.
#   --archive  Do not try deno compile.
#   --bundle   Make a folder: the program, Deno, and "svc", which starts them. What is made for npm and
#              for containers begins with it. It replaces an earlier bundle.
#   --entry    Another main module, for tests.
#
# There are two forms of executable. "deno compile" makes a native one; it needs Deno's runtime binary,
# denort, which Deno downloads unless DENORT_BIN names one. Where that cannot be had, this script says so
# and makes an archive that runs the same code with the same permissions: a POSIX shell stub, followed by
# the Deno binary and the bundled program. The stub unpacks them once into ~/.cache/svc (mode 0700; a
# folder per content, which may be removed at any time) and replaces itself by that Deno. The archive is
# not compressed: unpacking 100 MB takes 0.2 s of the first start, decompressing them 0.8 s.
#
# Needs Node's npx, or the Deno of .deno-version on the PATH; tar for an archive.
set -euo pipefail

fail() {
  printf 'compile.sh: %s\n' "$1" >&2
  exit "${2:-1}"
}

root=$(cd "$(dirname "$0")" && pwd -P)
profile=build target='' output='' form=executable entry=$root/main.ts
while [ $# -gt 0 ]; do
  case $1 in
    --archive | --bundle) form=${1#--} && shift && continue ;;
    --profile | --target | --output | --entry) [ $# -gt 1 ] || fail "$1 needs a value." 2 ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p;}' "$0" && exit 0 ;;
    *) fail "There is no option \"$1\". Try: ./compile.sh --help" 2 ;;
  esac
  case $1 in
    --profile) profile=$2 ;;
    --target) target=$2 ;;
    --output) output=$2 ;;
    --entry) entry=$2 ;;
  esac
  shift 2
done
case $profile in
  build | plan | sandboxed) ;;
  *) fail "The profile is build, plan or sandboxed, not \"$profile\"." 2 ;;
esac
[ -z "$target" ] || [ $form = executable ] ||
  fail "--target needs deno compile: the other forms hold the Deno of this machine." 2
[ $form = bundle ] && default=svc-bundle || default=svc
output=${output:-$root/dist/$default}
[ $form != bundle ] || [ ! -e "$output" ] || [ -f "$output/main.js" ] ||
  fail "$output is there, and is not a bundle." 2

# The bash of macOS is 3.2, which has no mapfile.
flags=()
while read -r flag; do flags+=("$flag"); done <"$root/permissions/$profile.flags"
version=$(<"$root/.deno-version")
if [ "$(deno --version 2>/dev/null | sed -n '1s/^deno \([^ ]*\).*/\1/p')" = "$version" ]; then
  deno=(deno)
else
  deno=(npx -y "deno@$version")
fi
export DENO_NO_UPDATE_CHECK=1 NO_COLOR=1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$(dirname "$output")"
output=$(cd "$(dirname "$output")" && pwd -P)/$(basename "$output")

# Both forms run the bundle: one file to start from, and one for each part that is loaded when needed.
"${deno[@]}" bundle --quiet --config "$root/deno.json" --minify --platform deno --code-splitting \
  --sourcemap external --outdir "$work/chunks" "$entry" 2>"$work/log" || fail "bundling failed:
$(sed '/^Stack backtrace/,$d' "$work/log")"
name=$(basename "${entry%.*}").js
if [ "$name" != main.js ]; then
  mv "$work/chunks/$name" "$work/chunks/main.js"
  mv "$work/chunks/$name.map" "$work/chunks/main.js.map"
fi
"${deno[@]}" run --quiet --config "$root/deno.json" --allow-all "$root/packaging/chunks.ts" "$work/chunks" \
  "$work/app" 2>"$work/log" || fail "joining the chunks failed: $(<"$work/log")"
# A worker and the Landlock helper each start from a file of their own, whose name must stay as it is.
workers=()
for source in "$root"/plugins/*/src/*_worker.ts "$root"/src/platform/landlock.ts; do
  worker=$work/app/$(basename "${source%.ts}").js
  "${deno[@]}" bundle --quiet --config "$root/deno.json" --minify --platform deno \
    --output "$worker" "$source" 2>"$work/log" || fail "bundling failed:
$(sed '/^Stack backtrace/,$d' "$work/log")"
  workers+=(--include "$worker")
done
"${deno[@]}" bundle --quiet --minify --platform deno --output "$work/path.js" "$root/src/platform/path.ts"
# A chunk of modules that only import others is empty, and an empty file counts as missing below.
for chunk in "$work"/app/*.js; do
  {
    sed -E "s/(from|import)['\"]node:(path|url)['\"]/\1'.\/path.js'/g" "$chunk"
    echo
  } >"$work/chunk"
  mv "$work/chunk" "$chunk"
done
mv "$work/path.js" "$work/app"

# In a container's build there is no Git.
commit=$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null) || commit=${SVC_COMMIT:-unknown}
[ -z "$(git -C "$root" status --porcelain 2>/dev/null)" ] || commit+=-changed

report() {
  printf '%s: %s, profile %s, %s MB\n' "$output" "$1" "$profile" $(($(wc -c <"$output") / 1000000))
}

cp "$work/app/main.js" "$work/main.js"
if [ $form = executable ]; then
  {
    printf 'Deno.env.set("SVC_BUILD","executable %s %s");' "$profile" "$commit"
    cat "$work/main.js"
  } >"$work/app/main.js"
  # The program starts itself as the Landlock helper, which needs ffi; otherwise it gives that up at once.
  [ $profile = build ] && ffi=--allow-ffi || ffi=
  if "${deno[@]}" compile --quiet --no-check --no-config --no-lock --no-remote --no-npm "${flags[@]}" \
    $ffi "${workers[@]}" ${target:+--target "$target"} --output "$work/svc" "$work/app/main.js" 2>"$work/log"; then
    [ ! -e "$work/svc.exe" ] || output=${output%.exe}.exe
    mv -f "$work"/svc* "$output"
    report 'deno compile'
    exit 0
  fi
  # The last line before the backtrace is the innermost cause.
  reason=$(sed '/^Stack backtrace/,$d;/^$/d;s/^ *[0-9]*: //;s/^error: //' "$work/log" | tail -n 1)
  [ -z "$target" ] || fail "deno compile for $target failed${reason:+ ($reason)}, and an archive can only \
be made for this machine. Connect to the network, or set DENORT_BIN to the denort of that platform."
  printf 'compile.sh: deno compile cannot be done here%s; making an archive instead.\n' \
    "${reason:+ ($reason)}" >&2
fi

cp "$work/main.js" "$work/app/main.js"
# Deno reads every file that it can tell will be imported some day before it runs the first: half of the
# time that "svc --help" takes. It can tell that from a plain string alone.
for chunk in "$work"/app/*.js; do
  sed -E "s/import\('(\.\/[^']+\.js)'\)/import((0,'\1'))/g" "$chunk" >"$work/chunk"
  mv "$work/chunk" "$chunk"
done

# DENO_DIR and MALLOC_* are the stub's doing and none of the business of the programs that svc runs. Deno's caches are
# SQLite databases that it never closes, so each start would read their whole write-ahead logs: 3 MB, 6 ms. It has
# SQLite map their first 6 MB into memory, where the compiled code would stay: 2 MB of a turn. Behind as many zeros it
# is read instead.
{
  cat <<'SCRIPT'
{
  const folder = Deno.env.get("DENO_DIR");
  const own = Deno.env.get("SVC_DENO_DIR");
  own ? Deno.env.set("DENO_DIR", own) : Deno.env.delete("DENO_DIR");
  for (const name of ["SVC_DENO_DIR", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_TRIM_THRESHOLD_"]) {
    Deno.env.delete(name);
  }
  for (const cache of [`${folder}/v8_code_cache_v2`, `${folder}/dep_analysis_cache_v2`]) {
    try {
      const long = Deno.statSync(`${cache}-wal`).size > 200_000;
      if (long && Deno.permissions.querySync({ name: "write", path: cache }).state === "granted") {
        import("node:sqlite").then(({ DatabaseSync }) => {
          const database = new DatabaseSync(cache);
          try {
            const tables = database.prepare("SELECT name, sql FROM sqlite_schema").all();
            const code = tables.find(({ name }) => name === "codecache");
            if (code !== undefined && !tables.some(({ name }) => name === "zeros")) {
              database.exec(`BEGIN IMMEDIATE;
                CREATE TABLE zeros AS SELECT zeroblob(6000000) AS zeros;
                ${code.sql.replace("codecache", "behind")};
                INSERT INTO behind SELECT * FROM codecache;
                DROP TABLE codecache;
                ALTER TABLE behind RENAME TO codecache;
                COMMIT`);
            }
            database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
          } finally {
            database.close();
          }
        }).catch(() => {}); // another process uses it
      }
    } catch {
      // there is none yet
    }
  }
}
SCRIPT
  cat "$work/app/main.js"
} >"$work/main.js"
mv "$work/main.js" "$work/app/main.js"
number=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$root/deno.json")
run="run ${flags[*]} --allow-env=DENO_DIR,SVC_DENO_DIR,MALLOC_MMAP_THRESHOLD_,MALLOC_TOP_PAD_,MALLOC_TRIM_THRESHOLD_ --quiet --no-config --no-lock --no-remote --no-npm"
deno_path=$("${deno[@]}" eval --no-config 'console.log(Deno.execPath())')

# What neither Deno nor the program could say in a sentence, since they would not start or not notice.
read -r -d '' standing <<'STANDING' || true
if [ ! -d "${PWD-}" ] && [ -z "$(pwd -P 2>/dev/null)" ]; then
  echo 'svc: The current directory is not there any more. Change to another one.' >&2
  exit 2
fi
if [ "${1-}" = run ] && ! { { true; } 3>&1; } 2>/dev/null; then
  echo 'svc: Standard output is closed, so the result would be lost. Nothing was started.' >&2
  exit 2
fi
STANDING

read -r -d '' modes <<'MODES' || true
# Deno caches no function that V8 compiles when it is called first. Servers and schedulers are smaller by 5 MB
# that way; the other commands start 18 ms sooner with all functions in a cache. Their young generation begins at
# 6 MB instead of half a megabyte: what a turn makes fits into it, and four collections of 2 ms each do not happen.
# They end before optimised code pays off, so that a function is optimised after 1,500 calls instead of 400.
# By itself, glibc serves buffers of up to 32 MB from its heap once a large one was freed, and never gives back what
# is between those that stay: a server grew to 400 MB in an hour of answers of up to 10 MB. A bound of 2 MB keeps it
# flat, for 1 % of processor time where one answer in ten has up to 2 MB; half a megabyte takes 7 %. Short answers
# take the same time with and without it. The heap of a turn grows by 64 KB at a time instead of 128, which leaves
# 0.9 MB less of it unused; that takes no more time.
export MALLOC_MMAP_THRESHOLD_=2097152
case ${1-} in
  serve | worker | jobs | fleet | mcp | acp)
    eager= cache=cache
    export MALLOC_TRIM_THRESHOLD_=16777216
    ;;
  *)
    eager=--v8-flags=--no-lazy,--min-semi-space-size=6,--max-semi-space-size=6,--invocation-count-for-maglev=1500
    cache=eager
    export MALLOC_TOP_PAD_=65536
    ;;
esac
MODES

if [ $form = bundle ]; then
  cat >"$work/app/svc" <<LAUNCHER
#!/bin/sh
# svc: an agent runtime. Starts the program in this folder with the Deno next to it, or the one that npm has
# installed with it. Made by compile.sh.
case \$* in --version | -V) echo '$number' && exit ;; esac
$standing
file=\$0
while [ -h "\$file" ]; do
  link=\$(readlink "\$file")
  case \$link in /*) file=\$link ;; *) file=\${file%/*}/\$link ;; esac
done
case \$file in /*) ;; *) file=\$PWD/\$file ;; esac
here=\${file%/*}
for deno in "\$here/deno" "\$here"/node_modules/@deno/*/deno "\$here"/../../@deno/*/deno; do
  [ ! -x "\$deno" ] || break
done
if [ ! -x "\$deno" ]; then
  echo "svc: npm has not installed Deno, an optional dependency: that takes Linux with glibc, or macOS. Install" \\
    "svc again without --omit=optional, where npm reaches its registry." >&2
  exit 1
fi
# Without HOME: that of the user, or /, as a container engine has it.
if [ -z "\${HOME-}" ]; then
  export HOME=/
  user=\$(id -u)
  while IFS=: read -r _ _ id _ _ home _; do [ "\$id" != "\$user" ] || HOME=\$home; done </etc/passwd
fi
$modes
export SVC_DENO_DIR="\${DENO_DIR-}" DENO_DIR="\${XDG_CACHE_HOME:-\$HOME/.cache}/svc/bundle/\$cache"
export DENO_NO_UPDATE_CHECK=1 SVC_EXECUTABLE="\$file" SVC_BUILD='bundle $profile $commit'
exec "\$deno" $run \$eager "\$here/main.js" "\$@"
LAUNCHER
  chmod 755 "$work/app/svc"
  cp "$deno_path" "$work/app/deno"
  rm -rf "$output"
  mv "$work/app" "$output"
  printf '%s: bundle, profile %s\n' "$output" "$profile"
  exit 0
fi

files=$(cd "$work/app" && printf '%s\n' * | LC_ALL=C sort | tr '\n' ' ')
ln -s "$deno_path" "$work/app/deno"

# Deno parses each file to see what it imports, and keeps that in a database: 0.1 s of the first start. The archive
# brings the database, with the names of the files; the stub adds the path.
DENO_DIR=$work/cache "${deno[@]}" cache --quiet --no-config --no-lock --no-remote --no-npm "$work"/app/*.js
mkdir "$work/app/cache" "$work/app/eager"
"${deno[@]}" eval --no-config '
  import { DatabaseSync } from "node:sqlite";
  const [from, to, folder] = Deno.args;
  const database = new DatabaseSync(to);
  database.prepare("ATTACH ? AS made").run(from);
  const tables = database.prepare("SELECT name, sql FROM made.sqlite_schema WHERE sql NOT NULL").all();
  for (const { name, sql } of tables) {
    database.exec(`${sql}; INSERT INTO ${name} SELECT * FROM made.${name} ORDER BY 1`);
  }
  database.prepare("UPDATE moduleinfocache SET specifier = replace(specifier, ?, ?)").run(`file://${folder}/`, "");
  database.exec("VACUUM");' "$work/cache/dep_analysis_cache_v2" "$work/app/cache/dep_analysis_cache_v2" "$work/app"
cp "$work/app/cache/dep_analysis_cache_v2" "$work/app/eager"

# The same input gives the same bytes.
tar=(tar -chf -)
if tar --version 2>/dev/null | grep -q GNU; then
  tar+=(--format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner)
fi
# shellcheck disable=SC2086 # a list of names without spaces
payload() { (cd "$work/app" && "${tar[@]}" deno cache eager $files); }
sum=$(payload | cksum)
hash=$(payload | "${deno[@]}" eval --no-config '
  const bytes = await new Response(Deno.stdin.readable).arrayBuffer();
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  console.log(new Uint8Array(digest).toHex().slice(0, 16));')

machine=$(uname -sm) check=
[ "$(uname -s)" != Linux ] || check="[ -e /proc/self ] || fail 'Deno needs /proc, which is not mounted here'"
cat >"$work/stub" <<STUB
#!/bin/sh
# svc: an agent runtime, as a shell stub and an archive of the Deno binary and the program. It unpacks
# itself once; after that it is the next line but a few that counts. Made by compile.sh.
case \$* in --version | -V) echo '$number' && exit ;; esac
$standing
hash=$hash
files='$files'

# Runs the program out of \$1, when that is a folder of this user's alone and nothing in it is missing.
run() {
  base=\$1
  shift
  [ -O "\$base" ] && [ ! -h "\$base" ] && whole "\$base/\$hash" && alone "\$base/\$hash" || return 0
$modes
  export SVC_DENO_DIR="\${DENO_DIR-}" DENO_DIR="\$base/\$hash/\$cache" DENO_NO_UPDATE_CHECK=1
  case \$0 in /*) SVC_EXECUTABLE=\$0 ;; *) SVC_EXECUTABLE=\$PWD/\$0 ;; esac
  export SVC_EXECUTABLE SVC_BUILD='archive $profile $commit'
  exec "\$base/\$hash/deno" $run \$eager "\$base/\$hash/main.js" "\$@"
}

whole() {
  [ -O "\$1" ] && [ -x "\$1/deno" ] || return 1
  for file in \$files; do [ -s "\$1/\$file" ] || return 1; done
}

# Whether no other user may write into \$1, nor replace it: a folder above it that others may write into
# has the sticky bit. A group with the number of the owner is the owner's own.
alone() {
  [ -O "\$1" ] && at=\$(cd -P -- "\$1" && pwd -P) || return 1
  set -- / "\$at"
  while at=\${at%/*} && [ -n "\$at" ]; do set -- "\$@" "\$at"; done
  # Sorted: the folder itself is the last line.
  list -ldn "\$@" | {
    open=unknown
    while read -r mode links uid gid rest; do
      open=
      case \$mode in
        ????????w*) open=yes ;;
        ?????w*) [ "\$uid" = "\$gid" ] || open=yes ;;
      esac
      case \$open\$mode in yes?????????[tT]*) ;; yes*) exit 1 ;; esac
    done
    [ -z "\$open" ]
  }
}

list() {
  LC_ALL=C ls "\$@" || LC_ALL=C /bin/ls "\$@"
} 2>/dev/null

fail() {
  [ -z "\$new" ] || rm -rf "\$new"
  printf 'svc: %s.\n' "\$1" >&2
  exit 1
}

new=
$check
cache=\${XDG_CACHE_HOME:-\${HOME:+\$HOME/.cache}}
case \$cache in /*) run "\$cache/svc" "\$@" ;; esac

# Unpacks next to the final path and renames, so that what has the final name is whole, however many start at
# once and whenever one of them is killed. Sets why when it fails.
unpack() {
  why='it cannot be made'
  (umask 077 && mkdir -p "\$1") 2>/dev/null
  [ -d "\$1" ] || return 1
  why='it is not a folder that you alone can write to'
  [ ! -h "\$1" ] && alone "\$1" || return 1
  why='nothing can be written there'
  new=\$(mktemp -d "\$1/unpack.\$\$.\$host.XXXXXX" 2>/dev/null) || return 1
  trap 'rm -rf "\$new"; exit 130' HUP INT TERM
  # Linux maps a program that was written 64 KB at a time with fewer page faults: a seventh of a turn. The tar of
  # BusyBox has no -b.
  extract='-xof - -C'
  if why=\$(archive tar -b 128 \$extract "\$new" 2>&1 || archive tar \$extract "\$new" 2>&1) &&
    place "\$new" "\$1/\$hash"; then
    prune "\$1" 2>/dev/null
  fi
  rm -rf "\$new"
  trap - HUP INT TERM
  case \$why in *'No space left'* | *[Qq]uota*) why='the disk is full' ;; esac
  [ -z "\$why" ]
}

# mv would move into a folder that another process has put there meanwhile; a rename fails.
place() {
  [ ! -e "\$2" ] || whole "\$2" || mv "\$2" "\$1/broken"
  why=\$(DENO_DIR="\$1/unpack" DENO_NO_UPDATE_CHECK=1 NO_COLOR=1 "\$1/deno" eval --no-config '
    import { DatabaseSync } from "node:sqlite";
    const [from, to] = Deno.args;
    const url = new URL("file:///");
    url.pathname = to.replaceAll("%", "%25") + "/";
    for (const cache of ["cache", "eager"]) {
      const database = new DatabaseSync(\`\${from}/\${cache}/dep_analysis_cache_v2\`);
      database.prepare("UPDATE moduleinfocache SET specifier = ? || specifier").run(url.href);
      database.close();
    }
    try { Deno.renameSync(from, to) } catch (e) { if (e.code !== "ENOTEMPTY") throw e }' "\$1" "\$2" 2>&1)
  code=\$?
  [ \$code != 0 ] || { rm -rf "\$2/broken" "\$2/unpack" && return; }
  case \$(uname -sm 2>/dev/null) in
    '' | '$machine') ;;
    *) fail "this executable is for $machine, and this is \$(uname -sm)" ;;
  esac
  case \$code in
    126) why='programs may not run there: is it mounted with noexec?' ;;
    127) fail 'Deno needs the GNU C library (glibc), which this system does not have' ;;
  esac
  return 1
}

# Removes what killed processes left, and each unpacked version but this one, the newest other, and those of
# running processes.
prune() {
  find "\$1" -maxdepth 1 -name 'unpack.*' -mmin +60 -exec rm -rf {} +
  for left in "\$1"/unpack.*."\$host".*; do
    id=\${left##*/unpack.} && kill -0 "\${id%%.*}" || rm -rf "\$left"
  done
  running=\$(list -l /proc/[0-9]*/exe; ps -Ao comm=)
  other=
  for old in \$(cd "\$1" && list -dt ????????????????); do
    case \$old in "\$hash" | *[!0-9a-f]*) continue ;; esac
    [ -n "\$other" ] || other=\$old
    case \$other\$running in "\$old"* | *"/\$old/deno"*) ;; ?*/*) rm -rf "\${1:?}/\$old" ;; esac
  done
}

size=@SIZE@
# Runs a program that reads the archive, which follows the stub. No pipe, which would copy 100 MB.
archive() {
  { dd bs=\$size count=1 of=/dev/null 2>/dev/null && LC_ALL=C "\$@"; } <"\$0"
}

[ "\$(archive cksum)" = '$sum' ] ||
  fail "\$0 is damaged or was not downloaded whole; download it again"
host=
[ ! -r /proc/sys/kernel/hostname ] || read -r host </proc/sys/kernel/hostname
temporary=\${TMPDIR:-/tmp}/svc-\$(id -u)
reasons=
for base in "\${cache:+\$cache/svc}" "\$temporary"; do
  case \$base in /*) ;; *) continue ;; esac
  unpack "\$base" && run "\$base" "\$@"
  reasons="\${reasons:+\$reasons, nor into }\$base (\${why%%
*})"
done
fail "cannot unpack itself into \$reasons; XDG_CACHE_HOME can name a folder of yours with 100 MB"
STUB
{
  sed "s/^size=@SIZE@$/size=$(printf %-6s $(($(wc -c <"$work/stub"))))/" "$work/stub"
  payload
} >"$work/svc"
chmod 755 "$work/svc"
mv -f "$work/svc" "$output"
report archive
