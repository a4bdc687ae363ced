#!/usr/bin/env bash
# Installs Debian packages where they are missing, says which, what for and how much that is, and starts none of their services.
# It needs root and apt; without them it lists the packages to install.
#
#   packages.sh [all|demo|chaosmesh]
#
# demo is what the lab and the demos need. all, the default, is that and what the tests need; chaosmesh is that of demo, and what Chaos Mesh's agent needs.
set -euo pipefail

# SET: PURPOSE: PACKAGE...
groups='
demo: the scripts: ca-certificates git make procps util-linux
demo: the Redis that is loaded: redis-server redis-tools
demo: the nodes of the lab: runc containernetworking-plugins iptables conntrack iproute2 busybox-static e2fsprogs
all: the scripts, and the commands that pages show: curl openssl jq
all: the race detector: gcc libc6-dev
all: tests of Sentinel: redis-sentinel
all: tests of proxies: nutcracker
all: tests of caches before databases: postgresql mariadb-server
all: tests of stop conditions and alerts: prometheus
all: tests of the pages of reports: chromium
chaosmesh: the agent of Chaos Mesh: ipset stress-ng gcc libc6-dev
'

wanted=${1:-all}
case $wanted in
all | demo | chaosmesh) ;;
*) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2 && exit 2 ;;
esac

missing=() plan=
while IFS=: read -r set purpose packages; do
  [ "$set" = demo ] || [ "$set" = "$wanted" ] || continue
  here=()
  for p in $packages; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || here+=("$p")
  done
  ((${#here[@]})) || continue
  missing+=("${here[@]}")
  plan+="  for$purpose: ${here[*]}"$'\n'
done <<<"$groups"
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  printf 'missing packages (by their Debian names), which need root and apt-get to install:\n%s' "$plan" >&2
  exit 1
fi
printf 'installing packages by apt:\n%s' "$plan"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
policy=/usr/sbin/policy-rc.d # keeps Debian from starting services
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
apt-get update -q
# Packages that these depend on count, too: apt lists every file that it is going to download, with its size.
apt-get install -qq --yes --no-install-recommends --print-uris "${missing[@]}" |
  awk '{size += $3} END {printf "to download: %d packages, %.0f MB\n", NR, size / 1e6}'
apt-get install -q --yes --no-install-recommends "${missing[@]}"
