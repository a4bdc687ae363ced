#!/usr/bin/env bash
# Installs Valkey 9, Redis 8 and Prometheus 3, which Debian 12 does not have, for the integration tests and the lab: from Debian's suite sid, with their own
# libraries, into a folder of the user's cache. It changes no package, list or setting of the system, and does not need root.
#
#   newer-servers.sh [--update]
#
# ${XDG_CACHE_HOME:-~/.cache}/redquake/servers/NAME-VERSION holds the unpacked packages, and bin/ the programs valkey-server, valkey-sentinel,
# valkey-cli, valkey-benchmark, redis-server-8, redis-sentinel-8, redis-cli-8, redis-benchmark-8, prometheus3 and promtool3: scripts that start
# them with their own dynamic loader.
# If all of them run, nothing is done and no network is used; --update looks for newer packages nevertheless. Programs with these names in PATH
# serve as well. The mirror is that of apt's sources, or else deb.debian.org; apt checks the signatures.
set -euo pipefail
umask 022
export LC_ALL=C

programs=(valkey-server valkey-sentinel valkey-cli valkey-benchmark redis-server-8 redis-sentinel-8 redis-cli-8 redis-benchmark-8 prometheus3 promtool3)
base=${XDG_CACHE_HOME:-$HOME/.cache}/redquake/servers
remedy="Repeat it when a Debian mirror can be reached, or provide these programs as hack/test-needs.sh says: ${programs[*]}"

fail() {
  printf 'newer-servers.sh: %s\n%s\n' "$*" "$remedy" >&2
  exit 1
}

# installed: whether all programs run.
installed() {
  local program
  for program in "${programs[@]}"; do
    PATH=$PATH:$base/bin timeout 20 "$program" --version >/dev/null 2>&1 || return 1
  done
}

case "${1-}" in
'') if installed; then exit 0; fi ;;
--update) ;;
*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2 && exit 2 ;;
esac

for tool in apt-get dpkg dpkg-deb flock timeout; do
  command -v "$tool" >/dev/null || fail "$tool is missing: it needs Debian or a system derived from it"
done
codename=$(. /etc/os-release && echo "${VERSION_CODENAME-sid}")
arch=$(dpkg --print-architecture)

mkdir -p "$base/bin"
base=$(cd "$base" && pwd -P)
exec 9>"$base/.lock"
flock -w 1800 9 || fail "another one has been working in $base for half an hour"
if [ -z "${1-}" ] && installed; then exit 0; fi # while this one waited

tmp=$(mktemp -d) # readable for the user _apt, as whom apt downloads
trap 'rm -rf "$tmp" "$base"/.new.*' EXIT
trap 'exit 130' INT TERM
chmod 755 "$tmp"
mkdir -p "$tmp/state/lists/partial" "$tmp/cache/archives/partial" "$tmp/log"

# Packages that only set up a system count as installed, so that apt fetches libraries and no init system.
for package in adduser systemd; do
  printf 'Package: %s\nStatus: install ok installed\nArchitecture: %s\nMulti-Arch: foreign\nVersion: 99999\n' "$package" "$arch"
  printf 'Maintainer: nobody <nobody@localhost>\nDescription: placeholder\n\n'
done >"$tmp/status"

# Proxies and logins of the system's settings stay in force; its hooks would write to the system.
cat >"$tmp/apt.conf" <<END
Dir::State "$tmp/state";
Dir::State::lists "$tmp/state/lists";
Dir::State::status "$tmp/status";
Dir::Cache "$tmp/cache";
Dir::Cache::archives "$tmp/cache/archives";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Log "$tmp/log";
Dir::Etc::sourcelist "$tmp/sid.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Default-Release;
APT::Install-Recommends "false";
APT::Update::Error-Mode "any";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
END

# sid SECONDS ARGUMENT...: runs apt-get on sid alone.
sid() {
  timeout -k 10 "$1" apt-get -c "$tmp/apt.conf" -q "${@:2}" >"$tmp/out" 2>&1 </dev/null
}
# why: the end of the last output of apt-get.
why() { tail -n 12 "$tmp/out" | sed 's/^/    /'; }

apt-get -o "Dir::State=$tmp/state" update --print-uris >"$tmp/uris" 2>"$tmp/out" || fail "apt cannot read its sources:
$(why)"
mirrors=$(sed -n "s#^'\(.*\)/dists/\($codename\|stable\|oldstable\|testing\|unstable\|sid\)/InRelease' .*#\1#p" "$tmp/uris" | sort -u | head -n 4)

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
found=
for mirror in $(printf '%s\n' $mirrors http://deb.debian.org/debian | awk '!seen[$0]++'); do
  printf 'Types: deb\nURIs: %s\nSuites: sid\nComponents: main\nArchitectures: %s\nTargets: Packages\n' "$mirror" "$arch" >"$tmp/sid.sources"
  [ ! -r "$keyring" ] || echo "Signed-By: $keyring" >>"$tmp/sid.sources" # else apt accepts all keys that it trusts
  echo "reading the packages of sid from $mirror (11 MB)"
  if sid 300 update; then
    found=yes
    break
  fi
done
[ -n "$found" ] || fail "no mirror has sid. If a key is missing, install a newer package debian-archive-keyring. The output of apt:
$(why)"

# wrap NAME-VERSION SERVER PROGRAM: writes the script PROGRAM. The server gets its name, by which it recognizes a sentinel, as its own.
wrap() {
  local loader foreign
  loader=$(cd "$base/$1" && echo usr/lib/*/ld-linux*.so.* | cut -d ' ' -f 1)
  foreign=$("$base/$1/$loader" --inhibit-cache --library-path "$base/$1/${loader%/*}" --list "$base/$1/usr/bin/$2" |
    grep -F ' => ' | grep -vF " => $base/$1/") || [ $? = 1 ]
  [ -z "$foreign" ] || fail "$2 of $1 would use libraries of the system; remove $base/$1 and repeat it:
$foreign"
  cat >"$base/bin/.$3" <<END
#!/bin/sh
# Written by newer-servers.sh: $2 of $1 with its own dynamic loader.
bin=\$(dirname -- "\$(readlink -f -- "\$0")")
root=\${bin%/*}/$1
exec "\$root/$loader" --inhibit-cache --library-path "\$root/${loader%/*}" --argv0 "\$bin/$3" "\$root/usr/bin/$2" "\$@"
END
  chmod 755 "$base/bin/.$3"
  mv "$base/bin/.$3" "$base/bin/$3"
}

# get NAME MAJOR PACKAGE...: unpacks the packages, unless this version of the first is there, and sets into to NAME-VERSION.
get() {
  local name=$1 major=$2 version new deb
  shift 2
  sid 60 install --print-uris --download-only --yes "$@" || fail "the packages of $name in sid do not fit together today. The output of apt:
$(why)"
  sed -n "s/^'.*' \([^ ]*\.deb\) .*/\1/p" "$tmp/out" >"$tmp/$name.debs"
  version=$(sed -n "s/^$1_\(.*%3a\)\{0,1\}\([^_]*\)_.*/\2/p" "$tmp/$name.debs")
  [ -n "$version" ] || fail "sid has no $1 for $arch"
  case "$version" in "$major".*) ;; *) fail "sid has $name $version, no longer $major: decide which versions are tested, here and in internal/testing/redistest" ;; esac
  into=$name-$version
  [ ! -d "$base/$into" ] || return 0
  echo "downloading $into"
  sid 900 install --download-only --yes "$@" || fail "$into was not downloaded. The output of apt:
$(why)"
  new=$base/.new.$name
  rm -rf "$new"
  mkdir "$new"
  while read -r deb; do
    dpkg-deb -x "$tmp/cache/archives/$deb" "$new" || fail "$deb was not unpacked into $base: is the disk full?"
  done <"$tmp/$name.debs"
  rm -rf "${new:?}"/{etc,var,usr/share/man,usr/share/locale}
  mv "$new" "$base/$into"
  rm -f "$tmp"/cache/archives/*.deb # else apt would not name shared libraries for the next one
}

get valkey 9 valkey-server valkey-tools
for program in valkey-server valkey-sentinel valkey-cli valkey-benchmark; do
  wrap "$into" "${program/sentinel/server}" "$program"
done
get redis 8 redis-server redis-tools
for program in redis-server redis-sentinel redis-cli redis-benchmark; do
  wrap "$into" "${program/sentinel/server}" "$program-8"
done
get prometheus 3 prometheus promtool
for program in prometheus promtool; do
  wrap "$into" "$program" "${program}3"
done
installed || fail "the installed programs do not run; remove $base and repeat it"
echo "installed ${programs[*]} in $base/bin"
