#!/usr/bin/env bash
# Runs all tests, the cheapest tier first, and stops at the first tier that fails. A lab that this run booted is taken down, also after a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

# tier NAME: runs a make target and records its duration.
times=
tier() {
  local began=$SECONDS
  make "$1"
  times+=$(printf '%-12s %6d s' "$1" $((SECONDS - began)))$'\n'
}

hack/packages.sh
hack/newer-servers.sh
began=$SECONDS
hack/lab/lab build
times+=$(printf '%-12s %6d s (0 s if the lab is already compiled)' 'lab build' $((SECONDS - began)))$'\n'
tier unit
tier integration
tier truth
if ! hack/lab/lab status >/dev/null 2>&1; then
  trap 'make lab-down' EXIT
fi
tier e2e
printf '\nTIER\n%sall          %6d s\n' "$times" $SECONDS
