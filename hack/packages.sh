#!/usr/bin/env bash
# Installs the Debian packages that the lab and the tests need, where they are missing, and starts none of their services.
# It needs root and apt; without them it lists the packages to install.
set -euo pipefail

packages=(
  ca-certificates git curl make procps util-linux openssl # the scripts
  gcc libc6-dev                                           # the race detector
  redis-server redis-sentinel redis-tools                 # the servers under test
  postgresql mariadb-server                               # the databases behind cacheAside
  prometheus                                              # stop conditions; promtool
  chromium                                                # the pages of reports
  runc containernetworking-plugins iptables conntrack     # the lab's nodes
  iproute2 busybox-static e2fsprogs
)

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "missing packages (by their Debian names), which need root and apt-get to install: ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d # keeps Debian from starting services
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
fi
apt-get update -q
apt-get install -y -q --no-install-recommends "${missing[@]}"
