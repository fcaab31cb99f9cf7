#!/bin/sh
# Installs svc: downloads the executable for this machine, checks its SHA-256 sum, and puts it into a folder of
# yours. Needs no root, and curl or wget.
# install.sh --help shows the options.
set -eu

# The workflow that makes a release puts in its own repository.
repository=${SVC_REPOSITORY:-OWNER/svc}
site=https://github.com

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit "${2:-1}"
}

main() {
  version='' dir='' from='' uninstall=no
  while [ $# -gt 0 ]; do
    case $1 in
      --uninstall) uninstall=yes ;;
      --version | --dir | --from)
        [ $# -gt 1 ] && [ -n "$2" ] || fail "$1 needs a value." 2
        case $1 in --version) version=${2#v} ;; --dir) dir=$2 ;; *) from=${2%/} ;; esac
        shift
        ;;
      -h | --help)
        usage
        exit 0
        ;;
      *) fail "There is no option \"$1\". Try: install.sh --help" 2 ;;
    esac
    shift
  done
  if [ -z "$dir" ]; then
    [ -n "${HOME:-}" ] || fail 'HOME is not set; name a folder with --dir.' 2
    dir=$HOME/.local/bin
  fi
  case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
  again="install.sh --uninstall$([ "$dir" = "${HOME:-}/.local/bin" ] || echo " --dir $dir")"
  file=$dir/svc
  [ ! -h "$file" ] || fail "$file is a link, as npm makes one. Remove it in the way it was made."
  [ ! -d "$file" ] || fail "$file is a folder."
  if [ $uninstall = yes ]; then remove; else install; fi
}

usage() {
  cat <<'USAGE'
Installs svc: install.sh [--version VERSION] [--dir DIR] [--from FOLDER_OR_URL]
Removes it:   install.sh --uninstall [--dir DIR]

  --version    The version, such as 0.2.0; default: the newest. An older one is installed in the same way.
  --dir        Where the executable goes. Default: ~/.local/bin.
  --from       Where the files of a release are, instead of the releases of the project.
  --uninstall  Removes the executable and what it has unpacked. Settings, keys and sessions stay.
USAGE
}

install() {
  name=$(asset)
  [ ! -e "$file" ] || [ -n "$(installed)" ] || fail "$file is another program, or does not start. Remove it first."
  if [ -z "$from" ]; then
    case $repository in OWNER/*) fail 'The repository is not known here; set SVC_REPOSITORY, or --from.' 2 ;; esac
    from=$site/$repository/releases/${version:+download/v$version}
    [ -n "$version" ] || from=${from}latest/download
  fi
  mkdir -p "$dir" || fail "The folder $dir cannot be made."
  work=$(mktemp -d "$dir/.svc-install.XXXXXX") || fail "Nothing can be written into $dir."
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' HUP INT TERM
  fetch SHA256SUMS
  fetch "$name"
  wanted=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$name\$/\1/p" "$work/SHA256SUMS")
  [ -n "$wanted" ] || fail "SHA256SUMS of $from does not list $name."
  sum=$(sha256 "$work/$name")
  [ "$sum" = "$wanted" ] ||
    fail "$name is damaged: its SHA-256 is $sum, and not $wanted. Nothing was changed. Download it again."
  gzip -dc "$work/$name" >"$work/svc" || fail "$name cannot be unpacked: is the disk full?"
  chmod 755 "$work/svc"
  { now=$("$work/svc" --version) && HOME=${HOME:-$work} "$work/svc" --version --verbose >"$work/about"; } ||
    fail 'The new svc does not start here (see above). Nothing was changed.'
  [ -z "$version" ] || [ "$now" = "$version" ] || fail "$from has svc $now, and not $version. Nothing was changed."
  before=$(installed)
  mv -f "$work/svc" "$file"
  echo "Installed svc $now as $file (SHA-256 checked)."
  [ -z "$before" ] || echo "It replaces svc $before. Restart what runs: servers, schedulers, fleets."
  case :${PATH:-}: in
    *":$dir:"*) ;;
    *) echo "$dir is not on your PATH. Add it: export PATH=\"$dir:\$PATH\"" ;;
  esac
  echo "Remove it with: $again"
}

# The version of the svc that is installed; nothing for another program.
installed() {
  [ ! -f "$file" ] || "$file" --version 2>/dev/null </dev/null | sed -n '1s/^\([0-9]*\.[0-9]*\.[0-9][^ ]*\)$/\1/p'
}

# The file of the release for this machine.
asset() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=macos ;;
    *) fail "svc runs on Linux and macOS, and this is $(uname -s)." ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "svc runs on x64 and arm64, and this is $(uname -m)." ;;
  esac
  echo "svc-$os-$arch.gz"
}

fetch() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl -fsSL --retry 2 -o "$work/$1" "$from/$1" || fail "$from/$1 cannot be downloaded."
      elif command -v wget >/dev/null; then
        wget -q -O "$work/$1" "$from/$1" || fail "$from/$1 cannot be downloaded."
      else
        fail 'It takes curl or wget to download svc.'
      fi
      ;;
    *) cp "$from/$1" "$work/$1" || fail "$from/$1 cannot be read." ;;
  esac
}

sha256() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

remove() {
  [ -e "$file" ] || fail "There is no $file to remove."
  [ -n "$(installed)" ] || fail "$file is another program, or does not start. Remove it yourself if it is svc's."
  rm -f "$file"
  echo "Removed $file."
  cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
  for unpacked in "${cache:+$cache/svc}" "${HOME:+$HOME/.cache/svc-commands}" "${TMPDIR:-/tmp}/svc-$(id -u)"; do
    if [ -n "$unpacked" ] && [ -d "$unpacked" ] && [ -O "$unpacked" ] && [ ! -h "$unpacked" ]; then
      rm -rf "$unpacked"
      echo "Removed $unpacked, a cache of svc."
    fi
  done
  echo "Settings and keys stay in ${HOME:-~}/.config/svc, and sessions in the .svc folder of each project."
}

main "$@"
