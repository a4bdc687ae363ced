#!/usr/bin/env bash
# Builds Chaos Mesh's agent, chaos-daemon, from its Go module. It needs gcc.
#
#   build-daemon.sh PROGRAM
#
# The agent embeds the machine code of two functions that stand in for the clock. The module has only their sources: upstream compiles them into its tree
# first, so this builds a copy of the module in which they are compiled.
set -euo pipefail

cd "$(dirname "$0")"
program=$1
work=$(dirname "$program")/chaosmesh
module=github.com/chaos-mesh/chaos-mesh

folder=$(go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
[ -n "$folder" ] || {
  echo "$0: go mod download says no folder of $module" >&2
  exit 1
}
rm -rf "$work"
mkdir -p "$work/source"
cp -r --no-preserve=mode "$folder/." "$work/source"
# The agent copies the section .text into the server and relocates nothing but variables, next to it: so no function may be called, and no table be needed.
flags=(-c -O2 -fPIE)
[ "$(go env GOARCH)" != arm64 ] || flags+=(-mcmodel=tiny) # as upstream
for function in fake_clock_gettime fake_gettimeofday; do
  gcc "${flags[@]}" -o "$work/source/pkg/time/fakeclock/$function.o" "$work/source/pkg/time/fakeclock/$function.c"
done

cp go.mod go.sum "$work"
go mod edit -replace "$module=$work/source" "$work/go.mod"
# What traces processes is written in C.
CGO_ENABLED=1 go build -modfile "$work/go.mod" -o "$program" "$module/cmd/chaos-daemon"
