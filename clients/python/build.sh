#!/usr/bin/env bash
# Builds the adapters of Python: build.sh OUT makes OUT/RedisPy, OUT/RedisPyAsync and OUT/GlidePython, with what they
# need in OUT/python. The packages are for the version of the python3 in PATH, which must also run them.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:?usage: build.sh OUT}

if ! version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 10))'); then
  echo "build.sh: Python 3.10 or newer is needed as python3${version:+, which is $version}" >&2
  exit 1
fi

mkdir -p "$out/python/packages"
out=$(cd "$out" && pwd)
packages=$out/python/packages/$version
lock=$(sha256sum <"$source/requirements.txt")
if [[ $lock != "$(cat "$packages/.lock" 2>/dev/null)" ]]; then
  python=python3
  if ! python3 -m pip --version >/dev/null 2>&1; then
    python3 -m venv "$out/python/.venv" # brings pip
    python=$out/python/.venv/bin/python3
  fi
  rm -rf "$packages"
  "$python" -m pip install --quiet --no-input --disable-pip-version-check --root-user-action ignore \
    --require-hashes --only-binary :all: --target "$packages" --requirement "$source/requirements.txt"
  rm -rf "$out/python/.venv" "$packages/bin"
  echo "$lock" >"$packages/.lock"
fi

rm -rf "$out/python/redquake_adapter"
cp -R "$source/start.py" "$source/redquake_adapter" "$out/python/"
rm -rf "$out/python/redquake_adapter/__pycache__"
python3 -m compileall -q "$out/python/redquake_adapter"

for driver in RedisPy RedisPyAsync GlidePython; do
  cat >"$out/$driver" <<EOF
#!/bin/sh
# The client adapter $driver: $driver SOCKET
here=\$(dirname "\$(readlink -f "\$0")")
if ! command -v python3 >/dev/null; then
  echo "$driver: Python $version is needed as python3" >&2
  exit 1
fi
exec python3 -I "\$here/python/start.py" $driver "\$@"
EOF
  chmod +x "$out/$driver"
done
