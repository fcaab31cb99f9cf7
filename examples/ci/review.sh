#!/bin/sh
# Reviews the commits of a branch: review.sh [base], by default against origin/main.
# Exits with 0 when the reviewer passes them, with 1 when it does not or the run fails.
set -eu
base=${1:-origin/main}

# In plan mode the agent changes nothing and runs no commands.
review=$({
  echo 'Review this change. End with the line "VERDICT: pass" or "VERDICT: fail".'
  git diff "$base...HEAD"
} | svc run --role code-reviewer --mode plan --output text -)

printf '%s\n' "$review"
printf '%s\n' "$review" | grep -q '^VERDICT: pass$'
