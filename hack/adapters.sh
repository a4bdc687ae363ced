#!/usr/bin/env bash
# Builds the adapters of client libraries into bin/adapters, from the registries' packages in locked versions: bin/adapters/DRIVER SOCKET.
# What is built already takes a second.
#
#   adapters.sh [python|node|java|rust]...    all of them by default
#
# Each language needs its own tools: Python 3.10 with pip, Node.js 20 with npm, a JDK 17 with Maven, Rust 1.88 with a C compiler. As root it
# installs those that are missing from Debian, as far as that has them.
set -euo pipefail
cd "$(dirname "$0")/.."

languages=(python node java rust)

# need PROGRAM PACKAGE...: installs the Debian packages if there is no such program.
need() {
  command -v "$1" >/dev/null && return
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then return; fi # the build says what is missing
  echo "installing ${*:2} by apt"
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "${@:2}" >/dev/null
}

tools() {
  case $1 in
  python) need python3 python3 python3-pip python3-venv ;;
  node) need npm nodejs npm ;;
  java) need mvn maven openjdk-17-jdk-headless ;;
  rust) need cargo cargo rustc ;;
  esac
}

[ $# -gt 0 ] || set -- "${languages[@]}"
for language; do
  if [ ! -x "clients/$language/build.sh" ]; then
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2
    exit 2
  fi
  tools "$language"
  "clients/$language/build.sh" bin/adapters
done
