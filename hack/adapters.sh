#!/usr/bin/env bash
# Builds the adapters of client libraries into bin/adapters, from the registries' packages in locked versions: bin/adapters/DRIVER SOCKET.
# What is built already takes a second.
#
#   adapters.sh [python|node|java|rust]...    all of them by default
#
# Each language needs its own tools: Python 3.10 with pip, a JDK 17 with Maven, Rust 1.88 with a C compiler; Node.js 20 comes by pip if there is
# none. As root it installs what is missing from Debian 12, whose security updates have a newer Rust, named cargo-web.
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
  node) need python3 python3 python3-pip ;;
  java) need mvn maven openjdk-17-jdk-headless ;;
  rust)
    need cc gcc libc6-dev
    need cargo cargo-web rustc-web
    ;;
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
