#!/usr/bin/env bash
# gotest.sh TIER COMMAND [ARGUMENT...]: runs a command that prints what `go test -json` does, and prints by gotestsum what `go test` would, or with
# FORMAT=standard-verbose what `go test -v` would. At the end come the slowest tests, how busy the machine was, and then the tests that failed, with what
# they wrote, also in build/test/TIER/failures.txt; events.json beside it has the output of every test.
# The exit code is not 0 if a test, a build or the command failed, or if nothing was tested.
set -euo pipefail
tier=$1
shift
folder=build/test/$tier
failures=$folder/failures.txt events=$folder/events.json
rm -rf "$folder"
mkdir -p "$folder"

# Ticks of all processors since the machine booted: all, idle, stolen by others on its host.
ticks() { [ ! -r /proc/stat ] || awk '/^cpu / {for (i = 2; i <= 9; i++) all += $i; print all, $5 + $6, $9}' /proc/stat; }

before=$(ticks) code=0
"$GOTESTSUM" --format "${FORMAT:-standard-quiet}" --jsonfile "$events" --ignore-non-json-output-lines --raw-command -- "$@" |
  sed -u -e '/\[no test\(s to run\| files\)\]$/d' -e '/^=== \(Failed\|Errors\)$/,$ {' -e '/^DONE /b' -e "w $failures" -e d -e '}' || code=1
! grep -q '"Action":"fail"' "$events" || code=1
grep -q '"Action":"pass".*"Test":' "$events" || { echo "$tier: no test has passed"; code=1; }

printf '\nSLOWEST TESTS\n'
"$GOTESTSUM" tool slowest --jsonfile "$events" --num 20
# Without these, durations cannot be compared.
[ -z "$before" ] || echo "$before $(ticks)" | awk -v tier="$tier" '$4 > $1 {
  printf "\n%s: CPU %.0f%% idle, %.0f%% stolen by others on the host\n", tier, 100 * ($5 - $2) / ($4 - $1), 100 * ($6 - $3) / ($4 - $1)}'
if [ "$code" != 0 ]; then
  sed -nE 's/.*"Output":"(--- FAIL: [^"]*)\\n".*/\1/p' "$events" | sed -e '1i\\' # as go test names them
  cat "$failures"
fi
exit "$code"
