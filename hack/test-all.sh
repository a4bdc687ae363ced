#!/usr/bin/env bash
# Runs all tests, the cheapest tier first, and stops at the first tier that fails. A lab that this run booted is taken down, also after a failure.
# The last lines after a failure are the tests that failed, with what they wrote.
set -euo pipefail
cd "$(dirname "$0")/.."

times=
step='preparation' began=0 # what runs, since when
booted=                    # whether this run may have booted the lab

# timed NAME COMMAND...: runs a command and records its duration.
timed() {
  step=$1 began=$SECONDS
  "${@:2}"
  record
  step=
}

record() { times+=$(printf '%-12s %6d s' "$step" $((SECONDS - began)))$'\n'; }

finish() {
  local code=$? failures=build/test/$step/failures.txt
  [ -z "$step" ] || record
  [ -z "$booted" ] || make lab-down || code=1
  printf '\nTIER (the lab is built once, and then takes 0 s)\n%sall          %6d s\n' "$times" $SECONDS
  if [ "$code" != 0 ]; then
    if [ -n "$step" ] && [ -s "$failures" ]; then
      cat "$failures"
    else
      printf '\nFAILED\n%s: it says why above the table\n' "${step:-make lab-down}"
    fi
  fi
  exit "$code"
}

rm -rf build/test
trap finish EXIT
trap 'exit 130' INT TERM
hack/packages.sh
hack/newer-servers.sh
timed 'lab build' hack/lab/lab build
for tier in unit integration truth; do
  timed "$tier" make "$tier"
done
hack/lab/lab status >/dev/null 2>&1 || booted=yes
timed e2e make e2e
