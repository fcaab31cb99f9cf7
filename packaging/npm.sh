#!/usr/bin/env bash
# Makes the npm package of svc: the bundle of compile.sh, started by the Deno of the packages @deno/*, which are
# optional dependencies at the version of .deno-version. Nothing runs when it is installed.
#
#   packaging/npm.sh [FOLDER]    Default: dist/npm. The package is then made by: npm pack FOLDER
#
# GITHUB_REPOSITORY (owner/name) is named as the package's repository when it is set.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd -P)
output=${1:-$root/dist/npm}

"$root/compile.sh" --bundle --output "$output" >/dev/null
rm "$output/deno"
cp "$root/README.md" "$root/LICENSE" "$output"

deno=$(<"$root/.deno-version")
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$root/deno.json")
platforms=(linux-x64-glibc linux-arm64-glibc darwin-x64 darwin-arm64)
{
  printf '{\n  "name": "@svc-run/svc",\n  "version": "%s",\n' "$version"
  printf '  "description": "An agent runtime for work that runs unattended.",\n  "license": "MIT",\n'
  [ -z "${GITHUB_REPOSITORY:-}" ] ||
    printf '  "repository": {"type": "git", "url": "git+https://github.com/%s.git"},\n' "$GITHUB_REPOSITORY"
  printf '  "type": "module",\n  "bin": {"svc": "svc"},\n  "os": ["linux", "darwin"],\n  "cpu": ["x64", "arm64"],\n'
  printf '  "optionalDependencies": {'
  separator=
  for platform in "${platforms[@]}"; do
    printf '%s\n    "@deno/%s": "%s"' "$separator" "$platform" "$deno"
    separator=,
  done
  printf '\n  }\n}\n'
} >"$output/package.json"
printf '%s: npm package @svc-run/svc %s\n' "$output" "$version"
