#!/usr/bin/env bash
# Makes the file of a release for this machine, svc-<linux|macos>-<x64|arm64>.gz, and the sums of all files
# there, SHA256SUMS, which install.sh checks.
#
#   packaging/release.sh [FOLDER [EXECUTABLE]]    Default: dist/release, and a new executable of compile.sh.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd -P)
output=${1:-$root/dist/release}
executable=${2:-}

case $(uname -sm) in
  'Linux x86_64') name=svc-linux-x64 ;;
  'Linux aarch64') name=svc-linux-arm64 ;;
  'Darwin x86_64') name=svc-macos-x64 ;;
  'Darwin arm64') name=svc-macos-arm64 ;;
  *) echo "release.sh: there is no release for $(uname -sm)." >&2 && exit 2 ;;
esac
mkdir -p "$output"
if [ -z "$executable" ]; then
  executable=$root/dist/svc
  "$root/compile.sh" --output "$executable"
fi
gzip -nc "$executable" >"$output/$name.gz"
cd "$output"
sums=$(command -v sha256sum || echo 'shasum -a 256')
rm -f SHA256SUMS
$sums -- * >SHA256SUMS
printf '%s: %s MB\n' "$output/$name.gz" $(($(wc -c <"$name.gz") / 1000000))
