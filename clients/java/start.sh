#!/bin/sh
# Starts the adapter of Redquake for @DRIVER@: @DRIVER@ SOCKET
set -eu

here=$(dirname "$(readlink -f "$0")")
version=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1) || true
if [ "${version:-0}" -lt 17 ]; then
  echo "@DRIVER@ needs java 17 or newer in PATH" >&2
  exit 1
fi

# The JVM's defaults, as most applications have them, but for an end at the first OutOfMemoryError: a program that goes on after one is of no use.
# Standard output belongs to nobody: what libraries print goes to standard error.
exec java -XX:+ExitOnOutOfMemoryError -Djava.io.tmpdir="${TMPDIR:-/tmp}" -cp "$here/java/lib/*" "redquake.drivers.@DRIVER@" "$@" >&2
